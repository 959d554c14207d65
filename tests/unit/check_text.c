/* SPDX-License-Identifier: ISC */
/* base/text and base/err: strings, numbers, UTF-8, files, error texts. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "lib/tap.h"

START_TEST(copies_what_fits)
{
	char dst[4] = "zzz";

	ck_assert_int_eq(text_copy(dst, sizeof(dst), "abc"), 0);
	ck_assert_str_eq(dst, "abc");
	ck_assert_int_eq(text_copy(dst, sizeof(dst), "abcd"), -ENAMETOOLONG);
	ck_assert_str_eq(dst, "");
	ck_assert_int_eq(text_copy(dst, 0, ""), -ENAMETOOLONG);
	ck_assert_ptr_null(text_dup(NULL));
}
END_TEST

START_TEST(compares_with_null)
{
	ck_assert(text_equal(NULL, NULL));
	ck_assert(!text_equal(NULL, ""));
	ck_assert(!text_equal("", NULL));
	ck_assert(text_equal("a", "a"));
	ck_assert(!text_equal("a", "A"));
}
END_TEST

START_TEST(parses_decimals_alone)
{
	static const char *const bad[] = {
		"", " 3", "3 ", "+3", "-3", "0x3", "3.0", "1e3", "\xd9\xa3", "3\n"};
	uint64_t v = 99;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(text_parse_u64(bad[i], 0, UINT64_MAX, &v), -EINVAL);
	ck_assert_int_eq(text_parse_u64(NULL, 0, 9, &v), -EINVAL);
	ck_assert_uint_eq(v, 99);
	ck_assert_int_eq(text_parse_u64("010", 0, 20, &v), 0);
	ck_assert_uint_eq(v, 10);
	ck_assert_int_eq(text_parse_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	ck_assert(v == UINT64_MAX);
	ck_assert_int_eq(text_parse_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	ck_assert_int_eq(text_parse_u64("99999999999999999999999", 0, UINT64_MAX, &v), -ERANGE);
	ck_assert_int_eq(text_parse_u64("4", 5, 6, &v), -ERANGE);
	ck_assert_int_eq(text_parse_u64("7", 5, 6, &v), -ERANGE);
	ck_assert_int_eq(text_parse_u64("6", 5, 6, &v), 0);
}
END_TEST

START_TEST(knows_utf8)
{
	static const char *const good[] = {"", "plain", "\x7f", "\xc2\x80", "\xdf\xbf",
		"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf", "\xd0\xb8\xd0\xbc\xd1\x8f"};
	static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2",
		"\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe",
		"\xf0\x90\x80", "a\xe2\x82\x28"};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(text_utf8_valid(good[i], strlen(good[i])), "good %zu", i);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(!text_utf8_valid(bad[i], strlen(bad[i])), "bad %zu", i);
	ck_assert(!text_utf8_valid("a\0b", 3));
	/* A sequence that the length cuts in two is not read behind it. */
	ck_assert(!text_utf8_valid("\xe2\x82\xac", 2));
	ck_assert_uint_eq(text_utf8_length("\xe2\x82\xac!", 4), 3);
}
END_TEST

/* Every code point, encoded by arithmetic, is valid exactly if it is no surrogate. */
START_TEST(utf8_agrees_with_arithmetic)
{
	for (unsigned c = 0x800; c < 0x10000; c++) {
		char s[3] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
			(char)(0x80 | (c & 63))};

		ck_assert(text_utf8_valid(s, 3) == (c < 0xd800 || c > 0xdfff));
	}
	for (unsigned c = 0x10000; c < 0x120000; c += 7) {
		char s[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)),
			(char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))};

		ck_assert(text_utf8_valid(s, 4) == (c <= 0x10ffff));
	}
}
END_TEST

static char folder[64];

static const char *file_in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/check_text.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
	unlink(file_in_folder("f"));
	rmdir(folder);
}

START_TEST(reads_files)
{
	FILE *f = fopen(file_in_folder("f"), "w");
	char *text = NULL;
	size_t len = 0;

	fwrite("ab\0cd", 1, 5, f);
	fclose(f);
	ck_assert_int_eq(text_read_file(file_in_folder("f"), 5, &text, &len), 0);
	ck_assert_uint_eq(len, 5);
	ck_assert(memcmp(text, "ab\0cd", 6) == 0);
	free(text);
	text = NULL;
	ck_assert_int_eq(text_read_file(file_in_folder("f"), 4, &text, NULL), -EFBIG);
	ck_assert_int_eq(text_read_file(folder, 100, &text, NULL), -EISDIR);
	ck_assert_int_eq(text_read_file(file_in_folder("none"), 100, &text, NULL), -ENOENT);
	ck_assert_int_eq(text_read_file("/dev/null", 100, &text, NULL), -EINVAL);
	ck_assert_ptr_null(text);
}
END_TEST

START_TEST(reads_files_that_tell_no_size)
{
	char *text = NULL;
	size_t len = 0;

	ck_assert_int_eq(text_read_file("/proc/self/status", 1 << 20, &text, &len), 0);
	ck_assert_uint_eq(strlen(text), len);
	ck_assert_ptr_nonnull(strstr(text, "Name:"));
	free(text);
}
END_TEST

START_TEST(does_not_wait_for_a_fifo)
{
	char *text = NULL;

	ck_assert_int_eq(mkfifo(file_in_folder("f"), 0600), 0);
	ck_assert_int_eq(text_read_file(file_in_folder("f"), 100, &text, NULL), -EINVAL);
}
END_TEST

START_TEST(error_texts)
{
	struct err e;
	char big[2000];

	ck_assert_int_eq(err_set(&e, -7, "bad %s", "thing"), -7);
	ck_assert_str_eq(e.text, "bad thing");
	ck_assert_int_eq(err_prefix(&e, 3, "\"%s\"", "name"), 3);
	ck_assert_str_eq(e.text, "\"name\": bad thing");
	ck_assert_int_eq(err_errno(&e, -ENOENT, "could not open \"%s\"", "x"), -ENOENT);
	ck_assert_str_eq(e.text, "could not open \"x\": No such file or directory");
	ck_assert_int_eq(err_set(NULL, -1, "%s", "x"), -1);
	ck_assert_int_eq(err_prefix(NULL, -1, "%s", "x"), -1);
	ck_assert_int_eq(err_errno(NULL, -1, "%s", "x"), -1);
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&e, -1, "%s", big);
	ck_assert_uint_eq(strlen(e.text), sizeof(e.text) - 1);
	err_prefix(&e, -1, "%s", big);
	ck_assert_uint_eq(strlen(e.text), sizeof(e.text) - 1);
	err_errno(&e, -EIO, "%s", big);
	ck_assert_uint_eq(strlen(e.text), sizeof(e.text) - 1);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("text");
	TCase *t = tcase_create("text"), *files = tcase_create("files");

	tcase_add_test(t, copies_what_fits);
	tcase_add_test(t, compares_with_null);
	tcase_add_test(t, parses_decimals_alone);
	tcase_add_test(t, knows_utf8);
	tcase_add_test(t, utf8_agrees_with_arithmetic);
	tcase_add_test(t, error_texts);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(files, setup, teardown);
	tcase_add_test(files, reads_files);
	tcase_add_test(files, reads_files_that_tell_no_size);
	tcase_add_test(files, does_not_wait_for_a_fifo);
	suite_add_tcase(s, files);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
