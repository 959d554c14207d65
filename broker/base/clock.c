/* SPDX-License-Identifier: ISC */
/*
 * Reading and spelling time. Calendar arithmetic is done here on the proleptic Gregorian calendar,
 * so that neither the locale nor TZ can change what is written or read.
 */
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define US_PER_S 1000000
#define S_PER_DAY 86400

static int64_t read_us(clockid_t id)
{
	struct timespec t = {0};

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

int64_t clock_mono_ms(void)
{
	return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

uint64_t clock_boot_ms(void)
{
	return (uint64_t)(read_us(CLOCK_BOOTTIME) / 1000);
}

/* Days since 1970-01-01 of a date; years are counted from March so that the leap day ends one. */
static int64_t days_of_date(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int m = month <= 2 ? month + 9 : month - 3;

	/* 719468 days lie between 0000-03-01 and 1970-01-01. All years here are >= 0. */
	return y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

char *clock_rfc3339(int64_t wall_us, char ret[CLOCK_RFC3339_SIZE])
{
	/* Four digits of year are all the format has. */
	static const int64_t first = -62167219200, last = 253402300799;
	int64_t s = wall_us / US_PER_S, us = wall_us % US_PER_S;
	struct tm tm = {0};
	time_t t;

	if (us < 0) {
		us += US_PER_S;
		s--;
	}
	if (s < first)
		s = first;
	if (s > last)
		s = last;
	t = (time_t)s;
	gmtime_r(&t, &tm);
	snprintf(ret, CLOCK_RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		(unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
		(unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
		(unsigned)tm.tm_sec % 100, (unsigned)(us / 1000));
	return ret;
}

/* COUNT digits at *P, which moves behind them. */
static bool read_digits(const char **p, int count, int *ret)
{
	int v = 0;

	for (int i = 0; i < count; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		v = v * 10 + (**p - '0');
	}
	*ret = v;
	return true;
}

static bool read_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* Up to nine digits behind a dot, cut to microseconds. No dot is no fraction. */
static bool read_fraction(const char **p, int *ret_us)
{
	int count = 0, us = 0;

	*ret_us = 0;
	if (**p != '.')
		return true;
	for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, count++)
		if (count < 6)
			us = us * 10 + (**p - '0');
	if (count < 1 || count > 9)
		return false;
	for (int i = count; i < 6; i++)
		us *= 10;
	*ret_us = us;
	return true;
}

/* "Z", "+hh:mm" or "-hh:mm", in seconds east of Greenwich. */
static bool read_offset(const char **p, int *ret_s)
{
	int sign, hours, minutes;

	*ret_s = 0;
	if (**p == 'Z' || **p == 'z') {
		(*p)++;
		return true;
	}
	if (**p != '+' && **p != '-')
		return false;
	sign = *(*p)++ == '-' ? -1 : 1;
	if (!read_digits(p, 2, &hours) || !read_char(p, ':') || !read_digits(p, 2, &minutes))
		return false;
	if (hours > 23 || minutes > 59)
		return false;
	*ret_s = sign * (hours * 3600 + minutes * 60);
	return true;
}

static bool date_exists(int year, int month, int day)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	if (month < 1 || month > 12 || day < 1)
		return false;
	return day <= days[month - 1] + (leap && month == 2);
}

static bool read_date(const char **p, int64_t *ret_days)
{
	int year, month, day;

	if (!read_digits(p, 4, &year) || !read_char(p, '-') || !read_digits(p, 2, &month) ||
		!read_char(p, '-') || !read_digits(p, 2, &day) || !date_exists(year, month, day))
		return false;
	*ret_days = days_of_date(year, month, day);
	return true;
}

/* Seconds into the day. A leap second is read as the second behind it. */
static bool read_time(const char **p, int *ret_s)
{
	int hour, minute, second;

	if (!read_digits(p, 2, &hour) || !read_char(p, ':') || !read_digits(p, 2, &minute) ||
		!read_char(p, ':') || !read_digits(p, 2, &second))
		return false;
	if (hour > 23 || minute > 59 || second > 60)
		return false;
	*ret_s = hour * 3600 + minute * 60 + second;
	return true;
}

int clock_parse_rfc3339(const char *text, int64_t *ret_wall_us)
{
	const char *p = text;
	int seconds, us, offset;
	int64_t days;

	if (!read_date(&p, &days) || (*p != 'T' && *p != 't' && *p != ' '))
		return -EINVAL;
	p++;
	if (!read_time(&p, &seconds) || !read_fraction(&p, &us) || !read_offset(&p, &offset) || *p)
		return -EINVAL;
	*ret_wall_us = (days * S_PER_DAY + seconds - offset) * US_PER_S + us;
	return 0;
}
