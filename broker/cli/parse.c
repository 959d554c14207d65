/* SPDX-License-Identifier: ISC */
/*
 * The command line: words in any order among the options. An option that takes a value takes the
 * next word, whatever it looks like, so that "--tag -east" works; "--" ends the options. What the
 * first two words are decides which options exist, so words and options are read in one pass after
 * the command was found.
 */
#include "cli/command.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/suggest.h"
#include "cli/when.h"

const char *invocation_option(const struct invocation *i, const char *name)
{
	const char *value = NULL;

	for (unsigned n = 0; n < i->option_count; n++)
		if (strcmp(i->options[n].def->name, name) == 0)
			value = i->options[n].value;
	return value;
}

bool invocation_has(const struct invocation *i, const char *name)
{
	return invocation_option(i, name) != NULL;
}

/* Adds how the command is used, as the hint. */
static int with_usage(const struct command *c, struct failure *f)
{
	struct buf usage = BUF_INIT(sizeof(f->hint) - 1);

	help_usage_line(c, &usage);
	fail_hint(f, "usage: %s", buf_str(&usage));
	buf_deinit(&usage);
	return f->code;
}

/* ---- finding the command ---- */

static int unknown_noun(const char *noun, struct failure *f)
{
	struct suggestion s;

	suggestion_start(&s, noun);
	for (size_t i = 0; command_at(i); i++)
		suggestion_consider(&s, command_at(i)->noun);
	fail(f, CLI_USAGE, "there is no command \"%s\"", noun);
	if (suggestion_found(&s))
		return fail_hint(f, "did you mean %s? \"termbroker --help\" lists the commands",
			suggestion_text(&s));
	return fail_hint(f, "\"termbroker --help\" lists the commands");
}

static int unknown_verb(const char *noun, const char *verb, struct failure *f)
{
	struct buf verbs = BUF_INIT(512);
	const struct command *c;
	struct suggestion s;

	suggestion_start(&s, verb ? verb : "");
	for (size_t i = 0; (c = command_at(i)); i++) {
		if (strcmp(c->noun, noun) != 0)
			continue;
		suggestion_consider(&s, c->verb);
		buf_addf(&verbs, "%s%s", verbs.len ? ", " : "", c->verb);
	}
	if (!verb)
		fail(f, CLI_USAGE, "%s: the verb is missing", noun);
	else
		fail(f, CLI_USAGE, "%s: there is no verb \"%s\"", noun, verb);
	if (verb && suggestion_found(&s))
		fail_hint(
			f, "did you mean %s? there are: %s", suggestion_text(&s), buf_str(&verbs));
	else
		fail_hint(f, "usage: termbroker %s VERB, with one of: %s", noun, buf_str(&verbs));
	buf_deinit(&verbs);
	return f->code;
}

/* ---- options ---- */

static const struct option_def *find_in(const struct option_def *const *list, unsigned max,
	const char *name, size_t len, char letter)
{
	for (unsigned i = 0; i < max && list[i]; i++) {
		if (letter ? list[i]->letter == letter
			   : strlen(list[i]->name) == len && strncmp(list[i]->name, name, len) == 0)
			return list[i];
	}
	return NULL;
}

static const struct option_def *find_option(
	const struct command *c, const char *name, size_t len, char letter)
{
	const struct option_def *def =
		c ? find_in(c->options, COMMAND_OPTIONS_MAX, name, len, letter) : NULL;

	return def ? def
		   : find_in(command_global_options(), COMMAND_OPTIONS_MAX, name, len, letter);
}

static int unknown_option(const struct command *c, const char *word, struct failure *f)
{
	const char *name = word + strspn(word, "-");
	struct suggestion s;

	suggestion_start(&s, name);
	for (unsigned i = 0; c && i < COMMAND_OPTIONS_MAX && c->options[i]; i++)
		suggestion_consider(&s, c->options[i]->name);
	for (unsigned i = 0; command_global_options()[i]; i++)
		suggestion_consider(&s, command_global_options()[i]->name);
	fail(f, CLI_USAGE, "there is no option \"%s\" here", word);
	if (suggestion_found(&s))
		return fail_hint(f, "did you mean --%s?", suggestion_first(&s));
	return c ? with_usage(c, f) : (int)f->code;
}

static bool number_valid(const char *text)
{
	char *end = NULL;
	double v;

	if (*text < '0' || *text > '9' || strspn(text, "0123456789.") != strlen(text))
		return false;
	v = strtod(text, &end);
	return *end == '\0' && isfinite(v) && v > 0;
}

/* Whether TEXT is "ZERO-FULL", two numbers. What they may be the dispatcher knows. */
static bool range_valid(const char *text)
{
	size_t zero = strspn(text, "0123456789."), full;

	if (zero == 0 || text[zero] != '-')
		return false;
	full = strspn(text + zero + 1, "0123456789.");
	return full > 0 && text[zero + 1 + full] == '\0' && strlen(text) < 32;
}

static int check_value(const struct option_def *def, const char *value, struct failure *f)
{
	uint64_t n;

	switch (def->type) {
	case OPTION_UINT:
		if (text_parse_u64(value, def->min, def->max, &n) < 0)
			return fail(f, CLI_USAGE, "--%s: \"%s\" is not a number from %lu to %lu",
				def->name, value, def->min, def->max);
		break;
	case OPTION_NUMBER:
		if (!number_valid(value))
			return fail(f, CLI_USAGE, "--%s: \"%s\" is not a number above 0", def->name,
				value);
		break;
	case OPTION_ON_OFF:
	case OPTION_CHOICE:
		if (!command_choice_valid(def->choices, value))
			return fail(f, CLI_USAGE, "--%s: \"%s\" is none of %s", def->name, value,
				def->choices);
		break;
	case OPTION_RULE:
		if (!command_choice_valid(def->choices, value) &&
			(def->max == 1 || !range_valid(value)))
			return fail(f, CLI_USAGE, "--%s: \"%s\" is none of %s", def->name, value,
				def->value);
		break;
	case OPTION_WHEN:
		if (when_parse(value, 0, NULL) < 0)
			return fail(f, CLI_USAGE, "--%s: \"%s\" is neither %s", def->name, value,
				"never, nor like 90min, 12h or 30d, nor like 2027-01-31T00:00:00Z");
		break;
	case OPTION_FLAG:
	case OPTION_TEXT:
	case OPTION_LINES:
	case OPTION_LIST:
		break;
	}
	return 0;
}

static int add_option(
	struct invocation *i, const struct option_def *def, const char *value, struct failure *f)
{
	bool repeats = def->type == OPTION_LIST || def->type == OPTION_LINES;
	int r = check_value(def, value, f);

	if (r != 0)
		return r;
	if (!repeats && invocation_has(i, def->name))
		return fail(f, CLI_USAGE, "--%s is given twice", def->name);
	if (i->option_count == INVOCATION_OPTIONS_MAX)
		return fail(f, CLI_USAGE, "more than %d options", INVOCATION_OPTIONS_MAX);
	i->options[i->option_count].def = def;
	i->options[i->option_count].value = value;
	i->option_count++;
	return 0;
}

/* Reads the option at argv[*at]; *at is left on its last word. */
static int read_option(
	struct invocation *i, int argc, char *const argv[], int *at, struct failure *f)
{
	const char *word = argv[*at], *value = NULL;
	const struct option_def *def;

	if (word[1] == '-') {
		size_t len = strcspn(word + 2, "=");

		def = find_option(i->command, word + 2, len, 0);
		value = word[2 + len] == '=' ? word + 3 + len : NULL;
	} else {
		def = find_option(i->command, NULL, 0, word[1]);
		value = word[2] ? word + 2 : NULL;
	}
	if (!def || (word[1] != '-' && def->type == OPTION_FLAG && value))
		return unknown_option(i->command, word, f);
	if (def->type == OPTION_FLAG) {
		if (value)
			return fail(f, CLI_USAGE, "--%s takes no value", def->name);
		return add_option(i, def, "", f);
	}
	if (!value) {
		if (*at + 1 >= argc)
			return fail(f, CLI_USAGE, "--%s needs a value: --%s %s", def->name,
				def->name, def->value);
		value = argv[++*at];
	}
	return add_option(i, def, value, f);
}

/* ---- all together ---- */

static int check_complete(const struct invocation *i, unsigned args, struct failure *f)
{
	const struct command *c = i->command;

	for (unsigned n = 0; n < COMMAND_ARGS_MAX && c->args[n].name; n++) {
		const struct argument_def *a = &c->args[n];

		if (n >= args || !*i->args[n]) {
			fail(f, CLI_USAGE, "%s%s%s: %s is missing", c->noun, c->verb ? " " : "",
				c->verb ? c->verb : "", a->name);
			return with_usage(c, f);
		}
		if (a->choices && !command_choice_valid(a->choices, i->args[n])) {
			fail(f, CLI_USAGE, "%s: \"%s\" is none of %s", a->name, i->args[n],
				a->choices);
			return with_usage(c, f);
		}
	}
	for (unsigned n = 0; n < c->required; n++) {
		if (invocation_has(i, c->options[n]->name))
			continue;
		fail(f, CLI_USAGE, "%s %s: --%s %s is missing", c->noun, c->verb ? c->verb : "",
			c->options[n]->name, c->options[n]->value);
		return with_usage(c, f);
	}
	return 0;
}

static int take_word(struct invocation *i, const char *word, unsigned *args, struct failure *f)
{
	if (!i->noun) {
		if (!command_noun_known(word))
			return unknown_noun(word, f);
		i->noun = word;
		i->command = command_find(word, NULL);
	} else if (!i->command) {
		i->command = command_find(i->noun, word);
		if (!i->command)
			return unknown_verb(i->noun, word, f);
	} else if (*args < COMMAND_ARGS_MAX && i->command->args[*args].name) {
		i->args[(*args)++] = word;
	} else {
		fail(f, CLI_USAGE, "\"%s\" is one word too many", word);
		return with_usage(i->command, f);
	}
	return 0;
}

int invocation_parse(int argc, char *const argv[], struct invocation *ret, struct failure *f)
{
	struct invocation i = {.kind = INVOCATION_RUN};
	bool only_words = false;
	unsigned args = 0;
	int r = 0;

	for (int at = 1; at < argc && r == 0; at++) {
		if (!only_words && strcmp(argv[at], "--") == 0)
			only_words = true;
		else if (!only_words && strcmp(argv[at], "--completion-data") == 0)
			i.kind = INVOCATION_COMPLETION;
		else if (!only_words && argv[at][0] == '-' && argv[at][1])
			r = read_option(&i, argc, argv, &at, f);
		else
			r = take_word(&i, argv[at], &args, f);
	}
	if (r == 0 && i.kind == INVOCATION_RUN && invocation_has(&i, "help"))
		i.kind = INVOCATION_HELP;
	else if (r == 0 && i.kind == INVOCATION_RUN && invocation_has(&i, "version"))
		i.kind = INVOCATION_VERSION;
	if (r == 0 && i.kind == INVOCATION_RUN) {
		if (!i.noun) {
			fail(f, CLI_USAGE, "what is to be done?");
			return fail_hint(f, "usage: termbroker NOUN VERB …; "
					    "\"termbroker --help\" lists the commands");
		}
		r = i.command ? check_complete(&i, args, f) : unknown_verb(i.noun, NULL, f);
	}
	if (r == 0)
		*ret = i;
	return r;
}
