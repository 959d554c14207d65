/* SPDX-License-Identifier: ISC */
/* "Did you mean": the nearest of some names to one that is not there. */
#pragma once

#include <stdbool.h>

#include "wire/limits.h"

#define SUGGESTION_NAMES 3

struct suggestion {
	char wanted[LIMIT_NAME_SIZE];
	unsigned limit; /* names farther away than this are no help */
	unsigned count;
	struct {
		char name[LIMIT_NAME_SIZE];
		unsigned distance;
	} best[SUGGESTION_NAMES]; /* nearest first */
	char text[SUGGESTION_NAMES * (LIMIT_NAME_SIZE + 8)];
};

void suggestion_start(struct suggestion *s, const char *wanted);
/* NAME (NULL: ignored) is one that exists. */
void suggestion_consider(struct suggestion *s, const char *name);
bool suggestion_found(const struct suggestion *s);
/* The nearest name, "" if none is near. */
const char *suggestion_first(const struct suggestion *s);
/* "a", "a or b", "a, b or c": quoted. Valid as long as S. */
const char *suggestion_text(struct suggestion *s);
