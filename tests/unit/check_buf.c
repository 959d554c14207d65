/* SPDX-License-Identifier: ISC */
/* base/buf: bounds, sticking errors, and every way to add. */
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"

START_TEST(empty_is_a_string)
{
	struct buf b = BUF_INIT(10);

	ck_assert_str_eq(buf_str(&b), "");
	ck_assert_int_eq(buf_error(&b), 0);
	buf_deinit(&b);
	buf_deinit(&b);
}
END_TEST

START_TEST(adds_in_every_way)
{
	struct buf b;

	buf_init(&b, 1000);
	buf_add(&b, "ab\0c", 2);
	buf_adds(&b, "cd");
	buf_addc(&b, 'e');
	buf_addf(&b, "[%d %s]", -7, "x");
	buf_addu(&b, 0);
	buf_addu(&b, UINT64_MAX);
	ck_assert_str_eq(buf_str(&b), "abcde[-7 x]018446744073709551615");
	ck_assert_uint_eq(b.len, strlen(buf_str(&b)));
	buf_deinit(&b);
}
END_TEST

START_TEST(fills_to_the_last_byte)
{
	struct buf b = BUF_INIT(4);

	buf_adds(&b, "1234");
	ck_assert_int_eq(buf_error(&b), 0);
	ck_assert_str_eq(buf_str(&b), "1234");
	buf_adds(&b, "");
	ck_assert_int_eq(buf_error(&b), 0);
	buf_addc(&b, '5');
	ck_assert_int_eq(buf_error(&b), -EOVERFLOW);
	ck_assert_str_eq(buf_str(&b), "1234");
	buf_deinit(&b);
}
END_TEST

START_TEST(an_error_sticks_until_reset)
{
	struct buf b = BUF_INIT(8);

	buf_adds(&b, "123456789");
	ck_assert_int_eq(buf_error(&b), -EOVERFLOW);
	buf_addc(&b, 'x');
	buf_addu(&b, 1);
	buf_addf(&b, "%d", 1);
	ck_assert_str_eq(buf_str(&b), "");
	buf_reset(&b);
	buf_addc(&b, 'x');
	ck_assert_int_eq(buf_error(&b), 0);
	ck_assert_str_eq(buf_str(&b), "x");
	buf_deinit(&b);
	ck_assert_int_eq(buf_error(&b), 0);
}
END_TEST

START_TEST(formats_what_is_longer_than_its_first_guess)
{
	struct buf b = BUF_INIT(5000);
	char big[3001];

	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	buf_addf(&b, "%s!", big);
	ck_assert_uint_eq(b.len, 3001);
	ck_assert(strncmp(buf_str(&b), big, 3000) == 0);
	ck_assert_str_eq(buf_str(&b) + 3000, "!");
	buf_addf(&b, "%s", big);
	ck_assert_int_eq(buf_error(&b), -EOVERFLOW);
	ck_assert_uint_eq(b.len, 3001);
	buf_deinit(&b);
}
END_TEST

START_TEST(grows_through_every_size)
{
	struct buf b = BUF_INIT(70000);

	for (size_t i = 0; i < 70000; i++) {
		buf_addc(&b, (char)('a' + i % 26));
		ck_assert_uint_eq(strlen(buf_str(&b) + i), 1);
	}
	ck_assert_int_eq(buf_error(&b), 0);
	for (size_t i = 0; i < 70000; i++)
		ck_assert_int_eq(buf_str(&b)[i], (char)('a' + i % 26));
	buf_deinit(&b);
}
END_TEST

START_TEST(steals)
{
	struct buf b = BUF_INIT(10);
	char *text = buf_steal(&b);

	ck_assert_str_eq(text, "");
	free(text);
	buf_adds(&b, "word");
	text = buf_steal(&b);
	ck_assert_str_eq(text, "word");
	free(text);
	ck_assert_str_eq(buf_str(&b), "");
	buf_adds(&b, "much too long");
	ck_assert_ptr_null(buf_steal(&b));
	ck_assert_int_eq(buf_error(&b), 0);
}
END_TEST

START_TEST(a_huge_length_overflows_nothing)
{
	struct buf b = BUF_INIT(SIZE_MAX - 1);

	buf_adds(&b, "x");
	buf_add(&b, "y", SIZE_MAX - 1);
	ck_assert_int_eq(buf_error(&b), -EOVERFLOW);
	ck_assert_str_eq(buf_str(&b), "x");
	buf_deinit(&b);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("buf");
	TCase *t = tcase_create("buf");

	tcase_add_test(t, empty_is_a_string);
	tcase_add_test(t, adds_in_every_way);
	tcase_add_test(t, fills_to_the_last_byte);
	tcase_add_test(t, an_error_sticks_until_reset);
	tcase_add_test(t, formats_what_is_longer_than_its_first_guess);
	tcase_add_test(t, grows_through_every_size);
	tcase_add_test(t, steals);
	tcase_add_test(t, a_huge_length_overflows_nothing);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
