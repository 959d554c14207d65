/* SPDX-License-Identifier: ISC */
/* Inside journal/: the table of events.c. */
#pragma once

#include "journal/event.h"

/*
 * Marks of a text: {name} is the value of a parameter; {name:w} the value put into words, if it is
 * a code that the list of words knows; [...] is left out when a value within it is empty. Marks do
 * not nest.
 */
struct catalogue_entry {
	const char *name;
	enum event_level level;
	const char *params[EVENT_PARAMS_MAX]; /* NULL at the end if shorter */
	const char *text[2];		      /* by enum event_language */
};

/* NULL for what is none. */
const struct catalogue_entry *catalogue_entry(enum event_id id);
/* The words for CODE, or CODE itself. */
const char *catalogue_word(const char *code, enum event_language language);
