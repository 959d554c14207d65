/* SPDX-License-Identifier: ISC */
/*
 * The reading connection: prepared statements one after the other, row by row (single-row mode,
 * binary values), a bounded number of rows in each turn of the loop.
 */
#pragma once

#include <event2/event.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "store/sqlstate.h"
#include "store/statements.h"

#define READ_PARAMS_MAX 5

struct read {
	enum statement statement;
	int count; /* of parameters, as text */
	char values[READ_PARAMS_MAX][24];
	/* Whether the time limit runs from the last row instead of from the start. */
	bool progressing;
	/* Row I of RESULT. False: this row cannot be understood (ends the read with -EIO). */
	bool (*row)(struct read *r, const PGresult *result, int i);
	/* RESULT: 0 or as for store_done. R may be freed or sent again. */
	void (*done)(struct read *r, int result, const struct fault *fault);
	TAILQ_ENTRY(read) link;
	int64_t queued_ms;
};

struct reader;

struct reader_handler {
	void (*ready)(void *ctx);
	/* The connection is of no use any more; every read has been told. Closed in a later turn.
	 */
	void (*lost)(void *ctx, const struct fault *fault);
};

struct reader *reader_new(struct event_base *base, int64_t timeout_ms,
	const struct reader_handler *handler, void *ctx);
void reader_free(struct reader *r);
int reader_open(struct reader *r, PGconn *conn);
void reader_close(struct reader *r);
/* Queues READ; its DONE is called later, never inside. False: no connection. */
bool reader_send(struct reader *r, struct read *read);

/* ---- values of a row, binary ---- */
const char *row_text(const PGresult *r, int row, int column); /* "" for null */
bool row_null(const PGresult *r, int row, int column);
bool row_bool(const PGresult *r, int row, int column);
int32_t row_i32(const PGresult *r, int row, int column);
int64_t row_i64(const PGresult *r, int row, int column);
/* A moment as microseconds since 1970; 0 for null. */
int64_t row_time_us(const PGresult *r, int row, int column);
