/* SPDX-License-Identifier: ISC */
/* Quoted is what holds a comma, a quote, a line break, or space at an end, which some readers trim.
 */
#include "cli/csv.h"

#include <string.h>

static bool needs_quotes(const char *text)
{
	size_t len = strlen(text);

	return text[strcspn(text, ",\"\r\n")] != '\0' ||
	       (len > 0 && (strchr(" \t", text[0]) || strchr(" \t", text[len - 1])));
}

void csv_field(struct buf *out, bool first, const char *text)
{
	if (!first)
		buf_addc(out, ',');
	if (!needs_quotes(text)) {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_addc(out, '"');
		buf_addc(out, *text);
	}
	buf_addc(out, '"');
}

void csv_end(struct buf *out)
{
	buf_adds(out, "\r\n");
}
