/* SPDX-License-Identifier: ISC */
/* What the table of commands looks like in words. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

/* "termbroker node add NAME --provider PROVIDER … [OPTION…]" */
void help_usage_line(const struct command *c, struct buf *out);
/* The help for what INVOCATION names: everything, a noun, or a command. */
void help_text(const struct invocation *i, struct buf *out);
/* The table for the shell's completion: one line a command, noun, verb, arguments, options, with
 * tabs between. */
void help_completion_data(struct buf *out);
