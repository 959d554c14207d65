/* SPDX-License-Identifier: ISC */
/* A file line by line in constant memory: /proc/net tables are large on a busy node. */
#pragma once

#include <stdbool.h>

#include "agent/sysroot.h"

#define LINES_BUFFER 8192

struct lines {
	int fd;
	int error; /* of reading, a negative errno */
	size_t start, end;
	bool eof;
	bool skipping; /* inside a line that was too long */
	char data[LINES_BUFFER];
};

/* 0 or a negative errno. */
int lines_open(struct lines *l, const struct sysroot *r, const char *file);
void lines_close(struct lines *l);
/* The next line without its end, valid until the next call; NULL at the end or on error. Lines that
 * do not fit are left out. NUL bytes inside cut a line. */
char *lines_next(struct lines *l);
