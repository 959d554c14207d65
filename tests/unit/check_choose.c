/* SPDX-License-Identifier: ISC */
/* The steps of the decision, row by row: switches, live session, candidates and their order, turns.
 */
#include "choose_fixture.h"
#include "lib/tap.h"

/* ---- the truth table ---- */

/* Node 1 is idle and least used; node 2 holds alice's session; node 3 was assigned longest ago. */
static const struct {
	bool sharing, balancing, prefer, live;
	uint32_t node;
	const char *reason;
} table[] = {
	{true, false, false, true, 2, "session"},
	{true, false, true, true, 2, "session"},
	{true, true, true, true, 2, "session"},
	{true, true, false, true, 1, "least_loaded"},
	{false, true, false, true, 1, "least_loaded"},
	{false, true, true, true, 1, "least_loaded"},
	{true, true, true, false, 1, "least_loaded"},
	{true, true, false, false, 1, "least_loaded"},
	{false, true, true, false, 1, "least_loaded"},
	{false, true, false, false, 1, "least_loaded"},
	{false, false, false, true, 3, "round_robin"},
	{false, false, true, true, 3, "round_robin"},
	{true, false, true, false, 3, "round_robin"},
	{true, false, false, false, 3, "round_robin"},
	{false, false, true, false, 3, "round_robin"},
	{false, false, false, false, 3, "round_robin"},
};

START_TEST(table_of_switches)
{
	struct node *n[] = {NULL, node(1, NULL, 100), node(2, NULL, 200), node(3, NULL, 300)};

	provider->spec.share_sessions = table[_i].sharing;
	provider->spec.balance_by_metrics = table[_i].balancing;
	provider->spec.prefer_sharing = table[_i].prefer;
	node_assigned(n[3]);
	node_assigned(n[1]);
	node_assigned(n[2]);
	if (table[_i].live)
		session(n[2], "s1", true, 10);
	goes_to(n[table[_i].node], table[_i].reason);
	ck_assert_uint_eq(c.load_index, table[_i].node * 100);
	ck_assert(!c.tags_fell_back);
	ck_assert((c.session != NULL) == (c.reason == CHOICE_SESSION));
}
END_TEST

START_TEST(switches_default_to_on)
{
	ck_assert(provider->spec.share_sessions && provider->spec.balance_by_metrics &&
		  provider->spec.prefer_sharing);
}
END_TEST

/* ---- step 1 ---- */

START_TEST(pool_unknown)
{
	in.pool = NULL;
	refused("pool_unknown");
	ck_assert_uint_eq(c.retry_after_s, 0);
}
END_TEST

START_TEST(disabled_pool_or_provider_refuses_even_a_reconnect)
{
	struct node *n = node(1, NULL, 0);

	session(n, "s", true, 1);
	pool->spec.mode = ADMIN_DISABLED;
	refused("pool_maintenance");
	ck_assert_uint_gt(c.retry_after_s, 0);
	pool->spec.mode = ADMIN_ENABLED;
	provider->spec.mode = ADMIN_DISABLED;
	refused("pool_maintenance");
	provider->spec.mode = ADMIN_ENABLED;
	goes_to(n, "session");
}
END_TEST

START_TEST(drained_pool_or_provider_takes_reconnects_only)
{
	struct node *n = node(1, NULL, 0);

	for (int i = 0; i < 2; i++) {
		pool->spec.mode = i == 0 ? ADMIN_DRAIN : ADMIN_ENABLED;
		provider->spec.mode = i == 1 ? ADMIN_DRAIN : ADMIN_ENABLED;
		in.sessions = NULL;
		refused("pool_maintenance");
		session(n, "s", true, 1);
		goes_to(n, "session");
		provider->spec.share_sessions = false;
		refused("pool_maintenance");
		provider->spec.share_sessions = true;
	}
}
END_TEST

/* ---- step 3: the live session ---- */

START_TEST(reconnect_ignores_load_drain_and_the_requests_tags)
{
	struct node *n = node(1, "east", 10000);

	node(2, "gpu", 0);
	made_change(fleet, n, mode = ADMIN_DRAIN);
	made_change(fleet, n, max_sessions = 1);
	session(n, "s", false, 1);
	ask("gpu!");
	goes_to(n, "session");
	ck_assert_str_eq(session_id(c.session), "s");
	ck_assert_uint_eq(c.load_index, 10000);
	ck_assert_ptr_null(c.suspended);
}
END_TEST

START_TEST(no_reconnect_to_a_disabled_node)
{
	struct node *n = node(1, NULL, 0), *other = node(2, NULL, 5000);

	session(n, "s", true, 1);
	made_change(fleet, n, mode = ADMIN_DISABLED);
	goes_to(other, "least_loaded");
	ck_assert_ptr_null(c.suspended);
}
END_TEST

START_TEST(forced_tags_bind_the_live_session)
{
	struct node *n = node(1, "east", 0), *other = node(2, "gpu", 5000);

	session(n, "s", true, 1);
	force("gpu");
	goes_to(other, "least_loaded");
	force("-gpu");
	goes_to(n, "session");
}
END_TEST

START_TEST(session_of_another_provider_does_not_count)
{
	struct node *n = node(1, NULL, 0), *far;

	made_provider(fleet, 2, "q");
	far = made_node(fleet, 9, 2, NULL);
	made_heard(far, 0);
	session(far, "s", true, 1);
	goes_to(n, "least_loaded");
}
END_TEST

START_TEST(active_before_disconnected_then_the_newest)
{
	struct node *n[5] = {NULL};

	for (uint32_t i = 1; i < 5; i++)
		n[i] = node(i, NULL, 0);
	session(n[1], "a", false, 400);
	goes_to(n[1], "session");
	session(n[2], "b", false, 500);
	goes_to(n[2], "session");
	session(n[3], "c", true, 100);
	goes_to(n[3], "session");
	session(n[4], "d", true, 90);
	goes_to(n[3], "session");
	session(n[4], "e", true, 101);
	goes_to(n[4], "session");
	ck_assert_str_eq(session_id(c.session), "e");
}
END_TEST

START_TEST(silent_node_counts_only_if_it_answers_the_probe)
{
	struct node *n = node(1, NULL, 0), *other = node(2, NULL, 5000);
	const struct session *s = session(n, "s", true, 1);
	const struct node *ask_these[4];

	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
	silence(n);
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 1);
	ck_assert_ptr_eq(ask_these[0], n);
	goes_to(other, "least_loaded"); /* not probed */
	ck_assert_ptr_eq(c.suspended, s);
	probes[0] = (struct choose_probe){n, false};
	in.probe_count = 1;
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
	goes_to(other, "least_loaded");
	ck_assert_ptr_eq(c.suspended, s);
	probes[0].answers = true;
	goes_to(n, "session");
	ck_assert_ptr_null(c.suspended);
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
}
END_TEST

START_TEST(a_node_overdue_but_not_yet_marked_is_probed_too)
{
	struct node *n = node(1, NULL, 0);
	const struct node *ask_these[4];

	session(n, "s", true, 1);
	in.now_ms = n->heard_ms + MADE_STALE_MS;
	goes_to(n, "session");
	in.now_ms++;
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 1);
	in.now_ms += 1000; /* the scan counts whole seconds */
	refused("no_metrics");
	ck_assert_ptr_nonnull(c.suspended);
}
END_TEST

START_TEST(next_session_when_the_first_is_suspended)
{
	struct node *n = node(1, NULL, 0), *other = node(2, NULL, 5000);
	const struct session *s = session(n, "s", true, 9);
	const struct node *ask_these[4];

	session(other, "t", false, 1);
	silence(n);
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 1);
	ck_assert_ptr_eq(ask_these[0], n);
	goes_to(other, "session");
	ck_assert_ptr_eq(c.suspended, s);
	silence(other);
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 2);
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 1), 1);
	refused("no_metrics");
	ck_assert_ptr_eq(c.suspended, s);
}
END_TEST

START_TEST(nothing_is_probed_when_step_3_does_not_apply)
{
	struct node *n = node(1, NULL, 0);
	const struct node *ask_these[4];

	session(n, "s", true, 1);
	session(n, "t", true, 2); /* one node is probed once */
	silence(n);
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 1);
	provider->spec.prefer_sharing = false;
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
	provider->spec.prefer_sharing = true;
	pool->spec.mode = ADMIN_DISABLED;
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
	pool->spec.mode = ADMIN_DRAIN;
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 1);
	in.node_name = "n1";
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
	in.node_name = NULL;
	force("gpu");
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
	in.pool = NULL;
	ck_assert_uint_eq(choose_needs_probe(&in, ask_these, 4), 0);
}
END_TEST

/* ---- step 4: who is a candidate, and in which order ---- */

START_TEST(a_full_node_takes_nobody)
{
	struct node *n = node(1, NULL, 10000);

	refused("all_full");
	ck_assert_uint_eq(c.counts.full, 1);
	ck_assert_uint_gt(c.retry_after_s, 0);
	(void)made_beat(n, 9999, true, MADE_NOW_MS);
	goes_to(n, "least_loaded");
}
END_TEST

START_TEST(capacity_counts_sessions)
{
	struct node *n = node(1, NULL, 100);

	made_change(fleet, n, max_sessions = 2);
	ck_assert_int_eq(fleet_load_session(fleet, n, "a", "bob", NULL, "", true, 1, 1), 0);
	goes_to(n, "least_loaded");
	ck_assert_int_eq(fleet_load_session(fleet, n, "b", "carol", NULL, "", false, 1, 1), 0);
	refused("all_full");
	ck_assert_int_eq(fleet_forget_session(fleet, n, "a"), 0);
	goes_to(n, "least_loaded");
	made_change(fleet, n, max_sessions = 1);
	refused("all_full");
	made_change(fleet, n, max_sessions = 0);
	goes_to(n, "least_loaded");
}
END_TEST

START_TEST(only_heard_accepting_and_fresh_nodes)
{
	struct node *n = made_node(fleet, 1, 1, NULL);

	refused("no_metrics"); /* never heard */
	ck_assert_uint_eq(c.counts.silent, 1);
	(void)made_beat(n, 100, true, MADE_NOW_MS);
	refused("no_metrics"); /* once is not enough */
	(void)made_beat(n, 100, true, MADE_NOW_MS);
	goes_to(n, "least_loaded");
	(void)made_beat(n, 100, false, MADE_NOW_MS);
	refused("no_metrics");
	ck_assert_uint_eq(c.counts.not_accepting, 1);
	(void)made_beat(n, MADE_NO_INDEX, true, MADE_NOW_MS);
	refused("no_metrics"); /* heard, but without any metric */
	ck_assert_uint_eq(c.counts.silent, 1);
	(void)made_beat(n, 100, true, MADE_NOW_MS);
	goes_to(n, "least_loaded");
	silence(n = node(2, NULL, 50));
	ck_assert_str_eq(reason(), "least_loaded");
	ck_assert_ptr_ne(c.node, n);
}
END_TEST

START_TEST(an_overdue_node_is_no_candidate_though_not_yet_marked)
{
	struct node *n = made_node(fleet, 1, 1, NULL), *fresh = node(2, NULL, 9000);

	(void)made_beat(n, 1, true, MADE_NOW_MS - MADE_STALE_MS - 3000);
	(void)made_beat(n, 1, true, MADE_NOW_MS - MADE_STALE_MS - 2000);
	ck_assert_int_eq(n->voice, NODE_HEARD);
	goes_to(fresh, "least_loaded");
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_SILENT);
	(void)made_beat(n, 1, true, MADE_NOW_MS - MADE_STALE_MS);
	goes_to(n, "least_loaded");
}
END_TEST

START_TEST(drained_and_disabled_nodes_take_nobody_new)
{
	struct node *n = node(1, NULL, 0);

	made_change(fleet, n, mode = ADMIN_DRAIN);
	refused("all_maintenance");
	ck_assert_uint_eq(c.counts.maintenance, 1);
	made_change(fleet, n, mode = ADMIN_DISABLED);
	refused("all_maintenance");
	made_change(fleet, n, mode = ADMIN_ENABLED);
	goes_to(n, "least_loaded");
}
END_TEST

START_TEST(unheard_since_start_comes_last_and_counts_in_the_grace)
{
	struct node *n = made_node(fleet, 1, 1, NULL), *heard = node(2, NULL, 9999);
	struct node_stored old = stored(10);

	node_load(n, &old, MADE_NOW_MS - 1000);
	goes_to(heard, "least_loaded");
	made_change(fleet, heard, mode = ADMIN_DRAIN);
	goes_to(n, "least_loaded");
	/* start-up was longer ago than stale_after, but the database came back only now */
	node_load(n, &old, MADE_NOW_MS - MADE_STALE_MS - 5000);
	refused("no_metrics");
	in.grace = true;
	goes_to(n, "least_loaded");
	made_change(fleet, heard, mode = ADMIN_ENABLED);
	goes_to(heard, "least_loaded");
	in.sessions = NULL;
	session(n, "s", true, 1); /* nor is it silent to a live session */
	goes_to(n, "session");
	in.grace = false;
	ck_assert_str_eq(reason(), "least_loaded");
}
END_TEST

START_TEST(mass_silence_keeps_last_known_indices_if_told_to)
{
	struct node *n = node(1, NULL, 10), *heard = node(2, NULL, 9999), *never;

	never = made_node(fleet, 3, 1, NULL);
	silence(n);
	made_change(fleet, heard, mode = ADMIN_DISABLED);
	provider_set_mass_silence(provider, true);
	refused("no_metrics");
	provider->spec.on_mass_silence = MASS_SILENCE_KEEP;
	goes_to(n, "least_loaded");
	ck_assert_int_eq(choose_verdict(&in, never), VERDICT_SILENT);
	made_change(fleet, heard, mode = ADMIN_ENABLED);
	goes_to(heard, "least_loaded");	 /* silent ones last */
	in.now_ms += 10 * MADE_STALE_MS; /* nobody is fresh any more: both last, so by index */
	goes_to(n, "least_loaded");
	provider_set_mass_silence(provider, false);
	refused("no_metrics");
}
END_TEST

START_TEST(kept_nodes_without_an_index_stay_out)
{
	struct node *n = node(1, NULL, 10);

	(void)made_beat(n, MADE_NO_INDEX, true, MADE_NOW_MS - 500);
	silence(n);
	provider_set_mass_silence(provider, true);
	provider->spec.on_mass_silence = MASS_SILENCE_KEEP;
	refused("no_metrics");
	provider->spec.balance_by_metrics = false;
	goes_to(n, "round_robin");
}
END_TEST

/* ---- step 5: round robin ---- */

START_TEST(round_robin_takes_turns)
{
	struct node *n[4] = {NULL};

	provider->spec.balance_by_metrics = false;
	for (uint32_t i = 1; i < 4; i++)
		n[i] = node(i, NULL, 10000); /* the index is not looked at */
	for (uint32_t turn = 0; turn < 9; turn++) {
		goes_to(n[turn % 3 + 1], "round_robin");
		node_assigned(n[turn % 3 + 1]);
	}
}
END_TEST

START_TEST(one_passed_over_keeps_its_turn)
{
	struct node *n[4] = {NULL};

	provider->spec.balance_by_metrics = false;
	for (uint32_t i = 1; i < 4; i++)
		node_assigned(n[i] = node(i, NULL, 0));
	made_change(fleet, n[1], mode = ADMIN_DRAIN);
	goes_to(n[2], "round_robin");
	node_assigned(n[2]);
	goes_to(n[3], "round_robin");
	node_assigned(n[3]);
	made_change(fleet, n[1], mode = ADMIN_ENABLED);
	goes_to(n[1], "round_robin");
}
END_TEST

START_TEST(round_robin_takes_nodes_never_heard_but_none_that_fell_silent)
{
	struct node *n = made_node(fleet, 1, 1, NULL), *heard = node(2, NULL, 10);

	provider->spec.balance_by_metrics = false;
	node_assigned(heard);
	goes_to(n, "round_robin");
	node_assigned(n);
	silence(heard);
	goes_to(n, "round_robin");
	/* once it has spoken, what it said counts */
	(void)made_beat(n, 10, false, MADE_NOW_MS);
	refused("no_metrics");
	(void)made_beat(n, MADE_NO_INDEX, true, MADE_NOW_MS);
	goes_to(n, "round_robin");
	made_change(fleet, n, max_sessions = 1);
	ck_assert_int_eq(fleet_load_session(fleet, n, "a", "bob", NULL, "", true, 1, 1), 0);
	refused("all_full");
}
END_TEST

START_TEST(round_robin_leaves_out_overdue_nodes)
{
	struct node *n = made_node(fleet, 1, 1, NULL), *fresh = node(2, NULL, 10);

	provider->spec.balance_by_metrics = false;
	(void)made_beat(n, 1, true, MADE_NOW_MS - MADE_STALE_MS - 3000);
	(void)made_beat(n, 1, true, MADE_NOW_MS - MADE_STALE_MS - 2000);
	node_assigned(fresh);
	goes_to(fresh, "round_robin");
}
END_TEST

START_TEST(turns_survive_the_end_of_the_numbers)
{
	struct node *a = node(1, NULL, 0), *b = node(2, NULL, 0), *d = node(3, NULL, 0);

	provider->spec.balance_by_metrics = false;
	node_assigned(d);
	provider->farm.assign_seq = FARM_SEQ_MAX - 1;
	node_assigned(a);
	node_assigned(b);
	ck_assert_uint_lt(provider->farm.assign_seq, FARM_SEQ_MAX);
	goes_to(d, "round_robin");
	node_assigned(d);
	goes_to(a, "round_robin");
	node_assigned(a);
	goes_to(b, "round_robin");
}
END_TEST

/* ---- refused connections ---- */

START_TEST(a_suspect_comes_last_until_it_is_trusted)
{
	struct node *a = node(1, NULL, 0), *b = node(2, NULL, 9000);

	for (unsigned balance = 0; balance < 2; balance++) {
		provider->spec.balance_by_metrics = balance;
		ck_assert(node_suspect(a, 1000));
		ck_assert(!node_suspect(a, 2000));
		goes_to(b, balance ? "least_loaded" : "round_robin");
		ck_assert(!node_trust(a, 1999));
		goes_to(b, balance ? "least_loaded" : "round_robin");
		ck_assert(node_trust(a, 2000));
		ck_assert(!node_trust(a, 2000));
		goes_to(a, balance ? "least_loaded" : "round_robin");
	}
	node_suspect(a, 1000);
	node_suspect(b, 1000);
	provider->spec.balance_by_metrics = true;
	goes_to(a, "least_loaded"); /* better than nobody */
	ck_assert(node_trust(a, INT64_MAX));
}
END_TEST

START_TEST(nodes_to_avoid_are_no_candidates)
{
	struct node *a = node(1, NULL, 0), *b = node(2, NULL, 100), *d = node(3, "gpu", 0);
	const struct node *avoid[] = {a, b, d};

	in.avoid = avoid;
	for (unsigned balance = 0; balance < 2; balance++) {
		provider->spec.balance_by_metrics = balance;
		in.avoid_count = 1;
		goes_to(b, balance ? "least_loaded" : "round_robin");
		in.avoid_count = 2;
		refused("no_metrics");
		ck_assert_uint_eq(c.counts.not_accepting, 2);
		ck_assert_uint_eq(c.counts.candidates, 0);
		ck_assert_uint_eq(c.counts.tag_mismatch, 1);
	}
	ask("gpu");
	goes_to(d, "least_loaded");
	in.avoid_count = 3;
	refused("no_metrics"); /* the fallback's nodes are to be avoided, too */
}
END_TEST

START_TEST(a_session_on_a_node_to_avoid_is_suspended)
{
	struct node *a = node(1, NULL, 0), *b = node(2, NULL, 100);
	const struct node *avoid[] = {a}, *to_probe[1];
	struct session *s = session(a, "s", true, 1);

	in.avoid = avoid;
	in.avoid_count = 1;
	goes_to(b, "least_loaded");
	ck_assert_ptr_eq(c.suspended, s);
	silence(a);
	ck_assert_uint_eq(choose_needs_probe(&in, to_probe, 1), 0);
	in.avoid_count = 0;
	ck_assert_uint_eq(choose_needs_probe(&in, to_probe, 1), 1);
}
END_TEST

START_TEST(a_routed_client_goes_to_an_open_node_of_the_pool)
{
	struct node *a = node(1, NULL, 0), *b = node(2, "gpu", 9000);
	const struct node *avoid[] = {b};

	in.routed = b;
	goes_to(b, "token");
	node_set_index(b, true, LOAD_INDEX_MAX);
	goes_to(b, "token");
	force("-gpu");
	goes_to(a, "least_loaded");
	force("");
	in.avoid = avoid;
	in.avoid_count = 1;
	goes_to(a, "least_loaded");
	in.avoid_count = 0;
	pool->spec.mode = ADMIN_DRAIN;
	refused("pool_maintenance");
	pool->spec.mode = ADMIN_ENABLED;
	session(a, "s", true, 1);
	goes_to(a, "session");
	in.sessions = NULL;
	silence(b);
	goes_to(a, "least_loaded");
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("choose");
	TCase *t = tcase_create("choose");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, table_of_switches, 0, (int)(sizeof(table) / sizeof(table[0])));
	tcase_add_test(t, switches_default_to_on);
	tcase_add_test(t, pool_unknown);
	tcase_add_test(t, disabled_pool_or_provider_refuses_even_a_reconnect);
	tcase_add_test(t, drained_pool_or_provider_takes_reconnects_only);
	tcase_add_test(t, reconnect_ignores_load_drain_and_the_requests_tags);
	tcase_add_test(t, no_reconnect_to_a_disabled_node);
	tcase_add_test(t, forced_tags_bind_the_live_session);
	tcase_add_test(t, session_of_another_provider_does_not_count);
	tcase_add_test(t, active_before_disconnected_then_the_newest);
	tcase_add_test(t, silent_node_counts_only_if_it_answers_the_probe);
	tcase_add_test(t, a_node_overdue_but_not_yet_marked_is_probed_too);
	tcase_add_test(t, next_session_when_the_first_is_suspended);
	tcase_add_test(t, nothing_is_probed_when_step_3_does_not_apply);
	tcase_add_test(t, a_full_node_takes_nobody);
	tcase_add_test(t, capacity_counts_sessions);
	tcase_add_test(t, only_heard_accepting_and_fresh_nodes);
	tcase_add_test(t, an_overdue_node_is_no_candidate_though_not_yet_marked);
	tcase_add_test(t, drained_and_disabled_nodes_take_nobody_new);
	tcase_add_test(t, unheard_since_start_comes_last_and_counts_in_the_grace);
	tcase_add_test(t, mass_silence_keeps_last_known_indices_if_told_to);
	tcase_add_test(t, kept_nodes_without_an_index_stay_out);
	tcase_add_test(t, round_robin_takes_turns);
	tcase_add_test(t, one_passed_over_keeps_its_turn);
	tcase_add_test(t, round_robin_takes_nodes_never_heard_but_none_that_fell_silent);
	tcase_add_test(t, round_robin_leaves_out_overdue_nodes);
	tcase_add_test(t, turns_survive_the_end_of_the_numbers);
	tcase_add_test(t, a_suspect_comes_last_until_it_is_trusted);
	tcase_add_test(t, nodes_to_avoid_are_no_candidates);
	tcase_add_test(t, a_session_on_a_node_to_avoid_is_suspended);
	tcase_add_test(t, a_routed_client_goes_to_an_open_node_of_the_pool);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
