/* SPDX-License-Identifier: ISC */
/*
 * What the command line knows, as one table: nouns, verbs, arguments, options. Parsing, --help and
 * completion read the same table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_ARGS_MAX 3
#define COMMAND_OPTIONS_MAX 16
#define INVOCATION_OPTIONS_MAX 128

enum cli_exit {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOT_FOUND = 3,
	CLI_DENIED = 4,
	CLI_UNREACHABLE = 5
};

/* Why a command failed, and what to do next ("" = nothing to advise). */
struct failure {
	enum cli_exit code;
	char text[1024];
	char hint[1024];
};
/* Fills F and returns CODE. The hint is emptied. */
int fail(struct failure *f, enum cli_exit code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets the hint of a failure and returns its code. */
int fail_hint(struct failure *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum option_type {
	OPTION_FLAG, /* no value */
	OPTION_TEXT,
	OPTION_LINES,  /* text; given several times: joined by line feeds */
	OPTION_LIST,   /* text; given several times: a list. One empty value: an empty list */
	OPTION_UINT,   /* within min..max */
	OPTION_NUMBER, /* finite, above 0 */
	OPTION_ON_OFF,
	OPTION_CHOICE, /* one of CHOICES */
	OPTION_RULE,   /* on, off, or unless MAX is 1 "10-90": a member of "rules" */
	OPTION_WHEN    /* "never", 12h, 30d, or a time of RFC 3339 */
};

struct option_def {
	const char *name; /* without the dashes */
	char letter;	  /* 0 = none */
	enum option_type type;
	const char *value;   /* its placeholder; NULL for flags */
	const char *choices; /* "on|off" */
	const char *names;   /* noun whose names complete the value, "FILE", or NULL */
	const char *member;  /* of the body that is sent; NULL = the command's own business */
	unsigned long min, max;
	const char *help;
};

struct argument_def {
	const char *name;    /* "NAME" */
	const char *names;   /* noun whose names complete it, or NULL */
	const char *choices; /* "enabled|drain|disabled", or NULL */
};

struct cli;

struct command {
	const char *noun;
	const char *verb; /* NULL: the noun is the command */
	struct argument_def args[COMMAND_ARGS_MAX];
	const struct option_def *options[COMMAND_OPTIONS_MAX];
	unsigned required;   /* the first so many options must be given */
	const char *role;    /* the least role that may do it; NULL = it asks no dispatcher */
	const char *summary; /* one line */
	const char *detail;  /* more for --help, or NULL */
	int (*run)(struct cli *c, struct failure *f);
};

/* The table's entry AT; NULL behind the last. */
const struct command *command_at(size_t at);
/* Options that every command takes; NULL at the end. */
const struct option_def *const *command_global_options(void);

/* NULL if there is none. VERB NULL finds a command without verb. */
const struct command *command_find(const char *noun, const char *verb);
bool command_noun_known(const char *noun);
/* Whether the word is one of "a|b|c". */
bool command_choice_valid(const char *choices, const char *word);

enum invocation_kind { INVOCATION_RUN, INVOCATION_HELP, INVOCATION_VERSION, INVOCATION_COMPLETION };

struct invocation {
	enum invocation_kind kind;
	const char *noun; /* for help: what it is about; NULL = everything */
	const struct command *command;
	const char *args[COMMAND_ARGS_MAX];
	unsigned option_count;
	struct {
		const struct option_def *def;
		const char *value; /* "" for flags */
	} options[INVOCATION_OPTIONS_MAX];
};

/* Reads the command line. Strings are borrowed from ARGV. 0, or CLI_USAGE with what is wrong and
 * how it should look. */
int invocation_parse(int argc, char *const argv[], struct invocation *ret, struct failure *f);
/* The last value of an option by name, NULL if it was not given. */
const char *invocation_option(const struct invocation *i, const char *name);
bool invocation_has(const struct invocation *i, const char *name);
