/* SPDX-License-Identifier: ISC */
/*
 * Typed members of an object that is read in place (json_slice): for messages that come so often
 * that building json-c's tree of them would cost more than all that is done with them. The same
 * values are accepted, and the same words say what is wrong, as by json_get_…
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct json_member {
	const char *key;
	size_t key_len;
	char *at; /* the value; NULL when it is absent or null */
};
#define JSON_MEMBER(name)                                  \
	{                                                  \
		.key = (name), .key_len = sizeof(name) - 1 \
	}

/* The cursor is behind an object's brace, or behind an earlier member's value: reads the next key
 * and *RET_MEMBER, the one of COUNT members it names or NULL. The cursor is then at the value,
 * which the caller reads or skips. False: the object ended, the cursor is behind it. */
bool json_member_next(
	char **p, struct json_member *members, size_t count, struct json_member **ret_member);
/* Fills AT of COUNT members of the object that begins at AT, skipping their values. */
void json_members_read(char *at, struct json_member *members, size_t count);

/* As json_get_…: 0 with *ret untouched when AT is NULL; -EINVAL names the member. A value can be
 * read once: a string is decoded where it stands. */
int json_member_string(
	const struct json_member *m, size_t max_bytes, const char **ret, struct err *e);
int json_member_bool(const struct json_member *m, bool *ret, struct err *e);
int json_member_u64(
	const struct json_member *m, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);
int json_member_number(
	const struct json_member *m, double min, double max, double *ret, struct err *e);
/* That the value, if there is one, is an object or an array. */
int json_member_object(const struct json_member *m, struct err *e);
int json_member_array(const struct json_member *m, struct err *e);
/* -EINVAL "is missing" when AT is NULL. */
int json_member_need(const struct json_member *m, struct err *e);
