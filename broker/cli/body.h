/* SPDX-License-Identifier: ISC */
/* The options of an invocation as the JSON that the API takes. */
#pragma once

#include <json-c/json.h>
#include <stdint.h>

#include "cli/command.h"

/* Puts each option that has a member into BODY. 0 or an exit status. */
int body_add_options(
	const struct invocation *i, int64_t now_us, struct json_object *body, struct failure *f);
int body_add_string(
	struct json_object *body, const char *member, const char *value, struct failure *f);

/*
 * The tags that a node should have, from those it has (an array, borrowed) and what --tag says:
 * +TAG adds, -TAG removes, a bare TAG or '' begins a new list. Mixing both kinds is CLI_USAGE.
 * *ret: caller json_object_put; NULL if no --tag was given.
 */
int body_tags(const struct invocation *i, struct json_object *present, struct json_object **ret,
	struct failure *f);
/* Whether --tag was given in the form that needs the present tags. */
bool body_tags_relative(const struct invocation *i);
