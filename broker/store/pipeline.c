/* SPDX-License-Identifier: ISC */
/*
 * Segments wait in the order they were sent; the first one is being answered. Results belong to it
 * until the sync arrives, which alone says that it was committed: an error may come behind the last
 * statement's own success. The timer bounds the wait for the first segment's sync.
 *
 * lose() is the only way out: it closes nothing (we may be inside a callback of the socket's
 * event) but stops the events and tells the segments, then the handler.
 */
#include "store/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"

TAILQ_HEAD(segment_list, segment);

struct pipeline {
	struct event_base *base;
	int64_t timeout_ms;
	const struct pipeline_handler *handler;
	void *ctx;
	PGconn *conn;
	struct event *readable, *writable;
	struct loop_timer *timer;
	struct segment_list sent;
	size_t in_flight;
	unsigned index; /* statement of the first segment that is being answered */
	bool lost;
	struct segment prepare;
};

static void pump_out(struct pipeline *p);

static void timed_out(void *ctx);

struct pipeline *pipeline_new(struct event_base *base, int64_t timeout_ms,
	const struct pipeline_handler *handler, void *ctx)
{
	struct pipeline *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct pipeline){.base = base,
		.timeout_ms = timeout_ms,
		.handler = handler,
		.ctx = ctx,
		.lost = true};
	TAILQ_INIT(&p->sent);
	p->timer = loop_timer_new(base, timed_out, p);
	if (!p->timer) {
		free(p);
		return NULL;
	}
	return p;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	pipeline_close(p);
	loop_timer_free(p->timer);
	free(p);
}

size_t pipeline_in_flight(const struct pipeline *p)
{
	return p->in_flight;
}

static void stop_events(struct pipeline *p)
{
	loop_timer_disarm(p->timer);
	if (p->readable)
		event_free(p->readable);
	if (p->writable)
		event_free(p->writable);
	p->readable = p->writable = NULL;
}

static void tell_lost(struct pipeline *p, const struct fault *fault)
{
	struct segment *s;

	while ((s = TAILQ_FIRST(&p->sent))) {
		TAILQ_REMOVE(&p->sent, s, link);
		p->in_flight--;
		s->class->done(s, SEGMENT_LOST, fault);
	}
}

static void lose(struct pipeline *p, const struct fault *fault)
{
	if (p->lost)
		return;
	p->lost = true;
	stop_events(p);
	tell_lost(p, fault);
	p->handler->lost(p->ctx, fault);
}

/* The server's own last words, if it had time for them, tell more than "connection closed". */
static void lose_connection(struct pipeline *p)
{
	struct segment *first = TAILQ_FIRST(&p->sent);
	struct fault fault;

	if (first && first->failed)
		fault = first->fault;
	else
		fault_from(&fault, NULL, p->conn);
	lose(p, &fault);
}

static void timed_out(void *ctx)
{
	struct pipeline *p = ctx;
	struct fault fault = {.sqlstate = "57014"};

	err_set(&fault.message, 0, "no answer within %lld ms", (long long)p->timeout_ms);
	lose(p, &fault);
}

void pipeline_close(struct pipeline *p)
{
	struct fault fault = {0};

	p->lost = true;
	err_set(&fault.message, 0, "the connection was closed");
	stop_events(p);
	tell_lost(p, &fault);
	PQfinish(p->conn);
	p->conn = NULL;
}

/* ---- answers ---- */

static void end_segment(struct pipeline *p)
{
	struct segment *s = TAILQ_FIRST(&p->sent);

	TAILQ_REMOVE(&p->sent, s, link);
	p->in_flight--;
	p->index = 0;
	if (p->in_flight > 0)
		loop_timer_arm(p->timer, p->timeout_ms);
	else
		loop_timer_disarm(p->timer);
	s->class->done(s, s->failed ? SEGMENT_REFUSED : SEGMENT_COMMITTED, &s->fault);
}

static void take_result(struct pipeline *p, const PGresult *r)
{
	struct segment *s = TAILQ_FIRST(&p->sent);

	switch (PQresultStatus(r)) {
	case PGRES_PIPELINE_SYNC:
		end_segment(p);
		break;
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
		if (s->class->result)
			s->class->result(s, p->index, r);
		break;
	case PGRES_PIPELINE_ABORTED:
		break;
	default:
		if (!s->failed)
			fault_from(&s->fault, r, p->conn);
		s->failed = true;
	}
}

static void read_results(struct pipeline *p)
{
	while (!p->lost && p->in_flight > 0 && !PQisBusy(p->conn)) {
		PGresult *r = PQgetResult(p->conn);

		if (!r)
			p->index++;
		else
			take_result(p, r);
		PQclear(r);
		if (!p->lost && PQstatus(p->conn) == CONNECTION_BAD)
			lose_connection(p);
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct pipeline *p = arg;
	bool alive = PQconsumeInput(p->conn);

	/* What arrived before the end still counts. */
	read_results(p);
	if (p->lost)
		return;
	if (!alive || PQstatus(p->conn) == CONNECTION_BAD)
		lose_connection(p);
	else
		pump_out(p);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	pump_out(arg);
}

static void pump_out(struct pipeline *p)
{
	int left = PQflush(p->conn);

	if (left < 0)
		lose_connection(p);
	else if (left > 0)
		event_add(p->writable, NULL);
}

/* ---- sending ---- */

bool segment_query(PGconn *conn, enum statement statement, size_t count, const char *const *values)
{
	return PQsendQueryPrepared(
		       conn, statement_name(statement), (int)count, values, NULL, NULL, 0) == 1;
}

bool pipeline_send(struct pipeline *p, struct segment *s)
{
	if (p->lost)
		return false;
	s->failed = false;
	s->sent_us = clock_mono_us();
	memset(&s->fault, 0, sizeof(s->fault));
	if (!s->class->send(s, p->conn) || PQpipelineSync(p->conn) != 1) {
		/* Half a segment must not reach the server's sync of the next: this connection ends
		 * here. */
		event_active(p->readable, EV_READ, 0);
		shutdown(PQsocket(p->conn), SHUT_RDWR);
		return false;
	}
	TAILQ_INSERT_TAIL(&p->sent, s, link);
	if (p->in_flight++ == 0)
		loop_timer_arm(p->timer, p->timeout_ms);
	/* An error shows when the loop reads: nothing is told from inside this call. */
	if (PQflush(p->conn) != 0)
		event_add(p->writable, NULL);
	return true;
}

static bool prepare_send(struct segment *s, PGconn *conn)
{
	for (int i = 0; i < SQL_WRITER_END; i++) {
		if (PQsendPrepare(conn, statement_name(i), statement_text(i), 0, NULL) != 1)
			return false;
	}
	return true;
}

static void prepare_done(struct segment *s, enum segment_end end, const struct fault *fault)
{
	struct pipeline *p = (struct pipeline *)((char *)s - offsetof(struct pipeline, prepare));

	if (end == SEGMENT_COMMITTED)
		p->handler->ready(p->ctx);
	else if (end == SEGMENT_REFUSED)
		lose(p, fault);
}

static const struct segment_class prepare_class = {.send = prepare_send, .done = prepare_done};

int pipeline_open(struct pipeline *p, PGconn *conn)
{
	pipeline_close(p);
	p->conn = conn;
	p->index = 0;
	p->readable = event_new(p->base, PQsocket(conn), EV_READ | EV_PERSIST, on_readable, p);
	p->writable = event_new(p->base, PQsocket(conn), EV_WRITE, on_writable, p);
	if (!p->readable || !p->writable || event_add(p->readable, NULL) < 0 ||
		PQenterPipelineMode(conn) != 1)
		goto fail;
	p->lost = false;
	p->prepare = (struct segment){.class = &prepare_class};
	if (pipeline_send(p, &p->prepare))
		return 0;
fail:
	pipeline_close(p);
	return -EIO;
}
