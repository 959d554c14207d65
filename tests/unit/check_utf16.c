/* SPDX-License-Identifier: ISC */
/* base/utf16: there and back, and what is not UTF-16. */
#include "base/utf16.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "lib/tap.h"

START_TEST(every_code_point_comes_back)
{
	for (uint32_t c = 1; c < 0x110000; c++) {
		char text[5] = "", back[8];
		struct buf b = BUF_INIT(8);
		size_t n;

		if (c == 0xd800)
			c = 0xe000;
		n = text_utf8_put(c, text);
		text[n] = '\0';
		ck_assert(text_utf8_valid(text, n));
		utf16_add(&b, text, n);
		ck_assert_uint_eq(b.len, c < 0x10000 ? 2 : 4);
		ck_assert_int_eq(
			utf16_to_utf8((const uint8_t *)b.data, b.len, back, sizeof(back)), 0);
		ck_assert_str_eq(back, text);
		buf_deinit(&b);
	}
}
END_TEST

static const struct {
	const char *data;
	size_t len;
	int result;
} bad[] = {
	{"a", 1, -EINVAL},
	{"a\0b", 3, -EINVAL},
	{"\0\0", 2, -EINVAL},
	{"a\0\0\0b\0", 6, -EINVAL},
	{"\0\xd8", 2, -EINVAL},
	{"\0\xd8"
	 "a\0",
		4, -EINVAL},
	{"\0\xd8\0\xd8", 4, -EINVAL},
	{"\0\xdc", 2, -EINVAL},
	{"\0\xdc\0\xd8", 4, -EINVAL},
	{"a\0b\0c\0d\0", 8, -ENAMETOOLONG},
	{"a\0b\0\x38\x04", 6, -ENAMETOOLONG},
};

START_TEST(what_is_no_utf16_is_refused)
{
	char text[4] = "???";

	ck_assert_int_eq(
		utf16_to_utf8((const uint8_t *)bad[_i].data, bad[_i].len, text, sizeof(text)),
		bad[_i].result);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(what_fits_is_taken)
{
	char text[4];

	ck_assert_int_eq(utf16_to_utf8((const uint8_t *)"a\0b\0c\0", 6, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "abc");
	ck_assert_int_eq(utf16_to_utf8((const uint8_t *)"", 0, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("utf16");
	TCase *t = tcase_create("utf16");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, every_code_point_comes_back);
	tcase_add_loop_test(t, what_is_no_utf16_is_refused, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(t, what_fits_is_taken);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
