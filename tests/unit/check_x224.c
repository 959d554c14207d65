/* SPDX-License-Identifier: ISC */
/*
 * The first packet of real clients, in any pieces, and of what is no client. Every text lies in a
 * buffer of its exact size, so that a sanitizer sees a byte read behind it.
 */
#include "door/x224.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"

static const struct {
	const char *name;
	enum x224_kind kind;
	const char *text;
	bool negotiates;
	uint8_t flags;
	uint32_t protocols;
} recorded[] = {
	{"rdpfile_nolb", X224_USER, "averylongusername", true, 0, X224_TLS},
	{"rdpfile_utf16", X224_ROUTE, "tsv://MS Terminal Services Plugin.1.Farm1", true, 0,
		X224_TLS},
	{"rdpfile_utf8", X224_ROUTE, "tsv://MS Terminal Services Plugin.1.Farm1", true, 0,
		X224_TLS},
	{"remmina", X224_USER, "averylongusername", true, 0, X224_TLS | X224_NLA},
	{"remmina_lb", X224_ROUTE, "Cookie: msts=abc123", true, 0, X224_TLS | X224_NLA},
	{"xf_default_longuser", X224_USER, "averylongusername.surname", true, 0,
		X224_TLS | X224_NLA},
	{"xf_domain", X224_USER, "averylongusername", true, 0, X224_TLS | X224_NLA},
	{"xf_domain_bs", X224_USER, "averylongusername", true, 0, X224_TLS | X224_NLA},
	{"xf_lbinfo", X224_ROUTE, "Cookie: msts=3640205228.15629.0000", true, 0,
		X224_TLS | X224_NLA},
	{"xf_lbinfo_free", X224_ROUTE, "tsv://MS Terminal Services Plugin.1.Coll_One", true, 0,
		X224_TLS | X224_NLA},
	{"xf_nouser", X224_USER, "root", true, 0, X224_TLS | X224_NLA},
	{"xf_restricted", X224_USER, "bob", true, X224_RESTRICTED_ADMIN, X224_TLS | X224_NLA},
	{"xf_sec_ext", X224_USER, "bob", true, 0, X224_TLS | X224_NLA | X224_NLA_EX},
	{"xf_sec_nla", X224_USER, "bob", true, 0, X224_TLS | X224_NLA},
	{"xf_sec_rdp", X224_USER, "bob", false, 0, 0},
	{"xf_sec_tls", X224_USER, "bob", true, 0, X224_TLS},
	{"xf_upn", X224_USER, "averylongusername@example.com", true, 0, X224_TLS | X224_NLA},
};
#define RECORDED (sizeof(recorded) / sizeof(*recorded))

/* The bytes of a recording; the caller frees. */
static uint8_t *recording(const char *name, size_t *ret_len)
{
	char path[4096], line[2048], hex[1024], is[64];
	uint8_t *data = malloc(512);
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/cases/rdp/connection-requests.txt",
		getenv("TERMBROKER_SOURCE"));
	f = fopen(path, "re");
	ck_assert_msg(f != NULL, "no %s", path);
	*ret_len = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^\t]\t%1023[0-9a-f]", is, hex) != 2 || strcmp(is, name) != 0)
			continue;
		for (const char *p = hex; p[0] && p[1]; p += 2) {
			unsigned byte;

			ck_assert_int_eq(sscanf(p, "%2x", &byte), 1);
			data[(*ret_len)++] = (uint8_t)byte;
		}
	}
	fclose(f);
	ck_assert_msg(*ret_len > 0, "no recording %s", name);
	return data;
}

/* Parses a copy of exactly LEN bytes. */
static int parse(const void *data, size_t len, struct x224_request *ret, struct err *e)
{
	uint8_t *exact = malloc(len ? len : 1);
	int r;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, data, len);
	e->text[0] = '\0';
	r = x224_parse(len ? exact : exact + 1, len, ret, e);
	free(exact);
	ck_assert(r == 0 || r == -EAGAIN || r == -EINVAL);
	ck_assert_int_eq(r == -EINVAL, e->text[0] != '\0');
	return r;
}

START_TEST(real_clients_in_any_pieces)
{
	struct x224_request r;
	struct err e;
	size_t len;
	uint8_t *data = recording(recorded[_i].name, &len);

	for (size_t have = 0; have < len; have++)
		ck_assert_msg(parse(data, have, &r, &e) == -EAGAIN, "%s, %zu bytes: %s",
			recorded[_i].name, have, e.text);
	/* What comes behind the packet is not looked at. */
	for (size_t more = 0; more < 3; more++) {
		memset(&r, 0xee, sizeof(r));
		memset(data + len, 0xff, more);
		ck_assert_msg(
			parse(data, len + more, &r, &e) == 0, "%s: %s", recorded[_i].name, e.text);
		ck_assert_uint_eq(r.size, len);
		ck_assert_int_eq(r.kind, recorded[_i].kind);
		ck_assert_str_eq(r.text, recorded[_i].text);
		ck_assert_int_eq(r.negotiates, recorded[_i].negotiates);
		ck_assert_uint_eq(r.flags, recorded[_i].flags);
		ck_assert_uint_eq(r.protocols, recorded[_i].protocols);
		ck_assert(!r.has_correlation);
	}
	free(data);
}
END_TEST

START_TEST(a_preconnection_blob_is_refused_at_its_first_byte)
{
	struct x224_request r;
	struct err e;
	size_t len;
	uint8_t *data = recording("xf_pcb", &len);

	for (size_t have = 1; have <= len; have++)
		ck_assert_int_eq(parse(data, have, &r, &e), -EINVAL);
	ck_assert_str_eq(e.text, "no RDP connection request: not TPKT version 3 at byte 0");
	free(data);
}
END_TEST

/* A request of HEADER, LINE and BLOCKS with the right lengths; its size. */
static size_t build(uint8_t *ret, const char *line, const void *blocks, size_t blocks_len)
{
	static const uint8_t fixed[] = {3, 0, 0, 0, 0, 0xe0, 0, 0, 0x12, 0x34, 0};
	size_t len = sizeof(fixed) + strlen(line) + blocks_len;

	memcpy(ret, fixed, sizeof(fixed));
	ret[2] = (uint8_t)(len >> 8);
	ret[3] = (uint8_t)len;
	ret[4] = (uint8_t)(len - 5);
	memcpy(ret + sizeof(fixed), line, strlen(line));
	memcpy(ret + sizeof(fixed) + strlen(line), blocks, blocks_len);
	return len;
}

#define TLS_ONLY "\x01\x00\x08\x00\x01\x00\x00\x00"
#define CORRELATED "\x01\x08\x08\x00\x03\x00\x00\x00"
#define ZEROS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define CORRELATION        \
	"\x06\x00\x24\x00" \
	"0123456789abcdef" ZEROS

START_TEST(the_shortest_and_the_longest)
{
	uint8_t data[512];
	char line[X224_TEXT_SIZE + 3];
	struct x224_request r;
	struct err e;
	size_t len = build(data, "", "", 0);

	ck_assert_uint_eq(len, X224_REQUEST_MIN);
	ck_assert_int_eq(parse(data, len, &r, &e), 0);
	ck_assert(r.kind == X224_NOTHING && !r.negotiates && r.text[0] == '\0');
	len = build(data, "", TLS_ONLY, 8);
	ck_assert_int_eq(parse(data, len, &r, &e), 0);
	ck_assert(r.kind == X224_NOTHING && r.negotiates && r.protocols == X224_TLS);
	len = build(data, "Cookie: mstshash=\r\n", TLS_ONLY, 8);
	ck_assert_int_eq(parse(data, len, &r, &e), 0);
	ck_assert(r.kind == X224_USER && r.text[0] == '\0');
	/* One more, and X.224's length octet would be 255, which is reserved. */
	for (size_t n = X224_TEXT_SIZE - 1; n <= X224_TEXT_SIZE; n++) {
		memset(line, 'x', n);
		memcpy(line + n, "\r\n", 3);
		len = build(data, line, "", 0);
		ck_assert_uint_eq(len, X224_REQUEST_MAX + n + 1 - X224_TEXT_SIZE);
		ck_assert_int_eq(parse(data, len, &r, &e), n < X224_TEXT_SIZE ? 0 : -EINVAL);
		ck_assert_uint_eq(strlen(r.text), X224_TEXT_SIZE - 1);
	}
}
END_TEST

START_TEST(a_correlation_block_is_kept)
{
	uint8_t data[512];
	struct x224_request r;
	struct err e;
	size_t len = build(data, "Cookie: mstshash=a\r\n", CORRELATED CORRELATION, 44);

	for (size_t have = 0; have < len; have++)
		ck_assert_int_eq(parse(data, have, &r, &e), -EAGAIN);
	ck_assert_int_eq(parse(data, len, &r, &e), 0);
	ck_assert(r.has_correlation && memcmp(r.correlation, "0123456789abcdef", 16) == 0);
	ck_assert_uint_eq(r.flags, X224_CORRELATION);
}
END_TEST

/* Bytes in an order that a name in a local code page may have; they are kept for who can tell. */
START_TEST(a_name_may_be_in_any_code_page)
{
	uint8_t data[512];
	struct x224_request r;
	struct err e;
	size_t len = build(data, "Cookie: mstshash=\xe8\xe2\xe0\xed\r\n", TLS_ONLY, 8);

	ck_assert_int_eq(parse(data, len, &r, &e), 0);
	ck_assert_str_eq(r.text, "\xe8\xe2\xe0\xed");
}
END_TEST

static const struct {
	const char *line;
	const char *blocks;
	size_t blocks_len;
	const char *what;
} wrong[] = {
	{"Cookie: mstshash=a", TLS_ONLY, 8, "a control character in the cookie at byte 29"},
	{"Cookie: mstshash=a", "", 0, "the cookie has no end"},
	{"Cookie: mstshash=a\r", "", 0, "the cookie has no end"},
	{"Cookie: mstshash=a\rb\r\n", "", 0, "a carriage return without line feed at byte 29"},
	{"Cookie: mstshash=a\nb\r\n", "", 0, "a control character in the cookie at byte 29"},
	{"Cookie: mstshash=a\x7f\r\n", "", 0, "a control character in the cookie"},
	{"Cookie: mstshash=a\x1b[2J\r\n", "", 0, "a control character in the cookie"},
	{"Cookie: mstshash=a\r\nCookie: msts=b\r\n", TLS_ONLY, 8, "no negotiation request"},
	{"", "\x01\x00\x08\x00\x01\x00\x00", 7, "no negotiation request"},
	{"", "\x01\x00\x09\x00\x01\x00\x00\x00", 8, "no negotiation request at byte 13"},
	{"a\r\n", "\x02\x00\x08\x00\x01\x00\x00\x00", 8, "no negotiation request at byte 14"},
	{"", TLS_ONLY "\0", 9, "something follows at byte 19"},
	{"", TLS_ONLY CORRELATION, 44, "something follows"},
	{"", CORRELATED, 8, "no correlation block"},
	{"", CORRELATED CORRELATION, 43, "no correlation block"},
	{"", CORRELATED CORRELATION "\0", 45, "something follows"},
	{"", CORRELATED "\x07\x00\x24\x00" ZEROS ZEROS, 44, "no correlation block at byte 19"},
};

/* However much of it has come: it is wrong, or may still become right. */
START_TEST(what_is_wrong_is_told)
{
	uint8_t data[512];
	struct x224_request r;
	struct err e;
	size_t len = build(data, wrong[_i].line, wrong[_i].blocks, wrong[_i].blocks_len);

	for (size_t have = 0; have < len; have++)
		ck_assert_int_ne(parse(data, have, &r, &e), 0);
	ck_assert_int_eq(parse(data, len, &r, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, wrong[_i].what) != NULL, "%s", e.text);
}
END_TEST

/* One octet of a good header changed: offset, value, and whether it is refused as soon as it came.
 */
static const struct {
	size_t at;
	uint8_t value;
} headers[] = {{0, 2}, {0, 0x16}, {0, 'G'}, {0, 'P'}, {1, 1}, {2, 1}, {2, 0xff}, {4, 5}, {4, 0xff},
	{5, 0xd0}, {5, 0xe1}, {6, 1}, {7, 1}, {10, 1}, {10, 0x10}};

START_TEST(a_wrong_header_is_refused_where_it_is_seen)
{
	uint8_t data[512];
	struct x224_request r;
	struct err e;
	size_t len = build(data, "Cookie: mstshash=a\r\n", TLS_ONLY, 8);
	size_t seen = headers[_i].at == 2 ? 4 : headers[_i].at + 1;

	data[headers[_i].at] = headers[_i].value;
	for (size_t have = 0; have <= len; have++)
		ck_assert_int_eq(parse(data, have, &r, &e), have < seen ? -EAGAIN : -EINVAL);
}
END_TEST

/* Any octet of any recording replaced by any value: nothing is read behind the end, what is refused
 * stays refused, and what is accepted keeps its promises. */
START_TEST(mutations_keep_the_promises)
{
	struct x224_request r;
	struct err e;
	size_t len;
	uint8_t *data = recording(recorded[_i].name, &len);

	for (size_t at = 0; at < len; at++) {
		uint8_t before = data[at];

		for (unsigned value = 0; value < 256; value += 5) {
			bool refused = false;

			data[at] = (uint8_t)value;
			for (size_t have = at; have <= len; have++) {
				int got = parse(data, have, &r, &e);

				ck_assert(!refused || got == -EINVAL);
				refused = got == -EINVAL;
				ck_assert(got != 0 || (r.size <= have && strlen(r.text) < r.size));
			}
		}
		data[at] = before;
	}
	free(data);
}
END_TEST

START_TEST(a_token_names_a_pool)
{
	ck_assert_str_eq(x224_route_pool("tsv://MS Terminal Services Plugin.1.Farm1"), "Farm1");
	ck_assert_str_eq(x224_route_pool("tsv://MS Terminal Services Plugin.1.a.b"), "a.b");
	ck_assert_ptr_null(x224_route_pool("tsv://MS Terminal Services Plugin.1."));
	ck_assert_ptr_null(x224_route_pool("tsv://MS Terminal Services Plugin.2.Farm1"));
	ck_assert_ptr_null(x224_route_pool("Cookie: msts=abc123"));
	ck_assert_ptr_null(x224_route_pool(""));
}
END_TEST

static const struct {
	const char *token;
	int result;
	const char *address;
	uint16_t port;
} routes[] = {
	{"Cookie: msts=50331775.15629.0000", 0, "127.0.0.3", 3389},
	{"Cookie: msts=3640205228.15629.0000", 0, "172.31.249.216", 3389},
	{"Cookie: msts=0.256.0000", 0, "0.0.0.0", 1},
	{"Cookie: msts=4294967295.65535.0000", 0, "255.255.255.255", 65535},
	{"Cookie: msts=4294967296.15629.0000", -EINVAL, NULL, 0},
	{"Cookie: msts=99999999999999999999999.15629.0000", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775.65536.0000", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775.0.0000", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775.15629.0001", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775.15629.", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775.15629", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775..0000", -EINVAL, NULL, 0},
	{"Cookie: msts=50331775.15629.0000 ", -EINVAL, NULL, 0},
	{"Cookie: msts=1a.15629.0000", -EINVAL, NULL, 0},
	{"Cookie: msts=abc123", -ENOENT, NULL, 0},
	{"Cookie: msts=", -ENOENT, NULL, 0},
	{"Cookie: msts=-1.2.0000", -ENOENT, NULL, 0},
	{"Cookie: mst", -ENOENT, NULL, 0},
	{"tsv://MS Terminal Services Plugin.1.Farm1", -ENOENT, NULL, 0},
};

START_TEST(a_token_holds_an_address)
{
	uint32_t address = 7;
	uint16_t port = 7;

	ck_assert_int_eq(x224_route_address(routes[_i].token, &address, &port), routes[_i].result);
	if (routes[_i].result == 0)
		ck_assert_str_eq(inet_ntoa((struct in_addr){address}), routes[_i].address);
	else
		ck_assert_uint_eq(address, 7);
	ck_assert_uint_eq(port, routes[_i].result == 0 ? routes[_i].port : 7);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("x224");
	TCase *t = tcase_create("x224");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, real_clients_in_any_pieces, 0, RECORDED);
	tcase_add_test(t, a_preconnection_blob_is_refused_at_its_first_byte);
	tcase_add_test(t, the_shortest_and_the_longest);
	tcase_add_test(t, a_correlation_block_is_kept);
	tcase_add_test(t, a_name_may_be_in_any_code_page);
	tcase_add_loop_test(t, what_is_wrong_is_told, 0, sizeof(wrong) / sizeof(*wrong));
	tcase_add_loop_test(t, a_wrong_header_is_refused_where_it_is_seen, 0,
		sizeof(headers) / sizeof(*headers));
	tcase_add_loop_test(t, mutations_keep_the_promises, 0, RECORDED);
	tcase_add_test(t, a_token_names_a_pool);
	tcase_add_loop_test(t, a_token_holds_an_address, 0, sizeof(routes) / sizeof(*routes));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
