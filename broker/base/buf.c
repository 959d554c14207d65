/* SPDX-License-Identifier: ISC */
/*
 * Model: DATA holds CAP bytes, LEN of them text, and always one more for the NUL; LEN <= MAX.
 * Once ERROR is set nothing is added until buf_reset or buf_deinit, so a text is whole or in error.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST 256

void buf_init(struct buf *b, size_t max)
{
	*b = BUF_INIT(max);
}

void buf_deinit(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT(b->max);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Makes room for EXTRA more bytes and the NUL; false sets the error. */
static bool buf_room_slow(struct buf *b, size_t extra)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST;
	char *data;

	if (extra > b->max || b->len > b->max - extra || b->max == SIZE_MAX) {
		b->error = -EOVERFLOW;
		return false;
	}
	while (cap <= b->len + extra)
		cap = cap > b->max / 2 ? b->max + 1 : cap * 2;
	data = realloc(b->data, cap);
	if (!data) {
		b->error = -ENOMEM;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

static inline bool buf_room(struct buf *b, size_t extra)
{
	if (b->error)
		return false;
	if (extra < b->cap - b->len && extra <= b->max - b->len)
		return true;
	return buf_room_slow(b, extra);
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (!buf_room(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_addfv(struct buf *b, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	int n;

	if (b->error)
		return;
	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n < 0)
		b->error = -EOVERFLOW;
	else if ((size_t)n < sizeof(small))
		buf_add(b, small, (size_t)n);
	else if (buf_room(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_addfv(b, fmt, ap);
	va_end(ap);
}

void buf_addu(struct buf *b, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	buf_add(b, digits + at, sizeof(digits) - at);
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

int buf_error(const struct buf *b)
{
	return b->error;
}

char *buf_steal(struct buf *b)
{
	char *text = NULL;

	if (!b->error) {
		buf_add(b, "", 0); /* an empty text is a string too */
		if (!b->error) {
			text = b->data;
			b->data = NULL;
		}
	}
	buf_deinit(b);
	return text;
}
