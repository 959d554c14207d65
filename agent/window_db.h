/* SPDX-License-Identifier: ISC */
/*
 * The file of the window: samples, known sessions and waiting logins in SQLite.
 *
 * What it must survive is the end of the process at any moment, not the end of the power: all that
 * it holds belongs to this boot. So it is a write-ahead log that is not synced at each commit (the
 * kernel has what a killed process wrote) and stays whole through a power cut all the same; a
 * checkpoint now and then is what syncs. One process holds it (EXCLUSIVE, which also lets a
 * write-ahead log be opened on a full disk).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/logins.h"
#include "agent/sample.h"

/* Positive results beside 0 and negative errno. */
enum {
	WINDOW_DB_DAMAGED = 1, /* not a database, a broken one, or not ours: set it aside */
	WINDOW_DB_BUSY,	       /* another process has it */
	WINDOW_DB_FAILED,      /* disk full, no permission, …: may pass */
};

struct window_db;

/* What one transaction writes. */
struct window_write {
	const char *boot_id;
	bool baseline;
	bool all; /* replace everything: samples, known and waiting are then whole tables */
	const struct sample *samples; /* oldest first */
	size_t sample_count;
	size_t sample_cap;     /* rows that the ring of samples may have */
	uint64_t first_sample; /* number of samples[0], counted since the agent began */
	bool known_changed;
	const struct known_session *known;
	size_t known_count;
	const struct login *waiting;
	size_t waiting_count;
	uint64_t acknowledged; /* logins up to this serial go; 0 none */
};

/* What was read back. Samples are those of BOOT_ID, ascending in time, the newest sample_cap. */
struct window_loaded {
	struct sample *samples; /* room for sample_cap, the caller's */
	size_t sample_cap;
	size_t sample_count;
	struct logins logins; /* the caller's to deinit */
};

/* Opens or creates PATH and checks it whole. */
int window_db_open(const char *path, struct window_db **ret, struct err *e);
void window_db_close(struct window_db *db);
int window_db_load(
	struct window_db *db, const char *boot_id, struct window_loaded *ret, struct err *e);
int window_db_store(struct window_db *db, const struct window_write *w, struct err *e);

/* Renames PATH and its log to PATH.damaged-1 (older ones move up to -3, the oldest goes). */
int window_db_set_aside(const char *path, struct err *e);
