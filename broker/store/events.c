/* SPDX-License-Identifier: ISC */
/* One query of the journal: which statement, its parameters, and a row as the caller sees it. */
#include "store/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

static bool take_row(struct read *r, const PGresult *result, int i)
{
	struct events_read *e = (struct events_read *)r;
	struct event_row row = {
		.id = (uint64_t)row_i64(result, i, 0),
		.time_us = row_i64(result, i, 1),
		.dispatcher = row_text(result, i, 2),
		.level = row_text(result, i, 3),
		.name = row_text(result, i, 4),
		.provider = row_text(result, i, 5),
		.pool = row_text(result, i, 6),
		.node = row_text(result, i, 7),
		.params_json = row_text(result, i, 8),
	};

	e->row(e->answer.ctx, &row);
	return true;
}

static void read_done(struct read *r, int result, const struct fault *fault)
{
	struct events_read *e = (struct events_read *)r;

	e->answer.result = result;
	if (result < 0)
		err_set(&e->answer.why, 0, "could not read the journal: %s", fault->message.text);
	e->settled(e->owner, e);
}

static void add_number(struct read *r, uint64_t value)
{
	snprintf(r->values[r->count++], sizeof(r->values[0]), "%" PRIu64, value);
}

struct events_read *events_read_new(
	const struct event_query *q, store_event_row *row, store_done *done, void *ctx)
{
	struct events_read *e = calloc(1, sizeof(*e));
	struct read *r;

	if (!e)
		return NULL;
	e->answer = (struct answer){.done = done, .ctx = ctx, .asked = e, .free = free};
	e->row = row;
	r = &e->read;
	r->row = take_row;
	r->done = read_done;
	if (q->pool_id)
		r->statement = q->newest ? SQL_READ_NEWEST_POOL_EVENTS : SQL_READ_POOL_EVENTS;
	else
		r->statement = q->newest ? SQL_READ_NEWEST_EVENTS : SQL_READ_EVENTS;
	add_number(r, q->after <= INT64_MAX ? q->after : INT64_MAX);
	snprintf(r->values[r->count++], sizeof(r->values[0]), "%s", event_level_name(q->level));
	add_number(r, q->limit < 1 ? 1 : q->limit > 1000 ? 1000 : q->limit);
	if (q->pool_id) {
		add_number(r, q->pool_id);
		add_number(r, q->provider_id);
	}
	return e;
}
