/* SPDX-License-Identifier: ISC */
/* Array literals. An item is preceded by a comma unless it follows the opening brace. */
#include "store/array.h"

#include <string.h>

void array_begin(struct buf *b)
{
	buf_reset(b);
	buf_addc(b, '{');
}

static void separate(struct buf *b)
{
	if (b->len > 1)
		buf_addc(b, ',');
}

void array_text(struct buf *b, const char *item)
{
	if (!item) {
		array_null(b);
		return;
	}
	separate(b);
	buf_addc(b, '"');
	while (*item) {
		size_t plain = strcspn(item, "\"\\");

		buf_add(b, item, plain);
		item += plain;
		if (*item) {
			buf_addc(b, '\\');
			buf_addc(b, *item++);
		}
	}
	buf_addc(b, '"');
}

void array_u64(struct buf *b, uint64_t item)
{
	separate(b);
	buf_addu(b, item);
}

void array_i64(struct buf *b, int64_t item)
{
	separate(b);
	if (item < 0)
		buf_addc(b, '-');
	buf_addu(b, item < 0 ? 0 - (uint64_t)item : (uint64_t)item);
}

void array_bool(struct buf *b, bool item)
{
	separate(b);
	buf_addc(b, item ? 't' : 'f');
}

void array_null(struct buf *b)
{
	separate(b);
	buf_adds(b, "NULL");
}

void array_end(struct buf *b)
{
	buf_addc(b, '}');
}

void array_tags(struct buf *b, const struct tag_set *tags)
{
	array_begin(b);
	for (uint32_t i = 0; i < tags->count; i++)
		array_text(b, tags->tag[i]);
	array_end(b);
}
