/* SPDX-License-Identifier: ISC */
/* What providers, pools, nodes and tokens have in common. */
#pragma once

#include "base/buf.h"
#include "cli/cli.h"

/* Adds "/api/v1/KINDs[/NAME]" for the invocation's noun; NAME may be NULL. */
void kind_path(const struct cli *c, const char *name, struct buf *path);
/* A new object with "name" and the members that the options give. 0 or an exit status. */
int kind_new_body(struct cli *c, struct json_object **ret, struct failure *f);
/* Prints CHANGED as the user wants it: a table shows one line, "node ts1 WORD". */
int kind_report(struct cli *c, struct json_object *changed, const char *word, struct failure *f);
