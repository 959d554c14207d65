/* SPDX-License-Identifier: ISC */
/* Cursor functions over a NUL-terminated text; they never pass the end of a line by themselves. */
#include "agent/scan.h"

#include <string.h>

static const char *skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static bool scan_number(const char **p, unsigned radix, uint64_t *ret)
{
	const char *s = skip_blanks(*p);
	uint64_t v = 0;

	if (digit(*s) >= (int)radix)
		return false;
	for (; digit(*s) < (int)radix; s++) {
		if (__builtin_mul_overflow(v, (uint64_t)radix, &v) ||
			__builtin_add_overflow(v, (uint64_t)digit(*s), &v))
			return false;
	}
	*p = s;
	*ret = v;
	return true;
}

bool scan_u64(const char **p, uint64_t *ret)
{
	return scan_number(p, 10, ret);
}

bool scan_hex(const char **p, uint64_t *ret)
{
	return scan_number(p, 16, ret);
}

bool scan_skip_word(const char **p)
{
	const char *s = skip_blanks(*p);
	size_t n = strcspn(s, " \t\n");

	if (n == 0)
		return false;
	*p = s + n;
	return true;
}

const char *scan_next_line(const char *p)
{
	p = strchr(p, '\n');
	return p && p[1] ? p + 1 : NULL;
}

bool scan_key_u64(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);

	for (const char *p = text; p; p = scan_next_line(p)) {
		if (strncmp(p, key, len) == 0 && (p[len] == ' ' || p[len] == '\t')) {
			p += len;
			return scan_u64(&p, ret);
		}
	}
	return false;
}
