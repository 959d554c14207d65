/* SPDX-License-Identifier: ISC */
/* Built inside out: the fields first, since every header around them tells their length. */
#include "door/redirection.h"

#include <errno.h>
#include <string.h>

#include "base/utf16.h"
#include "door/mcs.h"
#include "door/pdu.h"

#define PACKET_MAX 8192 /* what PER's short length and any client can take */

/* Which fields are there. */
enum {
	LB_TARGET_NET_ADDRESS = 0x1,
	LB_LOAD_BALANCE_INFO = 0x2,
	LB_USERNAME = 0x4,
	LB_DOMAIN = 0x8,
	LB_DONTSTOREUSERNAME = 0x20,
	LB_TARGET_FQDN = 0x100,
};

static void add_confirm(struct buf *out, uint8_t type, uint32_t value)
{
	pdu_add_u16be(out, 0x0300);
	pdu_add_u16be(out, 19);
	buf_add(out, "\x0e\xd0\x00\x00\x12\x34\x00", 7);
	pdu_add_u8(out, type);
	pdu_add_u8(out, 0);
	pdu_add_u16le(out, 8);
	pdu_add_u32le(out, value);
}

void redirection_add_confirm(struct buf *out, uint32_t protocol)
{
	add_confirm(out, 2, protocol);
}

void redirection_add_failure(struct buf *out, uint32_t code)
{
	add_confirm(out, 3, code);
}

void redirection_add_licence(struct buf *out)
{
	struct buf body = BUF_INIT(64);

	pdu_add_u32le(&body, 0x0080);  /* SEC_LICENSE_PKT */
	buf_add(&body, "\xff\x03", 2); /* ERROR_ALERT, version 3 */
	pdu_add_u16le(&body, 16);
	pdu_add_u32le(&body, 7); /* STATUS_VALID_CLIENT */
	pdu_add_u32le(&body, 2); /* ST_NO_TRANSITION */
	pdu_add_u16le(&body, 4); /* an empty blob with words of error */
	pdu_add_u16le(&body, 0);
	mcs_add_data(out, body.data, body.len);
	buf_deinit(&body);
}

void redirection_add_errinfo(struct buf *out, uint32_t code)
{
	struct buf body = BUF_INIT(64);

	pdu_add_u16le(&body, 22);     /* of all that follows, and itself */
	pdu_add_u16le(&body, 0x0017); /* PDUTYPE_DATAPDU, version 1 */
	pdu_add_u16le(&body, 1002);
	pdu_add_u32le(&body, 0x000103ea); /* share: any before Demand Active */
	pdu_add_u8(&body, 0);
	pdu_add_u8(&body, 1); /* STREAM_LOW */
	pdu_add_u16le(&body, 8);
	pdu_add_u8(&body, 47); /* PDUTYPE2_SET_ERROR_INFO_PDU */
	pdu_add_u8(&body, 0);
	pdu_add_u16le(&body, 0);
	pdu_add_u32le(&body, code);
	mcs_add_data(out, body.data, body.len);
	buf_deinit(&body);
	buf_add(out, "\x03\x00\x00\x09\x02\xf0\x80\x21\x80", 9); /* rn-user-requested */
}

static bool given(const char *text)
{
	return text && *text;
}

static void add_text(struct buf *b, const char *text)
{
	struct buf wide = BUF_INIT(PACKET_MAX);

	if (!given(text))
		return;
	utf16_add(&wide, text, strlen(text));
	pdu_add_u16le(&wide, 0);
	pdu_add_u32le(b, (uint32_t)wide.len);
	buf_add(b, wide.data, wide.len);
	if (buf_error(&wide) && !b->error)
		b->error = buf_error(&wide);
	buf_deinit(&wide);
}

static uint32_t flags_of(const struct redirection *to)
{
	return (given(to->address) ? LB_TARGET_NET_ADDRESS : 0u) |
	       (given(to->token) ? LB_LOAD_BALANCE_INFO : 0u) |
	       (given(to->user) ? LB_USERNAME | LB_DONTSTOREUSERNAME : 0u) |
	       (given(to->domain) ? LB_DOMAIN : 0u) | (given(to->fqdn) ? LB_TARGET_FQDN : 0u);
}

static void add_fields(struct buf *b, const struct redirection *to)
{
	add_text(b, to->address);
	if (given(to->token)) {
		pdu_add_u32le(b, (uint32_t)strlen(to->token) + 2);
		buf_adds(b, to->token);
		buf_add(b, "\r\n", 2);
	}
	add_text(b, to->user);
	add_text(b, to->domain);
	add_text(b, to->fqdn);
}

void redirection_add(struct buf *out, const struct redirection *to)
{
	struct buf fields = BUF_INIT(PACKET_MAX), body = BUF_INIT(PACKET_MAX + 64);
	size_t len;

	add_fields(&fields, to);
	len = 12 + fields.len;
	pdu_add_u16le(&body, (uint16_t)(8 + len + 1));
	pdu_add_u16le(&body, 0x001a); /* PDUTYPE_SERVER_REDIR_PKT, version 1 */
	pdu_add_u16le(&body, 1002);
	pdu_add_u16le(&body, 0);
	pdu_add_u16le(&body, 0x0400); /* SEC_REDIRECTION_PKT */
	pdu_add_u16le(&body, (uint16_t)len);
	pdu_add_u32le(&body, 0); /* session */
	pdu_add_u32le(&body, flags_of(to));
	buf_add(&body, fields.data, fields.len);
	pdu_add_u8(&body, 0); /* padding that clients expect */
	mcs_add_data(out, body.data, body.len);
	if (!out->error)
		out->error = buf_error(&fields) ? buf_error(&fields) : buf_error(&body);
	buf_deinit(&fields);
	buf_deinit(&body);
}
