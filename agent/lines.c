/* SPDX-License-Identifier: ISC */
/* One fixed buffer; the unread rest moves to its beginning before each read. */
#include "agent/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int lines_open(struct lines *l, const struct sysroot *r, const char *file)
{
	l->fd = sysroot_open_file(r, file);
	l->error = 0;
	l->start = l->end = 0;
	l->eof = l->skipping = false;
	return l->fd < 0 ? l->fd : 0;
}

void lines_close(struct lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static void fill(struct lines *l)
{
	ssize_t n;

	memmove(l->data, l->data + l->start, l->end - l->start);
	l->end -= l->start;
	l->start = 0;
	if (l->end == sizeof(l->data) - 1) { /* no line end in a full buffer */
		l->end = 0;
		l->skipping = true;
	}
	do
		n = read(l->fd, l->data + l->end, sizeof(l->data) - 1 - l->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		l->error = -errno;
	if (n <= 0)
		l->eof = true;
	else
		l->end += (size_t)n;
}

char *lines_next(struct lines *l)
{
	for (;;) {
		char *line = l->data + l->start;
		char *nl = memchr(line, '\n', l->end - l->start);

		if (!nl && l->eof) {
			if (l->error || l->skipping || l->start == l->end)
				return NULL;
			l->data[l->end] = '\0';
			l->start = l->end;
			return line;
		}
		if (!nl) {
			fill(l);
			continue;
		}
		*nl = '\0';
		l->start = (size_t)(nl + 1 - l->data);
		if (!l->skipping)
			return line;
		l->skipping = false;
	}
}
