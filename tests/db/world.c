/* SPDX-License-Identifier: ISC */
/* The shared world of the tests of store/. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/secret.h"

#define TICK_MS 2

static void load_begin(void *ctx)
{
	struct world *w = ctx;

	w->begins++;
	w->sessions = 0;
}

static void load_provider(void *ctx, const struct provider_spec *spec)
{
	struct world *w = ctx;

	ck_assert_int_eq(fleet_put_provider(w->fleet, spec, NULL), 0);
}

static void load_pool(void *ctx, const struct pool_spec *spec)
{
	struct world *w = ctx;

	ck_assert_int_eq(fleet_put_pool(w->fleet, spec, NULL), 0);
}

static void load_node(void *ctx, const struct node_spec *spec, const struct node_stored *stored)
{
	struct world *w = ctx;
	struct node *n = NULL;

	ck_assert_int_eq(fleet_put_node(w->fleet, spec, &n), 0);
	node_load(n, stored, clock_mono_ms());
	w->stored = *stored;
}

static void load_token(void *ctx, const struct token_spec *spec)
{
	struct world *w = ctx;

	ck_assert_int_eq(fleet_put_token(w->fleet, spec, NULL), 0);
}

static void load_session(void *ctx, uint32_t node_id, const char *id, const char *user_key,
	const char *display, const char *client, bool active, int64_t since_ms,
	int64_t first_seen_ms)
{
	struct world *w = ctx;
	struct node *n = fleet_node_by_id(w->fleet, node_id);

	ck_assert_ptr_nonnull(n);
	if (w->on_session)
		w->on_session(w, id);
	ck_assert_int_eq(fleet_load_session(w->fleet, n, id, user_key, display, client, active,
				 since_ms, first_seen_ms),
		0);
	w->sessions++;
}

static void load_end(void *ctx, const char *cluster_id, const uint8_t *route_key)
{
	struct world *w = ctx;

	w->ends++;
	snprintf(w->cluster_id, sizeof(w->cluster_id), "%s", cluster_id);
}

static void lost(void *ctx, const char *reason)
{
	struct world *w = ctx;

	w->losts++;
	snprintf(w->reason, sizeof(w->reason), "%s", reason);
}

static void unusable(void *ctx, const char *reason)
{
	struct world *w = ctx;

	w->unusables++;
	snprintf(w->reason, sizeof(w->reason), "%s", reason);
}

static void warning(void *ctx, const char *what)
{
	struct world *w = ctx;

	w->warnings++;
	snprintf(w->warning, sizeof(w->warning), "%s", what);
}

static const struct store_handler handler = {
	.load_begin = load_begin,
	.load_provider = load_provider,
	.load_pool = load_pool,
	.load_node = load_node,
	.load_token = load_token,
	.load_session = load_session,
	.load_end = load_end,
	.lost = lost,
	.unusable = unusable,
	.warning = warning,
};

static void ticked(evutil_socket_t fd, short what, void *arg)
{
	struct world *w = arg;
	int64_t now = clock_mono_us();

	if (w->tick_us && now - w->tick_us > w->worst_gap_us)
		w->worst_gap_us = now - w->tick_us;
	w->tick_us = now;
	w->ticks++;
}

static void limit_reached(void *ctx)
{
	struct world *w = ctx;

	event_base_loopbreak(w->base);
}

void world_database(const struct pg *pg, const char *database)
{
	char conninfo[PG_CONNINFO_SIZE];
	struct err e;

	pg_bootstrap(pg, database);
	if (store_migrate(pg_conninfo(pg, "termbroker_owner", database, conninfo), NULL, NULL, &e) <
		0)
		ck_abort_msg("%s", e.text);
}

void world_open(struct world *w, const char *conninfo, int64_t timeout_ms)
{
	const struct timeval tick = {.tv_usec = TICK_MS * 1000};
	struct store_config config = {.connection = conninfo,
		.dispatcher = "d1",
		.connect_timeout_ms = 1000,
		.statement_timeout_ms = timeout_ms,
		.event_queue_max = 1000};
	struct err e;

	*w = (struct world){.base = loop_new(), .fleet = fleet_new()};
	ck_assert_ptr_nonnull(w->base);
	ck_assert_ptr_nonnull(w->fleet);
	w->ticker = event_new(w->base, -1, EV_PERSIST, ticked, w);
	event_add(w->ticker, &tick);
	w->limit = loop_timer_new(w->base, limit_reached, w);
	if (store_new(w->base, &config, &handler, w, &w->store, &e) < 0)
		ck_abort_msg("%s", e.text);
	store_start(w->store);
}

void world_close(struct world *w)
{
	store_free(w->store);
	fleet_free(w->fleet);
	loop_timer_free(w->limit);
	event_free(w->ticker);
	event_base_free(w->base);
}

void world_run(struct world *w, int64_t ms)
{
	loop_timer_arm(w->limit, ms);
	event_base_dispatch(w->base);
}

void world_await(struct world *w, const unsigned *counter, unsigned least, int64_t ms)
{
	int64_t deadline = clock_mono_ms() + ms;

	while (*counter < least) {
		if (clock_mono_ms() >= deadline)
			ck_abort_msg("waited %lld ms in vain (%u of %u; last reason: %s)",
				(long long)ms, *counter, least, w->reason);
		event_base_loop(w->base, EVLOOP_ONCE);
	}
}

void world_await_up(struct world *w, int64_t ms)
{
	int64_t deadline = clock_mono_ms() + ms;

	while (!store_is_up(w->store)) {
		if (clock_mono_ms() >= deadline)
			ck_abort_msg("not up after %lld ms: %s", (long long)ms, w->reason);
		event_base_loop(w->base, EVLOOP_ONCE);
	}
}

void world_up(struct world *w, const struct pg *pg, const char *database, int64_t timeout_ms)
{
	char conninfo[PG_CONNINFO_SIZE];

	world_open(w, pg_conninfo(pg, "termbrokerd", database, conninfo), timeout_ms);
	world_await(w, &w->ends, 1, 20000);
}

void got_done(void *ctx, int result, uint32_t id, const char *why)
{
	struct got *g = ctx;

	g->calls++;
	g->result = result;
	g->id = id;
	snprintf(g->why, sizeof(g->why), "%s", why);
}

int world_answer(struct world *w, struct got *g)
{
	world_await(w, &g->calls, 1, 20000);
	ck_assert_uint_eq(g->calls, 1);
	return g->result;
}

int world_flush(struct world *w, int64_t timeout_ms)
{
	struct got g = {0};

	store_barrier(w->store, timeout_ms, got_done, &g);
	ck_assert_uint_eq(g.calls, 0);
	return world_answer(w, &g);
}

struct provider *world_provider(struct world *w, const char *name)
{
	struct provider_spec spec;
	struct provider *p = NULL;
	struct got g = {0};

	provider_spec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	store_put_provider(w->store, &spec, NULL, got_done, &g);
	ck_assert_msg(world_answer(w, &g) == 0, "%s", g.why);
	spec.id = g.id;
	ck_assert_int_eq(fleet_put_provider(w->fleet, &spec, &p), 0);
	return p;
}

struct pool *world_pool(struct world *w, const char *name, struct provider *provider)
{
	struct pool_spec spec;
	struct pool *p = NULL;
	struct got g = {0};

	pool_spec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	spec.provider_id = provider->spec.id;
	store_put_pool(w->store, &spec, NULL, got_done, &g);
	ck_assert_msg(world_answer(w, &g) == 0, "%s", g.why);
	spec.id = g.id;
	ck_assert_int_eq(fleet_put_pool(w->fleet, &spec, &p), 0);
	return p;
}

struct node *world_node(
	struct world *w, const char *name, const char *address, struct provider *provider)
{
	struct token_spec token = {.role = ROLE_AGENT};
	struct node_spec spec;
	struct node *n = NULL;
	struct got g = {0};

	node_spec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.address, sizeof(spec.address), "%s", address);
	spec.provider_id = provider->spec.id;
	snprintf(token.name, sizeof(token.name), "agent-%.50s", name);
	secret_random(token.hash, sizeof(token.hash));
	store_put_node(w->store, &spec, &token, NULL, got_done, &g);
	ck_assert_msg(world_answer(w, &g) == 0, "%s", g.why);
	ck_assert_uint_eq(token.node_id, g.id);
	ck_assert_uint_ne(token.id, 0);
	spec.id = g.id;
	ck_assert_int_eq(fleet_put_node(w->fleet, &spec, &n), 0);
	return n;
}

struct session *world_session(struct world *w, struct node *n, const char *id, const char *user)
{
	ck_assert_int_eq(fleet_load_session(w->fleet, n, id, user, user, "192.0.2.9", true,
				 1700000000000, 1700000001000),
		0);
	return fleet_find_session(n, id);
}

struct event *world_event(struct event *ev, const struct node *node, const char *user)
{
	event_start(ev, EVENT_USER_LOGIN, INT64_C(1700000000123456));
	event_param(ev, "user", user);
	event_param(ev, "node", node->spec.name);
	ev->provider_id = node->spec.provider_id;
	ev->node_id = node->spec.id;
	return ev;
}
