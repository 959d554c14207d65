/* SPDX-License-Identifier: ISC */
/* The agent put together: collectors, window, push, and their timers. */
#pragma once

#include <event2/event.h>

#include "agent/config.h"
#include "base/buf.h"

struct agent;

/* With PUSHING: the window on disk and the push too, as the service needs; without: memory only,
 * for one report. Takes over C on success. 0 or a negative errno with words. */
int agent_new(
	struct event_base *base, struct config *c, bool pushing, struct agent **ret, struct err *e);
void agent_free(struct agent *a);
/* Begins to collect and to push. */
void agent_start(struct agent *a);
/* Takes C instead of the configuration before, or leaves everything as it was. Takes over C on
 * success. */
int agent_reload(struct agent *a, struct config *c, struct err *e);

/* For one report: collects twice, about a second apart (at once on a recorded tree), then calls
 * DONE on the loop. */
void agent_collect_once(struct agent *a, void (*done)(void *ctx), void *ctx);
/* The heartbeat of now. 0 or a negative errno. */
int agent_report(struct agent *a, struct buf *out);
