/* SPDX-License-Identifier: ISC */
/*
 * The event loop: one thread, epoll with changelist (which doubles evhttp's rate; no descriptor is
 * ever dup'ed, which is what the changelist forbids).
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

/* NULL when there is no memory. The caller frees with event_base_free. */
struct event_base *loop_new(void);

typedef void loop_callback(void *ctx);

/* A timer that calls CALLBACK on the loop. Not armed at first. NULL when there is no memory. */
struct loop_timer *loop_timer_new(struct event_base *base, loop_callback *callback, void *ctx);
void loop_timer_free(struct loop_timer *t);
/* Fires once, DELAY_MS from now; arming again moves it. */
void loop_timer_arm(struct loop_timer *t, int64_t delay_ms);
void loop_timer_disarm(struct loop_timer *t);

/* Calls CALLBACK for each SIGNO on the loop. NULL when there is no memory. */
struct loop_signal *loop_signal_new(struct event_base *base, int signo, loop_callback *callback,
	void *ctx);
void loop_signal_free(struct loop_signal *s);
