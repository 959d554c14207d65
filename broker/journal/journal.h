/* SPDX-License-Identifier: ISC */
/*
 * The journal's local sinks: the log file and syslog. One line an event: RFC 3339 time, level, id, pool
 * (or -), text, key="value" pairs. The event table is the store's.
 *
 * A write that fails (disk full) never blocks and never ends the program: the lines are counted, and when
 * writing works again one line says how many are missing from the file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "journal/event.h"

struct journal_config {
	const char *file;            /* NULL or "" = no file */
	enum event_level level;      /* least level written */
	enum event_language language;
	bool syslog;
	const char *ident;           /* for syslog */
	const char *syslog_socket;   /* NULL = /dev/log; tests name their own */
};

struct journal;

/* Opens the sinks. -errno with the file named. */
int journal_new(const struct journal_config *config, struct journal **ret, struct err *e);
void journal_free(struct journal *j);
/* Opens the file again under its name (SIGHUP, after rotation); on failure the old one stays. */
int journal_reopen(struct journal *j, struct err *e);
/* Takes another configuration, all or nothing. */
int journal_configure(struct journal *j, const struct journal_config *config, struct err *e);
void journal_write(struct journal *j, const struct event *ev);
/* Lines that could not be written to the file since the start. */
uint64_t journal_lost(const struct journal *j);
/* Messages that no syslog daemon took, or that it was too slow for. */
uint64_t journal_syslog_lost(const struct journal *j);
