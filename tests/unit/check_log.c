/* SPDX-License-Identifier: ISC */
/* base/log: one line is one line, whatever is printed; levels; limits. Standard error goes to a
 * pipe. */
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/tap.h"

static int saved_stderr, pipe_fds[2];

static void setup(void)
{
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_eq(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	close(pipe_fds[1]);
	unsetenv("JOURNAL_STREAM");
	log_set_level(LOG_LEVEL_INFO);
}

static void teardown(void)
{
	close(pipe_fds[0]);
	close(saved_stderr);
}

/* All that was logged; ends the logging. */
static const char *logged(void)
{
	static char text[16384];
	size_t len = 0;
	ssize_t n;

	dup2(saved_stderr, STDERR_FILENO);
	while ((n = read(pipe_fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

static size_t count_lines(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

START_TEST(a_line_has_time_and_level)
{
	const char *text;

	errno = ENOENT;
	log_warning("could not open \"%s\"", "x");
	ck_assert_int_eq(errno, ENOENT);
	text = logged();
	ck_assert_int_eq(text[4], '-');
	ck_assert_int_eq(text[10], 'T');
	ck_assert_str_eq(text + 24, " warning: could not open \"x\"\n");
}
END_TEST

START_TEST(under_systemd_a_line_has_a_priority)
{
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("a");
	log_warning("b");
	log_info("c");
	log_debug("d");
	ck_assert_str_eq(logged(), "<3>a\n<4>b\n<6>c\n<7>d\n");
}
END_TEST

START_TEST(levels_hide)
{
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_debug("hidden");
	log_set_level(LOG_LEVEL_ERROR);
	log_warning("hidden");
	log_error("shown");
	ck_assert_str_eq(logged(), "<3>shown\n");
}
END_TEST

START_TEST(no_value_forges_a_line)
{
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_info("user \"%s\"", "a\nb\r\t\x1b[0m\x7f");
	log_info("%s", "x\xc2\x85y\xe2\x80\xa8z\xe2\x80\xae");
	log_info("%s", "\xd0\xb8\xd0\xbc\xd1\x8f \xe2\x82\xac");
	ck_assert_str_eq(logged(), "<6>user \"a\\x0ab\\x0d\\x09\\x1b[0m\\x7f\"\n"
				   "<6>x\\xc2\\x85y\\xe2\\x80\\xa8z\\xe2\\x80\\xae\n"
				   "<6>\xd0\xb8\xd0\xbc\xd1\x8f \xe2\x82\xac\n");
}
END_TEST

START_TEST(a_long_line_is_cut_and_still_one_line)
{
	char big[9000];
	const char *text;

	memset(big, '\n', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_info("%s", big);
	log_info("next");
	text = logged();
	ck_assert_uint_eq(count_lines(text), 2);
	ck_assert_str_eq(text + strlen(text) - 5, "next\n");
}
END_TEST

START_TEST(parses_levels)
{
	enum log_level level = LOG_LEVEL_INFO;

	logged();
	ck_assert_int_eq(log_level_parse("debug", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(log_level_parse("error", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_ERROR);
	ck_assert_int_eq(log_level_parse("Error", &level), -EINVAL);
	ck_assert_int_eq(log_level_parse("", &level), -EINVAL);
	ck_assert_int_eq(log_level_parse(NULL, &level), -EINVAL);
	ck_assert_int_eq(level, LOG_LEVEL_ERROR);
}
END_TEST

START_TEST(limits)
{
	struct log_limit l = {0};
	unsigned suppressed = 99;

	logged();
	for (int i = 0; i < 3; i++) {
		ck_assert(log_limit_ok(&l, 3, 1000, 5000 + i, &suppressed));
		ck_assert_uint_eq(suppressed, 0);
	}
	for (int i = 0; i < 7; i++)
		ck_assert(!log_limit_ok(&l, 3, 1000, 5999, &suppressed));
	ck_assert(log_limit_ok(&l, 3, 1000, 6000, &suppressed));
	ck_assert_uint_eq(suppressed, 7);
	ck_assert(log_limit_ok(&l, 3, 1000, 6001, &suppressed));
	ck_assert_uint_eq(suppressed, 0);
	ck_assert(log_limit_ok(&l, 3, 1000, 6002, NULL));
	ck_assert(!log_limit_ok(&l, 3, 1000, 6003, NULL));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_line_has_time_and_level);
	tcase_add_test(t, under_systemd_a_line_has_a_priority);
	tcase_add_test(t, levels_hide);
	tcase_add_test(t, no_value_forges_a_line);
	tcase_add_test(t, a_long_line_is_cut_and_still_one_line);
	tcase_add_test(t, parses_levels);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
