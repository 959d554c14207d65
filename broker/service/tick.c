/* SPDX-License-Identifier: ISC */
/*
 * Once a second: which nodes fell silent (DESIGN §6). In the grace after a start, or after the
 * database came back, nobody is judged. More than half of a provider's nodes silent within one
 * stale_after is an alarm of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "service/state.h"

#define TICK_MS 1000

static void node_fell_silent(struct service *s, const struct node *n, int64_t now_ms)
{
	struct event ev;
	char seconds[24];

	snprintf(seconds, sizeof(seconds), "%" PRId64, (now_ms - n->heard_ms) / 1000);
	log_warning("node \"%s\" (\"%s\") is silent: no heartbeat for %s s", n->spec.name,
		n->spec.address, seconds);
	emit_start_node(&ev, EVENT_NODE_SILENT, n);
	event_param(&ev, "seconds", seconds);
	emit(s, &ev);
	store_touch_node(s->store, n);
}

static void alarm_mass_silence(
	struct service *s, const struct provider *p, uint32_t silent, uint32_t nodes)
{
	struct event ev;
	char silent_text[16], nodes_text[16];

	snprintf(silent_text, sizeof(silent_text), "%" PRIu32, silent);
	snprintf(nodes_text, sizeof(nodes_text), "%" PRIu32, nodes);
	log_error("%s of %s nodes of provider \"%s\" fell silent at once", silent_text, nodes_text,
		p->spec.name);
	event_start(&ev, EVENT_MASS_SILENCE, clock_wall_us());
	ev.provider_id = p->spec.id;
	event_param(&ev, "silent", silent_text);
	event_param(&ev, "nodes", nodes_text);
	emit(s, &ev);
}

/* Of the nodes that were ever heard: how many are silent, and how many fell silent within one
 * stale_after. */
static void judge_provider(struct service *s, struct provider *p, int64_t now_ms)
{
	int64_t stale = s->config->stale_after_ms;
	uint32_t known = 0, silent = 0, lately = 0;

	for (uint32_t i = 0; i < p->farm.count; i++) {
		const struct node *n = p->farm.nodes[i];

		if (n->voice == NODE_NEVER_HEARD)
			continue;
		known++;
		if (n->voice == NODE_SILENT) {
			silent++;
			lately += now_ms - n->silent_ms < stale;
		}
	}
	if (!p->mass_silence && known > 1 && 2 * lately > known) {
		provider_set_mass_silence(p, true);
		alarm_mass_silence(s, p, lately, known);
	} else if (p->mass_silence && 2 * silent <= known) {
		provider_set_mass_silence(p, false);
	}
}

static int compare_moments(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Whether more than half of KNOWN nodes were heard last within one stale_after; sorts MOMENTS. */
static bool fell_together(int64_t *moments, uint32_t count, uint32_t known, int64_t stale_us)
{
	uint32_t half = known / 2;

	qsort(moments, count, sizeof(*moments), compare_moments);
	for (uint32_t i = 0; i + half < count; i++)
		if (moments[i + half] - moments[i] < stale_us)
			return true;
	return false;
}

static void restore_provider(struct service *s, struct provider *p)
{
	int64_t *moments = calloc(p->farm.count + 1, sizeof(*moments));
	uint32_t known = 0, silent = 0;

	if (!moments)
		return; /* on_mass_silence = keep then refuses */
	for (uint32_t i = 0; i < p->farm.count; i++) {
		const struct node *n = p->farm.nodes[i];

		known += n->voice != NODE_NEVER_HEARD;
		if (n->voice == NODE_SILENT)
			moments[silent++] = n->heard_wall_us;
	}
	if (known > 1 && fell_together(moments, silent, known, s->config->stale_after_ms * 1000))
		provider_set_mass_silence(p, true);
	free(moments);
}

void tick_restore(struct service *s)
{
	for (struct provider *p = fleet_next_provider(s->fleet, NULL); p;
		p = fleet_next_provider(s->fleet, p))
		restore_provider(s, p);
}

void tick_run(void *ctx)
{
	struct service *s = ctx;
	int64_t now_ms = clock_mono_ms();

	loop_timer_arm(s->tick, TICK_MS);
	for (struct node *n = fleet_next_node(s->fleet, NULL); n; n = fleet_next_node(s->fleet, n))
		if (node_trust(n, now_ms))
			emit_node(s, EVENT_NODE_TRUSTED, n);
	if (!s->loaded || now_ms < s->grace_until_ms)
		return;
	for (struct node *n = fleet_next_node(s->fleet, NULL); n; n = fleet_next_node(s->fleet, n))
		if (node_check_silence(n, s->config->stale_after_ms, now_ms))
			node_fell_silent(s, n, now_ms);
	for (struct provider *p = fleet_next_provider(s->fleet, NULL); p;
		p = fleet_next_provider(s->fleet, p))
		judge_provider(s, p, now_ms);
}
