/* SPDX-License-Identifier: ISC */
/*
 * From arguments to exit status: parse, load settings, run, report. A command prints its answer on
 * standard output; what went wrong and what to do next goes to standard error.
 */
#include "cli/cli.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "cli/output.h"

#define TEXT_MAX 65536

static void set_locale(void)
{
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C"); /* numbers go into JSON */
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8"); /* names and texts are UTF-8 */
}

static enum format format_of(const struct invocation *i)
{
	const char *name = invocation_option(i, "output");

	if (name && strcmp(name, "json") == 0)
		return FORMAT_JSON;
	return name && strcmp(name, "csv") == 0 ? FORMAT_CSV : FORMAT_TABLE;
}

static int report(const struct failure *f)
{
	fflush(stdout);
	fputs("termbroker: ", stderr);
	output_text(stderr, f->text);
	fputc('\n', stderr);
	if (*f->hint) {
		fputs("  ", stderr);
		output_text(stderr, f->hint);
		fputc('\n', stderr);
	}
	return (int)f->code;
}

static int run_command(struct cli *c, struct failure *f)
{
	const struct command *command = c->inv.command;
	int r = 0;

	c->format = format_of(&c->inv);
	if (command->role) {
		r = settings_load(&c->inv, &c->settings, f);
		if (r == 0)
			r = client_new(&c->settings, &c->client, f);
	}
	if (r == 0)
		r = command->run(c, f);
	if (r == 0)
		r = output_finish(f);
	client_free(c->client);
	settings_deinit(&c->settings);
	return r;
}

static int print_text(const struct invocation *i, struct failure *f)
{
	struct buf text = BUF_INIT(TEXT_MAX);

	if (i->kind == INVOCATION_HELP)
		help_text(i, &text);
	else if (i->kind == INVOCATION_COMPLETION)
		help_completion_data(&text);
	else
		buf_adds(&text, "termbroker " TERMBROKER_VERSION "\n");
	fputs(buf_str(&text), stdout);
	buf_deinit(&text);
	return output_finish(f);
}

int cli_main(int argc, char *const argv[])
{
	struct cli c = {.format = FORMAT_TABLE};
	struct failure f = {.code = CLI_DONE};
	int r;

	set_locale();
	r = invocation_parse(argc, argv, &c.inv, &f);
	if (r == 0)
		r = c.inv.kind == INVOCATION_RUN ? run_command(&c, &f) : print_text(&c.inv, &f);
	return r == 0 ? CLI_DONE : report(&f);
}
