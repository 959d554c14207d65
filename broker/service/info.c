/* SPDX-License-Identifier: ISC */
/* How it goes: states of nodes in one word, counters. */
#include <string.h>

#include "base/clock.h"
#include "service/state.h"

enum node_state service_node_state(const struct node *n)
{
	uint32_t flags = n->provider->farm.flags[n->slot];

	if (flags & FARM_DISABLED)
		return NODE_STATE_DISABLED;
	if (flags & FARM_DRAIN)
		return NODE_STATE_DRAIN;
	if (flags & FARM_NEVER_HEARD)
		return NODE_STATE_NEVER_HEARD;
	if (flags & FARM_SILENT)
		return NODE_STATE_SILENT;
	if (flags & FARM_NOT_ACCEPTING)
		return NODE_STATE_NOT_ACCEPTING;
	if (flags & FARM_STALE)
		return NODE_STATE_STALE;
	if (flags & (FARM_INDEX_FULL | FARM_CAPACITY_FULL))
		return NODE_STATE_FULL;
	if (flags & FARM_SUSPECT)
		return NODE_STATE_SUSPECT;
	return NODE_STATE_OK;
}

const char *node_state_name(enum node_state st)
{
	static const char *const names[NODE_STATE_COUNT] = {
		[NODE_STATE_DISABLED] = "disabled",
		[NODE_STATE_DRAIN] = "drain",
		[NODE_STATE_NEVER_HEARD] = "never_heard",
		[NODE_STATE_SILENT] = "silent",
		[NODE_STATE_NOT_ACCEPTING] = "not_accepting",
		[NODE_STATE_STALE] = "stale",
		[NODE_STATE_FULL] = "full",
		[NODE_STATE_SUSPECT] = "suspect",
		[NODE_STATE_OK] = "ok",
	};

	return names[st];
}

void service_info(struct service *s, struct service_info *ret)
{
	int64_t now_ms = clock_mono_ms();

	*ret = s->counters;
	ret->dispatcher = s->config->name;
	ret->uptime_s = (now_ms - s->started_ms) / 1000;
	ret->ready = s->loaded && !s->stopping;
	ret->database_up = store_is_up(s->store);
	ret->grace = now_ms < s->grace_until_ms;
	ret->journal_lost = journal_lost(s->journal);
	memset(ret->nodes, 0, sizeof(ret->nodes));
	for (const struct node *n = fleet_next_node(s->fleet, NULL); n;
		n = fleet_next_node(s->fleet, n))
		ret->nodes[service_node_state(n)]++;
}
