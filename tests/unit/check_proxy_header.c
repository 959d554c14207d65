/* SPDX-License-Identifier: ISC */
/* PROXY headers, in buffers of their exact size, so that a sanitizer sees a byte read behind them.
 */
#include "door/proxy_header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"

#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define V2_LEN 12

/* Reads DATA as a door does: never more than is wanted. The result of the parser, TEXT the address.
 */
static int read_all(const void *data, size_t len, size_t *ret_used, char text[INET6_ADDRSTRLEN])
{
	struct sockaddr_storage from;
	struct err e = {""};
	size_t have = 0;
	uint8_t *exact;
	int want, r;

	for (;;) {
		exact = malloc(have ? have : 1);
		ck_assert_ptr_nonnull(exact);
		memcpy(exact, data, have);
		want = proxy_header_want(exact, have, &e);
		if (want <= 0)
			break;
		free(exact);
		ck_assert_uint_gt((size_t)want, have);
		if ((size_t)want > len)
			return -EAGAIN;
		have = (size_t)want;
	}
	r = want < 0 ? want : proxy_header_parse(exact, have, &from, &e);
	free(exact);
	*ret_used = have;
	if (r == 0 && from.ss_family == AF_INET)
		inet_ntop(
			AF_INET, &((struct sockaddr_in *)&from)->sin_addr, text, INET6_ADDRSTRLEN);
	else if (r == 0)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&from)->sin6_addr, text,
			INET6_ADDRSTRLEN);
	if (r == -EINVAL)
		ck_assert_str_ne(e.text, "");
	return r;
}

#define BYTES(text) (text), sizeof(text) - 1

static const struct {
	const char *data;
	size_t len;
	int result;
	const char *address;
} lines[] = {
	{BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1 65535\r\n"), 0, "192.0.2.1"},
	{BYTES("PROXY TCP6 2001:db8::1 ::1 1 2\r\n"), 0, "2001:db8::1"},
	{BYTES("PROXY UNKNOWN\r\n"), -ENOENT, NULL},
	{BYTES("PROXY UNKNOWN whatever is here\r\n"), -ENOENT, NULL},
	{BYTES("PROXY UNKNOWNX\r\n"), -EINVAL, NULL},
	{BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n"), -EINVAL, NULL},
	{BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n"), -EINVAL, NULL},
	{BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n"), -EINVAL, NULL},
	{BYTES("PROXY TCP4 2001:db8::1 ::1 1 2\r\n"), -EINVAL, NULL},
	{BYTES("PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n"), -EINVAL, NULL},
	{BYTES("PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n"), -EINVAL, NULL},
	{BYTES("PROXY \n"), -EINVAL, NULL},
	{BYTES("PROXY \r\n"), -EINVAL, NULL},
	{BYTES("PROXY"), -EAGAIN, NULL},
	{BYTES("\x03\0\0\x0b"), -EINVAL, NULL},
	{BYTES("\r\nX"), -EAGAIN, NULL},
	{BYTES(V2 "\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), 0, "192.0.2.1"},
	{BYTES(V2 "\x21\x11\0\x0f\xc0\0\2\1\xc0\0\2\2\0\1\0\2\x04\0\0"), 0, "192.0.2.1"},
	{BYTES(V2 "\x21\x11\0\x0b\xc0\0\2\1\xc0\0\2\2\0\1\0"), -EINVAL, NULL},
	{BYTES(V2 "\x20\0\0\0"), -ENOENT, NULL},
	{BYTES(V2 "\x21\x31\0\0"), -ENOENT, NULL},
	{BYTES(V2 "\x22\x11\0\0"), -EINVAL, NULL},
	{BYTES(V2 "\x11\x11\0\0"), -EINVAL, NULL},
	{BYTES(V2 "\x21\x11\xff\xff"), -EINVAL, NULL},
	{BYTES(V2 "\x21\x21\0\x24"), -EAGAIN, NULL},
};

START_TEST(headers)
{
	char text[INET6_ADDRSTRLEN] = "", *more;
	size_t used = 0, len = lines[_i].len;
	int r = read_all(lines[_i].data, len, &used, text);

	ck_assert_int_eq(r, lines[_i].result);
	if (lines[_i].address)
		ck_assert_str_eq(text, lines[_i].address);
	if (r == -EAGAIN || r == -EINVAL)
		return;
	ck_assert_uint_eq(used, len);
	more = malloc(len + 4); /* what follows is not touched */
	ck_assert_ptr_nonnull(more);
	memcpy(more, lines[_i].data, len);
	memcpy(more + len, "\3\0\0\r", 4);
	ck_assert_int_eq(read_all(more, len + 4, &used, text), r);
	ck_assert_uint_eq(used, len);
	free(more);
}
END_TEST

START_TEST(a_line_without_end)
{
	char line[200], text[INET6_ADDRSTRLEN];
	size_t used;

	memset(line, '1', sizeof(line));
	memcpy(line, "PROXY ", 6);
	ck_assert_int_eq(read_all(line, sizeof(line), &used, text), -EINVAL);
	ck_assert_uint_le(used, 107);
}
END_TEST

START_TEST(what_is_written_can_be_read)
{
	struct sockaddr_in c4 = {.sin_family = AF_INET, .sin_port = htons(7)}, s4 = c4;
	struct sockaddr_in6 c6 = {.sin6_family = AF_INET6, .sin6_port = htons(7)}, s6 = c6;
	struct buf four = BUF_INIT(PROXY_HEADER_MAX), six = four, none = four;
	char text[INET6_ADDRSTRLEN];
	size_t used;

	inet_pton(AF_INET, "192.0.2.1", &c4.sin_addr);
	inet_pton(AF_INET6, "2001:db8::1", &c6.sin6_addr);
	proxy_header_add(&four, (struct sockaddr *)&c4, (struct sockaddr *)&s4);
	ck_assert_int_eq(read_all(four.data, four.len, &used, text), 0);
	ck_assert_str_eq(text, "192.0.2.1");
	proxy_header_add(&six, (struct sockaddr *)&c6, (struct sockaddr *)&s6);
	ck_assert_int_eq(read_all(six.data, six.len, &used, text), 0);
	ck_assert_str_eq(text, "2001:db8::1");
	proxy_header_add(&none, (struct sockaddr *)&c6, (struct sockaddr *)&s4);
	ck_assert_int_eq(read_all(none.data, none.len, &used, text), -ENOENT);
	buf_deinit(&four);
	buf_deinit(&six);
	buf_deinit(&none);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("proxy_header");
	TCase *t = tcase_create("proxy_header");

	tcase_add_loop_test(t, headers, 0, (int)(sizeof(lines) / sizeof(lines[0])));
	tcase_add_test(t, a_line_without_end);
	tcase_add_test(t, what_is_written_can_be_read);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
