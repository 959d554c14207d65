/* SPDX-License-Identifier: ISC */
/* Thin objects over libevent: one event each, freed with its object. */
#include "base/loop.h"

#include <stdlib.h>

struct loop_timer {
	struct event *event;
	loop_callback *callback;
	void *ctx;
};

struct loop_signal {
	struct event *event;
	loop_callback *callback;
	void *ctx;
};

struct event_base *loop_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (!config)
		return NULL;
	if (event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) == 0)
		base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;

	t->callback(t->ctx);
}

struct loop_timer *loop_timer_new(struct event_base *base, loop_callback *callback, void *ctx)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->callback = callback;
	t->ctx = ctx;
	t->event = evtimer_new(base, timer_fired, t);
	if (!t->event) {
		free(t);
		return NULL;
	}
	return t;
}

void loop_timer_free(struct loop_timer *t)
{
	if (!t)
		return;
	event_free(t->event);
	free(t);
}

void loop_timer_arm(struct loop_timer *t, int64_t delay_ms)
{
	struct timeval tv;

	if (delay_ms < 0)
		delay_ms = 0;
	tv.tv_sec = (time_t)(delay_ms / 1000);
	tv.tv_usec = (suseconds_t)(delay_ms % 1000 * 1000);
	evtimer_add(t->event, &tv);
}

void loop_timer_disarm(struct loop_timer *t)
{
	evtimer_del(t->event);
}

static void signal_fired(evutil_socket_t signo, short what, void *arg)
{
	struct loop_signal *s = arg;

	s->callback(s->ctx);
}

struct loop_signal *loop_signal_new(
	struct event_base *base, int signo, loop_callback *callback, void *ctx)
{
	struct loop_signal *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->callback = callback;
	s->ctx = ctx;
	s->event = evsignal_new(base, signo, signal_fired, s);
	if (!s->event || evsignal_add(s->event, NULL) != 0) {
		loop_signal_free(s);
		return NULL;
	}
	return s;
}

void loop_signal_free(struct loop_signal *s)
{
	if (!s)
		return;
	if (s->event)
		event_free(s->event);
	free(s);
}
