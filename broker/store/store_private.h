/* SPDX-License-Identifier: ISC */
/* The store's own struct, shared by its public face (store.c) and the life of its connections
 * (link.c). */
#pragma once

#include "base/loop.h"
#include "store/admin.h"
#include "store/answer.h"
#include "store/batch.h"
#include "store/connect.h"
#include "store/events.h"
#include "store/load.h"
#include "store/pipeline.h"
#include "store/queue.h"
#include "store/reader.h"
#include "store/store.h"
#include "store/targets.h"

/* One after the other; any failure leads back to LINK_DOWN. */
enum link_state {
	LINK_DOWN,	     /* waits for the next attempt */
	LINK_CONNECT_WRITER, /* host by host */
	LINK_PREPARE_WRITER,
	LINK_CONNECT_READER, /* to the same address */
	LINK_PREPARE_READER,
	LINK_DRAIN, /* writes what waited until drain_seq */
	LINK_LOAD,  /* nothing is written: what is loaded is one moment */
	LINK_UP,
};

struct barrier {
	TAILQ_ENTRY(barrier) link;
	struct store *store;
	struct loop_timer *timer;
	uint64_t seq; /* done when no row up to this waits */
	struct answer answer;
};

TAILQ_HEAD(barrier_list, barrier);

/* Calls that could not even be noted for want of memory. */
#define FAILED_CALLS 64

struct store {
	struct event_base *base;
	const struct store_handler *handler;
	void *ctx;
	struct store_handler handler_copy;
	int64_t statement_timeout_ms;
	char *dispatcher, *application;
	struct targets targets;

	enum link_state state;
	bool started, loaded_once;
	bool broken; /* to be closed in the next turn, for this reason: */
	bool broken_unusable;
	struct err broken_reason, told_reason;
	unsigned attempts; /* in a row without success */
	uint64_t drain_seq;
	struct connector *connector;
	struct pipeline *pipeline;
	struct reader *reader;
	struct load *load;
	struct loop_timer *retry;
	struct event *kick;
	struct loop_timer *numbers; /* until waiting numbers are due */

	struct queue queue;
	struct batch *batch;
	struct operation_list operations; /* wait to be sent */
	size_t operation_count;		  /* those and the ones under way */
	struct barrier_list barriers;	  /* by seq */
	struct answer_list answers;
	struct {
		store_done *done;
		void *ctx;
	} failed_calls[FAILED_CALLS];
	size_t failed_call_count;
	void (*on_events)(void *ctx);
	void *on_events_ctx;
	struct store_stats stats;
};

/* ---- link.c ---- */
int link_init(struct store *s, const struct store_config *config);
void link_deinit(struct store *s);
void link_start(struct store *s);
/* Whether writes may go out now. */
bool link_writes(const struct store *s);
/* Notes that the connections are of no use; closed by link_check. */
void link_break(struct store *s, bool unusable, const char *reason);
void link_check(struct store *s);
/* The queue may have been drained. */
void link_drained(struct store *s);

/* ---- store.c, for link.c ---- */
void store_kick(struct store *s);
/* Operations that wait fail: there is no database. */
void store_fail_operations(struct store *s, const char *reason);
