/* SPDX-License-Identifier: ISC */
/*
 * Migration: blocking, on a connection of its own. The advisory lock is the session's, taken before
 * the state of the database is looked at, so the second of two that run at once sees what the first
 * did. What was recorded must be what this program would have applied, file by file: same number,
 * name and hash.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "store/migrations.h"
#include "store/sqlstate.h"
#include "store/store.h"
#include "store/targets.h"

#define OWNER "termbroker_owner"

static void PQfinish_checked(PGconn *conn)
{
	PQfinish(conn);
}
CLEANUP_DEFINE(PGconn *, PQfinish_checked)

static void ignore_notice(void *ctx, const PGresult *result)
{
}

/* A failed statement: the server's words. */
static int failed(struct err *e, const PGresult *r, const PGconn *conn, const char *what)
{
	struct fault f;

	fault_from(&f, r, conn);
	return err_set(e, -EIO, "could not %s: %s", what, f.message.text);
}

/* Runs SQL with at most three text parameters. *RET (may be NULL) is the result, which the caller
 * clears. */
static int query(PGconn *conn, const char *sql, int count, const char *const *values,
	const char *what, PGresult **ret, struct err *e)
{
	PGresult *r = PQexecParams(conn, sql, count, NULL, values, NULL, NULL, 0);
	int status = PQresultStatus(r);
	int result = 0;

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		result = failed(e, r, conn, what);
	if (ret && result == 0)
		*ret = r;
	else
		PQclear(r);
	return result;
}

static bool column_is(const PGresult *r, int row, int column, const char *text)
{
	return strcmp(PQgetvalue(r, row, column), text) == 0;
}

/* Acts as the schema's owner, whoever connected. */
static int become_owner(PGconn *conn, struct err *e)
{
	PGresult *r = NULL;
	int result;

	result = query(conn,
		"SELECT to_regrole('" OWNER "') IS NOT NULL, to_regrole('termbrokerd') IS NOT NULL,"
		" CASE WHEN to_regrole('" OWNER "') IS NOT NULL"
		" THEN pg_has_role(current_user, '" OWNER "', 'MEMBER') END, current_user",
		0, NULL, "look up the roles", &r, e);
	if (result < 0)
		return result;
	if (!column_is(r, 0, 0, "t") || !column_is(r, 0, 1, "t"))
		result = err_set(e, -EIO,
			"role \"%s\" does not exist: a superuser must run bootstrap.sql first",
			column_is(r, 0, 0, "t") ? "termbrokerd" : OWNER);
	else if (!column_is(r, 0, 2, "t"))
		result = err_set(e, -EIO,
			"role \"%s\" may not act as \"" OWNER
			"\": migrate as a superuser or as the owner",
			PQgetvalue(r, 0, 3));
	PQclear(r);
	if (result < 0)
		return result;
	return query(conn, "SET ROLE " OWNER, 0, NULL, "act as \"" OWNER "\"", NULL, e);
}

static int prepare_session(PGconn *conn, struct err *e)
{
	int r;

	r = query(conn, "SELECT set_config('search_path', 'public', false)", 0, NULL,
		"set up the session", NULL, e);
	if (r < 0)
		return r;
	/* The number is ours alone. Waits as long as the other one takes. */
	r = query(conn, "SELECT pg_advisory_lock(8386106387263578484)", 0, NULL,
		"take the migration lock", NULL, e);
	if (r < 0)
		return r;
	/* A migration waits for whoever uses a table, but not for ever. */
	r = query(conn, "SET lock_timeout = '60s'", 0, NULL, "set up the session", NULL, e);
	if (r < 0)
		return r;
	return become_owner(conn, e);
}

static void hash_of(const struct migration *m, char ret[SECRET_HEX_SIZE])
{
	uint8_t hash[SECRET_HASH_SIZE];

	secret_hash(m->text, strlen(m->text), hash);
	secret_hex(hash, ret);
}

static int check_recorded(const PGconn *conn, const PGresult *r, struct err *e)
{
	size_t known;
	const struct migration *m = migrations(&known);
	size_t applied = (size_t)PQntuples(r);
	char hash[SECRET_HEX_SIZE];

	if (applied > known)
		return err_set(e, -EPROTO,
			"database \"%s\" is at version %s, newer than %u, the last that this "
			"program knows",
			PQdb(conn), PQgetvalue(r, (int)applied - 1, 0), m[known - 1].version);
	for (size_t i = 0; i < applied; i++) {
		int row = (int)i;

		hash_of(&m[i], hash);
		if (strtoul(PQgetvalue(r, row, 0), NULL, 10) != m[i].version ||
			!column_is(r, row, 1, m[i].name) || !column_is(r, row, 2, hash))
			return err_set(e, -EPROTO,
				"database \"%s\" was made by another %s than this program holds: "
				"nothing was changed",
				PQdb(conn), m[i].name);
	}
	return 0;
}

/* How many of the files are applied. */
static int count_applied(PGconn *conn, size_t *ret, struct err *e)
{
	PGresult *r = NULL;
	int result;
	bool exists;

	result = query(conn, "SELECT to_regclass('public.schema_migration') IS NOT NULL", 0, NULL,
		"look for the schema", &r, e);
	if (result < 0)
		return result;
	exists = column_is(r, 0, 0, "t");
	PQclear(r);
	*ret = 0;
	if (!exists)
		return 0;
	result = query(conn,
		"SELECT version, name, encode(sha256, 'hex') FROM schema_migration ORDER BY "
		"version",
		0, NULL, "read the schema's version", &r, e);
	if (result < 0)
		return result;
	result = check_recorded(conn, r, e);
	*ret = (size_t)PQntuples(r);
	PQclear(r);
	return result;
}

static int apply(PGconn *conn, const struct migration *m, struct err *e)
{
	char version[16], hash[SECRET_HEX_SIZE];
	const char *const values[] = {version, m->name, hash};
	PGresult *r;
	int result;

	result = query(conn, "BEGIN", 0, NULL, "begin a transaction", NULL, e);
	if (result < 0)
		return result;
	r = PQexec(conn, m->text);
	if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
		result = failed(e, r, conn, m->name);
	PQclear(r);
	snprintf(version, sizeof(version), "%u", m->version);
	hash_of(m, hash);
	if (result == 0)
		result = query(conn,
			"INSERT INTO schema_migration (version, name, sha256) VALUES ($1, $2, "
			"decode($3, 'hex'))",
			3, values, "record the migration", NULL, e);
	if (result == 0)
		return query(conn, "COMMIT", 0, NULL, "commit", NULL, e);
	query(conn, "ROLLBACK", 0, NULL, "roll back", NULL, NULL);
	return err_prefix(e, result, "%s", m->name);
}

int store_migrate(const char *connection, void (*report)(void *ctx, const char *name), void *ctx,
	struct err *e)
{
	static const char *const keywords[] = {
		"dbname", "client_encoding", "fallback_application_name", NULL};
	const char *const values[] = {connection, "UTF8", "termbroker db migrate", NULL};
	CLEANUP(PQfinish_checkedp) PGconn *conn = NULL;
	struct targets targets;
	size_t known, applied = 0;
	const struct migration *m = migrations(&known);
	int r;

	/* For its words: libpq's own about a malformed string quote it. */
	r = targets_parse(connection, &targets, e);
	if (r < 0)
		return r;
	targets_deinit(&targets);
	conn = PQconnectdbParams(keywords, values, 1);
	if (PQstatus(conn) != CONNECTION_OK) {
		struct fault f;

		fault_from(&f, NULL, conn);
		return err_set(e, -EIO, "%s", f.message.text);
	}
	PQsetNoticeReceiver(conn, ignore_notice, NULL);
	r = prepare_session(conn, e);
	if (r == 0)
		r = count_applied(conn, &applied, e);
	for (size_t i = applied; r == 0 && i < known; i++) {
		r = apply(conn, &m[i], e);
		if (r == 0 && report)
			report(ctx, m[i].name);
	}
	return r;
}
