/* SPDX-License-Identifier: ISC */
/* GET /api/v1/status: what `termbroker status` shows. */
#include "api/handlers.h"
#include "wire/json.h"

static void add_nodes(struct buf *b, const struct service_info *info, size_t total)
{
	json_add_key(b, "nodes");
	buf_addc(b, '{');
	json_add_member_u64(b, "total", total);
	for (unsigned st = 0; st < NODE_STATE_COUNT; st++)
		json_add_member_u64(b, node_state_name(st), info->nodes[st]);
	buf_addc(b, '}');
}

void handle_status(struct request *r)
{
	struct buf *b = request_out(r);
	struct service_info info;
	struct fleet_counts counts;

	service_info(r->api->service, &info);
	fleet_counts(service_fleet(r->api->service), &counts);
	buf_addc(b, '{');
	json_add_member_string(b, "version", TERMBROKER_VERSION);
	json_add_member_string(b, "dispatcher", info.dispatcher);
	json_add_member_u64(b, "uptime_seconds", (uint64_t)info.uptime_s);
	json_add_member_bool(b, "ready", info.ready);
	json_add_member_string(b, "database", info.database_up ? "up" : "down");
	json_add_member_bool(b, "grace", info.grace);
	json_add_member_u64(b, "providers", counts.providers);
	json_add_member_u64(b, "pools", counts.pools);
	add_nodes(b, &info, counts.nodes);
	json_add_member_u64(b, "sessions", counts.sessions);
	json_add_member_u64(b, "users", counts.users);
	json_add_member_u64(b, "connections", r->api->connections);
	buf_addc(b, '}');
	request_send(r, 200, CONTENT_JSON);
}
