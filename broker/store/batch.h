/* SPDX-License-Identifier: ISC */
/*
 * The batch: rows taken from the queue, written in one transaction. At most one exists; it stays
 * until every row is committed or given up, through any number of lost connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/pipeline.h"
#include "store/queue.h"

struct batch;

struct batch_handler {
	/* What was sent is settled; batch_is_empty tells whether all is. EVENTS of them were
	 * written. */
	void (*progress)(void *ctx, size_t rows, size_t events, int64_t took_us);
	/* The database refused this one row for its content: it is gone. */
	void (*refused)(void *ctx, const char *what);
	/* An error that is no row's fault: the connection must be renewed. */
	void (*broken)(void *ctx, const struct fault *fault);
};

struct batch *batch_new(const char *dispatcher, const struct batch_handler *handler, void *ctx);
void batch_free(struct batch *b);
/* Fills an empty batch. */
void batch_take(struct batch *b, struct queue *q);
bool batch_is_empty(const struct batch *b);
bool batch_in_flight(const struct batch *b);
/* Sends it or, after a refusal, the next part of it. */
bool batch_send(struct batch *b, struct pipeline *p);
/* NODE is about to be freed. */
void batch_forget_node(struct batch *b, const struct node *node);
/* The lowest sequence and time of its rows; UINT64_MAX, INT64_MAX when empty. */
uint64_t batch_oldest_seq(const struct batch *b);
int64_t batch_oldest_ms(const struct batch *b);
uint64_t batch_retries(const struct batch *b);
