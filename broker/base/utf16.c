/* SPDX-License-Identifier: ISC */
/* One code point at a time; nothing is guessed: half a pair is an error, not a replacement. */
#include "base/utf16.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static void add_unit(struct buf *out, uint32_t unit)
{
	buf_addc(out, (char)(unit & 0xff));
	buf_addc(out, (char)(unit >> 8));
}

void utf16_add(struct buf *out, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	while (p < end) {
		unsigned more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
		uint32_t c = more == 0 ? *p : *p & (0x3fu >> more);

		for (p++; more > 0 && p < end; more--)
			c = c << 6 | (*p++ & 0x3f);
		if (c >= 0x10000) {
			add_unit(out, 0xd800 + ((c - 0x10000) >> 10));
			add_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
		} else {
			add_unit(out, c);
		}
	}
}

/* The code point at *P, which moves behind it; 0: there is none. */
static uint32_t take(const uint8_t **p, const uint8_t *end)
{
	uint32_t high = (uint32_t)((*p)[0] | (*p)[1] << 8), low;

	*p += 2;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high > 0xdbff || end - *p < 2)
		return 0;
	low = (uint32_t)((*p)[0] | (*p)[1] << 8);
	*p += 2;
	return low < 0xdc00 || low > 0xdfff ? 0
					    : 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
}

int utf16_to_utf8(const uint8_t *data, size_t len, char *ret, size_t size)
{
	const uint8_t *end = data + len;
	size_t used = 0;
	char bytes[4];

	ret[0] = '\0';
	if (len % 2)
		return -EINVAL;
	while (data < end) {
		uint32_t c = take(&data, end);
		size_t n;

		if (c == 0) {
			ret[0] = '\0';
			return -EINVAL;
		}
		n = text_utf8_put(c, bytes);
		if (used + n >= size) {
			ret[0] = '\0';
			return -ENAMETOOLONG;
		}
		memcpy(ret + used, bytes, n);
		used += n;
	}
	ret[used] = '\0';
	return 0;
}
