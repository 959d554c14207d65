/* SPDX-License-Identifier: ISC */
/*
 * Asking for a node, and explaining the same decision. A call answers at once unless a silent node
 * must be probed; then it waits in s->connects and is decided anew when a probe ends (the probe's
 * result is kept longer than it takes).
 */
#include "service/decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define CONNECT_CALL "/api/v1/connections" /* as the journal names it */

struct connect_call {
	struct connect_call *next;
	struct caller caller;
	struct token_spec token; /* caller.token points here: the original may be gone by then */
	struct wish wish;	 /* its request points to: */
	struct connection_request request;
	service_connect_done *connect_done; /* one of the two */
	service_explain_done *explain_done;
	void *ctx;
};

static void event_of_user(struct event *ev, enum event_id id, const struct decision *d,
	const struct node *n, const char *user)
{
	emit_start_node(ev, id, n);
	ev->pool_id = d->input.pool->spec.id;
	ev->pool = d->input.pool->spec.name;
	event_param(ev, "user", user);
}

static void journal_choice(
	struct service *s, const struct caller *caller, const struct decision *d, const char *user)
{
	static const enum event_id ids[] = {
		[CHOICE_SESSION] = EVENT_SESSION_RECONNECT,
		[CHOICE_LEAST_LOADED] = EVENT_NODE_CHOSEN,
		[CHOICE_ROUND_ROBIN] = EVENT_NODE_ROUND_ROBIN,
		[CHOICE_ADMINISTRATOR] = EVENT_NODE_NAMED,
		[CHOICE_TOKEN] = EVENT_NODE_ROUTED,
	};
	const struct choice *c = &d->choice;
	char index[16];
	struct event ev;

	if (!emit_wanted(s, ids[c->reason]))
		return;
	event_of_user(&ev, ids[c->reason], d, c->node, user);
	snprintf(index, sizeof(index), "%u", c->load_index);
	if (c->reason == CHOICE_SESSION)
		event_param(&ev, "session", session_id(c->session));
	else if (c->reason == CHOICE_LEAST_LOADED)
		event_param(&ev, "load_index", index);
	else if (c->reason == CHOICE_ADMINISTRATOR)
		event_param(&ev, "actor", caller->actor);
	emit(s, &ev);
}

static void journal_suspended(struct service *s, const struct decision *d, const char *user)
{
	const struct session *session = d->choice.suspended;
	struct event ev;

	event_of_user(&ev, EVENT_SESSION_SUSPENDED, d, session->node, user);
	event_param(&ev, "session", session_id(session));
	emit(s, &ev);
}

/* "nodes 3, full 2": what each filter left out, the same in every language of the journal. */
static void count_text(const struct choice_counts *c, char *ret, size_t size)
{
	const struct {
		const char *name;
		uint32_t count;
	} parts[] = {
		{"nodes", c->nodes},
		{"tag_mismatch", c->tag_mismatch},
		{"maintenance", c->maintenance},
		{"silent", c->silent},
		{"not_accepting", c->not_accepting},
		{"full", c->full},
	};
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && len < size; i++)
		if (parts[i].count)
			len += (size_t)snprintf(ret + len, size - len, "%s%s %u", len ? ", " : "",
				parts[i].name, parts[i].count);
}

static void journal_refusal(struct service *s, const struct decision *d,
	const struct connection_request *request, const struct service_error *error)
{
	const struct pool *pool = d->input.pool;
	char counts[160];
	struct event ev;

	if (!emit_wanted(s, EVENT_CONNECT_REFUSED))
		return;
	count_text(&d->choice.counts, counts, sizeof(counts));
	event_start(&ev, EVENT_CONNECT_REFUSED, clock_wall_us());
	if (pool) {
		ev.pool_id = pool->spec.id;
		ev.pool = pool->spec.name;
		ev.provider_id = pool->provider->spec.id;
	}
	event_param(&ev, "user", request->user);
	event_param(&ev, "reason", error->code);
	event_param(&ev, "counts", counts);
	emit(s, &ev);
}

static void fill_answer(const struct caller *caller, const struct choice *c,
	const char *tags[LIMIT_TAGS_PER_NODE], struct connection_answer *ret)
{
	const struct node_spec *spec = &c->node->spec;
	bool details = caller->role == ROLE_ADMIN || (caller->token && caller->token->see_sessions);

	for (uint32_t i = 0; i < spec->tags.count; i++)
		tags[i] = spec->tags.tag[i];
	*ret = (struct connection_answer){
		.node = spec->name,
		.address = spec->address,
		.fqdn = spec->fqdn,
		.port = spec->port,
		.reason = choice_reason_name(c->reason),
		.has_load_index = c->node->has_index,
		.load_index = c->node->index,
		.tags = tags,
		.tag_count = spec->tags.count,
		.session_id = c->session && details ? session_id(c->session) : NULL,
		.session_active = c->session && c->session->active,
	};
}

/* What the token or the pool forbids: refused before policy was asked, so told here. */
static void denied(struct service *s, const struct caller *caller, const char *code)
{
	if (strcmp(code, choice_reason_name(CHOICE_TAG_DENIED)) == 0)
		s->counters.connects[CHOICE_TAG_DENIED]++;
	service_denied(s, caller, CONNECT_CALL, code);
}

static void finish_connect(struct service *s, const struct caller *caller,
	const struct connection_request *request, struct decision *d, enum decision_step step,
	struct connect_result *r, service_connect_done *done, void *ctx)
{
	const char *tags[LIMIT_TAGS_PER_NODE];

	r->user = request->user;
	r->tags = request->has_tags ? request->tags : "";
	r->caller = caller;
	if (step == DECISION_ERROR) {
		if (r->error.status == SERVICE_DENIED)
			denied(s, caller, r->error.code);
		done(ctx, r);
		return;
	}
	r->choice = &d->choice;
	r->pool = d->input.pool;
	s->counters.connects[d->choice.reason]++;
	if (d->choice.suspended)
		journal_suspended(s, d, request->user);
	if (choice_is_refusal(d->choice.reason)) {
		decision_refusal(d, request, &r->error);
		journal_refusal(s, d, request, &r->error);
	} else {
		journal_choice(s, caller, d, request->user);
		if (d->choice.reason == CHOICE_ROUND_ROBIN)
			node_assigned(fleet_node_by_id(s->fleet, d->choice.node->spec.id));
		fill_answer(caller, &d->choice, tags, &r->answer);
	}
	done(ctx, r);
}

static void finish_explain(const struct decision *d, enum decision_step step,
	struct explain_result *r, service_explain_done *done, void *ctx)
{
	if (step == DECISION_READY) {
		r->choice = &d->choice;
		r->input = &d->input;
		r->pool = d->input.pool;
		r->user_key = d->key;
	}
	done(ctx, r);
}

/* Keeps the call until a probe ended. False: no memory. */
static bool wait_for_probe(struct service *s, const struct caller *caller, const struct wish *w,
	service_connect_done *connect_done, service_explain_done *explain_done, void *ctx)
{
	struct connect_call *call = calloc(1, sizeof(*call));

	if (!call)
		return false;
	call->caller = *caller;
	if (caller->token) {
		call->token = *caller->token;
		call->caller.token = &call->token;
	}
	call->wish = *w;
	call->request = *w->request;
	call->wish.request = &call->request;
	call->connect_done = connect_done;
	call->explain_done = explain_done;
	call->ctx = ctx;
	call->next = s->connects;
	s->connects = call;
	return true;
}

static void no_memory(struct service_error *error)
{
	service_error_set(
		error, SERVICE_UNAVAILABLE, "no_memory", "the dispatcher is out of memory");
}

void connect_wish(struct service *s, const struct caller *caller, const struct wish *w,
	service_connect_done *done, void *ctx)
{
	struct connect_result r = {.error = {.status = SERVICE_OK}};
	struct decision d;
	enum decision_step step = decision_make(s, caller, w, &d, &r.error);

	if (step == DECISION_WAIT) {
		if (wait_for_probe(s, caller, w, done, NULL, ctx))
			return;
		no_memory(&r.error);
		step = DECISION_ERROR;
	}
	finish_connect(s, caller, w->request, &d, step, &r, done, ctx);
}

void service_connect(struct service *s, const struct caller *caller,
	const struct connection_request *request, service_connect_done *done, void *ctx)
{
	const struct wish w = {.request = request, .who = WISH_USER};

	connect_wish(s, caller, &w, done, ctx);
}

void service_explain(struct service *s, const struct caller *caller,
	const struct connection_request *request, service_explain_done *done, void *ctx)
{
	const struct wish w = {.request = request, .who = WISH_USER};
	struct explain_result r = {.error = {.status = SERVICE_OK}};
	struct decision d;
	enum decision_step step = decision_make(s, caller, &w, &d, &r.error);

	if (step == DECISION_WAIT) {
		if (wait_for_probe(s, caller, &w, NULL, done, ctx))
			return;
		no_memory(&r.error);
		step = DECISION_ERROR;
	}
	finish_explain(&d, step, &r, done, ctx);
}

/* Takes all waiting calls and lets each decide again: it answers or waits once more. */
void connect_retry(struct service *s)
{
	struct connect_call *call = s->connects, *next;

	s->connects = NULL;
	for (; call; call = next) {
		next = call->next;
		if (call->connect_done)
			connect_wish(s, &call->caller, &call->wish, call->connect_done, call->ctx);
		else
			service_explain(
				s, &call->caller, &call->request, call->explain_done, call->ctx);
		free(call);
	}
}
