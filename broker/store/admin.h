/* SPDX-License-Identifier: ISC */
/*
 * Administrative changes: each is one segment of the pipeline, thus one transaction, together with
 * its event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "store/answer.h"
#include "store/pipeline.h"
#include "store/queue.h"
#include "store/store.h"

enum operation_kind {
	OPERATION_PROVIDER,
	OPERATION_POOL,
	OPERATION_NODE,
	OPERATION_TOKEN,
	OPERATION_REMOVE,
	OPERATION_FORGET_SESSION,
};

struct operation {
	struct segment segment;
	TAILQ_ENTRY(operation) link; /* while it waits to be sent */
	enum operation_kind kind;
	union {
		struct provider_spec provider;
		struct pool_spec pool;
		struct node_spec node;
		enum store_kind removed;
		char session[LIMIT_SESSION_ID_SIZE];
	} of;
	struct token_spec token; /* of OPERATION_TOKEN, or of a new node */
	bool has_token;
	struct token_spec *new_token; /* of the caller: told its ids; NULL: none */
	uint32_t new_token_id;
	uint32_t id;			/* of the object; 0: to be created */
	struct event_row_queued *event; /* NULL: none */
	const char *dispatcher;
	bool found;
	struct answer answer;
	/* Its answer is complete. */
	void (*settled)(void *owner, struct operation *op);
	void *owner;
};

TAILQ_HEAD(operation_list, operation);

/* A zeroed operation of KIND with the event of EV (may be NULL); NULL: no memory. */
struct operation *operation_new(enum operation_kind kind, struct queue *q, const struct event *ev,
	store_done *done, void *ctx);
void operation_free(struct operation *op);
