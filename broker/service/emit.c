/* SPDX-License-Identifier: ISC */
/* Events on their way to every sink, and errors on their way to an asker. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "service/state.h"

bool emit_wanted(const struct service *s, enum event_id id)
{
	return event_level_of(id) >= s->config->journal.level;
}

void emit_local(struct service *s, const struct event *ev)
{
	if (emit_wanted(s, ev->id))
		journal_write(s->journal, ev);
}

void emit(struct service *s, const struct event *ev)
{
	if (!emit_wanted(s, ev->id))
		return;
	journal_write(s->journal, ev);
	store_write_event(s->store, ev);
}

void emit_start_node(struct event *ev, enum event_id id, const struct node *n)
{
	event_start(ev, id, clock_wall_us());
	ev->provider_id = n->provider->spec.id;
	ev->node_id = n->spec.id;
	event_param(ev, "node", n->spec.name);
	event_param(ev, "address", n->spec.address);
}

void emit_node(struct service *s, enum event_id id, const struct node *n)
{
	struct event ev;

	emit_start_node(&ev, id, n);
	emit(s, &ev);
}

void service_error_set(struct service_error *error, enum service_status status, const char *code,
	const char *fmt, ...)
{
	va_list ap;

	error->status = status;
	error->code = code;
	error->retry_after_s = 0;
	va_start(ap, fmt);
	vsnprintf(error->detail, sizeof(error->detail), fmt, ap);
	va_end(ap);
}
