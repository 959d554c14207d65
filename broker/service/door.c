/* SPDX-License-Identifier: ISC */
/*
 * What the front door asks and tells. A question becomes a request for a node like any other; a
 * decision that refuses is journalled when it is made.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "service/decision.h"

#define SUSPECT_MS 300000

/* Upper bounds of the histogram of how long a client waits, in milliseconds. */
static const unsigned bounds_ms[SERVICE_DOOR_BUCKETS] = {
	5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000};

struct question {
	struct service *service;
	door_answered *done;
	void *ctx;
	bool wants_ticket;
};

static void copy_answer(const struct connect_result *r, struct door_answer *ret)
{
	const struct connection_answer *a = &r->answer;

	text_copy(ret->user, sizeof(ret->user), r->user ? r->user : "");
	text_copy(ret->pool, sizeof(ret->pool), r->pool ? r->pool->spec.name : "");
	if (r->error.status != SERVICE_OK) {
		ret->verdict =
			r->error.status == SERVICE_UNAVAILABLE ? DOOR_UNAVAILABLE : DOOR_REFUSED;
		text_copy(ret->detail, sizeof(ret->detail), r->error.detail);
		return;
	}
	ret->verdict = DOOR_PLACED;
	ret->port = a->port;
	text_copy(ret->node, sizeof(ret->node), a->node);
	text_copy(ret->address, sizeof(ret->address), a->address);
	text_copy(ret->fqdn, sizeof(ret->fqdn), a->fqdn ? a->fqdn : "");
}

/* The client comes back with it, so the door need not ask again who it is. */
static void add_ticket(
	const struct service *s, const struct connect_result *r, struct door_answer *answer)
{
	const struct caller caller = {.role = ROLE_CLIENT};
	struct err e;

	if (service_route_mint(s, &caller, r->pool, r->user, r->tags, answer->ticket, &e) == 0)
		return;
	answer->verdict = DOOR_UNAVAILABLE;
	text_copy(answer->detail, sizeof(answer->detail), e.text);
}

static void answered(void *ctx, const struct connect_result *r)
{
	struct question *q = ctx;
	struct door_answer answer = {0};

	copy_answer(r, &answer);
	if (answer.verdict == DOOR_PLACED && q->wants_ticket)
		add_ticket(q->service, r, &answer);
	q->done(q->ctx, &answer);
	free(q);
}

/* Nodes by the names that the door was told; one that has gone meanwhile is nobody's. */
static void avoid_nodes(const struct service *s, const struct door_question *q, struct wish *w)
{
	for (unsigned i = 0; i < q->avoid_count && i < DOOR_AVOID_MAX; i++) {
		const struct node *n = fleet_node(s->fleet, q->avoid[i]);

		if (n)
			w->avoid[w->avoid_count++] = n->spec.id;
	}
}

/* Whom and where to the route token in Q names. */
static int use_ticket(struct service *s, const struct door_question *q, const struct caller *caller,
	struct connection_request *ret, struct err *e)
{
	const struct pool *pool;
	struct route_ticket t;
	int r = service_route_open(s, q->name, &pool, &t, e);

	if (r < 0) {
		service_denied(s, caller, "door", e->text);
		return r;
	}
	text_copy(ret->pool, sizeof(ret->pool), pool->spec.name);
	text_copy(ret->user, sizeof(ret->user), t.user);
	text_copy(ret->tags, sizeof(ret->tags), t.tags);
	ret->has_tags = t.tags[0] != '\0';
	return 0;
}

static void refuse(enum door_verdict verdict, const char *detail, door_answered *done, void *ctx)
{
	struct door_answer a = {.verdict = verdict};

	text_copy(a.detail, sizeof(a.detail), detail);
	done(ctx, &a);
}

void service_door_ask(
	struct service *s, const struct door_question *q, door_answered *done, void *ctx)
{
	struct caller caller = {.role = ROLE_CLIENT, .actor = "door"};
	struct connection_request request = {0};
	struct wish w = {.request = &request, .endpoint_port = q->endpoint_port};
	struct question *call = calloc(1, sizeof(*call));
	struct err e = {""};

	if (!call) {
		refuse(DOOR_UNAVAILABLE, "the dispatcher is out of memory", done, ctx);
		return;
	}
	*call = (struct question){s, done, ctx, q->wants_ticket};
	w.who = q->who == DOOR_NOBODY ? WISH_NOBODY : q->who == DOOR_HINT ? WISH_HINT : WISH_USER;
	text_copy(w.endpoint, sizeof(w.endpoint), q->endpoint);
	avoid_nodes(s, q, &w);
	text_copy(caller.address, sizeof(caller.address), q->client);
	text_copy(request.client, sizeof(request.client), q->client);
	text_copy(request.pool, sizeof(request.pool), q->pool);
	if (q->who != DOOR_TICKET) {
		text_copy(request.user, sizeof(request.user), q->name[0] ? q->name : "unknown");
	} else if (!s->loaded || use_ticket(s, q, &caller, &request, &e) < 0) {
		free(call);
		refuse(s->loaded ? DOOR_REFUSED : DOOR_UNAVAILABLE, e.text, done, ctx);
		return;
	}
	connect_wish(s, &caller, &w, answered, call);
}

static void observe(struct service *s, int64_t ms)
{
	unsigned i = 0;

	while (i < SERVICE_DOOR_BUCKETS && ms > bounds_ms[i])
		i++;
	s->counters.door_waits[i]++; /* the last one: longer than all bounds */
	s->counters.door_wait_ms += ms > 0 ? (uint64_t)ms : 0;
}

unsigned service_door_bound_ms(unsigned bucket)
{
	return bounds_ms[bucket];
}

/* An event about a client on a node, both by name: either may have gone. */
static void start_client_event(
	const struct service *s, const struct door_report *r, enum event_id id, struct event *ev)
{
	const struct node *n = fleet_node(s->fleet, r->node);
	const struct pool *p = r->pool ? fleet_pool(s->fleet, r->pool) : NULL;

	if (n) {
		emit_start_node(ev, id, n);
	} else {
		event_start(ev, id, clock_wall_us());
		event_param(ev, "node", r->node);
		event_param(ev, "address", "");
	}
	if (p) {
		ev->pool_id = p->spec.id;
		ev->pool = p->spec.name;
	}
	event_param(ev, "user", r->user);
	event_param(ev, "client", r->client);
}

static void client_arrived(struct service *s, const struct door_report *r, enum event_id id)
{
	struct event ev;

	observe(s, r->ms);
	start_client_event(s, r, id, &ev);
	emit(s, &ev);
}

static void client_ended(struct service *s, const struct door_report *r)
{
	char seconds[24], from_client[24], from_node[24];
	struct event ev;

	s->counters.door_bytes += r->from_client + r->from_node;
	snprintf(seconds, sizeof(seconds), "%" PRId64, r->ms / 1000);
	snprintf(from_client, sizeof(from_client), "%" PRIu64, r->from_client);
	snprintf(from_node, sizeof(from_node), "%" PRIu64, r->from_node);
	start_client_event(s, r, EVENT_DOOR_ENDED, &ev);
	event_param(&ev, "seconds", seconds);
	event_param(&ev, "from_client", from_client);
	event_param(&ev, "from_node", from_node);
	event_param(&ev, "reason", r->reason);
	emit(s, &ev);
}

static void client_failed(struct service *s, const struct door_report *r)
{
	unsigned suppressed;
	struct event ev;

	if (!log_limit_ok(&s->door_limit, 20, 60000, clock_mono_ms(), &suppressed))
		return;
	event_start(&ev, EVENT_DOOR_FAILED, clock_wall_us());
	event_param(&ev, "client", r->client);
	event_param(&ev, "step", r->step);
	event_param(&ev, "reason", r->reason);
	emit(s, &ev);
}

static void node_refused(struct service *s, const struct door_report *r)
{
	struct node *n = fleet_node(s->fleet, r->node);
	struct event ev;

	if (!n || !node_suspect(n, clock_mono_ms() + SUSPECT_MS))
		return;
	log_warning("node \"%s\" does not let users in: %s", n->spec.name, r->reason);
	emit_start_node(&ev, EVENT_NODE_SUSPECT, n);
	event_param(&ev, "reason", r->reason);
	emit(s, &ev);
}

void service_door_tell(struct service *s, const struct door_report *r)
{
	switch (r->what) {
	case DOOR_REDIRECTED:
		s->counters.door_redirected++;
		client_arrived(s, r, EVENT_DOOR_REDIRECTED);
		break;
	case DOOR_RELAYED:
		s->counters.door_relayed++;
		s->counters.door_open++;
		client_arrived(s, r, EVENT_DOOR_RELAYED);
		break;
	case DOOR_ENDED:
		if (s->counters.door_open > 0)
			s->counters.door_open--;
		client_ended(s, r);
		break;
	case DOOR_TURNED_AWAY:
		s->counters.door_refused++;
		break;
	case DOOR_FAILED:
		s->counters.door_failed++;
		client_failed(s, r);
		break;
	case DOOR_NODE_REFUSED:
		s->counters.door_node_refused++;
		node_refused(s, r);
		break;
	}
}
