/* SPDX-License-Identifier: ISC */
/* What a pure function owes: uniformity, purity, agreement with a slow reading of the rules. */
#include "choose_fixture.h"
#include "lib/tap.h"

/* ---- what a pure function owes ---- */

START_TEST(every_reason_has_its_name)
{
	for (int r = CHOICE_SESSION; r <= CHOICE_NODE_UNKNOWN; r++) {
		ck_assert_str_ne(choice_reason_name((enum choice_reason)r), "unknown");
		ck_assert(choice_is_refusal((enum choice_reason)r) == (r >= CHOICE_POOL_UNKNOWN));
	}
	ck_assert_str_eq(choice_reason_name((enum choice_reason)99), "unknown");
	ck_assert_str_eq(choice_reason_name(CHOICE_TAG_DENIED), "tag_denied");
}
END_TEST

/* Pearson's statistic over equal nodes spread over several blocks of the scan, among others. */
START_TEST(uniform_among_equals)
{
	enum { EQUALS = 50, EACH = 400 };
	uint32_t hits[EQUALS] = {0};
	uint64_t seed = 31337;
	double chi = 0;

	for (uint32_t i = 0; i < 60 * EQUALS; i++)
		node(i + 1, NULL, i % 60 == 59 ? 1000 : 1001 + i % 900);
	for (uint32_t i = 0; i < EQUALS * EACH; i++) {
		in.random = made_random(&seed);
		ck_assert_str_eq(reason(), "least_loaded");
		ck_assert_uint_eq(c.load_index, 1000);
		hits[(c.node->spec.id - 1) / 60]++;
	}
	for (int i = 0; i < EQUALS; i++) {
		double off = (double)hits[i] - EACH;

		chi += off * off / EACH;
	}
	/* 49 degrees of freedom: 85.4 is exceeded once in a thousand, 22.8 undercut as rarely */
	ck_assert_msg(chi > 22.8 && chi < 85.4, "chi-square %.1f", chi);
}
END_TEST

/* The same when a hasty look meets overdue nodes: those among the equals never win, and their share
 * goes to all others alike. */
START_TEST(uniform_among_equals_beside_overdue_ones)
{
	enum { EQUALS = 20, EACH = 1000 };
	uint32_t hits[EQUALS] = {0};
	uint64_t seed = 4242;
	double chi = 0;

	for (uint32_t i = 0; i < 2 * EQUALS; i++) {
		struct node *n = node(i + 1, NULL, 1000);

		if (i % 2)
			(void)made_beat(n, 1000, true, MADE_NOW_MS - MADE_STALE_MS - 5000);
	}
	for (uint32_t i = 0; i < EQUALS * EACH; i++) {
		in.random = made_random(&seed);
		ck_assert_str_eq(reason(), "least_loaded");
		ck_assert_uint_eq((c.node->spec.id - 1) % 2, 0);
		hits[(c.node->spec.id - 1) / 2]++;
	}
	for (int i = 0; i < EQUALS; i++) {
		double off = (double)hits[i] - EACH;

		chi += off * off / EACH;
	}
	/* 19 degrees of freedom */
	ck_assert_msg(chi > 4.9 && chi < 43.8, "chi-square %.1f", chi);
}
END_TEST

START_TEST(extremes_of_the_random_number)
{
	for (uint32_t i = 1; i <= 5; i++)
		node(i, NULL, 10);
	in.random = 0;
	goes_to(fleet_node_by_id(fleet, 1), "least_loaded");
	in.random = UINT64_MAX;
	goes_to(fleet_node_by_id(fleet, 5), "least_loaded");
}
END_TEST

/* Every node equal, over several blocks of the scan with a short one at the end: each hundred of
 * them gets its share, odd and even alike. */
START_TEST(uniform_when_every_node_is_equal)
{
	enum { NODES = 2600, DRAWS = 26000, PARTS = 26 };
	uint32_t hits[PARTS] = {0}, odd = 0;
	uint64_t seed = 2718;
	double chi = 0;

	for (uint32_t i = 0; i < NODES; i++)
		node(i + 1, NULL, 7);
	for (uint32_t i = 0; i < DRAWS; i++) {
		in.random = made_random(&seed);
		ck_assert_str_eq(reason(), "least_loaded");
		hits[(c.node->spec.id - 1) / (NODES / PARTS)]++;
		odd += c.node->spec.id % 2;
	}
	for (int i = 0; i < PARTS; i++) {
		double off = (double)hits[i] - DRAWS / PARTS;

		chi += off * off / (DRAWS / PARTS);
	}
	/* 25 degrees of freedom: 52.6 is exceeded once in a thousand, 8.6 undercut as rarely */
	ck_assert_msg(chi > 8.6 && chi < 52.6, "chi-square %.1f", chi);
	ck_assert_msg(
		odd > DRAWS / 2 - 265 && odd < DRAWS / 2 + 265, "%u odd", odd); /* 3.3 sigma */
}
END_TEST

/* A slow reading of step 4 and 5 for one node, straight from the members of the node. */
static int slow_rank(const struct node *n, bool balance, bool keep)
{
	bool never = n->voice == NODE_NEVER_HEARD, silent = n->voice == NODE_SILENT;
	bool overdue = !never && n->heard_ms / 1000 < (MADE_NOW_MS - MADE_STALE_MS) / 1000;
	bool last = (!n->heard_here && !never) || silent || (overdue && keep);

	if (n->spec.mode != ADMIN_ENABLED || (silent && !keep))
		return INT32_MAX;
	if (overdue && !keep && !(in.grace && !n->heard_here))
		return INT32_MAX;
	if (n->spec.max_sessions && n->session_count >= n->spec.max_sessions)
		return INT32_MAX;
	if (n->boot_id[0] && !n->accepting)
		return INT32_MAX;
	if (balance && (never || !n->has_index || n->index >= 10000))
		return INT32_MAX;
	return (last ? 1000000 : 0) +
	       (balance ? (int)n->index : (int)provider->farm.assigned[n->slot]);
}

static bool slow_tags(const struct node *n)
{
	bool gpu = tag_set_has(&n->spec.tags, "gpu"), east = tag_set_has(&n->spec.tags, "east");

	if (forced.given && !east)
		return false;
	if (!asked.given)
		return forced.given || n->spec.tags.count == 0;
	if (asked.include_count)
		return gpu && (asked.exclude_count == 0 || !east);
	return !east;
}

static void random_node(uint32_t id, uint64_t *seed)
{
	static const char *const tags[] = {NULL, "gpu", "east", "gpu east", "x y z"};
	struct node *n = made_node(fleet, id, 1, tags[made_random(seed) % 5]);
	uint32_t index = made_random(seed) % 9 ? (uint32_t)(made_random(seed) % 12) * 909 : 10000;
	int64_t ago = made_random(seed) % 10 ? 1000 : MADE_STALE_MS + 5000;
	uint64_t kind = made_random(seed) % 12;

	if (made_random(seed) % 8 == 0)
		made_change(fleet, n, mode = made_random(seed) % 2 ? ADMIN_DRAIN : ADMIN_DISABLED);
	if (made_random(seed) % 8 == 0) {
		made_change(fleet, n, max_sessions = 1);
		ck_assert_int_eq(fleet_load_session(fleet, n, "s", "bob", NULL, "", true, 1, 1), 0);
	}
	if (kind == 0)
		return;
	if (kind == 1) {
		struct node_stored old = stored(index);

		node_load(n, &old, MADE_NOW_MS - ago);
		return;
	}
	(void)made_beat(n, index, true, MADE_NOW_MS - ago);
	if (kind > 2)
		(void)made_beat(n, kind == 3 ? MADE_NO_INDEX : index, kind != 4, MADE_NOW_MS - ago);
	if (kind == 5)
		(void)node_check_silence(n, 100, MADE_NOW_MS);
	if (made_random(seed) % 2)
		node_assigned(n);
}

START_TEST(agrees_with_a_slow_reading_on_random_fleets)
{
	static const char *const requests[] = {NULL, "gpu!", "gpu;-east!", "-east!"};
	uint64_t seed = 99 + (uint64_t)_i;
	uint32_t nodes = 1 + (uint32_t)(made_random(&seed) % (_i % 4 ? 60 : 2500));
	int best = INT32_MAX;
	bool keep = made_random(&seed) % 4 == 0, balance = made_random(&seed) % 2;

	for (uint32_t i = 0; i < nodes; i++)
		random_node(i + 1, &seed);
	ask(requests[made_random(&seed) % 4]);
	force(made_random(&seed) % 2 ? "east" : NULL);
	in.grace = made_random(&seed) % 2;
	in.random = made_random(&seed);
	provider->spec.balance_by_metrics = balance;
	provider->spec.on_mass_silence = MASS_SILENCE_KEEP;
	provider_set_mass_silence(provider, keep);
	for (struct node *n = fleet_next_node(fleet, NULL); n; n = fleet_next_node(fleet, n)) {
		int rank = slow_tags(n) ? slow_rank(n, balance, keep) : INT32_MAX;

		ck_assert_msg((choose_verdict(&in, n) == VERDICT_CANDIDATE) == (rank != INT32_MAX),
			"node %u: %s, rank %d", n->spec.id,
			node_verdict_name(choose_verdict(&in, n)), rank);
		best = rank < best ? rank : best;
	}
	choose(&in, &c);
	ck_assert((c.node == NULL) == (best == INT32_MAX));
	if (c.node)
		ck_assert_int_eq(slow_rank(c.node, balance, keep), best);
	else
		ck_assert_uint_eq(c.counts.candidates, 0);
}
END_TEST

/* A refusal's counts are counted block by block: they must say what the nodes' verdicts say. */
static void verdicts_of_all(struct choice_counts *ret)
{
	*ret = (struct choice_counts){0};
	for (struct node *n = fleet_next_node(fleet, NULL); n; n = fleet_next_node(fleet, n)) {
		enum node_verdict v = choose_verdict(&in, n);

		ret->nodes++;
		ret->candidates += v == VERDICT_CANDIDATE;
		ret->tag_mismatch += v == VERDICT_TAG_MISMATCH;
		ret->maintenance += v == VERDICT_MAINTENANCE;
		ret->silent += v == VERDICT_SILENT || v == VERDICT_STALE;
		ret->not_accepting += v == VERDICT_NOT_ACCEPTING;
		ret->full += v == VERDICT_INDEX_FULL || v == VERDICT_CAPACITY_FULL;
	}
}

/* Random nodes; whichever would be chosen is made unfit, until none is left. */
static void random_refusing_fleet(uint32_t nodes, uint64_t *seed)
{
	for (uint32_t i = 0; i < nodes; i++)
		random_node(i + 1, seed);
	for (choose(&in, &c); c.node; choose(&in, &c)) {
		struct node *n = fleet_node_by_id(fleet, c.node->spec.id);

		if (n->has_index && made_random(seed) % 2)
			(void)node_set_index(n, true, 10000);
		if (choose_verdict(&in, n) == VERDICT_CANDIDATE)
			made_change(fleet, n, mode = ADMIN_DRAIN);
	}
}

START_TEST(counts_of_a_refusal_are_the_verdicts_of_the_nodes)
{
	static const char *const requests[] = {NULL, "gpu!", "gpu;-east!", "-east", "gpu;-x"};
	uint64_t seed = 500 + (uint64_t)_i;
	uint32_t nodes = 1 + (uint32_t)(made_random(&seed) % (_i % 4 ? 60 : 2500));
	bool keep = made_random(&seed) % 4 == 0;
	struct choice_counts expected;

	ask(requests[made_random(&seed) % 5]);
	force(made_random(&seed) % 2 ? "east" : NULL);
	in.grace = made_random(&seed) % 2;
	provider->spec.balance_by_metrics = made_random(&seed) % 2;
	provider->spec.on_mass_silence = MASS_SILENCE_KEEP;
	provider_set_mass_silence(provider, keep);
	random_refusing_fleet(nodes, &seed);
	verdicts_of_all(&expected);
	ck_assert_mem_eq(&c.counts, &expected, sizeof(expected));
}
END_TEST

START_TEST(same_question_same_answer)
{
	uint64_t seed = 5;

	for (uint32_t i = 0; i < 300; i++)
		random_node(i + 1, &seed);
	for (int i = 0; i < 200; i++) {
		struct choice first, second;

		in.random = made_random(&seed);
		provider->spec.balance_by_metrics = i % 2;
		choose(&in, &first);
		memset(&second, 0x55, sizeof(second)); /* what was there before does not matter */
		choose(&in, &second);
		ck_assert_int_eq(first.reason, second.reason);
		ck_assert_ptr_eq(first.node, second.node);
		ck_assert_ptr_eq(first.session, second.session);
		ck_assert_ptr_eq(first.suspended, second.suspended);
		ck_assert_uint_eq(first.load_index, second.load_index);
		ck_assert_mem_eq(&first.counts, &second.counts, sizeof(first.counts));
	}
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("choose_properties");
	TCase *t = tcase_create("choose_properties");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, every_reason_has_its_name);
	tcase_add_test(t, uniform_among_equals);
	tcase_add_test(t, uniform_when_every_node_is_equal);
	tcase_add_test(t, uniform_among_equals_beside_overdue_ones);
	tcase_add_test(t, extremes_of_the_random_number);
	tcase_add_loop_test(t, agrees_with_a_slow_reading_on_random_fleets, 0, 120);
	tcase_add_loop_test(t, counts_of_a_refusal_are_the_verdicts_of_the_nodes, 0, 120);
	tcase_add_test(t, same_question_same_answer);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
