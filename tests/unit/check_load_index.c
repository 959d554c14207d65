/* SPDX-License-Identifier: ISC */
/*
 * The load index at its edges, and as properties over random metrics with a fixed seed. The
 * reference below is the formula written out over one common denominator that small numbers permit;
 * the properties do not know the formula.
 */
#include <errno.h>

#include "lib/made_fleet.h"
#include "lib/tap.h"
#include "policy/load_index.h"

#define GIB (UINT64_C(1) << 30)
#define ROUNDS 20000

struct load {			 /* one node's situation; NO = no such metric */
	int cpu, memory, script; /* hundredths of a percent; memory: used of 10000 bytes */
	uint32_t sessions, max_sessions;
	uint32_t multiplier;
};

static bool index_of(const struct load *l, uint32_t *ret, struct load_detail *detail)
{
	struct provider_spec rules;
	struct node_spec node;
	struct node_metrics m = {0};

	provider_spec_init(&rules);
	node_spec_init(&node);
	node.max_sessions = l->max_sessions;
	if (l->multiplier)
		node.load_multiplier = l->multiplier;
	m.has_cpu = l->cpu >= 0;
	m.cpu_busy = l->cpu >= 0 ? (uint32_t)l->cpu : 12345;
	m.has_memory = l->memory >= 0;
	m.memory_total = 10000;
	m.memory_available = l->memory >= 0 ? (uint64_t)(10000 - l->memory) : 0;
	m.has_custom_load = l->script >= 0;
	m.custom_load = l->script >= 0 ? (uint32_t)l->script : 9999;
	return load_index_compute(&rules, &node, &m, l->sessions, ret, detail);
}

static uint32_t must_index(struct load l)
{
	uint32_t index = 77777;

	ck_assert(index_of(&l, &index, NULL));
	return index;
}

/* INDEX(cpu, memory, script [, sessions, max_sessions [, multiplier]]) */
#define INDEX(...) must_index((struct load){__VA_ARGS__})
#define NO (-1)

START_TEST(one_rule_reads_linearly)
{
	ck_assert_uint_eq(INDEX(0, NO, NO), 0);
	ck_assert_uint_eq(INDEX(1, NO, NO), 1);
	ck_assert_uint_eq(INDEX(5000, NO, NO), 5000);
	ck_assert_uint_eq(INDEX(9999, NO, NO), 9999);
	ck_assert_uint_eq(INDEX(10000, NO, NO), 10000);
	ck_assert_uint_eq(INDEX(NO, NO, 0), 0);
	ck_assert_uint_eq(INDEX(NO, NO, 3333), 3333);
	ck_assert_uint_eq(INDEX(NO, NO, 10000), 10000);
	/* memory is full at 95 %: 4750 of 10000 is half the way */
	ck_assert_uint_eq(INDEX(NO, 0, NO), 0);
	ck_assert_uint_eq(INDEX(NO, 4750, NO), 5000);
	ck_assert_uint_eq(INDEX(NO, 9499, NO), 9999); /* 9998.9 */
	ck_assert_uint_eq(INDEX(NO, 9500, NO), 10000);
	ck_assert_uint_eq(INDEX(NO, 10000, NO), 10000);
	ck_assert_uint_eq(INDEX(NO, NO, NO, 0, 4), 0);
	ck_assert_uint_eq(INDEX(NO, NO, NO, 1, 4), 2500);
	ck_assert_uint_eq(INDEX(NO, NO, NO, 3, 4), 7500);
	ck_assert_uint_eq(INDEX(NO, NO, NO, 4, 4), 10000);
	ck_assert_uint_eq(INDEX(NO, NO, NO, 400, 4), 10000);
}
END_TEST

START_TEST(rounding_is_half_up_and_happens_once)
{
	/* 10000 / 7 × 1 = 1428.57…; × 2 = 2857.14… */
	ck_assert_uint_eq(INDEX(NO, NO, NO, 1, 7), 1429);
	ck_assert_uint_eq(INDEX(NO, NO, NO, 2, 7), 2857);
	/* 10000 / 16 = 625; / 32 = 312.5, which rounds up */
	ck_assert_uint_eq(INDEX(NO, NO, NO, 1, 32), 313);
	/* 1000 + 10 / 20 = 1000.5 */
	ck_assert_uint_eq(INDEX(1000, NO, 10), 1001);
	ck_assert_uint_eq(INDEX(1000, NO, 9), 1000);
	/* halves that only arise together: (312.5 + 10 / 20) = 313 exactly; each rounded alone
	 * gives 314 */
	ck_assert_uint_eq(INDEX(10, NO, NO, 1, 32), 313);
	/* m × w: 0.5 × 1 = 0.5, 0.4999 × 1 < 0.5 */
	ck_assert_uint_eq(INDEX(1, NO, NO, 0, 0, 5000), 1);
	ck_assert_uint_eq(INDEX(1, NO, NO, 0, 0, 4999), 0);
}
END_TEST

START_TEST(the_others_count_a_twentieth_of_their_mean)
{
	ck_assert_uint_eq(INDEX(5000, NO, 0), 5000);
	ck_assert_uint_eq(INDEX(5000, NO, 2000), 5100);
	ck_assert_uint_eq(INDEX(2000, NO, 5000), 5100);
	ck_assert_uint_eq(INDEX(5000, NO, 5000), 5250);
	/* 5000 + (2000 + 1000) / 40 */
	ck_assert_uint_eq(INDEX(5000, 950, 2000), 5075);
	/* 5000 + (2500 + 1000 + 2000) / 60 = 5091.67 */
	ck_assert_uint_eq(INDEX(5000, 950, 2000, 1, 4), 5092);
}
END_TEST

START_TEST(only_a_full_rule_reaches_ten_thousand)
{
	ck_assert_uint_eq(INDEX(9999, 9499, 9999), 9999);
	ck_assert_uint_eq(INDEX(9999, NO, NO, 0, 0, 1000000), 9999);
	ck_assert_uint_eq(INDEX(100, NO, NO, 0, 0, 1000000), 9999);
	ck_assert_uint_eq(INDEX(99, NO, NO, 0, 0, 1000000), 9900);
	/* nor does a small multiplier make room on a full node */
	ck_assert_uint_eq(INDEX(10000, NO, NO, 0, 0, 1), 10000);
	ck_assert_uint_eq(INDEX(0, 9500, NO, 0, 0, 1), 10000);
	ck_assert_uint_eq(INDEX(9999, NO, NO, 0, 0, 1), 1);
	ck_assert_uint_eq(INDEX(4999, NO, NO, 0, 0, 1), 0);
}
END_TEST

START_TEST(no_metric_is_no_index)
{
	struct load l = {.cpu = -1, .memory = -1, .script = -1};
	struct load_detail d;
	uint32_t index = 4711;

	ck_assert(!index_of(&l, &index, &d));
	ck_assert_uint_eq(index, 4711);
	ck_assert(d.missing);
	ck_assert(d.cpu.on && !d.cpu.present && d.memory.on && !d.memory.present);
	ck_assert(!d.sessions.on && !d.sessions.present);
}
END_TEST

START_TEST(a_missing_metric_is_marked_and_its_rule_dropped)
{
	struct load l = {.cpu = 3000, .memory = -1, .script = -1};
	struct load_detail d;
	uint32_t index;

	ck_assert(index_of(&l, &index, &d));
	ck_assert_uint_eq(index, 3000);
	ck_assert(d.missing && d.cpu.present && !d.memory.present);
	ck_assert_uint_eq(d.cpu.slv, 3000);
	l.memory = 950; /* a script that was not reported is not missing */
	ck_assert(index_of(&l, &index, &d));
	ck_assert(!d.missing && d.load_script.on && !d.load_script.present);
	ck_assert_uint_eq(d.memory.slv, 1000);
}
END_TEST

START_TEST(rules_have_their_own_points_and_switches)
{
	struct provider_spec rules;
	struct node_spec node;
	struct node_metrics m = {.has_cpu = true, .has_custom_load = true, .custom_load = 10000};
	uint32_t index;

	provider_spec_init(&rules);
	node_spec_init(&node);
	rules.load_script_rule = false;
	rules.memory.on = false;
	rules.cpu = (struct load_rule){.on = true, .zero = 2000, .full = 6000};
	for (uint32_t cpu = 0; cpu <= 10000; cpu += 500) {
		uint32_t want = cpu <= 2000 ? 0 : cpu >= 6000 ? 10000 : (cpu - 2000) * 10000 / 4000;

		m.cpu_busy = cpu;
		ck_assert(load_index_compute(&rules, &node, &m, 0, &index, NULL));
		ck_assert_uint_eq(index, want);
	}
	rules.cpu.on = false;
	ck_assert(!load_index_compute(&rules, &node, &m, 0, &index, NULL));
	node.max_sessions = 10;
	ck_assert(load_index_compute(&rules, &node, &m, 3, &index, NULL));
	ck_assert_uint_eq(index, 3000);
	rules.sessions_rule = false;
	ck_assert(!load_index_compute(&rules, &node, &m, 3, &index, NULL));
}
END_TEST

START_TEST(numbers_of_any_size_do_not_overflow)
{
	static const uint64_t totals[] = {1, 2, 4096, 8 * GIB, 1024 * GIB - 1, 1024 * GIB,
		1536 * GIB, UINT64_C(1) << 50, UINT64_MAX - 1, UINT64_MAX};
	struct provider_spec rules;
	struct node_spec node;

	provider_spec_init(&rules);
	node_spec_init(&node);
	node.max_sessions = NODE_MAX_SESSIONS;
	node.load_multiplier = NODE_MAX_MULTIPLIER;
	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		struct node_metrics m = {.has_cpu = true,
			.has_memory = true,
			.has_custom_load = true,
			.cpu_busy = 9999,
			.custom_load = 9999,
			.memory_total = totals[i]};
		uint32_t index = 0;

		m.memory_available = totals[i] / 2 + 1;
		ck_assert(
			load_index_compute(&rules, &node, &m, NODE_MAX_SESSIONS - 1, &index, NULL));
		ck_assert_uint_eq(index, 9999);
		m.memory_available = 0;
		ck_assert(load_index_compute(&rules, &node, &m, 0, &index, NULL));
		ck_assert_uint_eq(index, 10000);
	}
}
END_TEST

START_TEST(memory_is_full_to_the_byte)
{
	struct provider_spec rules;
	struct node_spec node;
	struct node_metrics m = {.has_memory = true};

	provider_spec_init(&rules);
	node_spec_init(&node);
	rules.cpu.on = false;
	for (int shift = 0; shift < 40; shift++) {
		uint32_t index;

		m.memory_total = UINT64_C(20) << shift;
		m.memory_available = UINT64_C(1) << shift; /* 95 % used */
		ck_assert(load_index_compute(&rules, &node, &m, 0, &index, NULL));
		ck_assert_uint_eq(index, 10000);
		m.memory_available++;
		ck_assert(load_index_compute(&rules, &node, &m, 0, &index, NULL));
		ck_assert_uint_lt(index, 10000);
		m.memory_available = UINT64_C(20) << shift;
		ck_assert(load_index_compute(&rules, &node, &m, 0, &index, NULL));
		ck_assert_uint_eq(index, 0);
	}
}
END_TEST

START_TEST(impossible_numbers_are_no_metric)
{
	struct provider_spec rules;
	struct node_spec node;
	struct node_metrics m = {.has_memory = true, .memory_total = 10, .memory_available = 11};
	uint32_t index;

	provider_spec_init(&rules);
	node_spec_init(&node);
	ck_assert(!load_index_compute(&rules, &node, &m, 0, &index, NULL));
	m = (struct node_metrics){.has_memory = true};
	ck_assert(!load_index_compute(&rules, &node, &m, 0, &index, NULL));
	m = (struct node_metrics){.has_cpu = true};
	rules.cpu.zero = rules.cpu.full;
	ck_assert(!load_index_compute(&rules, &node, &m, 0, &index, NULL));
}
END_TEST

/* ---- properties ---- */

static struct load random_load(uint64_t *seed)
{
	struct load l = {
		.cpu = made_random(seed) % 5 ? (int)(made_random(seed) % 10001) : -1,
		.memory = made_random(seed) % 5 ? (int)(made_random(seed) % 10001) : -1,
		.script = made_random(seed) % 2 ? (int)(made_random(seed) % 10001) : -1,
		.max_sessions = made_random(seed) % 3 ? (uint32_t)(made_random(seed) % 120) : 0,
		.multiplier = 10000,
	};

	l.sessions = l.max_sessions ? (uint32_t)(made_random(seed) % (l.max_sessions + 2)) : 3;
	return l;
}

/* The formula in the units of 1 / (20 k × 9500 × max_sessions), which all rules share here. */
static uint32_t reference(const struct load *l)
{
	uint64_t unit = 9500ull * (l->max_sessions ? l->max_sessions : 1);
	uint64_t rule[4], worst = 0, sum = 0, num, den;
	uint32_t k = 0;

	if (l->cpu >= 0)
		rule[k++] = (uint64_t)l->cpu * unit;
	if (l->script >= 0)
		rule[k++] = (uint64_t)l->script * unit;
	if (l->memory >= 0)
		rule[k++] = (uint64_t)l->memory * 10000 * (unit / 9500);
	if (l->max_sessions)
		rule[k++] = (uint64_t)l->sessions * 10000 * 9500;
	for (uint32_t i = 0; i < k; i++) {
		if (rule[i] >= 10000 * unit)
			return 10000;
		worst = rule[i] > worst ? rule[i] : worst;
		sum += rule[i];
	}
	k--;
	num = k ? worst * 20 * k + sum - worst : worst;
	den = unit * (k ? 20 * k : 1);
	__extension__ unsigned __int128 scaled = num;
	scaled = (scaled * l->multiplier * 2 + (__extension__(unsigned __int128) den) * 10000) /
		 ((__extension__(unsigned __int128) den) * 20000);
	return scaled > 9999 ? 9999 : (uint32_t)scaled;
}

START_TEST(equals_the_formula)
{
	uint64_t seed = 20240501;
	uint32_t compared = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct load l = random_load(&seed);
		uint32_t index;

		l.multiplier =
			made_random(&seed) % 2 ? 10000 : 1 + (uint32_t)(made_random(&seed) % 30000);
		if (!index_of(&l, &index, NULL))
			continue;
		compared++;
		ck_assert_msg(index == reference(&l),
			"cpu %d memory %d script %d sessions %u/%u m %u: %u, not %u", l.cpu,
			l.memory, l.script, l.sessions, l.max_sessions, l.multiplier, index,
			reference(&l));
	}
	ck_assert_uint_gt(compared, ROUNDS / 2);
}
END_TEST

START_TEST(grows_with_every_metric)
{
	uint64_t seed = 7;

	for (int i = 0; i < ROUNDS; i++) {
		struct load l = random_load(&seed), more = l;
		uint32_t before, after;

		if (!index_of(&l, &before, NULL))
			continue;
		switch (made_random(&seed) % 4) {
		case 0:
			if (l.cpu >= 0)
				more.cpu += (int)(made_random(&seed) % (uint64_t)(10001 - l.cpu));
			break;
		case 1:
			if (l.memory >= 0)
				more.memory +=
					(int)(made_random(&seed) % (uint64_t)(10001 - l.memory));
			break;
		case 2:
			if (l.script >= 0)
				more.script +=
					(int)(made_random(&seed) % (uint64_t)(10001 - l.script));
			break;
		default:
			more.sessions += (uint32_t)(made_random(&seed) % 4);
			break;
		}
		ck_assert(index_of(&more, &after, NULL));
		ck_assert_uint_ge(after, before);
	}
}
END_TEST

START_TEST(is_never_below_the_worst_rule_and_full_exactly_with_it)
{
	uint64_t seed = 11;

	for (int i = 0; i < ROUNDS; i++) {
		struct load l = random_load(&seed);
		struct load_detail d;
		uint32_t index;
		bool full;

		if (!index_of(&l, &index, &d))
			continue;
		ck_assert_uint_ge(index, d.cpu.present ? d.cpu.slv : 0);
		ck_assert_uint_ge(index, d.memory.present ? d.memory.slv : 0);
		ck_assert_uint_ge(index, d.sessions.present ? d.sessions.slv : 0);
		ck_assert_uint_ge(index, d.load_script.present ? d.load_script.slv : 0);
		full = l.cpu >= 10000 || l.memory >= 9500 || l.script >= 10000 ||
		       (l.max_sessions && l.sessions >= l.max_sessions);
		ck_assert(full == (index == 10000));
	}
}
END_TEST

/* Leaving a metric out never gives less than each of the others alone says. */
START_TEST(a_missing_metric_hides_nothing)
{
	uint64_t seed = 13;

	for (int i = 0; i < ROUNDS; i++) {
		struct load l = random_load(&seed), without = l;
		uint32_t index, alone;
		struct load only[3] = {
			{.cpu = l.cpu, .memory = -1, .script = -1, .multiplier = 10000},
			{.cpu = -1, .memory = l.memory, .script = -1, .multiplier = 10000},
			{.cpu = -1, .memory = -1, .script = l.script, .multiplier = 10000},
		};
		uint32_t dropped = (uint32_t)(made_random(&seed) % 3);

		if (dropped == 0)
			without.cpu = -1;
		else if (dropped == 1)
			without.memory = -1;
		else
			without.script = -1;
		if (!index_of(&without, &index, NULL))
			continue;
		for (uint32_t j = 0; j < 3; j++) {
			if (j != dropped && index_of(&only[j], &alone, NULL))
				ck_assert_uint_ge(index, alone);
		}
	}
}
END_TEST

START_TEST(metrics_of_a_heartbeat)
{
	struct heartbeat h = {
		.has_cpu = true,
		.cpu_busy = 1234,
		.cpu_count = 8,
		.has_memory = true,
		.memory_total = 100,
		.memory_available = 60,
		.has_custom_load = true,
		.custom_load = 77,
		.window_samples = 12,
		.window_seconds = 60,
	};
	struct node_metrics m = {.missing = true};

	load_metrics_of(&h, &m);
	ck_assert(m.has_cpu && m.has_memory && m.has_custom_load && !m.missing);
	ck_assert_uint_eq(m.cpu_busy, 1234);
	ck_assert_uint_eq(m.cpu_count, 8);
	ck_assert_uint_eq(m.memory_total, 100);
	ck_assert_uint_eq(m.memory_available, 60);
	ck_assert_uint_eq(m.custom_load, 77);
	ck_assert_uint_eq(m.window_samples, 12);
	ck_assert_uint_eq(m.window_seconds, 60);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("load_index");
	TCase *edges = tcase_create("edges"), *properties = tcase_create("properties");

	tcase_add_test(edges, one_rule_reads_linearly);
	tcase_add_test(edges, rounding_is_half_up_and_happens_once);
	tcase_add_test(edges, the_others_count_a_twentieth_of_their_mean);
	tcase_add_test(edges, only_a_full_rule_reaches_ten_thousand);
	tcase_add_test(edges, no_metric_is_no_index);
	tcase_add_test(edges, a_missing_metric_is_marked_and_its_rule_dropped);
	tcase_add_test(edges, rules_have_their_own_points_and_switches);
	tcase_add_test(edges, numbers_of_any_size_do_not_overflow);
	tcase_add_test(edges, memory_is_full_to_the_byte);
	tcase_add_test(edges, impossible_numbers_are_no_metric);
	tcase_add_test(edges, metrics_of_a_heartbeat);
	tcase_add_test(properties, equals_the_formula);
	tcase_add_test(properties, grows_with_every_metric);
	tcase_add_test(properties, is_never_below_the_worst_rule_and_full_exactly_with_it);
	tcase_add_test(properties, a_missing_metric_hides_nothing);
	suite_add_tcase(s, edges);
	suite_add_tcase(s, properties);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
