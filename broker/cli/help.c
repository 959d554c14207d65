/* SPDX-License-Identifier: ISC */
/* Every text is made from the table; only the frame around it stands here. */
#include "cli/help.h"

#include <string.h>

#define COLUMN 28

static void add_padded(struct buf *out, const char *left, const char *right)
{
	size_t len = strlen(left);

	buf_addf(out, "  %s", left);
	if (len >= COLUMN - 1)
		buf_addf(out, "\n  %*s", COLUMN, "");
	else
		buf_addf(out, "%*s", (int)(COLUMN - len), "");
	buf_addf(out, "%s\n", right);
}

static bool option_repeats(const struct option_def *o)
{
	return o->type == OPTION_LIST || o->type == OPTION_LINES;
}

static void add_option_form(const struct option_def *o, struct buf *out)
{
	if (o->letter)
		buf_addf(out, "-%c, ", o->letter);
	buf_addf(out, "--%s", o->name);
	if (o->value)
		buf_addf(out, " %s", o->value);
}

static void add_options(const struct option_def *const *list, unsigned max, struct buf *out)
{
	struct buf form = BUF_INIT(256);

	for (unsigned i = 0; i < max && list[i]; i++) {
		buf_reset(&form);
		add_option_form(list[i], &form);
		add_padded(out, buf_str(&form), list[i]->help);
	}
	buf_deinit(&form);
}

void help_usage_line(const struct command *c, struct buf *out)
{
	buf_addf(out, "termbroker %s", c->noun);
	if (c->verb)
		buf_addf(out, " %s", c->verb);
	for (unsigned i = 0; i < COMMAND_ARGS_MAX && c->args[i].name; i++)
		buf_addf(out, " %s", c->args[i].choices ? c->args[i].choices : c->args[i].name);
	for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i]; i++) {
		const struct option_def *o = c->options[i];
		bool needed = i < c->required;

		buf_addf(out, " %s--%s%s%s%s%s", needed ? "" : "[", o->name, o->value ? " " : "",
			o->value ? o->value : "", needed ? "" : "]", option_repeats(o) ? "…" : "");
	}
}

static void add_command(const struct command *c, struct buf *out)
{
	buf_adds(out, "usage: ");
	help_usage_line(c, out);
	buf_addf(out, "\n\n%s\n", c->summary);
	if (c->detail)
		buf_addf(out, "%s\n", c->detail);
	if (c->role)
		buf_addf(out, "Needs the role %s%s.\n", c->role,
			strcmp(c->role, "admin") == 0 ? "" : " or admin");
	if (c->options[0]) {
		buf_adds(out, "\nOptions\n");
		add_options(c->options, COMMAND_OPTIONS_MAX, out);
	}
	buf_adds(out, "\nOptions of every command\n");
	add_options(command_global_options(), COMMAND_OPTIONS_MAX, out);
}

static void add_summary(const struct command *c, struct buf *out)
{
	struct buf form = BUF_INIT(256);

	buf_addf(&form, "%s%s%s", c->noun, c->verb ? " " : "", c->verb ? c->verb : "");
	for (unsigned i = 0; i < COMMAND_ARGS_MAX && c->args[i].name; i++)
		buf_addf(&form, " %s", c->args[i].name);
	add_padded(out, buf_str(&form), c->summary);
	buf_deinit(&form);
}

static void add_list(const char *noun, struct buf *out)
{
	buf_addf(out, "usage: termbroker %s VERB [ARGUMENT…] [OPTION…]\n\nCommands\n",
		noun ? noun : "NOUN");
	for (size_t i = 0; command_at(i); i++)
		if (!noun || strcmp(command_at(i)->noun, noun) == 0)
			add_summary(command_at(i), out);
	buf_adds(out, "\nOptions of every command\n");
	add_options(command_global_options(), COMMAND_OPTIONS_MAX, out);
	buf_adds(out, "\n\"termbroker NOUN VERB --help\" tells more about one command.\n"
		      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 denied, "
		      "5 dispatcher unreachable.\n");
}

void help_text(const struct invocation *i, struct buf *out)
{
	if (i->command)
		add_command(i->command, out);
	else
		add_list(i->noun, out);
}

static void add_option_data(const struct option_def *o, struct buf *out)
{
	buf_addf(out, " --%s", o->name);
	if (o->type == OPTION_FLAG)
		return;
	buf_addf(out, "=%s", o->choices ? o->choices : o->names ? o->names : "");
}

void help_completion_data(struct buf *out)
{
	const struct command *c;

	for (size_t n = 0; (c = command_at(n)); n++) {
		buf_addf(out, "%s\t%s\t", c->noun, c->verb ? c->verb : "-");
		for (unsigned i = 0; i < COMMAND_ARGS_MAX && c->args[i].name; i++) {
			const struct argument_def *a = &c->args[i];

			buf_addf(out, "%s%s", i ? " " : "",
				a->choices ? a->choices
				: a->names ? a->names
					   : "-");
		}
		buf_adds(out, c->args[0].name ? "\t" : "-\t");
		for (unsigned i = 0; i < COMMAND_OPTIONS_MAX && c->options[i]; i++)
			add_option_data(c->options[i], out);
		for (unsigned i = 0; command_global_options()[i]; i++)
			add_option_data(command_global_options()[i], out);
		buf_addc(out, '\n');
	}
}
