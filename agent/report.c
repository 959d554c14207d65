/* SPDX-License-Identifier: ISC */
/* Formats, and if that is too long formats less. The common case is one pass. */
#include "agent/report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "wire/heartbeat.h"

static int borrow_sessions(const struct session_list *l, struct heartbeat *h)
{
	h->sessions = calloc(l->count + 1, sizeof(*h->sessions));
	if (!h->sessions)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++) {
		const struct session *s = &l->items[i];

		h->sessions[i] = (struct heartbeat_session){
			.id = s->id,
			.user = s->user,
			.client = s->client ? s->client : "",
			.active = s->active,
			.since_ms = s->since_ms > 0 ? s->since_ms : 0,
		};
	}
	h->session_count = l->count;
	h->sessions_complete = l->complete;
	return 0;
}

static int borrow_logins(const struct login *waiting, size_t n, struct heartbeat *h)
{
	h->logins = calloc(n + 1, sizeof(*h->logins));
	if (!h->logins)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		h->logins[i] = waiting[i].user;
	h->login_count = n;
	return 0;
}

/* Fewer logins first: they can wait. */
static bool shrink(struct heartbeat *h)
{
	if (h->login_count > 0) {
		h->login_count /= 2;
	} else if (h->session_count > 0) {
		h->session_count /= 2;
		h->sessions_complete = false;
	} else {
		return false;
	}
	return true;
}

static int format_fitting(struct heartbeat *h, struct buf *out)
{
	do {
		buf_reset(out);
		heartbeat_format(h, out);
	} while (buf_error(out) == -EOVERFLOW && shrink(h));
	return buf_error(out);
}

int report_format(const struct report *r, struct buf *out, uint64_t *ret_serial)
{
	struct heartbeat h = {.seq = r->seq, .accepting = r->accepting};
	size_t waiting_count;
	const struct login *waiting = window_logins(r->window, &waiting_count);
	int error = borrow_sessions(r->sessions, &h);

	if (!error)
		error = borrow_logins(waiting, waiting_count, &h);
	if (!error) {
		text_copy(h.node, sizeof(h.node), r->node);
		text_copy(h.boot_id, sizeof(h.boot_id), r->boot_id);
		text_copy(h.agent_version, sizeof(h.agent_version), TERMBROKER_VERSION);
		window_average(r->window, r->now_boot_ms, &h);
		error = format_fitting(&h, out);
	}
	if (!error)
		*ret_serial = h.login_count > 0 ? waiting[h.login_count - 1].serial : 0;
	free(h.sessions);
	free(h.logins);
	return error;
}
