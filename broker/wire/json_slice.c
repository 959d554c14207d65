/* SPDX-License-Identifier: ISC */
/* Every loop ends because the text is one whole JSON value, as the scanner has seen. */
#include "wire/json_slice.h"

#include <errno.h>
#include <stdlib.h>
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

int64_t json_slice_integer(char **p)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(*p, &end, 10);
	if (errno || *end == '.' || *end == 'e' || *end == 'E')
		v = 0;
	json_slice_skip(p);
	return v;
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
