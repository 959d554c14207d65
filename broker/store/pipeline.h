/* SPDX-License-Identifier: ISC */
/*
 * The writing connection in pipeline mode: segments go out one behind the other, each ends with a
 * sync and is one implicit transaction; answers come in the same order.
 */
#pragma once

#include <event2/event.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "store/sqlstate.h"
#include "store/statements.h"

struct segment;

enum segment_end {
	SEGMENT_COMMITTED,
	SEGMENT_REFUSED, /* rolled back; FAULT says why */
	SEGMENT_LOST,	 /* the connection ended before the answer: unknown whether done */
};

struct segment_class {
	/* Queues its statements with segment_query. False: it could not. */
	bool (*send)(struct segment *s, PGconn *conn);
	/* Statement INDEX (0, 1, …) succeeded with RESULT. May be NULL. */
	void (*result)(struct segment *s, unsigned index, const PGresult *result);
	/* The last word. The segment may be freed or queued again. */
	void (*done)(struct segment *s, enum segment_end end, const struct fault *fault);
};

struct segment {
	const struct segment_class *class;
	TAILQ_ENTRY(segment) link;
	int64_t sent_us;
	bool failed;
	struct fault fault;
};

struct pipeline;

struct pipeline_handler {
	/* Every statement is prepared. */
	void (*ready)(void *ctx);
	/* The connection is of no use any more; every segment has been told. The handler calls
	 * pipeline_close in a later turn of the loop. FAULT: of preparing, or of the connection. */
	void (*lost)(void *ctx, const struct fault *fault);
};

struct pipeline *pipeline_new(struct event_base *base, int64_t timeout_ms,
	const struct pipeline_handler *handler, void *ctx);
void pipeline_free(struct pipeline *p);
/* Takes CONN over and prepares the statements. 0 or -EIO (CONN is closed). */
int pipeline_open(struct pipeline *p, PGconn *conn);
/* Closes the connection; segments under way are told that they are lost. */
void pipeline_close(struct pipeline *p);
/* Sends S; its DONE is called later, never inside. False: the connection is lost (S was not taken).
 */
bool pipeline_send(struct pipeline *p, struct segment *s);
/* Segments sent and not answered. */
size_t pipeline_in_flight(const struct pipeline *p);

/* For the SEND of a class: one prepared statement with COUNT text parameters. */
bool segment_query(PGconn *conn, enum statement statement, size_t count, const char *const *values);
