/* SPDX-License-Identifier: ISC */
/*
 * Inside api/: from a JSON object to the members of a spec, by a table. Strict: an unknown member
 * is an error that names it. A table serves creating (over defaults) and changing (over the present
 * spec) alike.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/fleet.h"

struct field;
/* VALUE may be NULL (JSON null). 0 or -EINVAL with the field named in E. */
typedef int field_reader(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e);

struct field {
	const char *name;
	field_reader *read;
	size_t offset, size; /* of what it sets: also how a change is seen */
	bool required;	     /* when creating */
};

#define FIELD(type, member, reader)                                                         \
	{                                                                                   \
#member, reader, offsetof(type, member), sizeof(((type *)0)->member), false \
	}
#define FIELD_REQUIRED(type, member, reader)                                               \
	{                                                                                  \
#member, reader, offsetof(type, member), sizeof(((type *)0)->member), true \
	}

field_reader field_string; /* char[size]; null = "" */
field_reader field_bool;
field_reader field_tags;	/* struct tag_set from an array of strings; null = empty */
field_reader field_tags_add;	/* the same, added to what is there */
field_reader field_tags_remove; /* the same, taken from what is there */
field_reader field_provider;	/* uint32_t id from a provider's name */

/* The whole object into SPEC. When CREATING, required fields must be there. -EINVAL with E;
 * *RET_CODE then says which sort: "field_unknown", "field_invalid", "field_missing". */
int fields_read(const struct field *fields, size_t count, struct json_object *object, bool creating,
	void *spec, const struct fleet *fleet, const char **ret_code, struct err *e);
/* "address, port": the fields in which the two specs differ. */
void fields_changed(const struct field *fields, size_t count, const void *before, const void *after,
	struct buf *out);

/* A JSON number of at most DECIMALS decimals within MIN..MAX, as an integer of that many decimals.
 */
int field_decimal(const char *name, struct json_object *value, unsigned decimals, uint32_t min,
	uint32_t max, uint32_t *ret, struct err *e);
/* "key":1.5 of a VALUE with DECIMALS decimals. */
void add_member_decimal(struct buf *b, const char *key, uint64_t value, unsigned decimals);
void add_member_tags(struct buf *b, const char *key, const struct tag_set *tags);
