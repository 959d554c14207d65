/* SPDX-License-Identifier: ISC */
/* Spelled out by bytes: the C library's character classes follow the locale. */
#include "wire/names.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "wire/limits.h"

#define HOST_NAME_MAX_BYTES 253
#define HOST_LABEL_MAX_BYTES 63

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

static bool word_valid(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (n >= LIMIT_NAME_SIZE - 1 ||
			!(is_alnum(s[n]) || s[n] == '.' || s[n] == '_' || s[n] == '-'))
			return false;
	return n > 0;
}

bool name_valid(const char *s)
{
	return s && s[0] != '-' && s[0] != '.' && word_valid(s);
}

bool tag_name_valid(const char *s)
{
	return s && s[0] != '-' && word_valid(s) && strcmp(s, "none") != 0 && strcmp(s, "any") != 0;
}

/* One label of LEN bytes; *RET_NUMERIC: it is digits alone. */
static bool label_valid(const char *s, size_t len, bool *ret_numeric)
{
	bool numeric = true;

	if (len == 0 || len > HOST_LABEL_MAX_BYTES || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_alnum(s[i]) && s[i] != '-')
			return false;
		numeric = numeric && is_digit(s[i]);
	}
	*ret_numeric = numeric;
	return true;
}

/* A name whose last label is a number could be a mistyped address: refused. */
static bool host_name_valid(const char *s)
{
	bool numeric = true;

	if (strlen(s) > HOST_NAME_MAX_BYTES)
		return false;
	for (;;) {
		size_t len = strcspn(s, ".");

		if (!label_valid(s, len, &numeric))
			return false;
		if (!s[len])
			return !numeric;
		s += len + 1;
	}
}

bool address_valid(const char *s)
{
	unsigned char binary[sizeof(struct in6_addr)];

	if (!s || !*s)
		return false;
	return inet_pton(AF_INET, s, binary) == 1 || inet_pton(AF_INET6, s, binary) == 1 ||
	       host_name_valid(s);
}
