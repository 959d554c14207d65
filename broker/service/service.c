/* SPDX-License-Identifier: ISC */
/*
 * The life of the service and what it knows of its database: loaded, lost, back.
 */
#include "model/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "base/text.h"
#include "service/state.h"

#define STOP_TIMEOUT_MS 3000

static void on_probe_finished(void *ctx)
{
	connect_retry(ctx);
}

static void on_store_events(void *ctx)
{
	struct service *s = ctx;

	if (s->on_events)
		s->on_events(s->on_events_ctx);
}

static void set_topology(struct service *s, const char *cluster_id)
{
	struct topology *t = &s->reply.topology;

	/* a later start is a higher version, so agents take a changed address */
	t->version = (uint64_t)(clock_wall_us() / 1000000);
	t->count = 1;
	text_copy(t->cluster_id, sizeof(t->cluster_id), cluster_id);
	text_copy(t->dispatchers[0].name, sizeof(t->dispatchers[0].name), s->config->name);
	text_copy(t->dispatchers[0].url, sizeof(t->dispatchers[0].url), s->config->advertise);
}

int service_new(struct event_base *base, const struct config *config, struct journal *journal,
	service_fatal *fatal, void *ctx, struct service **ret, struct err *e)
{
	struct store_config store_config = {
		.connection = config->database,
		.dispatcher = config->name,
	};
	struct service *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_errno(e, -ENOMEM, "could not start the service");
	s->base = base;
	s->config = config;
	s->journal = journal;
	s->fatal = fatal;
	s->fatal_ctx = ctx;
	s->started_ms = clock_mono_ms();
	s->denied_seed = secret_random_u64();
	s->fleet = fleet_new();
	s->probes = probes_new(base, on_probe_finished, s);
	s->tick = loop_timer_new(base, tick_run, s);
	if (!s->fleet || !s->probes || !s->tick) {
		service_free(s);
		return err_errno(e, -ENOMEM, "could not start the service");
	}
	r = store_new(base, &store_config, loading_handler(), s, &s->store, e);
	if (r < 0) {
		service_free(s);
		return r;
	}
	store_on_events(s->store, on_store_events, s);
	*ret = s;
	return 0;
}

void service_start(struct service *s)
{
	store_start(s->store);
	loop_timer_arm(s->tick, 1000);
}

static void on_flushed(void *ctx, int result, uint32_t id, const char *why)
{
	struct service *s = ctx;

	(void)id;
	if (result < 0)
		log_warning(
			"stopping with writes that the database did not take: %s", why ? why : "");
	if (s->on_stopped)
		s->on_stopped(s->on_stopped_ctx);
}

void service_stop(struct service *s, void (*stopped)(void *ctx), void *ctx)
{
	struct event ev;

	s->stopping = true;
	s->on_stopped = stopped;
	s->on_stopped_ctx = ctx;
	connect_retry(s);
	event_start(&ev, EVENT_DISPATCHER_STOPPED, clock_wall_us());
	event_param(&ev, "dispatcher", s->config->name);
	emit(s, &ev);
	store_barrier(s->store, STOP_TIMEOUT_MS, on_flushed, s);
}

void service_free(struct service *s)
{
	if (!s)
		return;
	s->stopping = true;
	s->on_stopped = NULL;
	connect_retry(s); /* each waiting call ends as "stopping" */
	store_free(s->store);
	probes_free(s->probes);
	loop_timer_free(s->tick);
	heartbeat_deinit_service(s);
	loading_free(s->loading);
	fleet_free(s->fleet);
	secret_wipe(s->route_key, sizeof(s->route_key));
	free(s);
}

void service_reload(struct service *s, const struct config *config)
{
	s->config = config;
	fleet_user_names_changed(s->fleet);
	if (s->loaded)
		set_topology(s, s->reply.topology.cluster_id);
}

void service_on_ready(struct service *s, void (*callback)(void *ctx, bool ready), void *ctx)
{
	s->on_ready = callback;
	s->on_ready_ctx = ctx;
}

void service_on_events(struct service *s, void (*callback)(void *ctx), void *ctx)
{
	s->on_events = callback;
	s->on_events_ctx = ctx;
}

bool service_is_loaded(const struct service *s)
{
	return s->loaded;
}

const struct fleet *service_fleet(const struct service *s)
{
	return s->fleet;
}

const struct config *service_config(const struct service *s)
{
	return s->config;
}

struct store *service_store(struct service *s)
{
	return s->store;
}

const struct topology *service_topology(const struct service *s)
{
	return &s->reply.topology;
}

/* ---- the database ---- */

static void journal_started(struct service *s)
{
	struct event ev;

	event_start(&ev, EVENT_DISPATCHER_STARTED, clock_wall_us());
	event_param(&ev, "dispatcher", s->config->name);
	event_param(&ev, "version", TERMBROKER_VERSION);
	emit(s, &ev);
}

static void journal_back(struct service *s, int64_t seconds)
{
	struct event ev;
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, seconds);
	log_info("the database is back after %s s", text);
	event_start(&ev, EVENT_DATABASE_BACK, clock_wall_us());
	event_param(&ev, "seconds", text);
	emit(s, &ev);
}

void service_loaded(struct service *s, const char *cluster_id)
{
	int64_t now_ms = clock_mono_ms();
	bool first = !s->loaded;

	s->grace_until_ms = now_ms + s->config->stale_after_ms;
	s->loaded = true;
	set_topology(s, cluster_id);
	if (first) {
		tick_restore(s);
		journal_started(s);
	}
	if (s->lost_at_ms)
		journal_back(s, (now_ms - s->lost_at_ms) / 1000);
	s->lost_at_ms = 0;
	if (first && s->on_ready)
		s->on_ready(s->on_ready_ctx, true);
}

void service_lost(struct service *s, const char *reason)
{
	struct event ev;

	if (s->lost_at_ms) {
		log_debug("database: %s", reason);
		return;
	}
	s->lost_at_ms = clock_mono_ms();
	log_error("database lost: %s", reason);
	event_start(&ev, EVENT_DATABASE_LOST, clock_wall_us());
	event_param(&ev, "reason", reason);
	emit(s, &ev);
}

void service_unusable(struct service *s, const char *reason)
{
	if (s->loaded) {
		service_lost(s, reason);
		return;
	}
	s->fatal(s->fatal_ctx, reason);
}

/* ---- who asks ---- */

int service_authenticate(const struct service *s, const char *text, size_t len, int64_t now_wall_us,
	const struct token **ret, const char **ret_why)
{
	uint8_t hash[SECRET_HASH_SIZE];
	const struct token *t;

	*ret_why = "unknown token";
	if (len != SECRET_TOKEN_SIZE - 1)
		return -EACCES;
	secret_hash(text, len, hash);
	t = fleet_token_by_hash(s->fleet, hash);
	if (!t || !secret_hash_equal(t->spec.hash, hash))
		return -EACCES;
	if (t->spec.revoked) {
		*ret_why = "revoked token";
		return -EACCES;
	}
	if (t->spec.expires_us && t->spec.expires_us <= now_wall_us) {
		*ret_why = "expired token";
		return -EACCES;
	}
	*ret = t;
	return 0;
}

void service_denied(
	struct service *s, const struct caller *caller, const char *call, const char *reason)
{
	uint32_t hash = hash_bytes(s->denied_seed, caller->address, strlen(caller->address));
	struct log_limit *limit = &s->denied_limits[hash % DENIED_LIMITS];
	unsigned suppressed;
	struct event ev;

	s->counters.denied++;
	if (!log_limit_ok(limit, 20, 60000, clock_mono_ms(), &suppressed))
		return;
	event_start(&ev, EVENT_ACCESS_DENIED, clock_wall_us());
	event_param(&ev, "actor", caller->actor);
	event_param(&ev, "address", caller->address);
	event_param(&ev, "call", call);
	event_param(&ev, "reason", reason);
	emit(s, &ev);
}
