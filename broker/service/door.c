/* SPDX-License-Identifier: ISC */
/* What the door tells of its clients. A decision that refused was journalled when it was made. */
#include "base/clock.h"
#include "service/state.h"

void service_door_redirected(
	struct service *s, const struct caller *caller, const struct connect_result *r)
{
	struct event ev;

	if (r->error.status != SERVICE_OK) {
		s->counters.door_refused++;
		return;
	}
	s->counters.door_redirected++;
	emit_start_node(&ev, EVENT_DOOR_REDIRECTED, r->choice->node);
	ev.pool_id = r->pool->spec.id;
	ev.pool = r->pool->spec.name;
	event_param(&ev, "user", r->user);
	event_param(&ev, "client", caller->address);
	emit(s, &ev);
}

void service_door_failed(
	struct service *s, const char *client, const char *step, const char *reason)
{
	unsigned suppressed;
	struct event ev;

	s->counters.door_failed++;
	if (!log_limit_ok(&s->door_limit, 20, 60000, clock_mono_ms(), &suppressed))
		return;
	event_start(&ev, EVENT_DOOR_FAILED, clock_wall_us());
	event_param(&ev, "client", client);
	event_param(&ev, "step", step);
	event_param(&ev, "reason", reason);
	emit(s, &ev);
}
