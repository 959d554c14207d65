/* SPDX-License-Identifier: ISC */
/* What the dispatcher answers. The agent trusts it as little as any other input. */
#include <errno.h>

#include "wire/heartbeat.h"
#include "wire/json.h"

#define PUSH_INTERVAL_MAX 3600

int heartbeat_reply_parse(const char *data, size_t len, struct heartbeat_reply *ret, struct err *e)
{
	AUTO_JSON struct json_object *o = NULL;
	struct json_object *topology = NULL;
	struct heartbeat_reply reply = {0};
	bool has_maintenance = false, has_interval = false, has_topology = false;
	uint64_t index = 0, interval = 0;
	int r = json_parse_object(data, len, &o, e);

	if (r == 0)
		r = json_get_u64(
			o, "load_index", 0, LOAD_INDEX_MAX, &index, &reply.has_load_index, e);
	if (r == 0)
		r = json_get_bool(o, "maintenance", &reply.maintenance, &has_maintenance, e);
	if (r == 0)
		r = json_get_u64(
			o, "push_interval", 1, PUSH_INTERVAL_MAX, &interval, &has_interval, e);
	if (r == 0)
		r = json_get_object(o, "topology", &topology, &has_topology, e);
	if (r == 0 && has_topology)
		r = topology_parse(topology, &reply.topology, e);
	if (r < 0)
		return r;
	if (!has_maintenance || !has_interval)
		return err_set(e, -EINVAL, "\"%s\" is missing",
			has_maintenance ? "push_interval" : "maintenance");
	reply.load_index = (uint32_t)index;
	reply.push_interval = (uint32_t)interval;
	*ret = reply;
	return 0;
}

void heartbeat_reply_format(const struct heartbeat_reply *r, struct buf *out)
{
	buf_addc(out, '{');
	if (r->has_load_index)
		json_add_member_u64(out, "load_index", r->load_index);
	json_add_member_bool(out, "maintenance", r->maintenance);
	json_add_member_u64(out, "push_interval", r->push_interval);
	if (r->topology.cluster_id[0]) {
		json_add_key(out, "topology");
		topology_format(&r->topology, out);
	}
	buf_addc(out, '}');
}
