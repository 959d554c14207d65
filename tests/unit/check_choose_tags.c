/* SPDX-License-Identifier: ISC */
/* Tags, refusals in their order, and the node that an administrator names. */
#include "choose_fixture.h"
#include "lib/tap.h"

/* ---- tags ---- */

START_TEST(no_request_goes_to_untagged_nodes)
{
	struct node *plain = node(1, NULL, 5000), *gpu = node(2, "gpu", 0);

	goes_to(plain, "least_loaded");
	pool->spec.untagged_default = UNTAGGED_ANY;
	goes_to(gpu, "least_loaded");
	pool->spec.untagged_default = UNTAGGED_NONE;
	ask("any");
	goes_to(gpu, "least_loaded");
	in.tags = NULL;
	goes_to(plain, "least_loaded");
}
END_TEST

START_TEST(optional_request_falls_back_to_no_request)
{
	struct node *plain = node(1, NULL, 5000), *gpu = node(2, "gpu", 6000), *east;

	east = node(3, "east", 0);
	ask("gpu");
	goes_to(gpu, "least_loaded");
	ck_assert(!c.tags_fell_back);
	made_change(fleet, gpu, mode = ADMIN_DRAIN); /* matches, but is no candidate */
	goes_to(plain, "least_loaded");
	ck_assert(c.tags_fell_back);
	ask("gpu!");
	refused("all_maintenance");
	ck_assert_uint_eq(c.counts.tag_mismatch, 2);
	ask("fpga!");
	refused("no_tag_match");
	ck_assert_uint_eq(c.counts.tag_mismatch, 3);
	pool->spec.untagged_default = UNTAGGED_ANY;
	ask("fpga");
	goes_to(east, "least_loaded");
	ask("fpga;-east"); /* the fallback keeps the exclusions */
	goes_to(plain, "least_loaded");
	ck_assert(c.tags_fell_back);
}
END_TEST

START_TEST(fallback_passes_through_the_pools_default_tags)
{
	struct node *plain = node(1, NULL, 0), *gpu = node(2, "gpu", 5000);

	memcpy(pool->spec.default_tags, "gpu", 4);
	ask("fpga");
	goes_to(gpu, "least_loaded"); /* what no request gives here */
	made_change(fleet, gpu, mode = ADMIN_DISABLED);
	goes_to(plain, "least_loaded");
	memcpy(pool->spec.default_tags, "gpu!", 5);
	refused("all_maintenance");
}
END_TEST

START_TEST(forced_tags_are_always_anded)
{
	struct node *plain = node(1, NULL, 0), *east = node(2, "east", 3000),
		    *gpu = node(3, "gpu east", 2000), *west = node(4, "gpu", 1);

	force("east");
	goes_to(gpu, "least_loaded"); /* asking for nothing gives what is forced */
	ask("gpu");
	goes_to(gpu, "least_loaded");
	made_change(fleet, gpu, mode = ADMIN_DRAIN);
	goes_to(east, "least_loaded"); /* the fallback is bound too */
	ask("gpu!");
	refused("all_maintenance");
	ask("none!");
	refused("no_tag_match");
	ask("any");
	goes_to(east, "least_loaded");
	force("-gpu;-east");
	goes_to(plain, "least_loaded");
	force("-west"); /* exclusions alone do not open the door to tagged nodes */
	ask(NULL);
	goes_to(plain, "least_loaded");
	ask("gpu");
	goes_to(west, "least_loaded");
}
END_TEST

START_TEST(tags_bind_round_robin_too)
{
	struct node *gpu = node(2, "gpu", 0);

	node(1, NULL, 0);
	node_assigned(gpu);
	provider->spec.balance_by_metrics = false;
	ask("gpu");
	goes_to(gpu, "round_robin");
	ask("fpga!");
	refused("no_tag_match");
}
END_TEST

START_TEST(tags_beyond_the_first_word)
{
	struct node *n = NULL;

	for (uint32_t i = 0; i < 100; i++) {
		char tag[16];

		snprintf(tag, sizeof(tag), "t%u", i);
		n = node(i + 1, tag, i);
		ask(tag);
		asked.required = true;
		goes_to(n, "least_loaded");
	}
	ask("t3;t77;t99;-t3!");
	goes_to(fleet_node_by_id(fleet, 78), "least_loaded");
}
END_TEST

/* ---- step 6: refusals name the filter that emptied the set ---- */

START_TEST(refusals_in_their_order)
{
	struct node *n[6] = {NULL};

	refused("no_nodes");
	for (uint32_t i = 1; i < 6; i++)
		n[i] = node(i, i == 1 ? "gpu" : NULL, i == 5 ? 10000 : 100);
	made_change(fleet, n[2], mode = ADMIN_DRAIN);
	silence(n[3]);
	(void)made_beat(n[4], 100, false, MADE_NOW_MS);
	refused("all_full"); /* the last that was left */
	ck_assert_uint_eq(c.counts.nodes, 5);
	ck_assert_uint_eq(c.counts.tag_mismatch, 1);
	ck_assert_uint_eq(c.counts.maintenance, 1);
	ck_assert_uint_eq(c.counts.silent, 1);
	ck_assert_uint_eq(c.counts.not_accepting, 1);
	ck_assert_uint_eq(c.counts.full, 1);
	ck_assert_uint_eq(c.counts.candidates, 0);
	ck_assert_int_eq(fleet_remove_node(fleet, 5), 0);
	refused("no_metrics");
	ck_assert_int_eq(fleet_remove_node(fleet, 4), 0);
	refused("no_metrics");
	ck_assert_int_eq(fleet_remove_node(fleet, 3), 0);
	refused("all_maintenance");
	ck_assert_int_eq(fleet_remove_node(fleet, 2), 0);
	refused("no_tag_match");
	ck_assert_int_eq(fleet_remove_node(fleet, 1), 0);
	refused("no_nodes");
}
END_TEST

START_TEST(several_faults_count_as_the_first)
{
	struct node *n = node(1, NULL, 10000);

	made_change(fleet, n, mode = ADMIN_DISABLED);
	silence(n);
	refused("all_maintenance");
	made_change(fleet, n, mode = ADMIN_ENABLED);
	refused("no_metrics");
	ask("gpu!");
	refused("no_tag_match");
}
END_TEST

START_TEST(verdicts_for_explain)
{
	struct node *n = node(1, NULL, 100), *gpu = node(2, "gpu", 50);

	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_CANDIDATE);
	ck_assert_int_eq(choose_verdict(&in, gpu), VERDICT_TAG_MISMATCH);
	ask("gpu"); /* a fallback counts only when it is needed */
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_TAG_MISMATCH);
	ck_assert_int_eq(choose_verdict(&in, gpu), VERDICT_CANDIDATE);
	made_change(fleet, gpu, mode = ADMIN_DRAIN);
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_CANDIDATE);
	ck_assert_int_eq(choose_verdict(&in, gpu), VERDICT_MAINTENANCE);
	ask(NULL);
	(void)made_beat(n, 10000, true, MADE_NOW_MS);
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_INDEX_FULL);
	(void)made_beat(n, 10, true, MADE_NOW_MS);
	made_change(fleet, n, max_sessions = 1);
	session(n, "a", true, 1);
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_CAPACITY_FULL);
	(void)made_beat(n, 10, false, MADE_NOW_MS);
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_NOT_ACCEPTING);
	(void)made_beat(n, MADE_NO_INDEX, false, MADE_NOW_MS);
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_STALE);
	ck_assert(node_check_silence(n, 100, MADE_NOW_MS + 1000));
	ck_assert_int_eq(choose_verdict(&in, n), VERDICT_SILENT);
	ck_assert_str_eq(node_verdict_name(VERDICT_CAPACITY_FULL), "capacity_full");
}
END_TEST

/* ---- an administrator's wish ---- */

START_TEST(a_named_node_ignores_drain_and_nothing_else)
{
	struct node *n = node(1, NULL, 100);

	node(2, NULL, 0);
	in.node_name = "n1";
	in.named = n;
	goes_to(n, "administrator");
	made_change(fleet, n, mode = ADMIN_DRAIN);
	pool->spec.mode = ADMIN_DRAIN;
	provider->spec.mode = ADMIN_DRAIN;
	goes_to(n, "administrator");
	pool->spec.mode = ADMIN_DISABLED;
	refused("pool_maintenance");
	pool->spec.mode = ADMIN_ENABLED;
	made_change(fleet, n, mode = ADMIN_DISABLED);
	refused("all_maintenance");
	made_change(fleet, n, mode = ADMIN_ENABLED);
	ask("gpu!");
	refused("no_tag_match");
	ask("gpu");
	goes_to(n, "administrator");
	ck_assert(c.tags_fell_back);
	force("gpu");
	refused("no_tag_match");
	force(NULL);
	(void)made_beat(n, 10000, true, MADE_NOW_MS);
	refused("all_full");
	(void)made_beat(n, 0, false, MADE_NOW_MS);
	refused("no_metrics");
	(void)made_beat(n, 0, true, MADE_NOW_MS - 500);
	silence(n);
	refused("no_metrics");
}
END_TEST

START_TEST(a_named_node_wins_over_a_live_session)
{
	struct node *n = node(1, NULL, 100), *other = node(2, NULL, 0);

	session(other, "s", true, 1);
	in.node_name = "n1";
	in.named = n;
	goes_to(n, "administrator");
}
END_TEST

START_TEST(a_named_node_must_be_of_the_provider)
{
	struct node *far;

	node(1, NULL, 0);
	made_provider(fleet, 2, "q");
	far = made_node(fleet, 9, 2, NULL);
	made_heard(far, 0);
	in.node_name = "n9";
	in.named = far;
	refused("node_unknown");
	in.named = NULL;
	refused("node_unknown");
	ck_assert_uint_eq(c.retry_after_s, 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("choose_tags");
	TCase *t = tcase_create("choose_tags");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, no_request_goes_to_untagged_nodes);
	tcase_add_test(t, optional_request_falls_back_to_no_request);
	tcase_add_test(t, fallback_passes_through_the_pools_default_tags);
	tcase_add_test(t, forced_tags_are_always_anded);
	tcase_add_test(t, tags_bind_round_robin_too);
	tcase_add_test(t, tags_beyond_the_first_word);
	tcase_add_test(t, refusals_in_their_order);
	tcase_add_test(t, several_faults_count_as_the_first);
	tcase_add_test(t, verdicts_for_explain);
	tcase_add_test(t, a_named_node_ignores_drain_and_nothing_else);
	tcase_add_test(t, a_named_node_wins_over_a_live_session);
	tcase_add_test(t, a_named_node_must_be_of_the_provider);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
