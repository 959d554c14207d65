/* SPDX-License-Identifier: ISC */
/* A file that only ever gets whole lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct line_file {
	int fd;	   /* -1 = none */
	bool torn; /* the file ends within a line: the next write ends it first */
};

#define LINE_FILE_NONE ((struct line_file){.fd = -1})

/* Opens PATH to append, creating it with mode 0640. -errno with the file named. */
int line_file_open(const char *path, struct line_file *ret, struct err *e);
void line_file_close(struct line_file *f);
/* Writes LEN bytes that end in a line feed: 0 if all of them went out, else -errno. */
int line_file_write(struct line_file *f, const char *line, size_t len);
