/* SPDX-License-Identifier: ISC */
/* Answers on standard output, as the user wants them. */
#pragma once

#include <json-c/json.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/field.h"

/* Prints the API's own JSON, indented. */
int output_json(struct json_object *o, struct failure *f);
/* ANSWER has "items": a table with a line for each, CSV, or JSON. FIELDS ends with a NULL title and
 * path. */
int output_list(
	struct cli *c, struct json_object *answer, const struct field *fields, struct failure *f);
/* One object: a line for each member, those of objects within as "outer.inner". */
int output_object(struct cli *c, struct json_object *o, struct failure *f);
/* A table of ITEMS alone (an array). */
int output_table(struct json_object *items, const struct field *fields, struct failure *f);
/* Text of ours, with values of others already in it: control characters are shown as \xNN. */
void output_text(FILE *to, const char *text);
/* Ends the output: a write that failed is a failure. */
int output_finish(struct failure *f);
