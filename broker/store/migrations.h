/* SPDX-License-Identifier: ISC */
/* The migrations built into the program: the files of sql/, made into C by sql/embed.py. */
#pragma once

#include <stddef.h>

struct migration {
	unsigned version; /* 1, 2, 3 … without a gap */
	const char *name; /* of the file */
	const char *text;
};

/* In order of version. Never empty: the last one is the version that this program needs. */
const struct migration *migrations(size_t *ret_count);
