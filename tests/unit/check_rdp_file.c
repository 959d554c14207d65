/* SPDX-License-Identifier: ISC */
/* .rdp files: the exact bytes, and that no value can add a line. */
#include <errno.h>
#include <string.h>

#include "lib/tap.h"
#include "wire/rdp_file.h"

static const struct rdp_file plain = {
	.address = "192.0.2.1",
	.port = 3389,
	.user = "alice",
	.prompt_for_credentials = true,
	.authentication_level = 2,
};

/* The file as UTF-8 in RET, after checking that it is UTF-16LE with a byte order mark. */
static int format(const struct rdp_file *f, char *ret, size_t size, struct err *e)
{
	struct buf out = BUF_INIT(65536);
	size_t n = 0;
	int r = rdp_file_format(f, &out, e);

	ck_assert_int_eq(buf_error(&out), 0);
	if (r < 0)
		ck_assert_uint_eq(out.len, 0);
	for (size_t i = 0; i < out.len; i += 2) {
		ck_assert_int_eq(out.data[i + 1], i ? 0 : (char)0xfe);
		if (i > 0 && n + 1 < size)
			ret[n++] = out.data[i];
	}
	ret[n] = '\0';
	if (out.len)
		ck_assert_int_eq(out.data[0], (char)0xff);
	buf_deinit(&out);
	return r;
}

START_TEST(a_plain_file)
{
	char text[2048];

	ck_assert_int_eq(format(&plain, text, sizeof(text), NULL), 0);
	ck_assert_str_eq(text, "full address:s:192.0.2.1\r\n"
			       "server port:i:3389\r\n"
			       "username:s:alice\r\n"
			       "prompt for credentials:i:1\r\n"
			       "authentication level:i:2\r\n"
			       "use redirection server name:i:0\r\n");
}
END_TEST

START_TEST(a_name_before_the_address_and_ipv6_in_brackets)
{
	struct rdp_file f = plain;
	char text[2048];

	f.address = "2001:db8::1";
	f.user = "";
	ck_assert_int_eq(format(&f, text, sizeof(text), NULL), 0);
	ck_assert_ptr_eq(strstr(text, "full address:s:[2001:db8::1]\r\n"), text);
	ck_assert_ptr_null(strstr(text, "username"));
	ck_assert_ptr_null(strstr(text, "alternate"));
	f.fqdn = "ts1.example.com";
	ck_assert_int_eq(format(&f, text, sizeof(text), NULL), 0);
	ck_assert_ptr_eq(strstr(text, "full address:s:ts1.example.com\r\n"
				      "alternate full address:s:[2001:db8::1]\r\n"),
		text);
}
END_TEST

START_TEST(further_lines_win)
{
	struct rdp_file f = plain;
	char text[2048];

	f.extra = "Prompt For Credentials:i:0\n\nscreen mode id:i:2\n";
	ck_assert_int_eq(format(&f, text, sizeof(text), NULL), 0);
	ck_assert_ptr_null(strstr(text, "prompt for credentials:i:1"));
	ck_assert_ptr_nonnull(
		strstr(text, "\r\nPrompt For Credentials:i:0\r\nscreen mode id:i:2\r\n"));
	ck_assert_ptr_nonnull(strstr(text, "authentication level:i:2"));
}
END_TEST

START_TEST(users_beyond_ascii)
{
	static const unsigned char wanted[] = {'J', 0, 0xfc, 0, 0x16, 0x04, 0x3d, 0xd8, 0x00, 0xde};
	struct rdp_file f = plain;
	struct buf out = BUF_INIT(65536);

	f.user = "J\xc3\xbc\xd0\x96\xf0\x9f\x98\x80"; /* a surrogate pair at the end */
	ck_assert_int_eq(rdp_file_format(&f, &out, NULL), 0);
	ck_assert_ptr_nonnull(memmem(out.data, out.len, wanted, sizeof(wanted)));
	buf_deinit(&out);
}
END_TEST

/* What must not be in a value, by what it would do. */
static const char *const injections[] = {
	"a\r\nfull address:s:evil",
	"a\nb",
	"a\rb",
	"\n",
	"a\tb",
	"a\x7f",
	"a\x01",
	"a\xc2\x85z",	  /* next line */
	"a\xe2\x80\xa8z", /* line separator */
	"a\xe2\x80\xa9",  /* paragraph separator */
	"\xff",
	"\xc3",
	"\xed\xa0\x80",
	"\xe2\x80",
};

START_TEST(no_value_adds_a_line)
{
	const char *bad = injections[_i];
	char text[2048];
	struct err e;

	for (int field = 0; field < 4; field++) {
		struct rdp_file f = plain;

		if (field == 0)
			f.user = bad;
		else if (field == 1)
			f.address = bad;
		else if (field == 2)
			f.fqdn = bad;
		else if (!strchr(bad, '\n')) /* there it separates lines, which have rules of their
						own */
			f.extra = bad;
		else
			continue;
		ck_assert_int_eq(format(&f, text, sizeof(text), &e), -EINVAL);
	}
}
END_TEST

static const char *const bad_lines[] = {
	"full address:s:evil",
	"FULL ADDRESS:s:evil",
	"compression:i:1\nusername:s:root",
	"loadbalanceinfo:s:x",
	"server port:i:1",
	"compression",
	"compression:",
	"compression:i",
	"compression:i1",
	"compression:x:1",
	"compression:i:1\r",
};

START_TEST(bad_further_lines)
{
	struct rdp_file f = plain;
	char text[2048];
	struct err e;

	f.extra = bad_lines[_i];
	ck_assert_int_eq(format(&f, text, sizeof(text), &e), -EINVAL);
	ck_assert_uint_gt(strlen(e.text), 10);
}
END_TEST

START_TEST(a_full_buffer_shows)
{
	struct buf out = BUF_INIT(40);

	ck_assert_int_eq(rdp_file_format(&plain, &out, NULL), 0);
	ck_assert_int_eq(buf_error(&out), -EOVERFLOW);
	buf_deinit(&out);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static Suite *make_suite(void)
{
	Suite *s = suite_create("rdp_file");
	TCase *t = tcase_create("rdp_file");

	tcase_add_test(t, a_plain_file);
	tcase_add_test(t, a_name_before_the_address_and_ipv6_in_brackets);
	tcase_add_test(t, further_lines_win);
	tcase_add_test(t, users_beyond_ascii);
	tcase_add_loop_test(t, no_value_adds_a_line, 0, COUNT(injections));
	tcase_add_loop_test(t, bad_further_lines, 0, COUNT(bad_lines));
	tcase_add_test(t, a_full_buffer_shows);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
