/* SPDX-License-Identifier: ISC */
/* The inside of the service, for the files of this folder alone. */
#pragma once

#include "base/log.h"
#include "base/loop.h"
#include "journal/journal.h"
#include "service/probe.h"
#include "service/service.h"
#include "wire/route_token.h"

#define DENIED_LIMITS 64

struct connect_call;
struct heartbeat_call;
struct admin_call;
struct unacked;

struct service {
	struct event_base *base;
	const struct config *config; /* borrowed */
	struct journal *journal;     /* borrowed */
	struct fleet *fleet;
	struct store *store;
	struct probes *probes;
	struct loop_timer *tick;

	service_fatal *fatal;
	void *fatal_ctx;
	void (*on_ready)(void *ctx, bool ready);
	void *on_ready_ctx;
	void (*on_stopped)(void *ctx);
	void *on_stopped_ctx;
	void (*on_events)(void *ctx);
	void *on_events_ctx;

	struct heartbeat_reply reply; /* holds the topology; refilled for each answer */
	int64_t started_ms;
	int64_t grace_until_ms; /* no node is judged silent before */
	int64_t lost_at_ms;	/* 0 = the database is there */
	bool loaded;		/* the fleet was loaded once: can broker */
	bool stopping;

	struct loading *loading;       /* ids seen by the load under way */
	struct connect_call *connects; /* waiting for a probe */
	struct admin_call *changes;    /* of an administrator, that the store has */
	struct unacked *unacked;       /* logins journalled but not acknowledged, by node */

	/* by the peer's address: one that floods must not hide another, nor know whom it would hide
	 */
	struct log_limit denied_limits[DENIED_LIMITS];
	uint64_t denied_seed;
	struct log_limit refused_limit, duplicate_limit, row_limit, door_limit;
	uint8_t route_key[ROUTE_KEY_SIZE];
	struct service_info counters; /* only the counting members are kept here */
};

/* ---- emit.c ---- */
/* Whether an event of this id goes anywhere: saves building it. */
bool emit_wanted(const struct service *s, enum event_id id);
/* To the file, syslog and the event table. */
void emit(struct service *s, const struct event *ev);
/* To the file and syslog alone: its row was written by the transaction it belongs to. */
void emit_local(struct service *s, const struct event *ev);
/* An event about a node: provider, node, and the parameters node and address. */
void emit_start_node(struct event *ev, enum event_id id, const struct node *n);
void emit_node(struct service *s, enum event_id id, const struct node *n);

/* Fills an error; the text is printf-style. */
void service_error_set(struct service_error *error, enum service_status status, const char *code,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- connect.c ---- */
/* Runs the waiting calls again after a probe ended. */
void connect_retry(struct service *s);

/* ---- heartbeat.c ---- */
void heartbeat_forget_node(struct service *s, uint32_t node_id);
void heartbeat_deinit_service(struct service *s);
/* Journals what a change of N's index or voice meant: node_event bits. */
void heartbeat_emit_bits(struct service *s, const struct node *n, unsigned bits);

/* ---- loading.c ---- */
const struct store_handler *loading_handler(void);
void loading_free(struct loading *l);

/* ---- admin.c ---- */
/* Recomputes the index of each node of P after a change of its rules. */
void admin_reindex_provider(struct service *s, struct provider *p);
void admin_reindex_node(struct service *s, struct node *n);

/* Before N is removed from the fleet: nothing may point to it. */
void admin_forget_node(struct service *s, struct node *n);

/* ---- service.c: the state of the database ---- */
void service_loaded(struct service *s, const char *cluster_id);
void service_lost(struct service *s, const char *reason);
void service_unusable(struct service *s, const char *reason);

/* ---- tick.c ---- */
void tick_run(void *ctx);
/* After the first load: the nodes that fell silent together before the start are still a mass
 * silence, of which was told. */
void tick_restore(struct service *s);
