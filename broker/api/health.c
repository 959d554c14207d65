/* SPDX-License-Identifier: ISC */
/*
 * /healthz: the loop turns. /readyz: this dispatcher can broker; a database that is away makes it
 * degraded, not unready, since answers come from memory.
 */
#include "api/handlers.h"
#include "wire/json.h"

void handle_healthz(struct request *r)
{
	buf_adds(request_out(r), "{\"status\":\"alive\"}");
	request_send(r, 200, CONTENT_JSON);
}

void handle_readyz(struct request *r)
{
	struct buf *b = request_out(r);
	struct service_info info;

	service_info(r->api->service, &info);
	buf_addc(b, '{');
	json_add_member_string(b, "status",
		!info.ready			  ? "unready"
		: !info.database_up || info.grace ? "degraded"
						  : "ready");
	json_add_member_bool(b, "ready", info.ready);
	json_add_member_string(b, "database", info.database_up ? "up" : "down");
	json_add_member_bool(b, "grace", info.grace);
	buf_addc(b, '}');
	if (!info.ready)
		request_add_header(r, "Retry-After", "2");
	request_send(r, info.ready ? 200 : 503, CONTENT_JSON);
}
