/* SPDX-License-Identifier: ISC */
/* Columns of a list: where in an object of the API a value stands, and how it reads. */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum field_form {
	FIELD_PLAIN,	/* text, number; yes, no; lists by commas */
	FIELD_PERCENT,	/* "37 %" */
	FIELD_AGE,	/* of a time: "3 min" */
	FIELD_USED,	/* of metrics: share of memory that is used */
	FIELD_SESSIONS, /* of a node: "5/20" */
	FIELD_ADDRESS	/* of a node: the port too, unless it is 3389 */
};

enum field_flag {
	FIELD_RIGHT = 1,  /* numbers */
	FIELD_WRAP = 2,	  /* may take several lines */
	FIELD_NO_CSV = 4, /* for people only */
	FIELD_ONLY_CSV = 8,
	FIELD_IF_ANY = 16, /* left out of a table in which no item has it */
	FIELD_IF_WIDE = 32 /* left out on a terminal of less than 100 columns */
};

struct field {
	const char *title; /* of the table's column */
	const char *path;  /* "metrics.cpu_busy_percent"; names the column of CSV too */
	enum field_form form;
	unsigned flags;
};

/* Adds the value for a person ("-" for none), or RAW for a program ("" for none). */
void field_text(
	struct json_object *item, const struct field *f, bool raw, int64_t now_us, struct buf *out);
/* The member at a dotted path, NULL if there is none or it is null. Borrowed. */
struct json_object *field_find(struct json_object *item, const char *path);
/* A value by itself, as FIELD_PLAIN. */
void field_value(struct json_object *v, bool raw, struct buf *out);
/* The same for a person who sees the member's NAME: sizes in GiB, times with their age, percents.
 */
void field_named_value(const char *name, struct json_object *v, int64_t now_us, struct buf *out);
