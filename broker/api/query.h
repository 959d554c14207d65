/* SPDX-License-Identifier: ISC */
/* Inside api/: the part of a URL behind '?'. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The decoded value of KEY; "" when it is not there. -EINVAL, naming KEY: longer than SIZE - 1
 * bytes, or holds a NUL. The first of several counts. */
int query_string(const char *query, const char *key, char *ret, size_t size, struct err *e);
/* A number within MIN..MAX; *RET untouched when it is not there. */
int query_u64(const char *query, const char *key, uint64_t min, uint64_t max, uint64_t *ret,
	struct err *e);
/* true or false; *RET untouched when it is not there. */
int query_bool(const char *query, const char *key, bool *ret, struct err *e);
