/* SPDX-License-Identifier: ISC */
/* The command line: its table, what is parsed from it, what is wrong with a line, nearest names. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/suggest.h"
#include "lib/tap.h"

#define WORDS_MAX 32

/* Splits LINE at spaces ('' = an empty word) and parses it. */
static int parse(const char *line, struct invocation *ret, struct failure *f)
{
	static char text[1024];
	char *argv[WORDS_MAX] = {text};
	int argc = 1;

	memset(f, 0, sizeof(*f));
	ck_assert_uint_lt(strlen(line), sizeof(text));
	strcpy(text, line);
	for (char *p = strtok(text, " "); p; p = strtok(NULL, " ")) {
		ck_assert_int_lt(argc, WORDS_MAX);
		argv[argc++] = strcmp(p, "''") == 0 ? p + 2 : p;
	}
	return invocation_parse(argc, argv, ret, f);
}

static struct invocation parse_well(const char *line)
{
	struct invocation i;
	struct failure f;

	ck_assert_msg(parse(line, &i, &f) == 0, "%s: %s", line, f.text);
	return i;
}

START_TEST(the_table_is_whole)
{
	const struct command *c = command_at((size_t)_i);

	if (!c)
		return;
	ck_assert(c->run != NULL);
	ck_assert_ptr_nonnull(c->summary);
	ck_assert_ptr_eq(command_find(c->noun, c->verb), c);
	for (unsigned n = 0; n < COMMAND_OPTIONS_MAX && c->options[n]; n++) {
		const struct option_def *o = c->options[n];

		ck_assert_ptr_nonnull(o->help);
		ck_assert_msg((o->value == NULL) == (o->type == OPTION_FLAG), "--%s", o->name);
		if (o->type == OPTION_CHOICE || o->type == OPTION_ON_OFF)
			ck_assert_msg(o->choices, "--%s", o->name);
		for (unsigned m = 0; m < n; m++)
			ck_assert_str_ne(o->name, c->options[m]->name);
		for (unsigned m = 0; command_global_options()[m]; m++) {
			ck_assert_str_ne(o->name, command_global_options()[m]->name);
			ck_assert(!o->letter || o->letter != command_global_options()[m]->letter);
		}
	}
	ck_assert(c->options[COMMAND_OPTIONS_MAX - 1] == NULL);
	for (unsigned n = 0; n < c->required; n++)
		ck_assert_ptr_nonnull(c->options[n]);
}
END_TEST

START_TEST(words_and_options_in_any_order)
{
	struct invocation i = parse_well("-o json node --socket=/run/s add --provider p ts1 "
					 "--address=10.0.0.1 --tag -east --tag +gpu");

	ck_assert_ptr_eq(i.command, command_find("node", "add"));
	ck_assert_str_eq(i.args[0], "ts1");
	ck_assert_str_eq(invocation_option(&i, "output"), "json");
	ck_assert_str_eq(invocation_option(&i, "socket"), "/run/s");
	ck_assert_str_eq(invocation_option(&i, "provider"), "p");
	ck_assert_str_eq(invocation_option(&i, "address"), "10.0.0.1");
	ck_assert_str_eq(invocation_option(&i, "tag"), "+gpu");
	ck_assert_uint_eq(i.option_count, 6);
	ck_assert(!invocation_has(&i, "port"));
}
END_TEST

START_TEST(letters)
{
	struct invocation i = parse_well("log -f -n5 -o csv");

	ck_assert(invocation_has(&i, "follow"));
	ck_assert_str_eq(invocation_option(&i, "lines"), "5");
	ck_assert_str_eq(invocation_option(&i, "output"), "csv");
	i = parse_well("connect -- office --help");
	ck_assert_int_eq(i.kind, INVOCATION_RUN);
	ck_assert_str_eq(i.args[1], "--help");
}
END_TEST

START_TEST(help_needs_nothing_else)
{
	struct invocation i = parse_well("node add --help");
	struct buf text = BUF_INIT(65536);

	ck_assert_int_eq(i.kind, INVOCATION_HELP);
	help_text(&i, &text);
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "--max-sessions N"));
	buf_reset(&text);
	i = parse_well("node -h");
	help_text(&i, &text);
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "node maintenance NAME MODE"));
	ck_assert_ptr_null(strstr(buf_str(&text), "pool list"));
	buf_reset(&text);
	i = parse_well("--help");
	help_text(&i, &text);
	for (size_t n = 0; command_at(n); n++)
		ck_assert_ptr_nonnull(strstr(buf_str(&text), command_at(n)->summary));
	ck_assert_int_eq(parse_well("--version").kind, INVOCATION_VERSION);
	ck_assert_int_eq(parse_well("--completion-data").kind, INVOCATION_COMPLETION);
	buf_deinit(&text);
}
END_TEST

START_TEST(completion_tells_every_command)
{
	struct buf text = BUF_INIT(65536);
	const char *p;

	help_completion_data(&text);
	p = strstr(buf_str(&text), "\nnode\tmaintenance\tnode enabled|drain|disabled\t --reason=");
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_nonnull(
		strstr(buf_str(&text), "\nconnect\t-\tpool -\t --tags= --node=node "));
	buf_deinit(&text);
}
END_TEST

static const struct {
	const char *line, *text, *hint; /* what must stand in the message and in the hint */
} wrong[] = {
	{"", "what is to be done", "termbroker --help"},
	{"node", "the verb is missing", "maintenance"},
	{"nodes list", "no command \"nodes\"", "\"node\""},
	{"node lits", "no verb \"lits\"", "\"list\""},
	{"node show", "NAME is missing", "usage: termbroker node show NAME"},
	{"node show ''", "NAME is missing", "usage"},
	{"node show a b", "\"b\" is one word too many", "usage"},
	{"node add", "NAME is missing", "--address ADDRESS"},
	{"node add x", "--provider PROVIDER is missing", "usage"},
	{"node add x --provider p", "--address ADDRESS is missing", "usage"},
	{"node add x --provider", "--provider needs a value", ""},
	{"node add x --provder p", "no option \"--provder\"", "--provider"},
	{"node add x --port 0", "\"0\" is not a number from 1 to 65535", ""},
	{"node add x --port 65536", "not a number", ""},
	{"node add x --port 3389x", "not a number", ""},
	{"node add x --load-multiplier nan", "not a number above 0", ""},
	{"node add x --load-multiplier 0", "not a number above 0", ""},
	{"node add x --load-multiplier 1e999", "not a number above 0", ""},
	{"node add x --fqdn a --fqdn b", "--fqdn is given twice", ""},
	{"node list --help=yes", "--help takes no value", ""},
	{"node list -x", "no option \"-x\"", ""},
	{"node list -o xml", "\"xml\" is none of table|json|csv", ""},
	{"node maintenance a", "MODE is missing", "enabled|drain|disabled"},
	{"node maintenance a drai", "\"drai\" is none of enabled|drain|disabled", ""},
	{"provider", "the verb is missing", ""},
	{"provider show", "NAME is missing", ""},
	{"provider add", "NAME is missing", ""},
	{"provider set", "NAME is missing", ""},
	{"provider remove", "NAME is missing", ""},
	{"provider maintenance", "NAME is missing", ""},
	{"provider set p --share-sessions yes", "\"yes\" is none of on|off", ""},
	{"provider set p --cpu-rule 10", "\"10\" is none of on|off|ZERO-FULL", ""},
	{"provider set p --cpu-rule 10-90x", "is none of", ""},
	{"provider set p --sessions-rule 1-2", "is none of on|off", ""},
	{"pool show", "NAME is missing", ""},
	{"pool add", "NAME is missing", ""},
	{"pool add p", "--provider PROVIDER is missing", ""},
	{"pool set", "NAME is missing", ""},
	{"pool remove", "NAME is missing", ""},
	{"pool maintenance", "NAME is missing", ""},
	{"node set", "NAME is missing", ""},
	{"node remove", "NAME is missing", ""},
	{"node maintenance", "NAME is missing", ""},
	{"session", "the verb is missing", ""},
	{"session forget", "ID is missing", ""},
	{"connect", "POOL is missing", ""},
	{"connect office", "USER is missing", ""},
	{"explain", "POOL is missing", ""},
	{"explain office", "USER is missing", ""},
	{"token", "the verb is missing", ""},
	{"token add", "NAME is missing", ""},
	{"token add x", "--role ROLE is missing", ""},
	{"token add x --role root", "\"root\" is none of", ""},
	{"token add x --role client --expires soon", "\"soon\" is neither", ""},
	{"token revoke", "NAME is missing", ""},
	{"db", "the verb is missing", "migrate"},
	{"log -n 1001", "from 0 to 1000", ""},
	{"log --level loud", "\"loud\" is none of", ""},
};

START_TEST(what_is_wrong_is_named)
{
	struct invocation i;
	struct failure f;

	ck_assert_int_eq(parse(wrong[_i].line, &i, &f), CLI_USAGE);
	ck_assert_int_eq(f.code, CLI_USAGE);
	ck_assert_msg(strstr(f.text, wrong[_i].text), "%s: %s", wrong[_i].line, f.text);
	ck_assert_msg(strstr(f.hint, wrong[_i].hint), "%s: %s", wrong[_i].line, f.hint);
}
END_TEST

START_TEST(too_many_options)
{
	const char *words[2 * INVOCATION_OPTIONS_MAX + 8] = {"termbroker", "node", "set", "x"};
	char *const *argv = (char *const *)(uintptr_t)words;
	struct invocation i;
	struct failure f;
	int argc = 4;

	for (int n = 0; n <= INVOCATION_OPTIONS_MAX; n++) {
		words[argc++] = "--tag";
		words[argc++] = "+a";
	}
	ck_assert_int_eq(invocation_parse(argc - 2, argv, &i, &f), 0);
	ck_assert_uint_eq(i.option_count, INVOCATION_OPTIONS_MAX);
	ck_assert_int_eq(invocation_parse(argc, argv, &i, &f), CLI_USAGE);
}
END_TEST

START_TEST(choices)
{
	ck_assert(command_choice_valid("a|bc|d", "a"));
	ck_assert(command_choice_valid("a|bc|d", "bc"));
	ck_assert(command_choice_valid("a|bc|d", "d"));
	ck_assert(!command_choice_valid("a|bc|d", "b"));
	ck_assert(!command_choice_valid("a|bc|d", "bcd"));
	ck_assert(!command_choice_valid("a|bc|d", ""));
	ck_assert(!command_choice_valid("a|bc|d", "a|bc"));
}
END_TEST

static void expect_suggestion(const char *wanted, const char *text)
{
	static const char *const names[] = {
		"ts1", "ts2", "ts10", "office", "Office-2", "gpu-server"};
	struct suggestion s;

	suggestion_start(&s, wanted);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		suggestion_consider(&s, names[i]);
	suggestion_consider(&s, NULL);
	suggestion_consider(&s, "ts1");
	ck_assert_str_eq(suggestion_text(&s), text);
	ck_assert(suggestion_found(&s) == (*text != '\0'));
}

START_TEST(suggestions)
{
	char longest[200];

	expect_suggestion("ts3", "\"ts1\" or \"ts2\"");
	expect_suggestion("TS1", "\"ts1\", \"ts2\" or \"ts10\"");
	expect_suggestion("st1", "\"ts1\"");
	expect_suggestion("ofice", "\"office\"");
	expect_suggestion("gpu", "\"gpu-server\"");
	expect_suggestion("nothing", "");
	expect_suggestion("", "");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	expect_suggestion(longest, "");
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("cli_parse");
	TCase *t = tcase_create("parse");

	tcase_add_loop_test(t, the_table_is_whole, 0, 64);
	tcase_add_test(t, words_and_options_in_any_order);
	tcase_add_test(t, letters);
	tcase_add_test(t, help_needs_nothing_else);
	tcase_add_test(t, completion_tells_every_command);
	tcase_add_loop_test(t, what_is_wrong_is_named, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, too_many_options);
	tcase_add_test(t, choices);
	tcase_add_test(t, suggestions);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
