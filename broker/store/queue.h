/* SPDX-License-Identifier: ISC */
/*
 * Rows that wait to be written. States (nodes, sessions) and events, each in the order they came.
 *
 * A node waits at most once and is read when the batch is made; a session waits at most once and
 * holds its newest state: so a queue never grows with time, only with what exists. Events are
 * bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "journal/event.h"
#include "model/fleet.h"

enum row_kind { ROW_NODE, ROW_SESSION_ENDED, ROW_SESSION, ROW_EVENT }; /* order within a batch */

struct row {
	TAILQ_ENTRY(row) link;
	enum row_kind kind;
	bool fresh;	  /* a session that the database has never been told of */
	uint64_t seq;	  /* of all rows queued */
	int64_t since_ms; /* monotonic */
	size_t size;	  /* bytes of text, roughly */
};

TAILQ_HEAD(row_list, row);

struct node_row {
	struct row row;
	const struct node *node; /* NULL: gone */
	UT_hash_handle hh;
};

struct session_row {
	struct row row;
	int64_t since_ms, first_seen_ms;
	bool active;
	const char *user_key, *display, *client; /* behind the id */
	UT_hash_handle hh; /* its key: node_id and id, which lie side by side */
	uint32_t key_len;
	uint32_t node_id;
	char id[]; /* then the other texts, each with a NUL */
};

#define REQUEST_ID_SIZE 37 /* UUID text */

struct event_row_queued {
	struct row row;
	char request_id[REQUEST_ID_SIZE];
	enum event_level level;
	const char *name;
	int64_t time_us;
	uint32_t provider_id, pool_id, node_id;
	char *pool; /* or NULL */
	char *params;
};

struct queue {
	struct row_list states, events;
	struct node_row *nodes;	      /* by node */
	struct session_row *sessions; /* by node id and session id */
	uint64_t seq;
	size_t node_count, session_count, event_count, event_max;
	uint64_t events_dropped, sessions_dropped;
	uint64_t request_prefix, request_count; /* the next request id */
};

void queue_init(struct queue *q, size_t event_max);
void queue_deinit(struct queue *q);

void queue_node(struct queue *q, const struct node *node, int64_t now_ms);
void queue_forget_node(struct queue *q, const struct node *node);
void queue_session(
	struct queue *q, enum session_change change, const struct session *s, int64_t now_ms);
/* Whether a newer state of the session waits than what the database has. */
bool queue_has_session(const struct queue *q, uint32_t node_id, const char *id);
/* Forgets a waiting state that is not an end. */
void queue_forget_session(struct queue *q, uint32_t node_id, const char *id);
void queue_event(struct queue *q, const struct event *ev, int64_t now_ms);

/* A copy of EV with a request id of its own; NULL when there is no memory. */
struct event_row_queued *queue_event_row(struct queue *q, const struct event *ev);

/* Takes the oldest rows out, at most MAX and about MAX_SIZE bytes of text. */
size_t queue_take(struct queue *q, struct row **ret, size_t max, size_t max_size);
void row_free(struct row *r);
bool queue_empty(const struct queue *q);
/* The oldest waiting row's number and time; UINT64_MAX and INT64_MAX when none waits. */
uint64_t queue_oldest_seq(const struct queue *q);
int64_t queue_oldest_ms(const struct queue *q);
