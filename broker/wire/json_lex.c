/* SPDX-License-Identifier: ISC */
/* Pure functions of the text: no allocation, no locale. */
#include "wire/json_lex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* No double needs more; the standard lets a parser bound precision. */
#define NUMBER_MAX_BYTES 128
/* Exponents are cut here: far beyond any double, far from overflow. */
#define EXPONENT_MAX 100000

/* What a byte of a string is; everything else is plain. */
enum { PLAIN, QUOTE, ESCAPE, CONTROL, MULTIBYTE };

#define ROW(c) c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c

static const unsigned char byte_class[256] = {
	/* clang-format off */
	ROW(CONTROL), ROW(CONTROL),
	PLAIN, PLAIN, QUOTE, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
	PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
	ROW(PLAIN), ROW(PLAIN),
	PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
	PLAIN, PLAIN, PLAIN, PLAIN, ESCAPE, PLAIN, PLAIN, PLAIN,
	ROW(PLAIN), ROW(PLAIN),
	ROW(MULTIBYTE), ROW(MULTIBYTE), ROW(MULTIBYTE), ROW(MULTIBYTE),
	ROW(MULTIBYTE), ROW(MULTIBYTE), ROW(MULTIBYTE), ROW(MULTIBYTE),
	/* clang-format on */
};

bool json_lex_fail(struct json_lex *l, const char *wrong)
{
	if (!l->wrong)
		l->wrong = wrong;
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The four digits at P, or -1. */
static int32_t hex4(const char *p, const char *end)
{
	int32_t v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(p[i]);

		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

/* The code point of the digits at P, or of a surrogate pair that begins there; *RET_USED bytes. -1:
 * none. */
static int32_t unicode_escape(const char *p, const char *end, size_t *ret_used)
{
	int32_t high = hex4(p, end), low;

	*ret_used = 4;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high > 0xdbff || end - p < 10 || p[4] != '\\' || p[5] != 'u')
		return -1;
	low = hex4(p + 6, end);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	*ret_used = 10;
	return 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
}

/* Decodes the escape behind a backslash at P into RET: its length, 0 if it is not valid. */
static size_t decode_escape(const char *p, const char *end, char ret[4], size_t *ret_used)
{
	static const char written[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at;
	int32_t c;

	if (p == end || !*p)
		return 0;
	if (*p == 'u') {
		c = unicode_escape(p + 1, end, ret_used);
		(*ret_used)++;
		return c > 0 ? text_utf8_put((uint32_t)c, ret)
			     : 0; /* U+0000 would end a C string early */
	}
	at = strchr(written, *p);
	if (!at)
		return 0;
	ret[0] = meant[at - written];
	*ret_used = 1;
	return 1;
}

size_t json_lex_unescape(char *s, size_t len)
{
	const char *p = s, *end = s + len;
	char *out = s, decoded[4];
	size_t n, used = 0;

	while (p < end) {
		if (*p != '\\') {
			*out++ = *p++;
			continue;
		}
		n = decode_escape(p + 1, end, decoded, &used);
		memcpy(out, decoded, n);
		out += n;
		p += 1 + used;
	}
	return (size_t)(out - s);
}

/* The decoded bytes of a key, one at a time. */
struct decoder {
	const char *p, *end;
	char pending[4];
	size_t pending_at, pending_len;
};

static struct decoder decode_key(const char *data, const struct json_key *k)
{
	return (struct decoder){.p = data + k->at, .end = data + k->at + k->bytes};
}

static unsigned char decode_next(struct decoder *d)
{
	size_t used = 0;

	if (d->pending_at < d->pending_len)
		return (unsigned char)d->pending[d->pending_at++];
	if (*d->p != '\\')
		return (unsigned char)*d->p++;
	d->pending_len = decode_escape(d->p + 1, d->end, d->pending, &used);
	d->pending_at = 1;
	d->p += 1 + used;
	return (unsigned char)d->pending[0];
}

/* END is the end of the text. */
static uint64_t key_head(const char *data, const struct json_key *k, const char *end)
{
	unsigned char head[8] = {0};
	size_t n = k->len < 8 ? k->len : 8;
	uint64_t v;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (!k->escaped && end - (data + k->at) >= 8) {
		/* Faster than copying an odd number of bytes. */
		memcpy(&v, data + k->at, 8);
		return n == 8 ? v : v & ((UINT64_C(1) << 8 * n) - 1);
	}
#endif
	if (k->escaped) {
		struct decoder d = decode_key(data, k);

		for (size_t i = 0; i < n; i++)
			head[i] = decode_next(&d);
	} else {
		memcpy(head, data + k->at, n);
	}
	memcpy(&v, head, sizeof(v));
	return v;
}

int json_key_compare(const char *data, const struct json_key *a, const struct json_key *b)
{
	struct decoder x, y;
	int r = 0;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	if (a->len <= 8)
		return 0;
	if (!a->escaped && !b->escaped)
		return memcmp(data + a->at + 8, data + b->at + 8, a->len - 8);
	x = decode_key(data, a);
	y = decode_key(data, b);
	for (uint32_t i = 0; i < a->len && r == 0; i++)
		r = decode_next(&x) - decode_next(&y);
	return r;
}

/* Plain bytes at P, eight at a time: a byte's top bit in the sum of the tests says that it is not
 * plain. Only the lowest such bit is exact, and that one is wanted. */
static const char *skip_plain(const char *p, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const uint64_t ones = 0x0101010101010101, tops = ones * 0x80;

	for (; end - p >= 8; p += 8) {
		uint64_t v, quote, escape, found;

		memcpy(&v, p, 8);
		quote = v ^ (ones * '"');
		escape = v ^ (ones * '\\');
		found = ((quote - ones) & ~quote) | ((escape - ones) & ~escape) |
			((v - ones * 0x20) & ~v) | v;
		found &= tops;
		if (found)
			return p + __builtin_ctzll(found) / 8;
	}
#endif
	while (p < end && byte_class[(unsigned char)*p] == PLAIN)
		p++;
	return p;
}

bool json_lex_string(struct json_lex *l, struct json_key *ret)
{
	const char *start = l->p, *p = start;
	size_t n, used, saved = 0; /* saved: bytes that decoding takes away */
	char decoded[4];

	for (;;) {
		p = skip_plain(p, l->end);
		l->p = p;
		if (p == l->end)
			return json_lex_fail(l, "the text ends inside a string");
		switch (byte_class[(unsigned char)*p]) {
		case QUOTE:
			l->p = p + 1;
			if (!ret)
				return true;
			*ret = (struct json_key){.at = (uint32_t)(start - l->data),
				.bytes = (uint32_t)(p - start),
				.len = (uint32_t)((size_t)(p - start) - saved),
				.escaped = saved > 0};
			ret->head = key_head(l->data, ret, l->end);
			return true;
		case ESCAPE:
			n = decode_escape(p + 1, l->end, decoded, &used);
			if (n == 0)
				return json_lex_fail(l, "not a valid escape");
			saved += 1 + used - n; /* every escape is longer than what it means */
			p += 1 + used;
			break;
		case CONTROL:
			return json_lex_fail(l, "control character in a string");
		default:
			n = text_utf8_length(p, (size_t)(l->end - p));
			if (n == 0)
				return json_lex_fail(l, "invalid UTF-8");
			p += n;
		}
	}
}

/* Reads digits; how many. */
static size_t lex_digits(struct json_lex *l)
{
	const char *start = l->p;

	while (l->p < l->end && *l->p >= '0' && *l->p <= '9')
		l->p++;
	return (size_t)(l->p - start);
}

/* Whether a decimal integer fits into int64 or uint64. */
static bool integer_fits(const char *p, size_t len)
{
	bool negative = *p == '-';
	uint64_t v = 0;

	for (size_t i = negative; i < len; i++)
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v))
			return false;
	return !negative || v <= (uint64_t)INT64_MAX + 1;
}

/* The exponent behind an 'e', cut at EXPONENT_MAX. */
static long read_exponent(const char *p, const char *end)
{
	bool negative = p < end && *p == '-';
	long v = 0;

	for (p += negative || (p < end && *p == '+'); p < end && *p >= '0' && *p <= '9'; p++)
		if (v < EXPONENT_MAX)
			v = v * 10 + (*p - '0');
	return negative ? -v : v;
}

double json_lex_double(const char *p, const char *end)
{
	char text[NUMBER_MAX_BYTES + 16];
	long exponent = 0;
	bool point = false;
	size_t n = 0;

	for (; p < end && n < NUMBER_MAX_BYTES; p++) {
		if (*p == '.') {
			point = true;
		} else if (*p == '-' || (*p >= '0' && *p <= '9')) {
			text[n++] = *p;
			exponent -= point;
		} else {
			break;
		}
	}
	if (p < end && (*p == 'e' || *p == 'E'))
		exponent += read_exponent(p + 1, end);
	snprintf(text + n, sizeof(text) - n, "e%ld", exponent);
	return strtod(text, NULL);
}

static bool check_number(struct json_lex *l, const char *start, bool integer, bool exponent)
{
	size_t len = (size_t)(l->p - start);

	/* Most numbers are short: nothing of 18 bytes without an exponent is out of range. */
	if (len <= 18 && !exponent)
		return true;
	if (len > NUMBER_MAX_BYTES)
		return json_lex_fail(l, "a number has too many digits");
	if (integer && !integer_fits(start, len))
		return json_lex_fail(l, "an integer is beyond 64 bits");
	if (exponent && !isfinite(json_lex_double(start, l->p)))
		return json_lex_fail(l, "a number is not finite");
	return true;
}

bool json_lex_number(struct json_lex *l)
{
	const char *start = l->p;
	bool integer = true, exponent = false;

	if (*l->p == '-')
		l->p++;
	if (l->p < l->end && *l->p == '0')
		l->p++;
	else if (lex_digits(l) == 0)
		return json_lex_fail(l, "not a JSON value");
	if (l->p < l->end && *l->p == '.') {
		integer = false;
		l->p++;
		if (lex_digits(l) == 0)
			return json_lex_fail(l, "digits are missing behind a decimal point");
	}
	if (l->p < l->end && (*l->p == 'e' || *l->p == 'E')) {
		integer = false;
		exponent = true;
		l->p++;
		if (l->p < l->end && (*l->p == '+' || *l->p == '-'))
			l->p++;
		if (lex_digits(l) == 0)
			return json_lex_fail(l, "digits are missing in an exponent");
	}
	return check_number(l, start, integer, exponent);
}

bool json_lex_word(struct json_lex *l, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(l->end - l->p) < len || memcmp(l->p, word, len) != 0)
		return json_lex_fail(l, "not a JSON value");
	l->p += len;
	return true;
}
