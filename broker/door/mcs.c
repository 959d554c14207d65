/* SPDX-License-Identifier: ISC */
/*
 * Strict where a length decides what is read next, lenient where a field means nothing to a
 * redirection: clients differ in those.
 */
#include "door/mcs.h"

#include <errno.h>
#include <string.h>

#define TPKT_SIZE 4
#define USER_BASE 1001 /* T.125: user ids travel less this */
#define SERVER_USER 1002

/* BER tags. */
#define CONNECT_INITIAL "\x7f\x65"
#define CONNECT_RESPONSE "\x7f\x66"
#define TAG_BOOLEAN 0x01
#define TAG_OCTETS 0x04
#define TAG_SEQUENCE 0x30

/* Types of a client's data blocks. */
enum { CS_CORE = 0xc001, CS_NET = 0xc003, CS_CLUSTER = 0xc004 };
#define REDIRECTION_SUPPORTED 1
/* Where CS_CORE has serverSelectedProtocol, which old clients leave out. */
#define CORE_SELECTED_AT 208

/* The choice of a domain PDU stands in the upper six bits of its first octet. */
enum { ERECT = 1, DISCONNECT = 8, ATTACH = 10, JOIN = 14, SEND_DATA = 25 };

int tpkt_size(const uint8_t *data, size_t len, size_t max, size_t *ret_size, struct err *e)
{
	size_t size;

	if ((len > 0 && data[0] != 3) || (len > 1 && data[1] != 0))
		return err_set(e, -EINVAL, "not TPKT version 3");
	if (len < TPKT_SIZE)
		return -EAGAIN;
	size = (size_t)(data[2] << 8 | data[3]);
	if (size < TPKT_SIZE + 3)
		return err_set(e, -EINVAL, "a packet of %zu bytes", size);
	if (size > max)
		return err_set(e, -EINVAL, "a packet of %zu bytes, more than %zu", size, max);
	*ret_size = size;
	return 0;
}

int tpkt_data(const uint8_t *packet, size_t size, struct pdu *ret, struct err *e)
{
	struct pdu r = pdu_of(packet, size);

	pdu_take(&r, TPKT_SIZE);
	pdu_expect(&r, "\x02\xf0\x80", 3);
	if (r.bad)
		return err_set(e, -EINVAL, "no X.224 data");
	*ret = r;
	return 0;
}

/* ---- Connect-Initial ---- */

static void read_core(struct pdu *block, struct mcs_client *ret)
{
	if (pdu_left(block) < CORE_SELECTED_AT + 4)
		return;
	pdu_take(block, CORE_SELECTED_AT);
	ret->selected = pdu_u32le(block);
}

static int read_block(uint16_t type, struct pdu *block, struct mcs_client *ret, struct err *e)
{
	uint32_t count;

	switch (type) {
	case CS_CORE:
		read_core(block, ret);
		return 0;
	case CS_NET:
		count = pdu_u32le(block);
		if (block->bad || count > MCS_CHANNELS_MAX || pdu_left(block) < count * 12)
			return err_set(e, -EINVAL, "a list of %u static channels in %zu bytes",
				count, pdu_left(block));
		ret->channels = count;
		return 0;
	case CS_CLUSTER:
		ret->can_redirect = pdu_u32le(block) & REDIRECTION_SUPPORTED;
		return block->bad ? err_set(e, -EINVAL, "an empty cluster block") : 0;
	default:
		return 0;
	}
}

/* The client's data blocks in a GCC Conference Create Request. */
static struct pdu conference_blocks(struct pdu *user_data)
{
	/* Object identifier of T.124, then the length of all that follows. */
	pdu_expect(user_data, "\x00\x05\x00\x14\x7c\x00\x01", 7);
	pdu_per_length(user_data);
	/* Conference name "1", one set of user data, its key h221 "Duca". */
	pdu_expect(user_data,
		"\x00\x08\x00\x10\x00\x01\xc0\x00"
		"Duca",
		12);
	return pdu_take(user_data, pdu_per_length(user_data));
}

static struct pdu connect_user_data(struct pdu *data)
{
	struct pdu body;

	pdu_expect(data, CONNECT_INITIAL, 2);
	body = pdu_take(data, pdu_ber_length(data));
	pdu_ber(&body, TAG_OCTETS); /* calling and called domain selector */
	pdu_ber(&body, TAG_OCTETS);
	pdu_ber(&body, TAG_BOOLEAN);
	for (int i = 0; i < 3; i++) /* target, minimum, maximum parameters */
		pdu_ber(&body, TAG_SEQUENCE);
	return pdu_ber(&body, TAG_OCTETS);
}

int mcs_parse_connect(struct pdu data, struct mcs_client *ret, struct err *e)
{
	struct pdu user_data = connect_user_data(&data);
	struct pdu blocks = conference_blocks(&user_data);
	struct mcs_client client = {0};

	if (blocks.bad)
		return err_set(e, -EINVAL, "no MCS Connect-Initial with client data");
	while (pdu_left(&blocks) > 0) {
		uint16_t type = pdu_u16le(&blocks), len = pdu_u16le(&blocks);
		struct pdu block = pdu_take(&blocks, len < 4 ? SIZE_MAX : len - 4u);
		int r;

		if (block.bad)
			return err_set(e, -EINVAL, "a block of client data with a wrong length");
		r = read_block(type, &block, &client, e);
		if (r < 0)
			return r;
	}
	*ret = client;
	return 0;
}

/* ---- Connect-Response ---- */

static void add_header(struct buf *out, size_t data_len)
{
	pdu_add_u16be(out, 0x0300);
	pdu_add_u16be(out, (uint16_t)(TPKT_SIZE + 3 + data_len));
	buf_add(out, "\x02\xf0\x80", 3);
}

static void add_server_blocks(struct buf *out, unsigned channels, uint32_t requested)
{
	pdu_add_u16le(out, 0x0c01); /* core: version 5.0 and up */
	pdu_add_u16le(out, 12);
	pdu_add_u32le(out, 0x00080004);
	pdu_add_u32le(out, requested);
	pdu_add_u16le(out, 0x0c03); /* network */
	pdu_add_u16le(out, (uint16_t)(8 + 2 * (channels + channels % 2)));
	pdu_add_u16le(out, MCS_IO_CHANNEL);
	pdu_add_u16le(out, (uint16_t)channels);
	for (unsigned i = 1; i <= channels; i++)
		pdu_add_u16le(out, (uint16_t)(MCS_IO_CHANNEL + i));
	if (channels % 2)
		pdu_add_u16le(out, 0);
	pdu_add_u16le(out, 0x0c02); /* security: none of RDP's own */
	pdu_add_u16le(out, 12);
	pdu_add_u32le(out, 0);
	pdu_add_u32le(out, 0);
}

void mcs_add_connect_response(struct buf *out, unsigned channels, uint32_t requested)
{
	static const uint8_t result[] = {0x0a, 1, 0, 0x02, 1, 0};
	static const uint8_t parameters[] = {TAG_SEQUENCE, 26, 0x02, 1, 34, 0x02, 1, 3, 0x02, 1, 0,
		0x02, 1, 1, 0x02, 1, 0, 0x02, 1, 1, 0x02, 3, 0, 0xff, 0xf8, 0x02, 1, 2};
	/* T.124's object identifier; 42, which every server writes as a length and no client reads;
	 * Conference Create Response: node 31219, tag 1, success, one set, key h221 "McDn". */
	static const uint8_t conference[] = {0, 5, 0, 0x14, 0x7c, 0, 1, 42, 0x14, 0x76, 0x0a, 1, 1,
		0, 1, 0xc0, 0, 'M', 'c', 'D', 'n'};
	struct buf blocks = BUF_INIT(512), user = BUF_INIT(1024), body = BUF_INIT(1024);
	size_t head;

	add_server_blocks(&blocks, channels, requested);
	buf_add(&user, conference, sizeof(conference));
	pdu_add_per_length(&user, blocks.len);
	buf_add(&user, blocks.data, blocks.len);
	buf_add(&body, result, sizeof(result));
	buf_add(&body, parameters, sizeof(parameters));
	pdu_add_u8(&body, TAG_OCTETS);
	pdu_add_ber_length(&body, user.len);
	buf_add(&body, user.data, user.len);
	head = body.len >= 0x100 ? 5 : body.len >= 0x80 ? 4 : 3;
	if (buf_error(&blocks) || buf_error(&user) || buf_error(&body))
		out->error = out->error ? out->error : -ENOMEM;
	add_header(out, head + body.len);
	buf_add(out, CONNECT_RESPONSE, 2);
	pdu_add_ber_length(out, body.len);
	buf_add(out, body.data, body.len);
	buf_deinit(&blocks);
	buf_deinit(&user);
	buf_deinit(&body);
}

/* ---- domain PDUs ---- */

static uint16_t read_user(struct pdu *r)
{
	uint16_t id = pdu_u16be(r);

	if (id > UINT16_MAX - USER_BASE)
		r->bad = true;
	return (uint16_t)(id + USER_BASE);
}

static void read_send_data(struct pdu *r, struct mcs_domain_request *ret)
{
	ret->user = read_user(r);
	ret->channel = pdu_u16be(r);
	pdu_u8(r); /* priority and segmentation */
	ret->data = pdu_take(r, pdu_per_length(r));
	r->bad = r->bad || ret->data.bad;
}

int mcs_parse_request(struct pdu data, struct mcs_domain_request *ret, struct err *e)
{
	struct mcs_domain_request request = {0};
	uint8_t choice = pdu_u8(&data) >> 2;

	switch (choice) {
	case ERECT: /* heights and intervals mean nothing here */
		request.kind = MCS_ERECT;
		break;
	case ATTACH:
		request.kind = MCS_ATTACH;
		break;
	case JOIN:
		request.kind = MCS_JOIN;
		request.user = read_user(&data);
		request.channel = pdu_u16be(&data);
		break;
	case SEND_DATA:
		request.kind = MCS_DATA;
		read_send_data(&data, &request);
		break;
	case DISCONNECT:
		request.kind = MCS_DISCONNECT;
		break;
	default:
		return err_set(e, -EINVAL, "an MCS request of kind %u", choice);
	}
	if (data.bad)
		return err_set(e, -EINVAL, "an MCS request that is cut short");
	*ret = request;
	return 0;
}

void mcs_add_attach_confirm(struct buf *out, uint16_t user)
{
	add_header(out, 4);
	pdu_add_u16be(out, 0x2e00); /* with a user id; successful */
	pdu_add_u16be(out, (uint16_t)(user - USER_BASE));
}

void mcs_add_join_confirm(struct buf *out, uint16_t user, uint16_t channel)
{
	add_header(out, 8);
	pdu_add_u16be(out, 0x3e00); /* with a channel id; successful */
	pdu_add_u16be(out, (uint16_t)(user - USER_BASE));
	pdu_add_u16be(out, channel);
	pdu_add_u16be(out, channel);
}

void mcs_add_data(struct buf *out, const void *data, size_t len)
{
	add_header(out, 8 + len);
	pdu_add_u8(out, 0x68);
	pdu_add_u16be(out, SERVER_USER - USER_BASE);
	pdu_add_u16be(out, MCS_IO_CHANNEL);
	pdu_add_u8(out, 0x70);
	pdu_add_u16be(out, (uint16_t)(0x8000 | len));
	buf_add(out, data, len);
}
