/* SPDX-License-Identifier: ISC */
/*
 * The strings and numbers of JSON, byte by byte: what json_scan is made of. Each function moves P
 * behind what it read; at the first offence it notes what is wrong, leaves P there and returns
 * false.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_lex {
	const char *data, *p, *end;
	const char *wrong; /* what is wrong at P; NULL as long as nothing is */
};

/* A string of the text, for comparison by what it decodes to. */
struct json_key {
	uint64_t head;	/* the first eight decoded bytes */
	uint32_t at;	/* offset of the first byte behind the quote */
	uint32_t bytes; /* as written */
	uint32_t len;	/* decoded */
	bool escaped;
};

/* Notes WRONG unless something was noted before; false. */
bool json_lex_fail(struct json_lex *l, const char *wrong);
/* P is behind the opening quote. RET may be NULL. */
bool json_lex_string(struct json_lex *l, struct json_key *ret);
/* P is at '-' or a digit, or at what is no value at all. */
bool json_lex_number(struct json_lex *l);
bool json_lex_word(struct json_lex *l, const char *word);

/* The value of the well-formed number between P and END, which may lie behind it. The decimal point
 * is moved into the exponent, so that no locale has a say. Infinite if it is too large. */
double json_lex_double(const char *p, const char *end);

/* Decodes the escapes of LEN well-formed bytes in place; the new length. */
size_t json_lex_unescape(char *s, size_t len);

/* An order of keys in which equal strings, however escaped, are equal. */
int json_key_compare(const char *data, const struct json_key *a, const struct json_key *b);

static inline void json_lex_space(struct json_lex *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\n' || *l->p == '\r' || *l->p == '\t'))
		l->p++;
}
