/* SPDX-License-Identifier: ISC */
/*
 * Distance counts letters put in, left out, changed, or swapped with their neighbour; upper and
 * lower case are the same. A name that begins with what was typed counts as near.
 */
#include "cli/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][LIMIT_NAME_SIZE] = {{0}};
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	size_t la = strlen(a), lb = strlen(b);

	for (size_t j = 0; j <= lb; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *spare = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			int x = tolower((unsigned char)a[i - 1]);
			int y = tolower((unsigned char)b[j - 1]);

			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
				y == tolower((unsigned char)a[i - 2]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[lb];
}

void suggestion_start(struct suggestion *s, const char *wanted)
{
	*s = (struct suggestion){0};
	if (text_copy(s->wanted, sizeof(s->wanted), wanted) < 0)
		s->wanted[0] = '\0';
	s->limit = 1 + (unsigned)strlen(s->wanted) / 4;
}

void suggestion_consider(struct suggestion *s, const char *name)
{
	size_t len = strlen(s->wanted);
	unsigned d, at;

	if (!name || len == 0 || strlen(name) >= LIMIT_NAME_SIZE)
		return;
	d = distance(s->wanted, name);
	if (len >= 2 && strncasecmp(s->wanted, name, len) == 0)
		d = least(d, s->limit);
	if (d > s->limit)
		return;
	for (at = 0; at < s->count; at++)
		if (strcmp(s->best[at].name, name) == 0)
			return;
	for (at = 0; at < s->count && s->best[at].distance <= d; at++)
		;
	if (at == SUGGESTION_NAMES)
		return;
	if (s->count < SUGGESTION_NAMES)
		s->count++;
	memmove(&s->best[at + 1], &s->best[at], (s->count - 1 - at) * sizeof(s->best[0]));
	memcpy(s->best[at].name, name, strlen(name) + 1); /* its length was checked above */
	s->best[at].distance = d;
}

bool suggestion_found(const struct suggestion *s)
{
	return s->count > 0;
}

const char *suggestion_first(const struct suggestion *s)
{
	return s->count > 0 ? s->best[0].name : "";
}

const char *suggestion_text(struct suggestion *s)
{
	size_t used = 0;

	s->text[0] = '\0';
	for (unsigned i = 0; i < s->count; i++) {
		const char *between = i == 0 ? "" : i + 1 == s->count ? " or " : ", ";
		int n = snprintf(s->text + used, sizeof(s->text) - used, "%s\"%s\"", between,
			s->best[i].name);

		if (n > 0)
			used += (size_t)n;
	}
	return s->text;
}
