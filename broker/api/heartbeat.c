/* SPDX-License-Identifier: ISC */
/* POST /api/v1/heartbeat. What cannot be read is journalled by the service; the node keeps what it
 * had. */
#include <errno.h>

#include "api/handlers.h"
#include "api/problem.h"
#include "wire/heartbeat.h"

static void taken(void *ctx, const struct service_error *error, const struct heartbeat_reply *reply)
{
	struct request *r = ctx;

	if (error->status != SERVICE_OK) {
		if (!request_gone(r))
			request_fail_service(r, error);
	} else if (!request_gone(r)) {
		heartbeat_reply_format(reply, request_out(r));
		request_send(r, 200, CONTENT_JSON);
	}
	request_release(r);
}

void handle_heartbeat(struct request *r)
{
	struct heartbeat h = {0};
	struct err e;
	int rc = heartbeat_parse(r->body, r->body_len, &h, &e);

	if (rc == -ENOMEM) {
		request_fail(r, 503, "no_memory", "the dispatcher is out of memory");
		return;
	}
	if (rc < 0) {
		service_heartbeat_refused(r->api->service, &r->caller, e.text);
		if (rc == -E2BIG)
			request_fail(r, 413, "too_many_sessions", "%s", e.text);
		else
			request_fail(r, 400, "heartbeat_invalid", "%s", e.text);
		return;
	}
	request_hold(r);
	service_heartbeat(r->api->service, &r->caller, &h, taken, r);
	heartbeat_deinit(&h);
}
