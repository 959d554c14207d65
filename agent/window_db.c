/* SPDX-License-Identifier: ISC */
/*
 * All SQL of the agent. A row that no collector could have written is skipped; a file whose tables
 * are not ours is damaged. Samples live in a ring of rows: a new one replaces the oldest, so the
 * file does not grow.
 */
#include "agent/window_db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"

#define SCHEMA_VERSION "1"
#define FILE_MAX (64 * 1024 * 1024)
#define SET_ASIDE_MAX 3

struct window_db {
	sqlite3 *sql;
};

static const char schema[] =
	"CREATE TABLE boot (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL,"
	" baseline INTEGER NOT NULL) STRICT;"
	"CREATE TABLE sample (slot INTEGER PRIMARY KEY, boot_id TEXT NOT NULL, boot_ms INTEGER NOT "
	"NULL,"
	" cpu_busy INTEGER, cpu_count INTEGER, memory_total INTEGER, memory_available INTEGER,"
	" custom_load INTEGER) STRICT;"
	"CREATE TABLE session (id TEXT PRIMARY KEY, user TEXT NOT NULL, mark INTEGER NOT NULL)"
	" STRICT, WITHOUT ROWID;"
	"CREATE TABLE login (serial INTEGER PRIMARY KEY, user TEXT NOT NULL) STRICT;"
	"PRAGMA user_version = " SCHEMA_VERSION ";";

static int classify(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* a table or column that is not there */
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_SCHEMA:
		return WINDOW_DB_DAMAGED;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return WINDOW_DB_BUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return WINDOW_DB_FAILED;
	}
}

static int fail(struct window_db *db, int rc, struct err *e)
{
	return err_set(
		e, classify(rc), "%s", db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(rc));
}

static int run(struct window_db *db, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : fail(db, rc, e);
}

static void finalizep(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}

/* The first column of the first row as text into RET. */
static int ask(struct window_db *db, const char *sql, char *ret, size_t size, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL);
	const unsigned char *text;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_ROW)
		return fail(db, rc, e);
	text = sqlite3_column_text(s, 0);
	snprintf(ret, size, "%s", text ? (const char *)text : "");
	return 0;
}

static int check_whole(struct window_db *db, struct err *e)
{
	char answer[128];
	int error = ask(db, "PRAGMA quick_check(1)", answer, sizeof(answer), e);

	if (error)
		return error;
	if (strcmp(answer, "ok") != 0)
		return err_set(e, WINDOW_DB_DAMAGED, "%s", answer);
	return 0;
}

static int prepare_schema(struct window_db *db, struct err *e)
{
	char version[32], tables[32];
	int error = ask(db, "PRAGMA user_version", version, sizeof(version), e);

	if (!error)
		error = ask(db, "SELECT count(*) FROM sqlite_schema", tables, sizeof(tables), e);
	if (error)
		return error;
	if (strcmp(version, "0") == 0 && strcmp(tables, "0") == 0) {
		CLEANUP(freep) char *sql = NULL;

		if (asprintf(&sql, "BEGIN IMMEDIATE; %s COMMIT;", schema) < 0) {
			sql = NULL;
			return -ENOMEM;
		}
		error = run(db, sql, e);
		if (error && !sqlite3_get_autocommit(db->sql))
			run(db, "ROLLBACK", NULL);
		return error;
	}
	if (strcmp(version, SCHEMA_VERSION) != 0)
		return err_set(e, WINDOW_DB_DAMAGED, "the file has version %s, not " SCHEMA_VERSION,
			version);
	return 0;
}

/* locking_mode goes first: without it a write-ahead log needs a file of shared memory. */
static const char pragmas[] = "PRAGMA locking_mode = EXCLUSIVE;"
			      "PRAGMA journal_mode = WAL;"
			      "PRAGMA synchronous = NORMAL;"
			      "PRAGMA wal_autocheckpoint = 256;"
			      "PRAGMA journal_size_limit = 1100000;"
			      "PRAGMA cache_size = -64;"
			      "PRAGMA temp_store = MEMORY;"
			      "PRAGMA trusted_schema = OFF;"
			      "BEGIN IMMEDIATE; COMMIT;"; /* takes the lock now */

int window_db_open(const char *path, struct window_db **ret, struct err *e)
{
	struct window_db *db;
	struct stat st;
	int rc, error = 0;

	if (stat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX))
		return err_set(e, WINDOW_DB_DAMAGED, "not a regular file of a sane size");
	db = calloc(1, sizeof(*db));
	if (!db)
		return err_errno(e, -ENOMEM, "could not open \"%s\"", path);
	rc = sqlite3_open_v2(path, &db->sql,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		error = fail(db, rc, e);
	if (!error)
		error = run(db, pragmas, e);
	if (!error)
		error = check_whole(db, e);
	if (!error)
		error = prepare_schema(db, e);
	if (error) {
		window_db_close(db);
		return error;
	}
	*ret = db;
	return 0;
}

void window_db_close(struct window_db *db)
{
	if (!db)
		return;
	sqlite3_close(db->sql);
	free(db);
}

/* Reading ------------------------------------------------------------------------------------- */

static bool column_u32(sqlite3_stmt *s, int column, uint32_t *ret)
{
	sqlite3_int64 v = sqlite3_column_int64(s, column);

	*ret = (uint32_t)v;
	return sqlite3_column_type(s, column) == SQLITE_INTEGER && v >= 0 && v <= UINT32_MAX;
}

static bool row_to_sample(sqlite3_stmt *s, struct sample *ret)
{
	sqlite3_int64 ms = sqlite3_column_int64(s, 0), total, available;

	*ret = (struct sample){.boot_ms = (uint64_t)ms};
	ret->has_cpu = column_u32(s, 1, &ret->cpu_busy) && column_u32(s, 2, &ret->cpu_count);
	total = sqlite3_column_int64(s, 3);
	available = sqlite3_column_int64(s, 4);
	ret->has_memory =
		total > 0 && available >= 0 && sqlite3_column_type(s, 4) == SQLITE_INTEGER;
	ret->memory_total = (uint64_t)total;
	ret->memory_available = (uint64_t)available;
	ret->has_custom_load = column_u32(s, 5, &ret->custom_load);
	return ms >= 0 && sample_valid(ret);
}

static int load_samples(
	struct window_db *db, const char *boot_id, struct window_loaded *ret, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->sql,
		"SELECT * FROM (SELECT boot_ms, cpu_busy, cpu_count, memory_total, "
		"memory_available,"
		" custom_load FROM sample WHERE boot_id = ?1 ORDER BY boot_ms DESC LIMIT ?2)"
		" ORDER BY boot_ms",
		-1, &s, NULL);

	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	sqlite3_bind_text(s, 1, boot_id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, (sqlite3_int64)ret->sample_cap);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		if (ret->sample_count < ret->sample_cap &&
			row_to_sample(s, &ret->samples[ret->sample_count]))
			ret->sample_count++;
	return rc == SQLITE_DONE ? 0 : fail(db, rc, e);
}

static const char *column_user(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	int len = sqlite3_column_bytes(s, column);

	if (!text || len <= 0 || len >= LIMIT_USER_SIZE || !text_utf8_valid(text, (size_t)len))
		return NULL;
	return text;
}

static int load_known(struct window_db *db, struct logins *l, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(
		db->sql, "SELECT id, user, mark FROM session ORDER BY id", -1, &s, NULL);

	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		const char *id = (const char *)sqlite3_column_text(s, 0);

		if (logins_restore_known(l, id, column_user(s, 1),
			    (uint64_t)sqlite3_column_int64(s, 2)) == -ENOMEM)
			return -ENOMEM;
	}
	return rc == SQLITE_DONE ? 0 : fail(db, rc, e);
}

static int load_waiting(struct window_db *db, struct logins *l, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(
		db->sql, "SELECT serial, user FROM login ORDER BY serial", -1, &s, NULL);

	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		sqlite3_int64 serial = sqlite3_column_int64(s, 0);

		if (serial > 0 && serial < INT64_MAX / 2 &&
			logins_restore_waiting(l, (uint64_t)serial, column_user(s, 1)) == -ENOMEM)
			return -ENOMEM;
	}
	return rc == SQLITE_DONE ? 0 : fail(db, rc, e);
}

int window_db_load(
	struct window_db *db, const char *boot_id, struct window_loaded *ret, struct err *e)
{
	char id[LIMIT_BOOT_ID_SIZE] = "", baseline[8] = "";
	int error = load_samples(db, boot_id, ret, e);

	if (!error)
		error = load_known(db, &ret->logins, e);
	if (!error)
		error = load_waiting(db, &ret->logins, e);
	if (!error)
		error = ask(db, "SELECT coalesce((SELECT id FROM boot), '')", id, sizeof(id), e);
	if (!error)
		error = ask(db, "SELECT coalesce((SELECT baseline FROM boot), 0)", baseline,
			sizeof(baseline), e);
	if (error)
		return error;
	ret->logins.have_baseline = strcmp(baseline, "1") == 0;
	if (strcmp(id, boot_id) != 0)
		logins_forget_known(&ret->logins);
	return 0;
}

/* Writing ------------------------------------------------------------------------------------- */

static int bind_step(struct window_db *db, sqlite3_stmt *s, struct err *e)
{
	int rc = sqlite3_step(s);

	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : fail(db, rc, e);
}

static void bind_if(sqlite3_stmt *s, int at, bool has, uint64_t v)
{
	if (has)
		sqlite3_bind_int64(s, at, (sqlite3_int64)v);
	else
		sqlite3_bind_null(s, at);
}

static int store_samples(struct window_db *db, const struct window_write *w, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc, error = 0;

	if (w->sample_count == 0)
		return 0;
	rc = sqlite3_prepare_v2(db->sql,
		"REPLACE INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", -1, &s, NULL);
	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	for (size_t i = 0; !error && i < w->sample_count; i++) {
		const struct sample *p = &w->samples[i];

		sqlite3_bind_int64(s, 1, (sqlite3_int64)((w->first_sample + i) % w->sample_cap));
		sqlite3_bind_text(s, 2, w->boot_id, -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 3, (sqlite3_int64)p->boot_ms);
		bind_if(s, 4, p->has_cpu, p->cpu_busy);
		bind_if(s, 5, p->has_cpu, p->cpu_count);
		bind_if(s, 6, p->has_memory, p->memory_total);
		bind_if(s, 7, p->has_memory, p->memory_available);
		bind_if(s, 8, p->has_custom_load, p->custom_load);
		error = bind_step(db, s, e);
	}
	return error;
}

static int store_known(struct window_db *db, const struct window_write *w, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc, error = 0;

	if (!w->known_changed && !w->all)
		return 0;
	error = run(db, "DELETE FROM session", e);
	if (error)
		return error;
	rc = sqlite3_prepare_v2(db->sql, "INSERT INTO session VALUES (?1, ?2, ?3)", -1, &s, NULL);
	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	for (size_t i = 0; !error && i < w->known_count; i++) {
		sqlite3_bind_text(s, 1, w->known[i].id, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 2, w->known[i].user, -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 3, (sqlite3_int64)w->known[i].mark);
		error = bind_step(db, s, e);
	}
	return error;
}

static int store_waiting(struct window_db *db, const struct window_write *w, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc, error = 0;

	if (w->acknowledged > 0 && !w->all) {
		rc = sqlite3_prepare_v2(
			db->sql, "DELETE FROM login WHERE serial <= ?1", -1, &s, NULL);
		if (rc != SQLITE_OK)
			return fail(db, rc, e);
		sqlite3_bind_int64(s, 1, (sqlite3_int64)w->acknowledged);
		error = bind_step(db, s, e);
		sqlite3_finalize(s);
		s = NULL;
	}
	if (error || w->waiting_count == 0)
		return error;
	rc = sqlite3_prepare_v2(db->sql, "INSERT INTO login VALUES (?1, ?2)", -1, &s, NULL);
	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	for (size_t i = 0; !error && i < w->waiting_count; i++) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)w->waiting[i].serial);
		sqlite3_bind_text(s, 2, w->waiting[i].user, -1, SQLITE_STATIC);
		error = bind_step(db, s, e);
	}
	return error;
}

static int store_boot(struct window_db *db, const struct window_write *w, struct err *e)
{
	CLEANUP(finalizep) sqlite3_stmt *s = NULL;
	int rc;

	if (!w->known_changed && !w->all)
		return 0;
	rc = sqlite3_prepare_v2(db->sql, "REPLACE INTO boot VALUES (1, ?1, ?2)", -1, &s, NULL);
	if (rc != SQLITE_OK)
		return fail(db, rc, e);
	sqlite3_bind_text(s, 1, w->boot_id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, w->baseline);
	return bind_step(db, s, e);
}

int window_db_store(struct window_db *db, const struct window_write *w, struct err *e)
{
	int error = run(db, "BEGIN IMMEDIATE", e);

	if (error)
		return error;
	if (w->all)
		error = run(db, "DELETE FROM sample; DELETE FROM login", e);
	if (!error)
		error = store_boot(db, w, e);
	if (!error)
		error = store_samples(db, w, e);
	if (!error)
		error = store_known(db, w, e);
	if (!error)
		error = store_waiting(db, w, e);
	if (!error)
		error = run(db, "COMMIT", e);
	/* A full disk may have rolled back by itself. */
	if (error && !sqlite3_get_autocommit(db->sql))
		run(db, "ROLLBACK", NULL);
	return error;
}

int window_db_set_aside(const char *path, struct err *e)
{
	static const char *const parts[] = {"", "-wal", "-journal", "-shm"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (int n = SET_ASIDE_MAX; n >= 1; n--) {
			CLEANUP(freep) char *from = NULL, *to = NULL;
			int f = n == 1 ? asprintf(&from, "%s%s", path, parts[i])
				       : asprintf(&from, "%s.damaged-%d%s", path, n - 1, parts[i]);
			int t = asprintf(&to, "%s.damaged-%d%s", path, n, parts[i]);

			if (f < 0 || t < 0)
				return err_errno(e, -ENOMEM, "could not set \"%s\" aside", path);
			if (rename(from, to) != 0 && errno == ENOENT)
				remove(to); /* a log must not meet another's file */
			else if (access(from, F_OK) == 0)
				return err_errno(e, -errno, "could not rename \"%s\"", from);
		}
	}
	return 0;
}
