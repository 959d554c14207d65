/* SPDX-License-Identifier: ISC */
/*
 * Two lists in order of sequence; the hashes hold exactly the nodes and sessions that are in the
 * list of states. A row that a batch took is in neither.
 */
#include "model/hash.h"

#include "store/queue.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/secret.h"
#include "base/text.h"
#include "model/session.h"

/* More sessions than a fleet has: only a fault elsewhere makes so many wait. */
#define SESSIONS_MAX ((size_t)1 << 21)
#define PARAMS_MAX 65536

void queue_init(struct queue *q, size_t event_max)
{
	*q = (struct queue){.event_max = event_max ? event_max : 1};
	TAILQ_INIT(&q->states);
	TAILQ_INIT(&q->events);
	q->request_prefix = secret_random_u64();
}

static void add(struct queue *q, struct row_list *list, struct row *r, int64_t now_ms)
{
	r->seq = ++q->seq;
	r->since_ms = now_ms;
	TAILQ_INSERT_TAIL(list, r, link);
}

static struct node_row *node_row(struct row *r)
{
	return (struct node_row *)r;
}

static struct session_row *session_row(struct row *r)
{
	return (struct session_row *)r;
}

static void take_out(struct queue *q, struct row *r)
{
	/* What is in the list is in its hash. */
	assert(r->kind == ROW_EVENT || (r->kind == ROW_NODE ? !!q->nodes : !!q->sessions));
	TAILQ_REMOVE(r->kind == ROW_EVENT ? &q->events : &q->states, r, link);
	switch (r->kind) {
	case ROW_NODE:
		HASH_DEL(q->nodes, node_row(r));
		q->node_count--;
		break;
	case ROW_EVENT:
		q->event_count--;
		break;
	default:
		HASH_DEL(q->sessions, session_row(r));
		q->session_count--;
	}
}

void row_free(struct row *r)
{
	if (r && r->kind == ROW_EVENT) {
		struct event_row_queued *e = (struct event_row_queued *)r;

		free(e->pool);
		free(e->params);
	}
	free(r);
}

void queue_deinit(struct queue *q)
{
	struct row *r;

	while ((r = TAILQ_FIRST(&q->states)) || (r = TAILQ_FIRST(&q->events))) {
		take_out(q, r);
		row_free(r);
	}
}

/* ---- nodes ---- */

void queue_node(struct queue *q, const struct node *node, int64_t now_ms)
{
	struct node_row *r;

	HASH_FIND_PTR(q->nodes, &node, r);
	if (r)
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		return; /* the next heartbeat touches it again */
	r->row = (struct row){.kind = ROW_NODE, .size = 256};
	r->node = node;
	HASH_ADD_PTR(q->nodes, node, r);
	if (!r->hh.tbl) {
		free(r);
		return;
	}
	q->node_count++;
	add(q, &q->states, &r->row, now_ms);
}

void queue_forget_node(struct queue *q, const struct node *node)
{
	struct node_row *r;

	HASH_FIND_PTR(q->nodes, &node, r);
	if (!r)
		return;
	take_out(q, &r->row);
	row_free(&r->row);
}

/* ---- sessions ---- */

#define KEY_MAX (sizeof(uint32_t) + LIMIT_SESSION_ID_SIZE)

static struct session_row *find_session(const struct queue *q, uint32_t node_id, const char *id)
{
	char buffer[KEY_MAX] = {0};
	size_t len = strlen(id);
	struct session_row *r;

	if (len >= LIMIT_SESSION_ID_SIZE)
		return NULL;
	memcpy(buffer, &node_id, sizeof(node_id));
	memcpy(buffer + sizeof(node_id), id, len);
	HASH_FIND(hh, q->sessions, buffer, sizeof(node_id) + len, r);
	return r;
}

static char *put(char *at, const char *text, const char **ret)
{
	size_t size = strlen(text) + 1;

	*ret = memcpy(at, text, size);
	return at + size;
}

static struct session_row *new_session(enum session_change change, const struct session *s)
{
	const char *id = session_id(s), *key = session_key(s), *client = session_client(s);
	const char *display = session_display(s);
	struct session_row *r;
	const char *ignored;
	size_t size;
	char *at;

	if (strcmp(display, key) == 0)
		display = "";
	size = strlen(id) + strlen(key) + strlen(display) + strlen(client) + 4;
	r = calloc(1, sizeof(*r) + size);
	if (!r)
		return NULL;
	r->row = (struct row){.kind = change == SESSION_ENDED ? ROW_SESSION_ENDED : ROW_SESSION,
		.fresh = change == SESSION_ADDED,
		.size = size + 64};
	r->since_ms = s->since_ms;
	r->first_seen_ms = s->first_seen_ms;
	r->active = s->active;
	r->node_id = s->node->spec.id;
	r->key_len = (uint32_t)(sizeof(r->node_id) + strlen(id));
	at = put(r->id, id, &ignored);
	at = put(at, key, &r->user_key);
	at = put(at, display, &r->display);
	put(at, client, &r->client);
	return r;
}

/* Keeps the old one's place: whoever waits for that waits for the newest state. An end that is
 * followed by an addition is not fresh: the database has the row. */
static void replace(struct queue *q, struct session_row *old, struct session_row *r)
{
	r->row.fresh = old->row.fresh;
	r->row.seq = old->row.seq;
	r->row.since_ms = old->row.since_ms;
	TAILQ_INSERT_BEFORE(&old->row, &r->row, link);
	take_out(q, &old->row);
	row_free(&old->row);
}

void queue_session(
	struct queue *q, enum session_change change, const struct session *s, int64_t now_ms)
{
	struct session_row *old = find_session(q, s->node->spec.id, session_id(s));
	struct session_row *r;

	/* Came and went while the database was away: it need not hear of it. */
	if (old && old->row.fresh && change == SESSION_ENDED) {
		take_out(q, &old->row);
		row_free(&old->row);
		return;
	}
	r = q->session_count < SESSIONS_MAX || old ? new_session(change, s) : NULL;
	if (!r) {
		q->sessions_dropped++;
		return;
	}
	if (old)
		replace(q, old, r);
	else
		add(q, &q->states, &r->row, now_ms);
	HASH_ADD_KEYPTR(hh, q->sessions, &r->node_id, r->key_len, r);
	q->session_count++;
	if (!r->hh.tbl) {
		q->session_count--;
		q->sessions_dropped++;
		TAILQ_REMOVE(&q->states, &r->row, link);
		free(r);
	}
}

bool queue_has_session(const struct queue *q, uint32_t node_id, const char *id)
{
	return q->session_count > 0 && find_session(q, node_id, id);
}

void queue_forget_session(struct queue *q, uint32_t node_id, const char *id)
{
	struct session_row *r = find_session(q, node_id, id);

	if (!r || r->row.kind == ROW_SESSION_ENDED)
		return;
	take_out(q, &r->row);
	row_free(&r->row);
}

/* ---- events ---- */

/* A UUID of version 8: 62 random bits of this process, then a count; so a retry is known as one,
 * and the index grows at one place. */
static void next_request_id(struct queue *q, char ret[REQUEST_ID_SIZE])
{
	uint64_t a = q->request_prefix, b = ++q->request_count;

	snprintf(ret, REQUEST_ID_SIZE,
		"%08" PRIx64 "-%04" PRIx64 "-8%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64, a >> 32,
		a >> 16 & 0xffff, a >> 4 & 0xfff, b >> 48 & 0xfff, b & 0xffffffffffff);
}

struct event_row_queued *queue_event_row(struct queue *q, const struct event *ev)
{
	struct event_row_queued *r = calloc(1, sizeof(*r));
	struct buf params = BUF_INIT(PARAMS_MAX);

	if (!r)
		return NULL;
	r->row = (struct row){.kind = ROW_EVENT};
	next_request_id(q, r->request_id);
	r->level = event_level_of(ev->id);
	r->name = event_name(ev->id);
	r->time_us = ev->time_us;
	r->provider_id = ev->provider_id;
	r->pool_id = ev->pool_id;
	r->node_id = ev->node_id;
	event_params_json(ev, &params);
	r->row.size = params.len + 128;
	r->params = buf_steal(&params);
	if (ev->pool && *ev->pool)
		r->pool = text_dup(ev->pool);
	buf_deinit(&params);
	if (!r->params || (ev->pool && *ev->pool && !r->pool)) {
		row_free(&r->row);
		return NULL;
	}
	return r;
}

void queue_event(struct queue *q, const struct event *ev, int64_t now_ms)
{
	struct event_row_queued *r = queue_event_row(q, ev);

	if (!r) {
		q->events_dropped++;
		return;
	}
	if (q->event_count >= q->event_max) {
		struct row *oldest = TAILQ_FIRST(&q->events);

		take_out(q, oldest);
		row_free(oldest);
		q->events_dropped++;
	}
	q->event_count++;
	add(q, &q->events, &r->row, now_ms);
}

/* ---- taking ---- */

static struct row *oldest(const struct queue *q)
{
	struct row *s = TAILQ_FIRST(&q->states), *e = TAILQ_FIRST(&q->events);

	if (!s || !e)
		return s ? s : e;
	return s->seq < e->seq ? s : e;
}

size_t queue_take(struct queue *q, struct row **ret, size_t max, size_t max_size)
{
	size_t n = 0, size = 0;
	struct row *r;

	while (n < max && size < max_size && (r = oldest(q))) {
		take_out(q, r);
		size += r->size;
		ret[n++] = r;
	}
	return n;
}

bool queue_empty(const struct queue *q)
{
	return !oldest(q);
}

uint64_t queue_oldest_seq(const struct queue *q)
{
	const struct row *r = oldest(q);

	return r ? r->seq : UINT64_MAX;
}

int64_t queue_oldest_ms(const struct queue *q)
{
	const struct row *r = oldest(q);

	return r ? r->since_ms : INT64_MAX;
}
