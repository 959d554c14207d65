/* SPDX-License-Identifier: ISC */
/* A span is whole: the largest unit that fits, rounded down. */
#include "cli/when.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define SECOND 1000000ll

static const struct {
	const char *name;
	int64_t length_us;
} units[] = {{"d", 86400 * SECOND}, {"h", 3600 * SECOND}, {"min", 60 * SECOND}, {"s", SECOND}};

static int parse_span(const char *text, int64_t *ret)
{
	size_t digits = strspn(text, "0123456789");
	char number[8];
	uint64_t n;

	if (digits == 0 || digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (text_parse_u64(number, 1, 1000000, &n) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text + digits, units[i].name) == 0) {
			*ret = (int64_t)n * units[i].length_us;
			return 0;
		}
	}
	return -EINVAL;
}

int when_parse(const char *text, int64_t now_us, int64_t *ret)
{
	int64_t span = 0, when = 0;

	if (strcmp(text, "never") != 0) {
		if (parse_span(text, &span) == 0)
			when = now_us + span;
		else if (clock_parse_rfc3339(text, &when) < 0)
			return -EINVAL;
	}
	if (ret)
		*ret = when;
	return 0;
}

const char *when_age(int64_t then_us, int64_t now_us, char ret[WHEN_AGE_SIZE])
{
	int64_t age = now_us > then_us ? now_us - then_us : 0;
	size_t i = 0;

	while (i < 3 && age < units[i].length_us)
		i++;
	snprintf(ret, WHEN_AGE_SIZE, "%lld %s", (long long)(age / units[i].length_us),
		units[i].name);
	return ret;
}
