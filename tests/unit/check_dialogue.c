/* SPDX-License-Identifier: ISC */
/*
 * The dialogue of a redirection, on the recording of a real client (tests/cases/rdp): what comes is
 * understood however it is cut, what is answered is what that client accepted. In the recording the
 * user's channel is also the fourth static one; here it is the one behind, and the recording is
 * changed so.
 */
#include "door/dialogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "door/mcs.h"
#include "door/redirection.h"
#include "lib/tap.h"

#define LINES_MAX 32
#define USER 1008

struct line {
	char from; /* 'C' or 'S' */
	size_t len;
	uint8_t data[512];
};

static struct line lines[LINES_MAX];
static size_t line_count;

static size_t unhex(const char *p, uint8_t *ret)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(p, "%2x", &byte) == 1; p += 2)
		ret[n++] = (uint8_t)byte;
	return n;
}

static void put16(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* The user gets a channel of his own. */
static void mend(struct line *l, unsigned *joins)
{
	uint8_t *user = l->data + (l->from == 'C' ? 8 : 9);

	switch (l->data[7]) {
	case 0x38:
		(*joins)++;
		/* fall through */
	case 0x3e:
		if (*joins == 1) {
			put16(user + 2, USER);
			if (l->from == 'S')
				put16(user + 4, USER);
		}
		put16(user, USER - 1001);
		break;
	case 0x2e:
	case 0x64:
		put16(user, USER - 1001);
		break;
	default:
		break;
	}
}

static void read_recording(void)
{
	char path[4096], text[2048];
	unsigned joins = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/cases/rdp/redirect-dialogue.txt",
		getenv("TERMBROKER_SOURCE"));
	f = fopen(path, "re");
	ck_assert_msg(f != NULL, "no %s", path);
	line_count = 0;
	while (fgets(text, sizeof(text), f)) {
		struct line *l = &lines[line_count];

		if (text[0] != 'C' && text[0] != 'S')
			continue;
		ck_assert_uint_lt(line_count++, LINES_MAX);
		l->from = text[0];
		l->len = unhex(text + 2, l->data);
		mend(l, &joins);
	}
	fclose(f);
	ck_assert_uint_eq(line_count, 21);
}

/* What COUNT lines from FROM say, one behind the other. */
static void join_lines(char from, size_t first, size_t last, struct buf *ret)
{
	for (size_t i = first; i < last; i++)
		if (lines[i].from == from)
			buf_add(ret, lines[i].data, lines[i].len);
}

static void same(const struct buf *a, const struct buf *b)
{
	ck_assert_uint_eq(a->len, b->len);
	for (size_t i = 0; i < a->len; i++)
		ck_assert_msg(a->data[i] == b->data[i], "byte %zu is %02x, not %02x", i,
			(unsigned char)a->data[i], (unsigned char)b->data[i]);
}

/* Feeds a copy of exactly LEN bytes. */
static int feed(struct dialogue *d, const void *data, size_t len, size_t *ret_used, struct buf *out,
	struct client_info *info, struct err *e)
{
	uint8_t *exact = malloc(len ? len : 1);
	int r;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, data, len);
	e->text[0] = '\0';
	r = dialogue_feed(d, exact, len, ret_used, out, info, e);
	free(exact);
	ck_assert(r == 0 || r == 1 || (r == -EINVAL && e->text[0]));
	ck_assert_uint_le(*ret_used, len);
	return r;
}

START_TEST(a_recorded_client_in_any_pieces)
{
	struct buf said = BUF_INIT(8192), expected = BUF_INIT(8192);

	read_recording();
	join_lines('C', 1, line_count, &said);
	join_lines('S', 2, line_count - 2, &expected);
	for (size_t piece = 1; piece <= said.len; piece += piece < 20 ? 1 : 53) {
		struct buf out = BUF_INIT(8192);
		struct client_info info;
		struct dialogue d;
		struct err e;
		size_t at = 0, have = 0, used;
		int r = 0;

		dialogue_init(&d, 3);
		while (r == 0 && have < said.len) {
			have = have + piece < said.len ? have + piece : said.len;
			r = feed(&d, said.data + at, have - at, &used, &out, &info, &e);
			at += used;
		}
		ck_assert_msg(r == 1, "pieces of %zu: %s", piece, e.text);
		ck_assert_uint_eq(at, said.len);
		ck_assert_int_eq(d.step, DIALOGUE_KNOWN);
		ck_assert(d.can_redirect && d.channels == 4 && d.user == USER);
		ck_assert_str_eq(info.domain, "DOMAIN");
		ck_assert_str_eq(info.user, "averylongusername");
		same(&out, &expected);
		buf_deinit(&out);
	}
	buf_deinit(&said);
	buf_deinit(&expected);
}
END_TEST

START_TEST(the_answers_are_the_recorded_ones)
{
	struct buf out = BUF_INIT(8192), expected = BUF_INIT(8192);
	struct redirection to = {
		.address = "127.0.0.2", .user = "averylongusername", .domain = "DOMAIN"};

	read_recording();
	redirection_add_licence(&out);
	redirection_add(&out, &to);
	join_lines('S', line_count - 2, line_count, &expected);
	same(&out, &expected);
	buf_reset(&out);
	redirection_add_confirm(&out, 1);
	ck_assert_uint_eq(out.len, 19);
	ck_assert(memcmp(out.data, "\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\0\x08\0\x01\0\0\0",
			  19) == 0);
	buf_reset(&out);
	redirection_add_failure(&out, FAILURE_SSL_REQUIRED);
	ck_assert(memcmp(out.data + 11, "\x03\0\x08\0\x01\0\0\0", 8) == 0);
	buf_deinit(&out);
	buf_deinit(&expected);
}
END_TEST

/* The fields of a redirection, in their order. */
START_TEST(a_redirection_by_name_or_token)
{
	static const char expected[] = "\x0b\0\0\0Cookie: a\r\n"
				       "\x04\0\0\0u\0\0\0"
				       "\x06\0\0\0n\0\x38\x04\0\0";
	struct redirection to = {
		.token = "Cookie: a", .user = "u", .fqdn = "n\xd0\xb8", .domain = ""};
	struct buf out = BUF_INIT(8192);
	size_t head = 4 + 3 + 8 + 8 + 12, len = sizeof(expected) - 1;

	redirection_add(&out, &to);
	ck_assert_int_eq(buf_error(&out), 0);
	ck_assert_uint_eq(out.len, head + len + 1);
	ck_assert_uint_eq((uint8_t)out.data[head - 4], 0x2 | 0x4 | 0x20);
	ck_assert_uint_eq((uint8_t)out.data[head - 3], 0x1);
	ck_assert(memcmp(out.data + head, expected, len) == 0);
	ck_assert_uint_eq((uint8_t)out.data[3], out.len);
	ck_assert_uint_eq((uint8_t)out.data[head - 10], (uint8_t)(12 + len));
	buf_deinit(&out);
}
END_TEST

START_TEST(a_redirection_that_is_too_long_is_an_error)
{
	struct buf out = BUF_INIT(1 << 20);
	struct redirection to = {0};
	char *name = calloc(1, 5001);

	memset(name, 'x', 5000);
	to.user = name;
	redirection_add(&out, &to);
	ck_assert_int_eq(buf_error(&out), -EOVERFLOW);
	buf_deinit(&out);
	free(name);
}
END_TEST

/* ---- clients of our own making ---- */

static void packet(struct buf *out, const struct buf *body)
{
	pdu_add_u16be(out, 0x0300);
	pdu_add_u16be(out, (uint16_t)(7 + body->len));
	buf_add(out, "\x02\xf0\x80", 3);
	buf_add(out, body->data, body->len);
}

/* Connect-Initial with BLOCKS of client data. */
static void connect_with(struct buf *out, const struct buf *blocks)
{
	struct buf user = BUF_INIT(4096), body = BUF_INIT(4096), all = BUF_INIT(4096);

	buf_add(&user, "\0\x05\0\x14\x7c\0\x01", 7);
	pdu_add_per_length(&user, blocks->len + 14);
	buf_add(&user,
		"\0\x08\0\x10\0\x01\xc0\0"
		"Duca",
		12);
	pdu_add_per_length(&user, blocks->len);
	buf_add(&user, blocks->data, blocks->len);
	buf_add(&body, "\x04\x01\x01\x04\x01\x01\x01\x01\xff\x30\0\x30\0\x30\0\x04", 16);
	pdu_add_ber_length(&body, user.len);
	buf_add(&body, user.data, user.len);
	buf_add(&all, "\x7f\x65", 2);
	pdu_add_ber_length(&all, body.len);
	buf_add(&all, body.data, body.len);
	packet(out, &all);
	buf_deinit(&user);
	buf_deinit(&body);
	buf_deinit(&all);
}

static void add_net(struct buf *blocks, unsigned count, unsigned said)
{
	pdu_add_u16le(blocks, 0xc003);
	pdu_add_u16le(blocks, (uint16_t)(8 + 12 * count));
	pdu_add_u32le(blocks, said);
	for (unsigned i = 0; i < count; i++)
		buf_add(blocks, "chan\0\0\0\0\0\0\0\x80", 12);
}

static void request(struct buf *out, const void *data, size_t len)
{
	struct buf body = BUF_INIT(4096);

	buf_add(&body, data, len);
	packet(out, &body);
	buf_deinit(&body);
}

static void join_channel(struct buf *out, unsigned user, unsigned channel)
{
	uint8_t data[5] = {0x38};

	put16(data + 1, user - 1001);
	put16(data + 3, channel);
	request(out, data, sizeof(data));
}

/* Client Info: FLAGS, then domain, user, password and the rest, LEN bytes each, TEXT as it stands.
 */
static void say_who(struct buf *out, unsigned user, uint32_t flags, const uint16_t lengths[5],
	const void *text, size_t len)
{
	struct buf info = BUF_INIT(8192), body = BUF_INIT(8192);

	pdu_add_u32le(&info, 0x40);
	pdu_add_u32le(&info, 0x409);
	pdu_add_u32le(&info, flags);
	for (int i = 0; i < 5; i++)
		pdu_add_u16le(&info, lengths[i]);
	buf_add(&info, text, len);
	pdu_add_u8(&body, 0x64);
	pdu_add_u16be(&body, (uint16_t)(user - 1001));
	pdu_add_u16be(&body, MCS_IO_CHANNEL);
	pdu_add_u8(&body, 0x70);
	pdu_add_per_length(&body, info.len);
	buf_add(&body, info.data, info.len);
	packet(out, &body);
	buf_deinit(&info);
	buf_deinit(&body);
}

/* A client as far as it has attached, with COUNT static channels. */
static void attached(struct buf *said, unsigned count)
{
	struct buf blocks = BUF_INIT(4096);

	add_net(&blocks, count, count);
	connect_with(said, &blocks);
	request(said, "\x04\x01\0\x01\0", 5);
	request(said, "\x28", 1);
	buf_deinit(&blocks);
}

static int run(const struct buf *said, struct dialogue *d, struct buf *out,
	struct client_info *info, struct err *e)
{
	size_t used;

	dialogue_init(d, 1);
	return feed(d, said->data, said->len, &used, out, info, e);
}

static const unsigned channel_counts[] = {0, 1, 4, 30, 31};

START_TEST(clients_with_few_and_many_channels)
{
	unsigned count = channel_counts[_i], user = MCS_IO_CHANNEL + 1 + count;
	struct buf said = BUF_INIT(65536), out = BUF_INIT(65536);
	const uint16_t lengths[5] = {0, 6, 4, 0, 0};
	struct client_info info;
	struct dialogue d;
	struct err e;

	attached(&said, count);
	for (unsigned c = MCS_IO_CHANNEL; c <= user; c++)
		join_channel(&said, user, c);
	say_who(&said, user, 0x10, lengths, "\0\0b\0o\0b\0\0\0p\0w\0\0\0\0\0\0\0", 20);
	ck_assert_msg(run(&said, &d, &out, &info, &e) == 1, "%s", e.text);
	ck_assert_uint_eq(d.channels, count);
	ck_assert_uint_eq(d.user, user);
	ck_assert(!d.can_redirect);
	ck_assert_str_eq(info.user, "bob");
	ck_assert_str_eq(info.domain, "");
	ck_assert_int_eq(buf_error(&out), 0);
	/* The packet's own length, then the last confirm: of the user's channel. */
	ck_assert_uint_eq(
		(uint8_t)out.data[2] << 8 | (uint8_t)out.data[3], out.len - 11 - 15 * (count + 2));
	ck_assert_uint_eq(
		(uint8_t)out.data[out.len - 2] << 8 | (uint8_t)out.data[out.len - 1], user);
	buf_deinit(&said);
	buf_deinit(&out);
}
END_TEST

static const struct {
	uint32_t flags;
	uint16_t lengths[5];
	const char *text;
	size_t len;
	const char *domain, *user; /* NULL: refused with */
	const char *why;
} infos[] = {
	{0, {4, 3, 2, 1, 1}, "CORP\0bob\0pw\0s\0f\0more", 20, "CORP", "bob", NULL},
	{0, {0, 0, 0, 0, 0}, "\0\0\0\0\0", 5, "", "", NULL},
	{0x10, {0, 0, 0, 0, 0}, "\0\0\0\0\0\0\0\0\0\0", 10, "", "", NULL},
	{0x10, {2, 4, 0, 0, 0}, "D\0\0\0\x38\x04\x32\x04\0\0\0\0\0\0\0\0", 16, "D",
		"\xd0\xb8\xd0\xb2", NULL},
	{0, {0, 3, 0, 0, 0},
		"\0b\xe9"
		"b\0\0\0\0",
		8, NULL, NULL, "user name is not ASCII"},
	{0, {2, 0, 0, 0, 0}, "a\0\0\0\0\0\0", 7, NULL, NULL, "domain is not ASCII"},
	{0x10, {0, 3, 0, 0, 0}, "\0\0a\0b\0\0\0\0\0\0\0\0", 13, NULL, NULL,
		"user name is not UTF-16"},
	{0x10, {0, 2, 0, 0, 0}, "\0\0\0\xd8\0\0\0\0\0\0\0\0", 12, NULL, NULL,
		"user name is not UTF-16"},
	{0x10, {0, 0xffff, 0, 0, 0}, "\0\0a\0", 4, NULL, NULL, "cut short"},
	{0x10, {0, 2, 2, 0, 0}, "\0\0a\0\0\0s\0", 8, NULL, NULL, "cut short"},
};

START_TEST(every_form_of_a_name)
{
	struct buf said = BUF_INIT(65536), out = BUF_INIT(65536);
	struct client_info info;
	struct dialogue d;
	struct err e;
	int r;

	attached(&said, 0);
	say_who(&said, MCS_IO_CHANNEL + 1, infos[_i].flags, infos[_i].lengths, infos[_i].text,
		infos[_i].len);
	r = run(&said, &d, &out, &info, &e);
	if (infos[_i].user) {
		ck_assert_msg(r == 1, "%s", e.text);
		ck_assert_str_eq(info.domain, infos[_i].domain);
		ck_assert_str_eq(info.user, infos[_i].user);
	} else {
		ck_assert_int_eq(r, -EINVAL);
		ck_assert_msg(strstr(e.text, infos[_i].why) != NULL, "%s", e.text);
	}
	buf_deinit(&said);
	buf_deinit(&out);
}
END_TEST

START_TEST(a_name_that_is_too_long_is_refused)
{
	struct buf said = BUF_INIT(65536), out = BUF_INIT(65536);
	const uint16_t lengths[5] = {0, 3000, 0, 0, 0};
	struct client_info info;
	struct dialogue d;
	struct err e;
	char text[3005] = "";

	memset(text + 1, 'x', 3000);
	attached(&said, 0);
	say_who(&said, MCS_IO_CHANNEL + 1, 0, lengths, text, sizeof(text));
	ck_assert_int_eq(run(&said, &d, &out, &info, &e), -EINVAL);
	ck_assert_str_eq(e.text, "the client's user name is too long");
	buf_deinit(&said);
	buf_deinit(&out);
}
END_TEST

static void wrong_first(struct buf *said)
{
	request(said, "\x28", 1);
}
static void wrong_tpkt(struct buf *said)
{
	buf_add(said, "GET /", 5);
}
static void wrong_short(struct buf *said)
{
	buf_add(said, "\x03\0\0\x06", 4);
}
static void wrong_long(struct buf *said)
{
	buf_add(said, "\x03\0\xff\xff", 4);
}
static void wrong_x224(struct buf *said)
{
	buf_add(said, "\x03\0\0\x08\x02\xf1\x80\x28", 8);
}

static void wrong_blocks(struct buf *said)
{
	struct buf blocks = BUF_INIT(64);

	buf_add(&blocks, "\x03\xc0\x03\0", 4);
	connect_with(said, &blocks);
	buf_deinit(&blocks);
}

static void wrong_channels(struct buf *said)
{
	struct buf blocks = BUF_INIT(4096);

	add_net(&blocks, 32, 32);
	connect_with(said, &blocks);
	buf_deinit(&blocks);
}

static void wrong_channel_count(struct buf *said)
{
	struct buf blocks = BUF_INIT(4096);

	add_net(&blocks, 2, 3);
	connect_with(said, &blocks);
	buf_deinit(&blocks);
}

static void wrong_attach(struct buf *said)
{
	attached(said, 0);
	request(said, "\x28", 1);
}

static void wrong_erect(struct buf *said)
{
	attached(said, 0);
	request(said, "\x04\x01\0\x01\0", 5);
}

static void wrong_user(struct buf *said)
{
	attached(said, 0);
	join_channel(said, 1005, 1004);
}

static void wrong_join(struct buf *said)
{
	attached(said, 2);
	join_channel(said, 1006, 1007);
}

static void wrong_again(struct buf *said)
{
	attached(said, 2);
	join_channel(said, 1006, 1004);
	join_channel(said, 1006, 1004);
}

static void wrong_cut(struct buf *said)
{
	attached(said, 0);
	request(said, "\x38\0\x03\x03", 4);
}

static void wrong_kind(struct buf *said)
{
	attached(said, 0);
	request(said, "\xfc", 1);
}

static void wrong_leave(struct buf *said)
{
	attached(said, 0);
	request(said, "\x21\x80", 2);
}

static void wrong_data(struct buf *said)
{
	attached(said, 0);
	request(said, "\x64\0\x03\x03\xec\x70\0", 7);
}

static void wrong_no_info(struct buf *said)
{
	attached(said, 0);
	request(said, "\x64\0\x03\x03\xeb\x70\x04\0\0\0\0", 11);
}

static const struct {
	void (*say)(struct buf *said);
	const char *why;
} wrong[] = {
	{wrong_first, "no MCS Connect-Initial"},
	{wrong_tpkt, "not TPKT"},
	{wrong_short, "a packet of 6 bytes"},
	{wrong_long, "a packet of 65535 bytes, more than 8192"},
	{wrong_x224, "no X.224 data"},
	{wrong_blocks, "a block of client data with a wrong length"},
	{wrong_channels, "a list of 32 static channels"},
	{wrong_channel_count, "a list of 3 static channels in 24 bytes"},
	{wrong_attach, "attach user in step join"},
	{wrong_erect, "erect domain in step join"},
	{wrong_user, "a channel join of user 1005"},
	{wrong_join, "a join of channel 1007"},
	{wrong_again, "a second join of channel 1004"},
	{wrong_cut, "an MCS request that is cut short"},
	{wrong_kind, "an MCS request of kind 63"},
	{wrong_leave, "disconnect in step join"},
	{wrong_data, "data of user 1004 on channel 1004"},
	{wrong_no_info, "no Client Info PDU"},
};

START_TEST(what_no_client_says_is_refused)
{
	struct buf said = BUF_INIT(65536), out = BUF_INIT(65536);
	struct client_info info = {.user = "before"};
	struct dialogue d;
	struct err e;

	wrong[_i].say(&said);
	ck_assert_int_eq(run(&said, &d, &out, &info, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, wrong[_i].why) != NULL, "%s", e.text);
	ck_assert_str_eq(info.user, "before");
	buf_deinit(&said);
	buf_deinit(&out);
}
END_TEST

/* Any octet of the recording replaced: refused or understood, but nothing is read behind the end
 * and what is told is text. */
START_TEST(mutations_are_survived)
{
	struct buf said = BUF_INIT(8192);

	read_recording();
	join_lines('C', 1, line_count, &said);
	for (size_t at = 0; at < said.len; at++) {
		char before = said.data[at];

		for (unsigned value = 0; value < 256; value += 15) {
			struct buf out = BUF_INIT(65536);
			struct client_info info;
			struct dialogue d;
			struct err e;

			said.data[at] = (char)value;
			run(&said, &d, &out, &info, &e);
			ck_assert_int_eq(buf_error(&out), 0);
			buf_deinit(&out);
		}
		said.data[at] = before;
	}
	buf_deinit(&said);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("dialogue");
	TCase *t = tcase_create("dialogue");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, a_recorded_client_in_any_pieces);
	tcase_add_test(t, the_answers_are_the_recorded_ones);
	tcase_add_test(t, a_redirection_by_name_or_token);
	tcase_add_test(t, a_redirection_that_is_too_long_is_an_error);
	tcase_add_loop_test(t, clients_with_few_and_many_channels, 0,
		sizeof(channel_counts) / sizeof(*channel_counts));
	tcase_add_loop_test(t, every_form_of_a_name, 0, sizeof(infos) / sizeof(*infos));
	tcase_add_test(t, a_name_that_is_too_long_is_refused);
	tcase_add_loop_test(t, what_no_client_says_is_refused, 0, sizeof(wrong) / sizeof(*wrong));
	tcase_add_test(t, mutations_are_survived);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
