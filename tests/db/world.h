/* SPDX-License-Identifier: ISC */
/*
 * What the tests of store/ share: a loop, a store on a database of its own, a fleet that takes what
 * is loaded, and a tick that shows whether the loop goes on.
 */
#pragma once

#include <check.h>
#include <event2/event.h>

#include "lib/pg.h"
#include "model/fleet.h"
#include "store/store.h"

struct world {
	struct event_base *base;
	struct store *store;
	struct fleet *fleet;
	struct event *ticker;
	struct loop_timer *limit;
	int64_t tick_us, worst_gap_us;
	unsigned ticks;
	unsigned begins, ends, losts, unusables, warnings;
	unsigned sessions; /* loaded since the last begin */
	char reason[512], warning[512], cluster_id[64];
	struct node_stored stored; /* of the last node loaded */
	void (*on_session)(
		struct world *w, const char *id); /* before it enters the fleet; may be NULL */
};

/* bootstrap.sql and the migrations. */
void world_database(const struct pg *pg, const char *database);
/* A store that connects as the service; TIMEOUT_MS: statement_timeout. */
void world_open(struct world *w, const char *conninfo, int64_t timeout_ms);
void world_close(struct world *w);
/* Runs the loop until *COUNTER >= LEAST; fails the test after MS. */
void world_await(struct world *w, const unsigned *counter, unsigned least, int64_t ms);
/* Opens on DATABASE and waits for the first load. */
void world_up(struct world *w, const struct pg *pg, const char *database, int64_t timeout_ms);
/* Runs the loop until the store is up again. */
void world_await_up(struct world *w, int64_t ms);
void world_run(struct world *w, int64_t ms);

struct got {
	unsigned calls;
	int result;
	uint32_t id;
	char why[512];
};
store_done got_done; /* CTX: struct got */
/* Waits for the answer and returns its result. */
int world_answer(struct world *w, struct got *g);
/* A barrier: everything queued is committed. */
int world_flush(struct world *w, int64_t timeout_ms);

/* Creates through the store and puts into the fleet. */
struct provider *world_provider(struct world *w, const char *name);
struct pool *world_pool(struct world *w, const char *name, struct provider *p);
struct node *world_node(struct world *w, const char *name, const char *address, struct provider *p);
/* A session in the fleet, not yet written. */
struct session *world_session(struct world *w, struct node *n, const char *id, const char *user);
/* An event of NODE in its provider. */
struct event *world_event(struct event *ev, const struct node *node, const char *user);
