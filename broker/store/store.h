/* SPDX-License-Identifier: ISC */
/*
 * Everything PostgreSQL, without ever blocking the loop.
 *
 * One connection in pipeline mode writes: what queued while the last batch was under way is one
 * transaction (group commit), one batch in flight. Numbers of nodes alone, for which nobody waits, are gathered
 * for half a second. Administrative changes are transactions of their own in the same pipeline, each together
 * with its event. A second connection reads (lists, events, loading).
 * Names are resolved off the loop; every step has a deadline; reconnect with back-off and jitter, host by host;
 * a host that is not a writable primary is passed over. All SQL is prepared; none is built from input.
 *
 * While the database is away writes wait in memory (nodes: the latest state of each; events: bounded, the
 * oldest dropped and counted), administrative calls fail with -ENOTCONN at once.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "journal/event.h"
#include "model/fleet.h"

struct store;

struct store_config {
	const char *connection;   /* libpq conninfo or URI; may name several hosts */
	const char *dispatcher;   /* this dispatcher's name, for application_name and event rows */
	int64_t connect_timeout_ms; /* per host; default 3000 */
	int64_t statement_timeout_ms; /* a batch without an answer that long = connection lost; default 5000 */
	size_t event_queue_max;   /* events kept while the database is away; default 100000 */
};

/* What the store tells. Loading: begin, then rows (providers before pools and nodes, nodes before
 * sessions and tokens), then end; repeated in full after each reconnect. What waited is written before, and what
 * is written while it loads waits for its end: a loaded row is never older than what this dispatcher knows, but
 * for the load of nodes heard here meanwhile. A load that fails half-way begins anew. Strings live during the
 * call only. */
struct store_handler {
	void (*load_begin)(void *ctx);
	void (*load_provider)(void *ctx, const struct provider_spec *spec);
	void (*load_pool)(void *ctx, const struct pool_spec *spec);
	void (*load_node)(void *ctx, const struct node_spec *spec, const struct node_stored *stored);
	void (*load_token)(void *ctx, const struct token_spec *spec);
	void (*load_session)(void *ctx, uint32_t node_id, const char *id, const char *user_key,
		const char *display, const char *client, bool active, int64_t since_ms, int64_t first_seen_ms);
	/* CLUSTER_ID: the database's own identity of the cluster (UUID text); ROUTE_KEY: what route tokens are sealed
	 * with, ROUTE_KEY_SIZE bytes. */
	void (*load_end)(void *ctx, const char *cluster_id, const uint8_t *route_key);
	/* No database: the connection was lost, or (before the first load too) could not be made. Told again
	 * while it stays so only when the reason changes. */
	void (*lost)(void *ctx, const char *reason);
	/* The database can be reached but must not be used: older or newer schema, missing rights.
	 * Told before the first load_end: the program does not start. Later: as lost. */
	void (*unusable)(void *ctx, const char *reason);
	/* May be NULL. The database refused one row of a batch for its content; the row is gone. */
	void (*warning)(void *ctx, const char *what);
};

int store_new(struct event_base *base, const struct store_config *config,
	const struct store_handler *handler, void *ctx, struct store **ret, struct err *e);
/* Starts connecting. */
void store_start(struct store *s);
/* Closes at once; what still waits is dropped (a barrier first, to have it written). Calls every DONE that is
 * due. Not from inside a callback of the store. */
void store_free(struct store *s);
/* Whether the last load ended and the writing connection is up. */
bool store_is_up(const struct store *s);
/* Wall clock's age in ms of the oldest write that waits; 0 when none does. */
int64_t store_oldest_wait_ms(const struct store *s);

struct store_stats {
	uint64_t rows_refused; /* lost for their content, see warning */
	uint64_t batches, batch_rows, batch_retries, reconnects, events_written, events_dropped;
	uint64_t queued_nodes, queued_events, queued_operations;
	uint64_t last_batch_us, batch_us_total;
};
void store_stats(const struct store *s, struct store_stats *ret);

/* ---- answers ----
 * RESULT: 0; -EEXIST (a name is taken), -EADDRINUSE (a node's address and port are), -ENOENT, -EBUSY (still referred to), -EINVAL
 * (a constraint), -ENOTCONN (no database, or it was lost before the answer: unknown whether done), -ETIMEDOUT, -EIO.
 * ID: of a created row. WHY: words for a human ("" on success). Called once, from the loop, never from
 * inside the call that queued it. */
typedef void store_done(void *ctx, int result, uint32_t id, const char *why);

/* ---- administration: one transaction each, with its event ----
 * spec->id 0 creates (the id comes in DONE), else changes the whole row. */
void store_put_provider(struct store *s, const struct provider_spec *spec, const struct event *ev,
	store_done *done, void *ctx);
void store_put_pool(struct store *s, const struct pool_spec *spec, const struct event *ev,
	store_done *done, void *ctx);
/* A new node comes with its agent's token (TOKEN non-NULL): both or none. TOKEN must live until DONE; its id and
 * node_id are set by the store just before DONE is called with success. */
void store_put_node(struct store *s, const struct node_spec *spec, struct token_spec *token,
	const struct event *ev, store_done *done, void *ctx);
void store_put_token(struct store *s, const struct token_spec *spec, const struct event *ev,
	store_done *done, void *ctx);
enum store_kind { STORE_PROVIDER, STORE_POOL, STORE_NODE, STORE_TOKEN };
/* A node takes its token, sessions and load row along. */
void store_remove(struct store *s, enum store_kind kind, uint32_t id, const struct event *ev,
	store_done *done, void *ctx);
void store_forget_session(struct store *s, uint32_t node_id, const char *id, const struct event *ev,
	store_done *done, void *ctx);

/* ---- the stream of heartbeats: batched ---- */

/* The node's present state (metrics, index, voice, boot, sequence) is to be written: read from NODE when the
 * batch is made, so the latest wins. */
void store_touch_node(struct store *s, const struct node *node);
/* NODE is about to be freed: forgets it in the queues. */
void store_drop_node(struct store *s, const struct node *node);
/* A session appeared, changed or ended. Copied. */
void store_write_session(struct store *s, enum session_change change, const struct session *session);
/* Copied; gets a unique request id, so that a retry never writes it twice. */
void store_write_event(struct store *s, const struct event *ev);
/* DONE when everything queued before this call is committed (0), or -ENOTCONN at the deadline
 * TIMEOUT_MS. */
void store_barrier(struct store *s, int64_t timeout_ms, store_done *done, void *ctx);

/* ---- reading events ---- */
struct event_query {
	uint64_t after;              /* rows with an id above this; 0 = from the oldest */
	bool newest;                 /* the newest LIMIT rows instead (still ascending) */
	uint32_t pool_id;            /* 0 = all; else the pool's own and its provider's pool-less ones */
	uint32_t provider_id;        /* of that pool; 0 when pool_id is 0 */
	enum event_level level;      /* least level */
	uint32_t limit;              /* 1..1000 */
};
struct event_row {
	uint64_t id;
	int64_t time_us;
	const char *dispatcher, *level, *name, *provider, *pool, *node, *params_json;
};
typedef void store_event_row(void *ctx, const struct event_row *row);
/* ROW for each, then DONE. */
void store_read_events(struct store *s, const struct event_query *q, store_event_row *row,
	store_done *done, void *ctx);
/* Called after each commit of events by this dispatcher: something new may be read. One listener. */
void store_on_events(struct store *s, void (*callback)(void *ctx), void *ctx);

/* ---- migration: blocking, for `termbrokerd --migrate` only ----
 * Applies the numbered files built into the program that the database lacks, each in its own transaction, under
 * an advisory lock: safe to run twice and by two at once. REPORT is called for each file applied. 0;
 * -EPROTO if the database is newer than the program; -EIO with the server's message. */
int store_migrate(const char *connection, void (*report)(void *ctx, const char *name), void *ctx,
	struct err *e);
