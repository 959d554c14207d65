/* SPDX-License-Identifier: ISC */
/*
 * Heartbeats: judge, apply to the fleet, queue for the database, answer.
 *
 * What is lost with this process must not have been acknowledged: a heartbeat that brought logins
 * or changed sessions is answered behind a barrier of the store; one that only refreshes numbers,
 * which come again in seconds, at once. If the barrier fails the agent sends the same logins again;
 * s->unacked remembers those that were journalled already, so that each is journalled once.
 */
#include "model/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "service/state.h"

#define BARRIER_TIMEOUT_MS 5000

struct unacked {
	uint32_t node_id;
	char **users;
	size_t count;
	UT_hash_handle hh;
};

struct heartbeat_call {
	struct service *service;
	uint32_t node_id;
	service_heartbeat_done *done;
	void *ctx;
	char **logins; /* own copies */
	size_t login_count;
};

/* ---- logins that were journalled but not acknowledged ---- */

static struct unacked *unacked_find(struct service *s, uint32_t node_id)
{
	struct unacked *u;

	HASH_FIND(hh, s->unacked, &node_id, sizeof(node_id), u);
	return u;
}

static void free_strings(char **strings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(strings[i]);
	free(strings);
}

static void unacked_drop(struct service *s, struct unacked *u)
{
	if (!u)
		return;
	HASH_DEL(s->unacked, u);
	free_strings(u->users, u->count);
	free(u);
}

/* Takes one entry of USER out of U: whether there was one. */
static bool unacked_take(struct unacked *u, const char *user)
{
	for (size_t i = 0; u && i < u->count; i++) {
		if (strcmp(u->users[i], user) != 0)
			continue;
		free(u->users[i]);
		u->users[i] = u->users[--u->count];
		return true;
	}
	return false;
}

/* Keeps the logins of a call whose barrier failed; takes over their strings. */
static void unacked_keep(struct service *s, struct heartbeat_call *call)
{
	struct unacked *u = unacked_find(s, call->node_id);

	unacked_drop(s, u);
	u = calloc(1, sizeof(*u));
	if (!u)
		return;
	u->node_id = call->node_id;
	HASH_ADD(hh, s->unacked, node_id, sizeof(u->node_id), u);
	if (!u->hh.tbl) { /* no memory */
		free(u);
		return;
	}
	u->users = call->logins;
	u->count = call->login_count;
	call->logins = NULL;
	call->login_count = 0;
}

void heartbeat_forget_node(struct service *s, uint32_t node_id)
{
	unacked_drop(s, unacked_find(s, node_id));
}

void heartbeat_deinit_service(struct service *s)
{
	struct unacked *u, *next;

	HASH_ITER(hh, s->unacked, u, next)
	unacked_drop(s, u);
}

/* ---- journal ---- */

void heartbeat_emit_bits(struct service *s, const struct node *n, unsigned bits)
{
	struct event ev;
	char index[16];

	if (bits & NODE_EVENT_REBOOTED)
		emit_node(s, EVENT_NODE_REBOOTED, n);
	if (bits & NODE_EVENT_HEARD) {
		log_info("node \"%s\" is heard again", n->spec.name);
		emit_node(s, EVENT_NODE_HEARD, n);
	}
	if (bits & NODE_EVENT_FULL)
		emit_node(s, EVENT_NODE_FULL, n);
	if (bits & NODE_EVENT_NOT_FULL) {
		emit_start_node(&ev, EVENT_NODE_NOT_FULL, n);
		snprintf(index, sizeof(index), "%" PRIu32, n->index);
		event_param(&ev, "load_index", index);
		emit(s, &ev);
	}
}

static void journal_user(struct service *s, enum event_id id, const struct node *n,
	const char *user, const char *session)
{
	struct event ev;

	event_start(&ev, id, clock_wall_us());
	ev.provider_id = n->provider->spec.id;
	ev.node_id = n->spec.id;
	event_param(&ev, "user", user);
	event_param(&ev, "node", n->spec.name);
	if (session)
		event_param(&ev, "session", session);
	emit(s, &ev);
}

struct change_context {
	struct service *service;
	size_t changes, added;
};

static void on_session_change(void *ctx, enum session_change change, const struct session *session)
{
	struct change_context *c = ctx;

	c->changes++;
	c->added += change == SESSION_ADDED;
	store_write_session(c->service->store, change, session);
	if (change == SESSION_ENDED)
		journal_user(c->service, EVENT_USER_LOGOUT, session->node, session_display(session),
			session_id(session));
}

static void journal_logins(struct service *s, const struct node *n, const struct heartbeat *h)
{
	struct unacked *u = unacked_find(s, n->spec.id);

	for (size_t i = 0; i < h->login_count; i++) {
		if (unacked_take(u, h->logins[i]))
			continue;
		s->counters.logins++;
		journal_user(s, EVENT_USER_LOGIN, n, h->logins[i], NULL);
	}
	unacked_drop(s, u);
}

/* ---- answers ---- */

static void answer(struct service *s, const struct node *n, service_heartbeat_done *done, void *ctx)
{
	struct service_error ok = {.status = SERVICE_OK};
	const struct provider *p = n->provider;
	uint32_t flags = p->farm.flags[n->slot];

	s->reply.has_load_index = n->has_index;
	s->reply.load_index = n->index;
	s->reply.maintenance =
		p->spec.mode != ADMIN_ENABLED ||
		(flags & (FARM_DRAIN | FARM_DISABLED | FARM_SILENT | FARM_NEVER_HEARD)) != 0;
	s->reply.push_interval = s->config->push_interval_s;
	done(ctx, &ok, &s->reply);
}

static void refuse(struct service *s, enum service_status status, const char *code,
	const char *text, service_heartbeat_done *done, void *ctx)
{
	struct service_error error;

	service_error_set(&error, status, code, "%s", text);
	if (status == SERVICE_UNAVAILABLE)
		error.retry_after_s = 5;
	done(ctx, &error, NULL);
	(void)s;
}

static void on_committed(void *ctx, int result, uint32_t id, const char *why)
{
	struct heartbeat_call *call = ctx;
	struct service *s = call->service;
	const struct node *n = fleet_node_by_id(s->fleet, call->node_id);

	(void)id;
	if (result < 0) {
		unacked_keep(s, call);
		refuse(s, SERVICE_UNAVAILABLE, "database_unavailable",
			why && *why ? why : "the database did not confirm in time", call->done,
			call->ctx);
	} else if (!n) {
		refuse(s, SERVICE_NOT_FOUND, "node_unknown", "the node was removed", call->done,
			call->ctx);
	} else {
		answer(s, n, call->done, call->ctx);
	}
	free_strings(call->logins, call->login_count);
	free(call);
}

/* Answers behind a barrier. False: no memory, nothing was queued. */
static bool answer_after_commit(struct service *s, const struct node *n, const struct heartbeat *h,
	service_heartbeat_done *done, void *ctx)
{
	struct heartbeat_call *call = calloc(1, sizeof(*call));

	if (!call)
		return false;
	*call = (struct heartbeat_call){s, n->spec.id, done, ctx, NULL, 0};
	call->logins = calloc(h->login_count + 1, sizeof(*call->logins));
	for (size_t i = 0; call->logins && i < h->login_count; i++) {
		char *copy = text_dup(h->logins[i]);

		if (copy)
			call->logins[call->login_count++] = copy;
	}
	store_barrier(s->store, BARRIER_TIMEOUT_MS, on_committed, call);
	return true;
}

/* ---- the operation ---- */

static void duplicate(struct service *s, const struct caller *caller, const struct node *n,
	service_heartbeat_done *done, void *ctx)
{
	unsigned suppressed;
	struct event ev;

	s->counters.heartbeats_duplicate++;
	if (log_limit_ok(&s->duplicate_limit, 5, 60000, clock_mono_ms(), &suppressed)) {
		log_warning("two machines report as node \"%s\": \"%s\" and \"%s\"", n->spec.name,
			caller->address, n->agent_address);
		event_start(&ev, EVENT_DUPLICATE_AGENT, clock_wall_us());
		ev.provider_id = n->provider->spec.id;
		ev.node_id = n->spec.id;
		event_param(&ev, "node", n->spec.name);
		event_param(&ev, "address", caller->address);
		event_param(&ev, "other_address", n->agent_address);
		emit(s, &ev);
	}
	refuse(s, SERVICE_CONFLICT, "duplicate_agent",
		"another machine reports as this node: give each node a token of its own, and the "
		"one that is the node a new one",
		done, ctx);
}

/* The caller's node, or NULL after having refused. */
static struct node *accept_from(struct service *s, const struct caller *caller,
	const struct heartbeat *h, service_heartbeat_done *done, void *ctx)
{
	struct node *n = caller->token ? fleet_node_by_id(s->fleet, caller->token->node_id) : NULL;

	if (!s->loaded || s->stopping) {
		refuse(s, SERVICE_UNAVAILABLE, s->stopping ? "stopping" : "starting",
			"the dispatcher cannot take heartbeats at this moment", done, ctx);
		return NULL;
	}
	if (!n) {
		refuse(s, SERVICE_NOT_FOUND, "node_unknown",
			"the node of this token is not registered", done, ctx);
		return NULL;
	}
	if (strcmp(h->node, n->spec.name) != 0) {
		service_heartbeat_refused(s, caller, "the token belongs to another node");
		refuse(s, SERVICE_DENIED, "wrong_node", "node: this token belongs to another node",
			done, ctx);
		return NULL;
	}
	switch (node_judge_heartbeat(n, h)) {
	case HEARTBEAT_NEW:
		return n;
	case HEARTBEAT_REPLAYED:
		s->counters.heartbeats_replayed++;
		refuse(s, SERVICE_CONFLICT, "heartbeat_replayed",
			"seq: the dispatcher already has it", done, ctx);
		return NULL;
	default:
		duplicate(s, caller, n, done, ctx);
		return NULL;
	}
}

void service_heartbeat(struct service *s, const struct caller *caller, const struct heartbeat *h,
	service_heartbeat_done *done, void *ctx)
{
	struct change_context change = {.service = s};
	struct node *n = accept_from(s, caller, h, done, ctx);
	struct node_metrics metrics;
	struct load_detail detail;
	int64_t wall_us = clock_wall_us();
	size_t bad = 0;
	uint32_t index = 0;
	bool has_index;
	unsigned bits;

	if (!n)
		return;
	if (fleet_apply_sessions(s->fleet, n, h, s->config->user_names, wall_us / 1000,
		    on_session_change, &change, &bad) < 0) {
		refuse(s, SERVICE_UNAVAILABLE, "no_memory", "the dispatcher is out of memory", done,
			ctx);
		return;
	}
	load_metrics_of(h, &metrics);
	has_index = load_index_compute(
		&n->provider->spec, &n->spec, &metrics, n->session_count, &index, &detail);
	metrics.missing = detail.missing;
	bits = node_apply_heartbeat(
		n, h, &metrics, has_index, index, caller->address, clock_mono_ms(), wall_us);
	s->counters.heartbeats++;
	s->counters.sessions_dropped += h->sessions_dropped + bad;
	journal_logins(s, n, h);
	if ((change.added || h->login_count) && node_trust(n, INT64_MAX))
		emit_node(s, EVENT_NODE_TRUSTED, n);
	if (bits)
		heartbeat_emit_bits(s, n, bits);
	store_touch_node(s->store, n);
	if ((change.changes || h->login_count) && answer_after_commit(s, n, h, done, ctx))
		return;
	answer(s, n, done, ctx);
}

void service_heartbeat_refused(struct service *s, const struct caller *caller, const char *reason)
{
	const struct node *n =
		caller->token ? fleet_node_by_id(s->fleet, caller->token->node_id) : NULL;
	unsigned suppressed;
	struct event ev;

	s->counters.heartbeats_refused++;
	if (!log_limit_ok(&s->refused_limit, 20, 60000, clock_mono_ms(), &suppressed))
		return;
	event_start(&ev, EVENT_HEARTBEAT_REFUSED, clock_wall_us());
	ev.provider_id = n ? n->provider->spec.id : 0;
	ev.node_id = n ? n->spec.id : 0;
	event_param(&ev, "node", n ? n->spec.name : "");
	event_param(&ev, "address", caller->address);
	event_param(&ev, "reason", reason);
	emit(s, &ev);
}
