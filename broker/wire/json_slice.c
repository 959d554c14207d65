/* SPDX-License-Identifier: ISC */
/* Every loop ends because the text is one whole JSON value, as the scanner has seen. */
#include "wire/json_slice.h"

#include <string.h>

#include "wire/json_lex.h"

static char *skip_space(char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
		p++;
	return p;
}

/* From behind the opening quote to the closing one. */
static char *string_end(char *p)
{
	while (*p != '"')
		p += *p == '\\' ? 2 : 1;
	return p;
}

bool json_slice_next(char **p)
{
	*p = skip_space(*p);
	if (**p == ']' || **p == '}') {
		(*p)++;
		return false;
	}
	if (**p == ',')
		*p = skip_space(*p + 1);
	return true;
}

const char *json_slice_string(char **p, size_t *ret_len)
{
	char *start = *p + 1, *q = start;

	while (*q != '"' && *q != '\\')
		q++;
	*ret_len = (size_t)(q - start);
	if (*q == '\\') {
		q = string_end(q);
		*ret_len = json_lex_unescape(start, (size_t)(q - start));
	}
	start[*ret_len] = '\0';
	*p = q + 1;
	return start;
}

const char *json_slice_key(char **p, size_t *ret_len)
{
	const char *key = json_slice_string(p, ret_len);

	*p = skip_space(skip_space(*p) + 1);
	return key;
}

bool json_slice_integer(const char *p, uint64_t *ret_value, bool *ret_negative)
{
	bool negative = *p == '-';
	uint64_t v = 0;

	for (p += negative; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	if (*p == '.' || *p == 'e' || *p == 'E')
		return false;
	*ret_value = v;
	*ret_negative = negative;
	return true;
}

/* Fifteen digits are exact as a double, and so is a power of ten up to 10^22: their quotient is
 * rounded once, as it should be. Anything longer is rare. */
double json_slice_number(const char *p)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15};
	const char *start = p;
	bool negative = *p == '-';
	unsigned digits = 0, fraction = 0;
	uint64_t v = 0;
	double d;

	for (p += negative; (*p >= '0' && *p <= '9') || *p == '.'; p++) {
		if (*p == '.') {
			fraction = digits + 1;
			continue;
		}
		v = v * 10 + (uint64_t)(*p - '0');
		digits++;
	}
	if (digits > 15 || *p == 'e' || *p == 'E')
		return json_lex_double(start, start + strlen(start));
	d = (double)v / powers[fraction ? digits + 1 - fraction : 0];
	return negative ? -d : d;
}

void json_slice_skip(char **p)
{
	char *q = *p;
	unsigned depth = 0;

	do {
		switch (*q) {
		case '"':
			q = string_end(q + 1) + 1;
			break;
		case '[':
		case '{':
			depth++;
			q++;
			break;
		case ']':
		case '}':
			depth--;
			q++;
			break;
		default:
			/* Inside a container this also takes commas, colons and space. */
			q += depth ? 1 : strcspn(q, ",]} \n\r\t");
		}
	} while (depth);
	*p = q;
}
