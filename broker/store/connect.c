/* SPDX-License-Identifier: ISC */
/*
 * One attempt at a time: resolve → connect (PQconnectPoll) → three checks. A failure at any step
 * notes its reason and moves on to the next address, then to the next host; after the last one DONE
 * is told. The timer runs for the address as a whole. Whoever calls back or moves on does it as its
 * last act.
 */
#include "store/connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "store/migrations.h"
#include "store/resolve.h"
#include "store/sqlstate.h"

enum step { STEP_IDLE, STEP_RESOLVE, STEP_CONNECT, STEP_SESSION, STEP_VERSION, STEP_RIGHTS };

struct connector {
	struct event_base *base;
	struct connector_config config;
	connector_done *done;
	void *ctx;
	struct loop_timer *timer;
	enum step step;
	bool pinned; /* the address that served last, and no other */
	size_t target, address;
	struct resolved addresses; /* of the target; count 0: connect without one */
	struct resolve *resolve;
	PGconn *conn;
	struct event *event;
	char server_timeout[24];
	bool unusable;
	struct err reason; /* of every address that failed so far */
};

static const char session_sql[] =
	"SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',"
	" to_regclass('public.schema_migration') IS NOT NULL, current_database(),"
	" set_config('statement_timeout', $1, false), set_config('lock_timeout', '0', false),"
	" set_config('search_path', 'public', false)";

static const char version_sql[] = "SELECT coalesce(max(version), 0) FROM schema_migration";

/* What the migrations grant; asked in one go, so that a missing right is found now and not by a
 * write. */
static const char rights_sql[] =
	"SELECT string_agg(v.need || ' on ' || v.name, ', ')"
	" FROM (VALUES ('cluster', 'SELECT'), ('provider', 'SELECT'), ('provider', 'INSERT'),"
	" ('provider', 'UPDATE'), ('provider', 'DELETE'), ('pool', 'SELECT'), ('pool', 'INSERT'),"
	" ('pool', 'UPDATE'), ('pool', 'DELETE'), ('node', 'SELECT'), ('node', 'INSERT'),"
	" ('node', 'UPDATE'), ('node', 'DELETE'), ('node_load', 'SELECT'), ('node_load', 'INSERT'),"
	" ('node_load', 'UPDATE'), ('session', 'SELECT'), ('session', 'INSERT'), ('session', "
	"'UPDATE'),"
	" ('session', 'DELETE'), ('token', 'SELECT'), ('token', 'INSERT'), ('token', 'UPDATE'),"
	" ('token', 'DELETE'), ('token_pool', 'SELECT'), ('token_pool', 'INSERT'),"
	" ('token_pool', 'DELETE'), ('event', 'SELECT'), ('event', 'INSERT')) AS v (name, need)"
	" WHERE NOT has_table_privilege(v.name, v.need)";

static void try_target(struct connector *c);
static void try_address(struct connector *c);

static void timed_out(void *ctx);

struct connector *connector_new(struct event_base *base, const struct connector_config *config,
	connector_done *done, void *ctx)
{
	struct connector *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct connector){.base = base, .config = *config, .done = done, .ctx = ctx};
	c->timer = loop_timer_new(base, timed_out, c);
	if (!c->timer) {
		free(c);
		return NULL;
	}
	return c;
}

static void drop_event(struct connector *c)
{
	if (c->event)
		event_free(c->event);
	c->event = NULL;
}

static void drop_attempt(struct connector *c)
{
	loop_timer_disarm(c->timer);
	resolve_cancel(c->resolve);
	c->resolve = NULL;
	/* Before PQfinish closes the descriptor. */
	drop_event(c);
	PQfinish(c->conn);
	c->conn = NULL;
}

void connector_stop(struct connector *c)
{
	drop_attempt(c);
	c->step = STEP_IDLE;
}

void connector_free(struct connector *c)
{
	if (!c)
		return;
	connector_stop(c);
	loop_timer_free(c->timer);
	free(c);
}

/* ---- failure: note it, go on ---- */

static void describe_target(const struct connector *c, char *ret, size_t size)
{
	const struct target *t = &c->config.targets->list[c->target];

	snprintf(ret, size, "%s", t->host ? t->host : t->hostaddr ? t->hostaddr : "local socket");
}

static void note(struct connector *c, bool unusable, const char *text)
{
	char where[128];
	struct err before = c->reason;

	/* One that was reached and is wrong tells more than those that were not reached. */
	if (c->unusable && !unusable)
		return;
	if (unusable && !c->unusable)
		before.text[0] = '\0';
	c->unusable = c->unusable || unusable;
	if (c->config.targets->count == 1 && c->addresses.count <= 1) {
		err_set(&c->reason, 0, "%s", text);
		return;
	}
	describe_target(c, where, sizeof(where));
	err_set(&c->reason, 0, "%s%s%s: %s", before.text, before.text[0] ? "; " : "", where, text);
}

static void finish(struct connector *c)
{
	struct err reason = c->reason;

	c->step = STEP_IDLE;
	c->done(c->ctx, NULL, c->unusable, reason.text);
}

static void next_target(struct connector *c)
{
	drop_attempt(c);
	c->target++;
	if (c->pinned || c->target >= c->config.targets->count) {
		finish(c);
		return;
	}
	try_target(c);
}

static void attempt_failed(struct connector *c, bool unusable, const char *text)
{
	note(c, unusable, text);
	drop_attempt(c);
	c->address++;
	if (!c->pinned && c->address < c->addresses.count)
		try_address(c);
	else
		next_target(c);
}

static void timed_out(void *ctx)
{
	struct connector *c = ctx;
	struct err e;

	err_set(&e, 0, "no %s within %lld ms",
		c->step == STEP_RESOLVE ? "answer from the name service" : "answer",
		(long long)c->config.timeout_ms);
	if (c->step == STEP_RESOLVE) {
		note(c, false, e.text);
		next_target(c);
		return;
	}
	attempt_failed(c, false, e.text);
}

static void connection_failed(struct connector *c)
{
	char sqlstate[6];
	struct err e;

	fault_from_text(PQerrorMessage(c->conn), sqlstate, &e);
	attempt_failed(
		c, fault_is_unusable(sqlstate) || PQconnectionNeedsPassword(c->conn), e.text);
}

/* ---- the checks ---- */

static void step_event(evutil_socket_t fd, short what, void *arg);

static void await(struct connector *c, short what)
{
	drop_event(c);
	c->event = event_new(c->base, PQsocket(c->conn), what, step_event, c);
	if (!c->event || event_add(c->event, NULL) < 0)
		attempt_failed(c, false, strerror(ENOMEM));
}

static void ask(struct connector *c, enum step step, const char *sql)
{
	const char *const values[] = {c->server_timeout};
	int sent = PQsendQueryParams(
		c->conn, sql, step == STEP_SESSION ? 1 : 0, NULL, values, NULL, NULL, 0);

	c->step = step;
	if (!sent)
		connection_failed(c);
	else
		await(c, EV_READ | (PQflush(c->conn) > 0 ? EV_WRITE : 0));
}

static void succeed(struct connector *c)
{
	PGconn *conn = c->conn;

	drop_event(c);
	c->conn = NULL;
	loop_timer_disarm(c->timer);
	c->step = STEP_IDLE;
	c->done(c->ctx, conn, false, "");
}

static void wrong_version(struct connector *c, unsigned long version, unsigned needed)
{
	struct err e;

	if (version < needed)
		err_set(&e, 0,
			"schema of database \"%s\" is at version %lu, this program needs %u: run "
			"`termbroker db migrate`",
			PQdb(c->conn), version, needed);
	else
		err_set(&e, 0,
			"schema of database \"%s\" is at version %lu, newer than %u, which this "
			"program needs: install a newer program",
			PQdb(c->conn), version, needed);
	attempt_failed(c, true, e.text);
}

static void check_version(struct connector *c, unsigned long version)
{
	size_t count;
	const struct migration *m = migrations(&count);

	if (version != m[count - 1].version)
		wrong_version(c, version, m[count - 1].version);
	else
		ask(c, STEP_RIGHTS, rights_sql);
}

static bool is_true(const PGresult *r, int column)
{
	return PQgetvalue(r, 0, column)[0] == 't';
}

static void checked(struct connector *c, const PGresult *r)
{
	struct err e;

	switch (c->step) {
	case STEP_SESSION:
		if (is_true(r, 0))
			attempt_failed(c, false, "the server is read-only (a standby?)");
		else if (is_true(r, 1))
			ask(c, STEP_VERSION, version_sql);
		else
			check_version(c, 0);
		break;
	case STEP_VERSION:
		check_version(c, strtoul(PQgetvalue(r, 0, 0), NULL, 10));
		break;
	case STEP_RIGHTS:
		if (PQgetisnull(r, 0, 0)) {
			succeed(c);
			break;
		}
		err_set(&e, 0, "role \"%s\" lacks rights in database \"%s\": %s", PQuser(c->conn),
			PQdb(c->conn), PQgetvalue(r, 0, 0));
		attempt_failed(c, true, e.text);
		break;
	default:
		attempt_failed(c, false, "an answer to no question");
	}
}

static void read_answer(struct connector *c)
{
	PGresult *result = NULL, *r;

	if (!PQconsumeInput(c->conn)) {
		connection_failed(c);
		return;
	}
	if (PQisBusy(c->conn)) {
		await(c, EV_READ | (PQflush(c->conn) > 0 ? EV_WRITE : 0));
		return;
	}
	while ((r = PQgetResult(c->conn))) {
		PQclear(result);
		result = r;
	}
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1) {
		checked(c, result);
	} else {
		struct fault f;

		fault_from(&f, result, c->conn);
		attempt_failed(c, fault_is_unusable(f.sqlstate), f.message.text);
	}
	PQclear(result);
}

/* ---- connecting ---- */

static void poll_connection(struct connector *c)
{
	switch (PQconnectPoll(c->conn)) {
	case PGRES_POLLING_READING:
		await(c, EV_READ);
		break;
	case PGRES_POLLING_WRITING:
		await(c, EV_WRITE);
		break;
	case PGRES_POLLING_OK:
		PQsetErrorVerbosity(c->conn, PQERRORS_DEFAULT);
		if (PQsetnonblocking(c->conn, 1) != 0)
			connection_failed(c);
		else
			ask(c, STEP_SESSION, session_sql);
		break;
	default:
		connection_failed(c);
	}
}

static void step_event(evutil_socket_t fd, short what, void *arg)
{
	struct connector *c = arg;

	/* Freed before libpq runs: it may close this descriptor and open another of the same
	 * number. */
	drop_event(c);
	if (c->step == STEP_CONNECT)
		poll_connection(c);
	else
		read_answer(c);
}

/* Notices would go to standard error. */
static void ignore_notice(void *ctx, const PGresult *result)
{
}

static void try_address(struct connector *c)
{
	const char *address = c->addresses.count ? c->addresses.address[c->address] : NULL;

	c->step = STEP_CONNECT;
	loop_timer_arm(c->timer, c->config.timeout_ms);
	c->conn = targets_connect(c->config.targets, c->target, address, c->config.application,
		(long)c->config.statement_timeout_ms);
	if (!c->conn) {
		attempt_failed(c, false, strerror(ENOMEM));
		return;
	}
	/* Only the verbose form shows the SQLSTATE of a refused connection. */
	PQsetErrorVerbosity(c->conn, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(c->conn, ignore_notice, NULL);
	if (PQstatus(c->conn) == CONNECTION_BAD)
		connection_failed(c);
	else
		await(c, EV_WRITE);
}

static void resolved(void *ctx, const struct resolved *result, const char *reason)
{
	struct connector *c = ctx;

	c->resolve = NULL;
	c->addresses = *result;
	if (result->count == 0) {
		note(c, false, reason);
		next_target(c);
		return;
	}
	try_address(c);
}

static void try_target(struct connector *c)
{
	const struct target *t = &c->config.targets->list[c->target];
	struct err e;

	c->address = 0;
	c->addresses.count = 0;
	if (!target_needs_name(t)) {
		try_address(c);
		return;
	}
	c->step = STEP_RESOLVE;
	loop_timer_arm(c->timer, c->config.timeout_ms);
	if (resolve_start(c->base, t->host, resolved, c, &c->resolve, &e) < 0) {
		note(c, false, e.text);
		next_target(c);
	}
}

static void reset(struct connector *c, int64_t server_timeout_ms, bool pinned)
{
	connector_stop(c);
	c->pinned = pinned;
	c->unusable = false;
	c->reason.text[0] = '\0';
	snprintf(
		c->server_timeout, sizeof(c->server_timeout), "%lld", (long long)server_timeout_ms);
}

void connector_start(struct connector *c, int64_t server_timeout_ms)
{
	reset(c, server_timeout_ms, false);
	c->target = 0;
	try_target(c);
}

void connector_start_again(struct connector *c, int64_t server_timeout_ms)
{
	reset(c, server_timeout_ms, true);
	try_address(c);
}
