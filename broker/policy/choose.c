/* SPDX-License-Identifier: ISC */
/*
 * The decision, step by step as DESIGN §4 numbers them (step 2, reservations, is not here yet).
 *
 * Tags have stages: what was asked; if that is optional and matches no candidate, what the pool
 * gives when nothing is asked, without what the request excludes. The pool's forced tags bind every
 * stage. Counting why nodes were left out is a path of its own, taken only when there is no
 * candidate.
 */
#include "policy/choose.h"

#include <string.h>

#include "policy/choose_scan.h"

#define STAGES 3

#define RETRY_MAINTENANCE_S 60
#define RETRY_METRICS_S 15 /* a push interval */
#define RETRY_FULL_S 30

struct plan {
	struct scan scan;
	bool balance;
	bool bound; /* the pool has forced tags */
	struct tag_filter forced;
	uint32_t stages;
	struct tag_filter stage[STAGES];
	uint32_t avoid[CHOOSE_AVOID_MAX]; /* slots */
};

static const char *const reason_names[] = {
	[CHOICE_SESSION] = "session",
	[CHOICE_LEAST_LOADED] = "least_loaded",
	[CHOICE_ROUND_ROBIN] = "round_robin",
	[CHOICE_ADMINISTRATOR] = "administrator",
	[CHOICE_TOKEN] = "token",
	[CHOICE_POOL_UNKNOWN] = "pool_unknown",
	[CHOICE_POOL_MAINTENANCE] = "pool_maintenance",
	[CHOICE_NO_NODES] = "no_nodes",
	[CHOICE_NO_TAG_MATCH] = "no_tag_match",
	[CHOICE_ALL_MAINTENANCE] = "all_maintenance",
	[CHOICE_NO_METRICS] = "no_metrics",
	[CHOICE_ALL_FULL] = "all_full",
	[CHOICE_TAG_DENIED] = "tag_denied",
	[CHOICE_NODE_UNKNOWN] = "node_unknown",
};

static const char *const verdict_names[] = {
	[VERDICT_CANDIDATE] = "candidate",
	[VERDICT_TAG_MISMATCH] = "tag_mismatch",
	[VERDICT_MAINTENANCE] = "maintenance",
	[VERDICT_SILENT] = "silent",
	[VERDICT_STALE] = "stale",
	[VERDICT_NOT_ACCEPTING] = "not_accepting",
	[VERDICT_INDEX_FULL] = "index_full",
	[VERDICT_CAPACITY_FULL] = "capacity_full",
};

const char *choice_reason_name(enum choice_reason r)
{
	return (unsigned)r < sizeof(reason_names) / sizeof(reason_names[0]) ? reason_names[r]
									    : "unknown";
}

bool choice_is_refusal(enum choice_reason r)
{
	return r >= CHOICE_POOL_UNKNOWN;
}

const char *node_verdict_name(enum node_verdict v)
{
	return (unsigned)v < sizeof(verdict_names) / sizeof(verdict_names[0]) ? verdict_names[v]
									      : "unknown";
}

/* ---- the plan ---- */

static uint32_t fresh_from(const struct choose_input *in)
{
	int64_t oldest = in->now_ms - in->stale_after_ms;

	return oldest > 0 ? (uint32_t)(oldest / 1000) : 0;
}

/* Nodes of another provider are nobody's slots here. */
static void plan_avoid(const struct choose_input *in, struct plan *p)
{
	p->scan.avoid = p->avoid;
	for (uint32_t i = 0; i < in->avoid_count && i < CHOOSE_AVOID_MAX; i++) {
		if (in->avoid[i]->provider == in->pool->provider)
			p->avoid[p->scan.avoid_count++] = in->avoid[i]->slot;
	}
}

static void plan_scan(const struct choose_input *in, struct plan *p)
{
	const struct provider *provider = in->pool->provider;
	bool keep = provider->mass_silence && provider->spec.on_mass_silence == MASS_SILENCE_KEEP;
	uint32_t blocked = FARM_DRAIN | FARM_DISABLED | FARM_NOT_ACCEPTING | FARM_CAPACITY_FULL;

	p->balance = provider->spec.balance_by_metrics;
	if (p->balance)
		blocked |= FARM_NEVER_HEARD | FARM_STALE | FARM_INDEX_FULL;
	if (!keep)
		blocked |= FARM_SILENT;
	p->scan = (struct scan){
		.farm = &provider->farm,
		.blocked = blocked,
		.excused = in->grace ? FARM_UNHEARD_SINCE_START : 0,
		.last = FARM_UNHEARD_SINCE_START | FARM_SUSPECT | (keep ? FARM_SILENT : 0),
		.fresh_from = fresh_from(in),
		.keep_stale = keep,
	};
	if (!p->balance)
		p->scan.excused |= FARM_NEVER_HEARD;
	plan_avoid(in, p);
}

/* What this pool gives when nothing is asked and it has no default tags: its forced tags alone, if
 * they name any, else by untagged_default. */
static enum untagged_default unasked(const struct choose_input *in)
{
	if (in->forced && in->forced->given && (in->forced->include_count || in->forced->any))
		return UNTAGGED_ANY;
	return in->pool->spec.untagged_default;
}

static void exclude_also(struct tag_filter *filter, const struct tag_filter *other)
{
	for (uint32_t w = 0; w < FARM_TAG_WORDS; w++)
		filter->exclude[w] |= other->exclude[w];
}

static void add_stage(const struct choose_input *in, struct plan *p, const struct tag_request *r)
{
	struct tag_filter *filter = &p->stage[p->stages];

	tag_filter_compile(r, unasked(in), p->scan.farm, filter);
	if (p->stages > 0)
		exclude_also(filter, filter - 1);
	p->stages++;
}

/* The fallbacks of an optional request, in their order. */
static void plan_fallbacks(const struct choose_input *in, struct plan *p)
{
	struct tag_request defaults;

	if (!in->tags || !in->tags->given || in->tags->required)
		return;
	if (tag_request_parse(in->pool->spec.default_tags, &defaults, NULL) == 0 &&
		defaults.given) {
		add_stage(in, p, &defaults);
		if (defaults.required)
			return;
	}
	add_stage(in, p, NULL);
}

static void plan_forced(const struct choose_input *in, struct plan *p)
{
	p->bound = in->forced && in->forced->given;
	if (p->bound)
		tag_filter_compile(in->forced, UNTAGGED_ANY, p->scan.farm, &p->forced);
}

/* Up to the first stage: the fallbacks are planned only when they are needed. */
static void plan_start(const struct choose_input *in, struct plan *p)
{
	plan_scan(in, p);
	plan_forced(in, p);
	p->scan.forced = p->bound ? &p->forced : NULL;
	p->stages = 0;
	add_stage(in, p, in->tags);
}

/* ---- step 3: the live session ---- */

static bool sharing(const struct choose_input *in)
{
	const struct provider_spec *s = &in->pool->provider->spec;

	return s->share_sessions && (!s->balance_by_metrics || s->prefer_sharing);
}

static bool silent(const struct choose_input *in, const struct node *n)
{
	if (n->voice != NODE_HEARD)
		return true;
	if (in->grace && !n->heard_here)
		return false;
	return in->now_ms - n->heard_ms > in->stale_after_ms;
}

static const struct choose_probe *find_probe(const struct choose_input *in, const struct node *n)
{
	for (uint32_t i = 0; i < in->probe_count; i++) {
		if (in->probes[i].node == n)
			return &in->probes[i];
	}
	return NULL;
}

static bool binds(
	const struct choose_input *in, const struct session *s, const struct tag_filter *forced)
{
	const struct node *n = s->node;

	return n->provider == in->pool->provider && n->spec.mode != ADMIN_DISABLED &&
	       (!forced || tag_filter_match(forced, &n->provider->farm, n->slot));
}

/* Active before disconnected, then the newest; by node and id at last, so that the order is total.
 */
static bool better(const struct session *a, const struct session *b)
{
	if (a->active != b->active)
		return a->active;
	if (a->first_seen_ms != b->first_seen_ms)
		return a->first_seen_ms > b->first_seen_ms;
	if (a->node != b->node)
		return a->node->spec.id > b->node->spec.id;
	return strcmp(session_id(a), session_id(b)) > 0;
}

/* The best session that binds and comes after PREV in the order (NULL: the first). A user has few.
 */
static const struct session *next_session(
	const struct choose_input *in, const struct tag_filter *forced, const struct session *prev)
{
	const struct session *best = NULL;

	for (const struct session *s = in->sessions; s; s = s->user_next) {
		if (s == prev || (prev && !better(prev, s)) || (best && !better(s, best)))
			continue;
		if (binds(in, s, forced))
			best = s;
	}
	return best;
}

static bool listed(const struct node *const *list, uint32_t count, const struct node *n)
{
	for (uint32_t i = 0; i < count; i++) {
		if (list[i] == n)
			return true;
	}
	return false;
}

static bool in_reach(const struct choose_input *in, const struct node *n)
{
	const struct choose_probe *probe = find_probe(in, n);

	if (listed(in->avoid, in->avoid_count, n))
		return false;
	return !silent(in, n) || (probe && probe->answers);
}

static bool choose_session(const struct choose_input *in, const struct plan *p, struct choice *ret)
{
	const struct tag_filter *forced = p->bound ? &p->forced : NULL;
	const struct session *s = NULL;

	while ((s = next_session(in, forced, s))) {
		if (in_reach(in, s->node)) {
			ret->reason = CHOICE_SESSION;
			ret->session = s;
			ret->node = s->node;
			return true;
		}
		if (!ret->suspended)
			ret->suspended = s;
	}
	return false;
}

uint32_t choose_needs_probe(const struct choose_input *in, const struct node **ret, uint32_t max)
{
	struct plan p;
	const struct session *s = NULL;
	uint32_t count = 0;

	if (!in->pool || !in->sessions || in->node_name || !sharing(in) ||
		in->pool->spec.mode == ADMIN_DISABLED ||
		in->pool->provider->spec.mode == ADMIN_DISABLED)
		return 0;
	plan_scan(in, &p);
	plan_forced(in, &p);
	while (count < max && (s = next_session(in, p.bound ? &p.forced : NULL, s))) {
		if (in_reach(in, s->node))
			break;
		if (!find_probe(in, s->node) && !listed(in->avoid, in->avoid_count, s->node) &&
			!listed(ret, count, s->node))
			ret[count++] = s->node;
	}
	return count;
}

/* ---- verdicts, and the way to a refusal ---- */

static bool tags_match(const struct plan *p, uint32_t slot)
{
	if (p->bound && !tag_filter_match(&p->forced, p->scan.farm, slot))
		return false;
	for (uint32_t i = 0; i < p->stages; i++) {
		if (tag_filter_match(&p->stage[i], p->scan.farm, slot))
			return true;
	}
	return false;
}

/* In the order of §4.6; what the scan blocks is what a verdict names. */
static enum node_verdict verdict(const struct plan *p, uint32_t slot)
{
	uint32_t flags = p->scan.farm->flags[slot];
	uint32_t blocking = flags & p->scan.blocked;

	if (!tags_match(p, slot))
		return VERDICT_TAG_MISMATCH;
	if (blocking & (FARM_DRAIN | FARM_DISABLED))
		return VERDICT_MAINTENANCE;
	if (blocking & (FARM_SILENT | FARM_NEVER_HEARD))
		return VERDICT_SILENT;
	if (blocking & FARM_STALE)
		return VERDICT_STALE;
	if (blocking & FARM_NOT_ACCEPTING)
		return VERDICT_NOT_ACCEPTING;
	if (blocking & FARM_INDEX_FULL)
		return VERDICT_INDEX_FULL;
	if (blocking & FARM_CAPACITY_FULL)
		return VERDICT_CAPACITY_FULL;
	return scan_eligible(&p->scan, slot) ? VERDICT_CANDIDATE : VERDICT_SILENT;
}

static void count_verdict(struct choice_counts *c, enum node_verdict v)
{
	c->nodes++;
	switch (v) {
	case VERDICT_CANDIDATE:
		c->candidates++;
		break;
	case VERDICT_TAG_MISMATCH:
		c->tag_mismatch++;
		break;
	case VERDICT_MAINTENANCE:
		c->maintenance++;
		break;
	case VERDICT_SILENT:
	case VERDICT_STALE:
		c->silent++;
		break;
	case VERDICT_NOT_ACCEPTING:
		c->not_accepting++;
		break;
	case VERDICT_INDEX_FULL:
	case VERDICT_CAPACITY_FULL:
		c->full++;
		break;
	}
}

static void refuse(struct choice *ret, enum choice_reason reason)
{
	ret->reason = reason;
	switch (reason) {
	case CHOICE_POOL_MAINTENANCE:
	case CHOICE_NO_NODES:
	case CHOICE_NO_TAG_MATCH:
	case CHOICE_ALL_MAINTENANCE:
		ret->retry_after_s = RETRY_MAINTENANCE_S;
		break;
	case CHOICE_NO_METRICS:
		ret->retry_after_s = RETRY_METRICS_S;
		break;
	case CHOICE_ALL_FULL:
		ret->retry_after_s = RETRY_FULL_S;
		break;
	default:
		ret->retry_after_s = 0;
		break;
	}
}

/* The filter that emptied the set. */
static enum choice_reason reason_of(const struct choice_counts *c)
{
	uint32_t left = c->nodes;

	if (left == 0)
		return CHOICE_NO_NODES;
	left -= c->tag_mismatch;
	if (left == 0)
		return CHOICE_NO_TAG_MATCH;
	left -= c->maintenance;
	if (left == 0)
		return CHOICE_ALL_MAINTENANCE;
	left -= c->silent + c->not_accepting;
	return left == 0 ? CHOICE_NO_METRICS : CHOICE_ALL_FULL;
}

/* Those that refused count as nodes where nothing listens. */
static void count_avoided(const struct plan *p, struct choice_counts *c)
{
	struct scan all = p->scan;

	all.avoid_count = 0;
	for (uint32_t i = 0; i < p->scan.avoid_count; i++) {
		if (tags_match(p, p->avoid[i]) && scan_eligible(&all, p->avoid[i])) {
			c->candidates--;
			c->not_accepting++;
		}
	}
}

/* No candidate: says why. A node that any of the stages would have taken is no mismatch. */
static void refuse_all(const struct plan *p, struct choice *ret)
{
	scan_count(&p->scan, p->stage, p->stages, &ret->counts);
	count_avoided(p, &ret->counts);
	refuse(ret, reason_of(&ret->counts));
}

/* ---- steps 4 to 6 ---- */

static uint32_t scan_stage(const struct choose_input *in, struct plan *p, uint32_t stage)
{
	p->scan.tags = &p->stage[stage];
	return p->balance ? scan_least_loaded(&p->scan, in->random) : scan_round_robin(&p->scan);
}

/* The slot, and in *RET_STAGE which stage gave it. */
static uint32_t scan_stages(const struct choose_input *in, struct plan *p, uint32_t *ret_stage)
{
	uint32_t slot = scan_stage(in, p, 0);

	*ret_stage = 0;
	if (slot != SCAN_NONE)
		return slot;
	plan_fallbacks(in, p);
	for (uint32_t i = 1; i < p->stages && slot == SCAN_NONE; i++) {
		slot = scan_stage(in, p, i);
		*ret_stage = i;
	}
	return slot;
}

static void choose_any(const struct choose_input *in, struct plan *p, struct choice *ret)
{
	uint32_t stage;
	uint32_t slot = scan_stages(in, p, &stage);

	if (slot == SCAN_NONE) {
		refuse_all(p, ret);
		return;
	}
	ret->reason = p->balance ? CHOICE_LEAST_LOADED : CHOICE_ROUND_ROBIN;
	ret->node = p->scan.farm->nodes[slot];
	ret->tags_fell_back = stage > 0;
}

/* The node of a routing token, if it could be anyone's: neither load nor capacity is asked, since
 * he may have a session there. */
static bool choose_routed(const struct choose_input *in, const struct plan *p, struct choice *ret)
{
	const struct node *n = in->routed;

	if (!n || n->provider != in->pool->provider || n->spec.mode != ADMIN_ENABLED ||
		silent(in, n) || !n->accepting || listed(in->avoid, in->avoid_count, n) ||
		(p->bound && !tag_filter_match(&p->forced, p->scan.farm, n->slot)))
		return false;
	ret->reason = CHOICE_TOKEN;
	ret->node = n;
	return true;
}

/* The node an administrator named: its drain, the pool's and the provider's are ignored. */
static void choose_named(const struct choose_input *in, struct plan *p, struct choice *ret)
{
	const struct node *n = in->named;

	if (!n || n->provider != in->pool->provider) {
		refuse(ret, CHOICE_NODE_UNKNOWN);
		return;
	}
	p->scan.blocked &= ~(uint32_t)FARM_DRAIN;
	plan_fallbacks(in, p);
	count_verdict(&ret->counts, verdict(p, n->slot));
	if (ret->counts.candidates == 0) {
		refuse(ret, reason_of(&ret->counts));
		return;
	}
	ret->counts = (struct choice_counts){0};
	ret->reason = CHOICE_ADMINISTRATOR;
	ret->node = n;
	ret->tags_fell_back = !tag_filter_match(&p->stage[0], p->scan.farm, n->slot);
}

static void decide(const struct choose_input *in, struct choice *ret)
{
	struct plan p;
	enum admin_mode pool, provider;

	if (!in->pool) {
		refuse(ret, CHOICE_POOL_UNKNOWN);
		return;
	}
	pool = in->pool->spec.mode;
	provider = in->pool->provider->spec.mode;
	if (pool == ADMIN_DISABLED || provider == ADMIN_DISABLED) {
		refuse(ret, CHOICE_POOL_MAINTENANCE);
		return;
	}
	plan_start(in, &p);
	if (in->node_name) {
		choose_named(in, &p, ret);
		return;
	}
	if (sharing(in) && choose_session(in, &p, ret))
		return;
	if (pool == ADMIN_DRAIN || provider == ADMIN_DRAIN) {
		refuse(ret, CHOICE_POOL_MAINTENANCE);
		return;
	}
	if (choose_routed(in, &p, ret))
		return;
	choose_any(in, &p, ret);
}

void choose(const struct choose_input *in, struct choice *ret)
{
	*ret = (struct choice){0};
	decide(in, ret);
	if (ret->node && ret->node->has_index)
		ret->load_index = ret->node->index;
}

enum node_verdict choose_verdict(const struct choose_input *in, const struct node *node)
{
	struct plan p;
	uint32_t stage;

	if (!in->pool || node->provider != in->pool->provider)
		return VERDICT_TAG_MISMATCH;
	plan_start(in, &p);
	if (!tags_match(&p, node->slot)) {
		/* A fallback counts only when what was asked for has no candidate. */
		(void)scan_stages(in, &p, &stage);
		if (p.stages > stage + 1 && stage > 0)
			p.stages = stage + 1;
	}
	return verdict(&p, node->slot);
}
