/* SPDX-License-Identifier: ISC */
/*
 * A node's voice: what its agent says, and when it falls silent (DESIGN §6).
 *
 * NEVER_HEARD and SILENT become HEARD at the second heartbeat in a row; HEARD becomes SILENT when
 * stale_after passes without one; nothing becomes NEVER_HEARD. Whoever changes a member ends in
 * node_refresh, the one writer of the farm's words about a node.
 */
#include "model/node.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "model/fleet_private.h"

#define STREAK_TO_BE_HEARD 2u
#define STREAK_CAP 1000u
#define NOT_FULL_BELOW (LOAD_INDEX_MAX - LOAD_INDEX_MAX / 20) /* 5 % */
#define OLD_BOOTS (sizeof(((struct node *)0)->old_boot_ids) / LIMIT_BOOT_ID_SIZE)

static bool ever_heard(const struct node *n)
{
	return n->boot_id[0] != '\0';
}

static uint32_t flags_of(const struct node *n)
{
	uint32_t flags = 0;

	if (n->spec.mode == ADMIN_DRAIN)
		flags |= FARM_DRAIN;
	if (n->spec.mode == ADMIN_DISABLED)
		flags |= FARM_DISABLED;
	if (n->voice == NODE_SILENT)
		flags |= FARM_SILENT;
	if (n->voice == NODE_NEVER_HEARD)
		flags |= FARM_NEVER_HEARD;
	/* Of a node that never said anything, neither the door nor the load is known. */
	if (ever_heard(n) && !n->accepting)
		flags |= FARM_NOT_ACCEPTING;
	if (ever_heard(n) && !n->has_index)
		flags |= FARM_STALE;
	if (ever_heard(n) && !n->heard_here)
		flags |= FARM_UNHEARD_SINCE_START;
	if (n->suspect_until_ms)
		flags |= FARM_SUSPECT;
	if (n->has_index && n->index >= LOAD_INDEX_MAX)
		flags |= FARM_INDEX_FULL;
	if (n->spec.max_sessions && n->session_count >= n->spec.max_sessions)
		flags |= FARM_CAPACITY_FULL;
	if (n->spec.tags.count)
		flags |= FARM_TAGGED;
	return flags;
}

void node_refresh(struct node *n)
{
	struct farm *f = &n->provider->farm;

	f->flags[n->slot] = (uint16_t)flags_of(n);
	f->index[n->slot] =
		n->has_index && n->index < LOAD_INDEX_MAX ? (uint16_t)n->index : LOAD_INDEX_MAX;
	f->heard_s[n->slot] = n->heard_ms > 0 ? (uint32_t)(n->heard_ms / 1000) : 0;
}

enum heartbeat_verdict node_judge_heartbeat(const struct node *n, const struct heartbeat *h)
{
	if (strcmp(n->boot_id, h->boot_id) == 0)
		return h->seq > n->seq ? HEARTBEAT_NEW : HEARTBEAT_REPLAYED;
	for (size_t i = 0; i < OLD_BOOTS; i++) {
		if (n->old_boot_ids[i][0] && strcmp(n->old_boot_ids[i], h->boot_id) == 0)
			return HEARTBEAT_DUPLICATE;
	}
	return HEARTBEAT_NEW;
}

/* The current boot becomes the newest of the old ones; the oldest is forgotten. */
static void replace_boot(struct node *n, const char *boot_id)
{
	if (ever_heard(n)) {
		memmove(n->old_boot_ids[1], n->old_boot_ids[0],
			sizeof(n->old_boot_ids) - sizeof(n->old_boot_ids[0]));
		memcpy(n->old_boot_ids[0], n->boot_id, sizeof(n->boot_id));
	}
	(void)text_copy(n->boot_id, sizeof(n->boot_id), boot_id);
}

void node_forget_boots(struct node *n)
{
	memset(n->old_boot_ids, 0, sizeof(n->old_boot_ids));
}

static unsigned set_voice(struct node *n)
{
	if (n->streak < STREAK_CAP)
		n->streak++;
	if (n->voice == NODE_HEARD || n->streak < STREAK_TO_BE_HEARD)
		return 0;
	n->voice = NODE_HEARD;
	return NODE_EVENT_HEARD;
}

/* Once per crossing: told at 10000, and again only after a fall below 9500. */
static unsigned set_full_told(struct node *n)
{
	if (!n->has_index)
		return 0;
	if (!n->full_told && n->index >= LOAD_INDEX_MAX) {
		n->full_told = true;
		return NODE_EVENT_FULL;
	}
	if (n->full_told && n->index < NOT_FULL_BELOW) {
		n->full_told = false;
		return NODE_EVENT_NOT_FULL;
	}
	return 0;
}

unsigned node_apply_heartbeat(struct node *n, const struct heartbeat *h,
	const struct node_metrics *metrics, bool has_index, uint32_t index, const char *address,
	int64_t now_ms, int64_t now_wall_us)
{
	unsigned events = 0;

	if (strcmp(n->boot_id, h->boot_id) != 0) {
		if (ever_heard(n))
			events |= NODE_EVENT_REBOOTED;
		replace_boot(n, h->boot_id);
	}
	n->seq = h->seq;
	n->accepting = h->accepting;
	n->metrics = *metrics;
	n->has_index = has_index;
	n->index = has_index ? index : 0;
	(void)text_copy(n->agent_version, sizeof(n->agent_version), h->agent_version);
	(void)text_copy(n->agent_address, sizeof(n->agent_address), address ? address : "");
	n->heard_here = true;
	n->heard_ms = now_ms;
	n->heard_wall_us = now_wall_us;
	events |= set_voice(n);
	events |= set_full_told(n);
	node_refresh(n);
	return events;
}

void node_load(struct node *n, const struct node_stored *stored, int64_t now_ms)
{
	n->voice = stored->voice;
	n->streak = stored->voice == NODE_HEARD ? STREAK_TO_BE_HEARD : 0;
	n->heard_here = false;
	n->heard_ms = now_ms;
	n->silent_ms = INT64_MIN / 2; /* not lately; now minus this does not overflow */
	n->heard_wall_us = stored->heard_wall_us;
	memcpy(n->boot_id, stored->boot_id, sizeof(n->boot_id));
	memcpy(n->old_boot_ids, stored->old_boot_ids, sizeof(n->old_boot_ids));
	n->seq = stored->seq;
	n->accepting = stored->accepting;
	n->metrics = stored->metrics;
	n->has_index = stored->has_index;
	n->index = stored->has_index ? stored->index : 0;
	n->full_told = stored->full_told;
	n->sessions_complete = stored->sessions_complete;
	memcpy(n->agent_version, stored->agent_version, sizeof(n->agent_version));
	memcpy(n->agent_address, stored->agent_address, sizeof(n->agent_address));
	node_refresh(n);
}

bool node_check_silence(struct node *n, int64_t stale_after_ms, int64_t now_ms)
{
	if (now_ms - n->heard_ms <= stale_after_ms)
		return false;
	n->streak = 0; /* the next heartbeat is the first in a row */
	if (n->voice != NODE_HEARD)
		return false;
	n->voice = NODE_SILENT;
	n->silent_ms = now_ms;
	node_refresh(n);
	return true;
}

bool node_suspect(struct node *n, int64_t until_ms)
{
	bool fresh = n->suspect_until_ms == 0;

	n->suspect_until_ms = until_ms;
	node_refresh(n);
	return fresh;
}

bool node_trust(struct node *n, int64_t now_ms)
{
	if (n->suspect_until_ms == 0 || now_ms < n->suspect_until_ms)
		return false;
	n->suspect_until_ms = 0;
	node_refresh(n);
	return true;
}

void node_assigned(struct node *n)
{
	struct farm *f = &n->provider->farm;

	if (f->assign_seq >= FARM_SEQ_MAX) {
		/* Once in hundreds of millions: halved, the sequence numbers keep their order. */
		for (uint32_t i = 0; i < f->count; i++)
			f->assigned[i] /= 2;
		f->assign_seq /= 2;
	}
	f->assigned[n->slot] = ++f->assign_seq;
}

unsigned node_set_index(struct node *n, bool has_index, uint32_t index)
{
	unsigned events;

	n->has_index = has_index;
	n->index = has_index ? index : 0;
	events = set_full_told(n);
	node_refresh(n);
	return events;
}

void provider_set_mass_silence(struct provider *p, bool on)
{
	p->mass_silence = on;
}
