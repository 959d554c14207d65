/* SPDX-License-Identifier: ISC */
/*
 * JSON in, strictly.
 *
 * json_parse scans the text itself before json-c sees it (json-c 0.16 takes duplicate keys, NaN,
 * 1e999, 'a', raw control characters and overlong UTF-8, and a megabyte of "[{},{},…]" costs it
 * 266 MiB). Refused, with byte offset: anything RFC 8259 does not allow, invalid UTF-8, \u0000 and
 * lone surrogates, a duplicate key in one object, depth above LIMIT_JSON_DEPTH, more than
 * LIMIT_JSON_VALUES values, an integer beyond 64 bits, a number that is not finite as a double,
 * anything behind the value.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

static inline void json_putp(struct json_object **o)
{
	if (*o)
		json_object_put(*o);
}
#define AUTO_JSON CLEANUP(json_putp)

/* The scan alone: 0, -EINVAL or -ENOMEM. No allocation but one bounded table for the keys of a large
 * object. A number may have 128 characters. */
int json_scan(const char *data, size_t len, struct err *e);
/* 0 and *ret (caller: json_object_put), -EINVAL, -ENOMEM. An empty text is an error. */
int json_parse(const char *data, size_t len, struct json_object **ret, struct err *e);
/* The same, and the value must be an object. */
int json_parse_object(const char *data, size_t len, struct json_object **ret, struct err *e);

/* Typed members of an object. A missing member or null: 0 with *ret untouched and *ret_found (may be
 * NULL) false. A wrong type or range: -EINVAL naming the member. Strings belong to the object. */
int json_get_string(struct json_object *o, const char *key, size_t max_bytes, const char **ret,
	bool *ret_found, struct err *e);
int json_get_bool(struct json_object *o, const char *key, bool *ret, bool *ret_found, struct err *e);
int json_get_u64(struct json_object *o, const char *key, uint64_t min, uint64_t max, uint64_t *ret,
	bool *ret_found, struct err *e);
/* A finite number within MIN..MAX. */
int json_get_number(struct json_object *o, const char *key, double min, double max, double *ret,
	bool *ret_found, struct err *e);
int json_get_array(struct json_object *o, const char *key, size_t max_items, struct json_object **ret,
	bool *ret_found, struct err *e);
int json_get_object(struct json_object *o, const char *key, struct json_object **ret, bool *ret_found,
	struct err *e);

/* What those say; -EINVAL all. For other readers of members. */
int json_wrong_type(const char *key, const char *wanted, struct err *e);
int json_too_long(const char *key, size_t max_bytes, struct err *e);
int json_out_of_range(const char *key, uint64_t min, uint64_t max, struct err *e);
int json_out_of_bounds(const char *key, double min, double max, struct err *e);

/* Writing without json-c, for hot paths: a quoted, escaped string; NULL becomes null. */
void json_add_string(struct buf *b, const char *s);
/* "key":  with a comma before it unless the text so far ends in '{' or '['. KEY needs no escape. */
void json_add_key(struct buf *b, const char *key);
void json_add_member_string(struct buf *b, const char *key, const char *value);
void json_add_member_u64(struct buf *b, const char *key, uint64_t value);
void json_add_member_bool(struct buf *b, const char *key, bool value);
