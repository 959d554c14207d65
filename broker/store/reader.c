/* SPDX-License-Identifier: ISC */
/*
 * Reads wait in order; the first is on the connection (`sent`). A turn handles ROWS_PER_TURN rows
 * at most and then lets the loop go round. Preparing uses pipeline mode once, then the mode is
 * left: single-row mode without a pipeline is simpler to stop half-way.
 */
#include "store/reader.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"

#define ROWS_PER_TURN 1000
/* PostgreSQL counts from 2000-01-01. */
#define EPOCH_US (INT64_C(946684800) * 1000000)

TAILQ_HEAD(read_list, read);

struct reader {
	struct event_base *base;
	int64_t timeout_ms;
	const struct reader_handler *handler;
	void *ctx;
	PGconn *conn;
	struct event *readable, *writable;
	struct loop_timer *timer;
	struct read_list reads;
	bool open, preparing, sent;
	int64_t progress_ms; /* when the first read last saw a row */
	int64_t sent_ms;     /* when it was sent */
	int result;	     /* of the first read, so far */
	struct fault fault;
};

static void turn(struct reader *r);

static void timed_out(void *ctx);

struct reader *reader_new(struct event_base *base, int64_t timeout_ms,
	const struct reader_handler *handler, void *ctx)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct reader){
		.base = base, .timeout_ms = timeout_ms, .handler = handler, .ctx = ctx};
	TAILQ_INIT(&r->reads);
	r->timer = loop_timer_new(base, timed_out, r);
	if (!r->timer) {
		free(r);
		return NULL;
	}
	return r;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	reader_close(r);
	loop_timer_free(r->timer);
	free(r);
}

static void end_first(struct reader *r, int result, const struct fault *fault)
{
	struct read *first = TAILQ_FIRST(&r->reads);

	TAILQ_REMOVE(&r->reads, first, link);
	r->sent = false;
	first->done(first, result, fault);
}

static void stop(struct reader *r, int result, const struct fault *fault)
{
	r->open = false;
	loop_timer_disarm(r->timer);
	if (r->readable)
		event_free(r->readable);
	if (r->writable)
		event_free(r->writable);
	r->readable = r->writable = NULL;
	while (!TAILQ_EMPTY(&r->reads))
		end_first(r, result, fault);
}

void reader_close(struct reader *r)
{
	struct fault fault = {0};

	err_set(&fault.message, 0, "the connection was closed");
	stop(r, -ENOTCONN, &fault);
	PQfinish(r->conn);
	r->conn = NULL;
}

static void lose(struct reader *r, int result, const struct fault *fault)
{
	if (!r->open)
		return;
	stop(r, result, fault);
	r->handler->lost(r->ctx, fault);
}

static void lose_connection(struct reader *r)
{
	struct fault fault = r->fault;

	if (fault.message.text[0] == '\0')
		fault_from(&fault, NULL, r->conn);
	lose(r, -ENOTCONN, &fault);
}

static int64_t deadline(const struct reader *r)
{
	const struct read *first = TAILQ_FIRST(&r->reads);

	if (!first || first->progressing)
		return r->progress_ms + r->timeout_ms;
	return r->sent_ms + r->timeout_ms;
}

static void arm(struct reader *r)
{
	int64_t left = deadline(r) - clock_mono_ms();

	loop_timer_arm(r->timer, left > 0 ? left : 0);
}

static void timed_out(void *ctx)
{
	struct reader *r = ctx;
	struct fault fault = {.sqlstate = "57014"};

	if (clock_mono_ms() < deadline(r)) {
		arm(r);
		return;
	}
	err_set(&fault.message, 0, "no answer within %lld ms", (long long)r->timeout_ms);
	lose(r, -ETIMEDOUT, &fault);
}

/* ---- sending ---- */

static void flush(struct reader *r)
{
	if (PQflush(r->conn) != 0)
		event_add(r->writable, NULL);
}

/* Those that waited too long for their turn: slow ones were before them. */
static void drop_late(struct reader *r)
{
	int64_t oldest = clock_mono_ms() - r->timeout_ms;
	struct fault fault = {.sqlstate = "57014"};
	struct read *first;

	err_set(&fault.message, 0, "too many slow reads wait");
	while ((first = TAILQ_FIRST(&r->reads)) && !first->progressing && first->queued_ms < oldest)
		end_first(r, -ETIMEDOUT, &fault);
}

static void send_next(struct reader *r)
{
	struct read *first;
	const char *values[READ_PARAMS_MAX];

	if (!r->open || r->preparing || r->sent)
		return;
	drop_late(r);
	first = TAILQ_FIRST(&r->reads);
	if (!first)
		return;
	for (int i = 0; i < first->count; i++)
		values[i] = first->values[i];
	r->result = 0;
	memset(&r->fault, 0, sizeof(r->fault));
	if (PQsendQueryPrepared(r->conn, statement_name(first->statement), first->count, values,
		    NULL, NULL, 1) != 1 ||
		PQsetSingleRowMode(r->conn) != 1) {
		lose_connection(r);
		return;
	}
	r->sent = true;
	r->progress_ms = r->sent_ms = clock_mono_ms();
	arm(r);
	flush(r);
}

bool reader_send(struct reader *r, struct read *read)
{
	if (!r->open)
		return false;
	read->queued_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&r->reads, read, link);
	/* Sent by the loop, so that nothing is told from inside this call. */
	event_active(r->readable, EV_READ, 0);
	return true;
}

/* ---- receiving ---- */

static void end_read(struct reader *r)
{
	struct fault fault = r->fault;

	loop_timer_disarm(r->timer);
	end_first(r, r->result, &fault);
}

static void take_result(struct reader *r, const PGresult *result)
{
	struct read *first = TAILQ_FIRST(&r->reads);

	switch (PQresultStatus(result)) {
	case PGRES_SINGLE_TUPLE:
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
		for (int i = 0; i < PQntuples(result) && r->result == 0; i++) {
			if (first->row && !first->row(first, result, i)) {
				r->result = -EIO;
				err_set(&r->fault.message, 0, "a row of %s cannot be understood",
					statement_name(first->statement));
			}
		}
		break;
	default:
		fault_from(&r->fault, result, r->conn);
		r->result = fault_result(r->fault.sqlstate);
	}
}

static void take_prepared(struct reader *r, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_PIPELINE_SYNC) {
		r->preparing = false;
		loop_timer_disarm(r->timer);
		if (r->fault.message.text[0] || PQexitPipelineMode(r->conn) != 1)
			lose_connection(r);
		else
			r->handler->ready(r->ctx);
	} else if (result && status == PGRES_FATAL_ERROR) {
		fault_from(&r->fault, result, r->conn);
	}
}

/* True when there is more to do without reading from the socket. */
static bool take_results(struct reader *r)
{
	for (int i = 0; i < ROWS_PER_TURN; i++) {
		PGresult *result;

		if (!r->open || !(r->preparing || r->sent) || PQisBusy(r->conn))
			return false;
		result = PQgetResult(r->conn);
		if (r->preparing)
			take_prepared(r, result);
		else if (result)
			take_result(r, result);
		else
			end_read(r);
		PQclear(result);
		if (r->open && PQstatus(r->conn) == CONNECTION_BAD) {
			lose_connection(r);
			return false;
		}
		send_next(r);
	}
	return true;
}

static void turn(struct reader *r)
{
	bool alive = PQconsumeInput(r->conn);
	bool more;

	r->progress_ms = clock_mono_ms();
	send_next(r);
	more = take_results(r);
	if (!r->open)
		return;
	if (!alive)
		lose_connection(r);
	else if (more)
		event_active(r->readable, EV_READ, 0);
	else
		flush(r);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	turn(arg);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

int reader_open(struct reader *r, PGconn *conn)
{
	reader_close(r);
	r->conn = conn;
	memset(&r->fault, 0, sizeof(r->fault));
	r->readable = event_new(r->base, PQsocket(conn), EV_READ | EV_PERSIST, on_readable, r);
	r->writable = event_new(r->base, PQsocket(conn), EV_WRITE, on_writable, r);
	if (!r->readable || !r->writable || event_add(r->readable, NULL) < 0 ||
		PQenterPipelineMode(conn) != 1)
		goto fail;
	for (int i = SQL_WRITER_END; i < SQL_END; i++) {
		if (PQsendPrepare(conn, statement_name(i), statement_text(i), 0, NULL) != 1)
			goto fail;
	}
	if (PQpipelineSync(conn) != 1)
		goto fail;
	r->open = r->preparing = true;
	r->sent = false;
	r->progress_ms = clock_mono_ms();
	arm(r);
	flush(r);
	return 0;
fail:
	reader_close(r);
	return -EIO;
}

/* ---- values ---- */

const char *row_text(const PGresult *r, int row, int column)
{
	return PQgetvalue(r, row, column);
}

bool row_null(const PGresult *r, int row, int column)
{
	return PQgetisnull(r, row, column);
}

bool row_bool(const PGresult *r, int row, int column)
{
	return PQgetlength(r, row, column) == 1 && PQgetvalue(r, row, column)[0] != 0;
}

int32_t row_i32(const PGresult *r, int row, int column)
{
	uint32_t value;

	if (PQgetlength(r, row, column) != sizeof(value))
		return 0;
	memcpy(&value, PQgetvalue(r, row, column), sizeof(value));
	return (int32_t)be32toh(value);
}

int64_t row_i64(const PGresult *r, int row, int column)
{
	uint64_t value;

	if (PQgetlength(r, row, column) != sizeof(value))
		return 0;
	memcpy(&value, PQgetvalue(r, row, column), sizeof(value));
	return (int64_t)be64toh(value);
}

int64_t row_time_us(const PGresult *r, int row, int column)
{
	int64_t us;

	if (row_null(r, row, column))
		return 0;
	us = row_i64(r, row, column);
	/* 'infinity' and its like */
	return us > INT64_MAX - EPOCH_US ? INT64_MAX : us < INT64_MIN + 1 ? 0 : us + EPOCH_US;
}
