/* SPDX-License-Identifier: ISC */
/*
 * When to push, to whom, and what the answer means.
 *
 * One heartbeat an interval, the first at a random moment of it so that a thousand agents do not
 * come at once. A dispatcher that fails is followed at once by the next; when all have failed, a
 * pause that doubles, with jitter. A refusal that another try cannot mend (wrong token, duplicate
 * agent) is retried slowly. Each trouble is logged when it begins or changes, and when it is over.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "agent/config.h"
#include "base/buf.h"

/* Where heartbeats come from. */
struct push_source {
	void *ctx;
	/* Puts a heartbeat into OUT; *ret_serial: the last login in it. 0 or a negative errno. */
	int (*build)(void *ctx, struct buf *out, uint64_t *ret_serial);
	/* A dispatcher has all logins up to SERIAL. */
	void (*acknowledged)(void *ctx, uint64_t serial);
	/* What it said. */
	void (*answered)(void *ctx, const struct heartbeat_reply *reply);
};

struct push;

/* C gives dispatchers, trust, token and intervals; it is not kept. 0, or a negative errno with
 * words. */
int push_new(struct event_base *base, const struct config *c, const struct push_source *source,
	struct push **ret, struct err *e);
void push_free(struct push *p);
/* Pushes for the first time after a random part of the interval, FIRST_MS at the earliest. */
void push_start(struct push *p, int64_t first_ms);

/* The pause before try N (from 0) of the whole list: 1 s doubled to 30 s, the upper half of it
 * random. */
int64_t push_backoff_ms(unsigned n, uint64_t random);
