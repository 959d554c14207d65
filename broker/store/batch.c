/* SPDX-License-Identifier: ISC */
/*
 * Rows are sorted by kind and key: two dispatchers lock the same rows in the same order. The part
 * that is sent is a range of rows; a stack of ranges holds what is still to be written, the next
 * one on top. When the database refuses a range for its content the range is halved, down to the
 * one bad row, which is dropped and told. A range that got no answer stays on the stack: all
 * statements may run twice.
 */
#include "store/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/array.h"
#include "store/batch_rows.h"

#define ROWS_MAX 8192
#define TEXT_MAX ((size_t)16 << 20)
#define RANGES_MAX 16 /* log2(ROWS_MAX) halvings and some */
#define RETRIES_MAX 8 /* deadlocks of one range in a row, before the connection is suspected */

struct range {
	size_t from, to;
};

struct batch {
	struct segment segment;
	struct batch_rows rows; /* builder of the arrays */
	const struct batch_handler *handler;
	void *ctx;
	struct row **row; /* ROWS_MAX; NULL when settled */
	size_t count;
	struct range ranges[RANGES_MAX];
	size_t range_count;
	uint64_t oldest_seq;
	int64_t oldest_ms;
	unsigned deadlocks;
	uint64_t retries;
	bool in_flight;
};

static const struct segment_class batch_class;

struct batch *batch_new(const char *dispatcher, const struct batch_handler *handler, void *ctx)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->handler = handler;
	b->ctx = ctx;
	b->segment.class = &batch_class;
	b->oldest_seq = UINT64_MAX;
	b->oldest_ms = INT64_MAX;
	batch_rows_init(&b->rows, dispatcher);
	b->row = calloc(ROWS_MAX, sizeof(*b->row));
	if (!b->row) {
		batch_free(b);
		return NULL;
	}
	return b;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; b->row && i < b->count; i++)
		row_free(b->row[i]);
	batch_rows_deinit(&b->rows);
	free(b->row);
	free(b);
}

bool batch_is_empty(const struct batch *b)
{
	return b->range_count == 0;
}

bool batch_in_flight(const struct batch *b)
{
	return b->in_flight;
}

uint64_t batch_oldest_seq(const struct batch *b)
{
	return b->oldest_seq;
}

int64_t batch_oldest_ms(const struct batch *b)
{
	return b->oldest_ms;
}

uint64_t batch_retries(const struct batch *b)
{
	return b->retries;
}

void batch_take(struct batch *b, struct queue *q)
{
	b->oldest_seq = queue_oldest_seq(q);
	b->oldest_ms = queue_oldest_ms(q);
	b->count = queue_take(q, b->row, ROWS_MAX, TEXT_MAX);
	if (b->count == 0)
		return;
	qsort(b->row, b->count, sizeof(*b->row), batch_rows_compare);
	b->ranges[0] = (struct range){0, b->count};
	b->range_count = 1;
	b->deadlocks = 0;
}

void batch_forget_node(struct batch *b, const struct node *node)
{
	for (size_t i = 0; i < b->count && (!b->row[i] || b->row[i]->kind == ROW_NODE); i++) {
		struct node_row *r = (struct node_row *)b->row[i];

		if (r && r->node == node)
			r->node = NULL;
	}
}

bool batch_send(struct batch *b, struct pipeline *p)
{
	b->in_flight = pipeline_send(p, &b->segment);
	return b->in_flight;
}

static bool send_range(struct segment *s, PGconn *conn)
{
	struct batch *b = (struct batch *)s;
	const struct range *r = &b->ranges[b->range_count - 1];

	return batch_rows_send(&b->rows, b->row + r->from, r->to - r->from, conn);
}

/* Frees the rows of the top range; returns how many events were among them. */
static size_t settle(struct batch *b)
{
	struct range r = b->ranges[--b->range_count];
	size_t events = 0;

	for (size_t i = r.from; i < r.to; i++) {
		events += b->row[i]->kind == ROW_EVENT;
		row_free(b->row[i]);
		b->row[i] = NULL;
	}
	b->deadlocks = 0;
	if (b->range_count == 0) {
		b->count = 0;
		b->oldest_seq = UINT64_MAX;
		b->oldest_ms = INT64_MAX;
	}
	return events;
}

static void refuse(struct batch *b, const struct fault *fault)
{
	struct range *top = &b->ranges[b->range_count - 1];
	struct err what, text;
	size_t middle;

	if (top->to - top->from == 1) {
		batch_rows_describe(b->row[top->from], &what);
		err_set(&text, 0, "%s was not written: %s", what.text, fault->message.text);
		settle(b);
		b->handler->refused(b->ctx, text.text);
		return;
	}
	middle = top->from + (top->to - top->from) / 2;
	b->ranges[b->range_count++] = (struct range){top->from, middle};
	top->from = middle;
	b->retries++;
}

static void answered(struct segment *s, enum segment_end end, const struct fault *fault)
{
	struct batch *b = (struct batch *)s;
	int64_t took_us = clock_mono_us() - s->sent_us;
	size_t rows = b->ranges[b->range_count - 1].to - b->ranges[b->range_count - 1].from;
	enum fault_kind kind;

	b->in_flight = false;
	if (end == SEGMENT_COMMITTED) {
		size_t events = settle(b);

		b->handler->progress(b->ctx, rows, events, took_us);
		return;
	}
	if (end == SEGMENT_LOST) {
		b->retries++;
		return;
	}
	kind = fault_kind_of(fault->sqlstate);
	if (kind == FAULT_ROW) {
		refuse(b, fault);
	} else {
		b->retries++;
		if (kind == FAULT_LOST || ++b->deadlocks >= RETRIES_MAX) {
			b->deadlocks = 0;
			b->handler->broken(b->ctx, fault);
			return;
		}
	}
	b->handler->progress(b->ctx, 0, 0, took_us);
}

static const struct segment_class batch_class = {.send = send_range, .done = answered};
