/* SPDX-License-Identifier: ISC */
/*
 * Text is read one code point at a time. Each is copied as it is or written as an escape; nothing
 * is left out, so two different values stay different in ESCAPE_QUOTED. A byte that begins no
 * well-formed sequence is escaped alone and reading goes on behind it.
 */
#include "journal/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

/* The code point of the well-formed sequence of N bytes at P. */
static uint32_t decode(const unsigned char *p, size_t n)
{
	uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3fu);
	return c;
}

/* What breaks a line somewhere, or reorders it on a screen. */
static bool breaks_line(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static void add_bytes(struct buf *out, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "\\x%02X", p[i]);
}

static void add_code_point(
	struct buf *out, const unsigned char *p, size_t n, uint32_t c, enum escape_style style)
{
	if (c == '\n')
		buf_adds(out, "\\n");
	else if (c == '\r')
		buf_adds(out, "\\r");
	else if (c == '\t')
		buf_adds(out, "\\t");
	else if (breaks_line(c))
		add_bytes(out, p, n);
	else if (style == ESCAPE_QUOTED && (c == '"' || c == '\\'))
		buf_addf(out, "\\%c", (char)c);
	else if (style != ESCAPE_TEXT && c == '"')
		add_bytes(out, p, n);
	else if (style == ESCAPE_WORD && c == ' ')
		add_bytes(out, p, n);
	else
		buf_add(out, p, n);
}

void escape_add(struct buf *out, const char *text, enum escape_style style)
{
	const unsigned char *p = (const unsigned char *)(text ? text : "");
	size_t left = strlen((const char *)p), start = out->len;

	while (left > 0) {
		size_t n = text_utf8_length((const char *)p, left);

		if (out->len - start > ESCAPE_VALUE_MAX) {
			buf_adds(out, "…");
			return;
		}
		if (n == 0) {
			n = 1;
			add_bytes(out, p, n);
		} else {
			add_code_point(out, p, n, decode(p, n), style);
		}
		p += n;
		left -= n;
	}
}
