/* SPDX-License-Identifier: ISC */
/* A call of the API as a command makes it: JSON in and out, refusals explained. */
#pragma once

#include <json-c/json.h>

#include "cli/cli.h"

/*
 * METHOD on PATH with BODY (NULL = none; borrowed). *ret (may be NULL; caller: json_object_put) is
 * the answer, NULL if it was empty. 0, or an exit status: refusals tell the reason and what to do
 * next.
 */
int api_call(struct cli *c, const char *method, const char *path, struct json_object *body,
	struct json_object **ret, struct failure *f);
/* The same with a longer answer time, or another Accept: the raw answer of a success. */
int api_call_raw(
	struct cli *c, const struct request *request, struct response *ret, struct failure *f);
/* The body of a response as JSON. */
int api_parse(const struct response *r, struct json_object **ret, struct failure *f);
/* The "items" of a list. -> 0 or CLI_FAILED when the answer is no list. Borrowed from ANSWER. */
int api_items(struct json_object *answer, struct json_object **ret, struct failure *f);
