/* SPDX-License-Identifier: ISC */
/* base/clock: spelling and reading time, against the C library and against a catalogue of mistakes.
 */
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/tap.h"

START_TEST(spells_known_moments)
{
	char s[CLOCK_RFC3339_SIZE];

	ck_assert_str_eq(clock_rfc3339(0, s), "1970-01-01T00:00:00.000Z");
	ck_assert_str_eq(clock_rfc3339(-1, s), "1969-12-31T23:59:59.999Z");
	ck_assert_str_eq(clock_rfc3339(INT64_C(1796080797123456), s), "2026-11-30T23:19:57.123Z");
	ck_assert_str_eq(clock_rfc3339(INT64_C(1709210096000000), s), "2024-02-29T12:34:56.000Z");
	ck_assert_str_eq(clock_rfc3339(INT64_MAX, s), "9999-12-31T23:59:59.775Z");
	clock_rfc3339(INT64_MIN, s);
	ck_assert(strlen(s) == 24);
}
END_TEST

START_TEST(reads_known_moments)
{
	static const struct {
		const char *text;
		int64_t us;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-11-30T23:19:57.123Z", INT64_C(1796080797123000)},
		{"2026-11-30T23:19:57.123456789Z", INT64_C(1796080797123456)},
		{"2026-11-30t23:19:57.1z", INT64_C(1796080797100000)},
		{"2026-11-30 23:19:57Z", INT64_C(1796080797000000)},
		{"2026-12-01T02:19:57+03:00", INT64_C(1796080797000000)},
		{"2026-11-30T18:49:57-04:30", INT64_C(1796080797000000)},
		{"2024-02-29T12:34:56Z", INT64_C(1709210096000000)},
		{"2000-02-29T00:00:00Z", INT64_C(951782400000000)},
		{"0001-01-01T00:00:00Z", INT64_C(-62135596800000000)},
		{"2016-12-31T23:59:60Z", INT64_C(1483228800000000)},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t us = -1;

		ck_assert_msg(clock_parse_rfc3339(cases[i].text, &us) == 0, "%s", cases[i].text);
		ck_assert_msg(us == cases[i].us, "%s: %lld", cases[i].text, (long long)us);
	}
}
END_TEST

START_TEST(refuses_what_is_no_moment)
{
	static const char *const bad[] = {"", "2026", "2026-11-30", "2026-11-30T23:19:57",
		"2026-11-30T23:19Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
		"2026-01-00T00:00:00Z", "2026-04-31T00:00:00Z", "2023-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T23:60:00Z",
		"2026-11-30T23:19:61Z", "2026-11-30T23:19:57.Z", "2026-11-30T23:19:57.1234567890Z",
		"2026-11-30T23:19:57+0300", "2026-11-30T23:19:57+24:00",
		"2026-11-30T23:19:57+03:60", "2026-11-30T23:19:57Z ", " 2026-11-30T23:19:57Z",
		"+026-11-30T23:19:57Z", "2026-1-30T23:19:57Z", "2026-11-30X23:19:57Z",
		"2026-11-30T23:19:57ZZ", "2026-11-30T23:19:57.-1Z"};
	int64_t us = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(clock_parse_rfc3339(bad[i], &us) == -EINVAL, "%s", bad[i]);
	ck_assert(us == 42);
}
END_TEST

/* What is written is read back, and the calendar is the C library's; fixed seed. */
START_TEST(round_trip)
{
	unsigned short seed[3] = {1, 2, 3};
	char s[CLOCK_RFC3339_SIZE], expected[CLOCK_RFC3339_SIZE];

	for (int i = 0; i < 20000; i++) {
		/* Years 1 to 9999, to the millisecond. */
		int64_t range = INT64_C(253402300799) + INT64_C(62135596800);
		int64_t second = (int64_t)(erand48(seed) * (double)range) - INT64_C(62135596800);
		int64_t us = second * 1000000 + nrand48(seed) % 1000 * 1000, back = 0;
		time_t t = (time_t)second;
		struct tm tm;

		ck_assert_int_eq(clock_parse_rfc3339(clock_rfc3339(us, s), &back), 0);
		ck_assert_msg(back == us, "%s", s);
		gmtime_r(&t, &tm);
		strftime(expected, sizeof(expected), "-%m-%dT%H:%M:%S.", &tm);
		ck_assert_msg(
			strncmp(s + 4, expected, strlen(expected)) == 0, "%s %s", s, expected);
	}
}
END_TEST

START_TEST(clocks_run_forward)
{
	int64_t ms = clock_mono_ms(), us = clock_mono_us();

	ck_assert(us / 1000 >= ms);
	ck_assert(clock_mono_us() >= us);
	ck_assert(clock_boot_ms() >= (uint64_t)ms);
	ck_assert(clock_wall_us() > INT64_C(1700000000000000));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("clock");
	TCase *t = tcase_create("clock");

	tcase_add_test(t, spells_known_moments);
	tcase_add_test(t, reads_known_moments);
	tcase_add_test(t, refuses_what_is_no_moment);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, clocks_run_forward);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
