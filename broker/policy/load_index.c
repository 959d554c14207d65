/* SPDX-License-Identifier: ISC */
/*
 * Every rule is an exact fraction of 10000 slv; the fractions are brought to one denominator and
 * the formula is evaluated there, so that the only rounding is the last one. What keeps 128 bits
 * enough:
 *
 *   denominators   cpu and script 10^4 (14 bits each), memory 2^40 × 10^4 (54), sessions 2^20
 *   together       2^100; times the multiplier (2^20), 20 k + 3 and the 2 of the rounding: < 2^127
 *
 * Memory above 2^40 bytes is first halved until it fits (amounts are whole pages, so this loses
 * nothing below 2^52). Whether a rule is full is asked of the exact numbers.
 */
#include "policy/load_index.h"

__extension__ typedef unsigned __int128 wide;

#define RULES 4
#define OTHERS_WEIGHT 20u /* the others count a twentieth of their mean */

/* One rule: num / den of the way from its zero point to its full point; num < den unless full. */
struct fraction {
	bool present, full;
	uint64_t num, den;
};

/* Halves both until DEN fits in BITS. */
static void fit(uint64_t *num, uint64_t *den, unsigned bits)
{
	while (*den >> bits) {
		*num >>= 1;
		*den >>= 1;
	}
}

static struct fraction percent_rule(const struct load_rule *rule, bool has, uint32_t value)
{
	struct fraction f = {.present = true, .den = 1};

	if (!rule->on || !has || rule->full <= rule->zero || rule->full > 10000)
		return (struct fraction){0};
	if (value >= rule->full) {
		f.full = true;
	} else if (value > rule->zero) {
		f.num = value - rule->zero;
		f.den = rule->full - rule->zero;
	}
	return f;
}

static struct fraction memory_rule(const struct load_rule *rule, const struct node_metrics *m)
{
	struct fraction f = {.present = true, .den = 1};
	uint64_t total = m->memory_total, used = total - m->memory_available;

	if (!rule->on || !m->has_memory || total == 0 || m->memory_available > total ||
		rule->full <= rule->zero || rule->full > 10000)
		return (struct fraction){0};
	if ((wide)used * 10000 >= (wide)total * rule->full) {
		f.full = true;
		return f;
	}
	fit(&used, &total, 40);
	if (used * 10000 > total * rule->zero) {
		f.num = used * 10000 - total * rule->zero;
		f.den = total * (rule->full - rule->zero);
	}
	/* Halving may have rounded the total down past the used part's share. */
	if (f.num >= f.den)
		f.num = f.den - (f.den > 1);
	return f;
}

static struct fraction sessions_rule(
	const struct provider_spec *rules, uint32_t max, uint32_t sessions)
{
	struct fraction f = {.present = true, .num = sessions, .den = max};

	if (!rules->sessions_rule || max == 0)
		return (struct fraction){0};
	f.full = sessions >= max;
	if (!f.full)
		fit(&f.num, &f.den, 20);
	return f;
}

static struct load_rule_value display(bool on, const struct fraction *f)
{
	struct load_rule_value v = {.on = on, .present = f->present};

	if (f->full)
		v.slv = LOAD_INDEX_MAX;
	else if (f->present)
		v.slv = (uint32_t)(((wide)f->num * LOAD_INDEX_MAX * 2 + f->den) /
				   ((wide)f->den * 2));
	/* 10000 is what a full rule reads, and nothing else. */
	if (!f->full && v.slv >= LOAD_INDEX_MAX)
		v.slv = LOAD_INDEX_MAX - 1;
	return v;
}

/* min(9999, m × (w + Σo / (20 k))) of rules of which none is full; at least one is present. */
static uint32_t combine(const struct fraction rule[RULES], uint32_t multiplier)
{
	wide common = 1, worst = 0, sum = 0, num, den;
	uint32_t others = 0;

	for (int i = 0; i < RULES; i++) {
		if (rule[i].present)
			common *= rule[i].den;
	}
	for (int i = 0; i < RULES; i++) {
		wide value;

		if (!rule[i].present)
			continue;
		value = common / rule[i].den * rule[i].num;
		sum += value;
		others++;
		if (value > worst)
			worst = value;
	}
	others--;
	sum -= worst;
	/* slv = num / den, the 10000 of the index and that of the multiplier having cancelled out
	 */
	num = multiplier * (others ? worst * OTHERS_WEIGHT * others + sum : worst);
	den = common * (others ? OTHERS_WEIGHT * others : 1);
	num = (num * 2 + den) / (den * 2);
	return num < LOAD_INDEX_MAX ? (uint32_t)num : LOAD_INDEX_MAX - 1;
}

static uint32_t within(uint32_t value, uint32_t min, uint32_t max)
{
	return value < min ? min : value > max ? max : value;
}

bool load_index_compute(const struct provider_spec *rules, const struct node_spec *node,
	const struct node_metrics *metrics, uint32_t sessions, uint32_t *ret_index,
	struct load_detail *ret_detail)
{
	static const struct load_rule whole = {.on = true, .zero = 0, .full = 10000};
	bool has_script = rules->load_script_rule && metrics->has_custom_load;
	struct fraction rule[RULES] = {
		percent_rule(&rules->cpu, metrics->has_cpu, metrics->cpu_busy),
		memory_rule(&rules->memory, metrics),
		sessions_rule(rules, node->max_sessions, sessions),
		percent_rule(&whole, has_script, metrics->custom_load),
	};
	bool present = false, full = false;

	for (int i = 0; i < RULES; i++) {
		present = present || rule[i].present;
		full = full || rule[i].full;
	}
	if (ret_detail) {
		ret_detail->cpu = display(rules->cpu.on, &rule[0]);
		ret_detail->memory = display(rules->memory.on, &rule[1]);
		ret_detail->sessions =
			display(rules->sessions_rule && node->max_sessions, &rule[2]);
		ret_detail->load_script = display(rules->load_script_rule, &rule[3]);
		ret_detail->missing = (rules->cpu.on && !rule[0].present) ||
				      (rules->memory.on && !rule[1].present);
	}
	if (!present)
		return false;
	*ret_index = full ? LOAD_INDEX_MAX
			  : combine(rule, within(node->load_multiplier, 1, NODE_MAX_MULTIPLIER));
	return true;
}

void load_metrics_of(const struct heartbeat *h, struct node_metrics *ret)
{
	*ret = (struct node_metrics){
		.has_cpu = h->has_cpu,
		.has_memory = h->has_memory,
		.has_custom_load = h->has_custom_load,
		.cpu_busy = h->cpu_busy,
		.cpu_count = h->cpu_count,
		.memory_total = h->memory_total,
		.memory_available = h->memory_available,
		.custom_load = h->custom_load,
		.window_samples = h->window_samples,
		.window_seconds = h->window_seconds,
	};
}
