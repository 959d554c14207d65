/* SPDX-License-Identifier: ISC */
/* A node's voice: silence and its end, replayed and duplicate heartbeats, node-full, rows of the
 * database. */
#include "lib/made_fleet.h"
#include "lib/tap.h"

static struct fleet *fleet;
static struct farm *farm;
static struct node *n;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	farm = &made_provider(fleet, 1, "p")->farm;
	n = made_node(fleet, 1, 1, NULL);
}

static void teardown(void)
{
	fleet_free(fleet);
}

static uint32_t flags(void)
{
	return farm->flags[n->slot];
}

static struct heartbeat beat_of(const char *boot_id, uint64_t seq)
{
	struct heartbeat h = {.seq = seq, .accepting = true};

	snprintf(h.boot_id, sizeof(h.boot_id), "%s", boot_id);
	snprintf(h.agent_version, sizeof(h.agent_version), "1.2");
	return h;
}

static enum heartbeat_verdict judge(const char *boot_id, uint64_t seq)
{
	struct heartbeat h = beat_of(boot_id, seq);

	return node_judge_heartbeat(n, &h);
}

static unsigned apply(const char *boot_id, uint64_t seq, int64_t now_ms)
{
	struct heartbeat h = beat_of(boot_id, seq);
	struct node_metrics m = {.has_cpu = true};

	ck_assert_int_eq(node_judge_heartbeat(n, &h), HEARTBEAT_NEW);
	return node_apply_heartbeat(n, &h, &m, true, 100, "192.0.2.7", now_ms, 42);
}

START_TEST(two_heartbeats_make_a_new_node_heard)
{
	ck_assert_int_eq(n->voice, NODE_NEVER_HEARD);
	ck_assert_uint_eq(flags(), FARM_NEVER_HEARD);
	ck_assert_uint_eq(apply("b1", 1, 1000), 0);
	ck_assert_int_eq(n->voice, NODE_NEVER_HEARD);
	ck_assert_uint_eq(flags(), FARM_NEVER_HEARD);
	ck_assert_uint_eq(apply("b1", 2, 16000), NODE_EVENT_HEARD);
	ck_assert_int_eq(n->voice, NODE_HEARD);
	ck_assert_uint_eq(flags(), 0);
	ck_assert_uint_eq(apply("b1", 3, 31000), 0);
	ck_assert_str_eq(n->agent_address, "192.0.2.7");
	ck_assert_str_eq(n->agent_version, "1.2");
	ck_assert_int_eq(n->heard_wall_us, 42);
	ck_assert_uint_eq(farm->heard_s[n->slot], 31);
	ck_assert_uint_eq(farm->index[n->slot], 100);
}
END_TEST

START_TEST(a_new_node_never_falls_silent)
{
	ck_assert(!node_check_silence(n, MADE_STALE_MS, MADE_NOW_MS * 100));
	(void)apply("b1", 1, 1000);
	ck_assert(!node_check_silence(n, MADE_STALE_MS, MADE_NOW_MS * 100));
	ck_assert_int_eq(n->voice, NODE_NEVER_HEARD);
}
END_TEST

START_TEST(silence_begins_after_stale_after_and_is_told_once)
{
	made_heard(n, 100);
	ck_assert(!node_check_silence(n, MADE_STALE_MS, n->heard_ms + MADE_STALE_MS));
	ck_assert(node_check_silence(n, MADE_STALE_MS, n->heard_ms + MADE_STALE_MS + 1));
	ck_assert_int_eq(n->voice, NODE_SILENT);
	ck_assert_uint_eq(flags(), FARM_SILENT);
	ck_assert(!node_check_silence(n, MADE_STALE_MS, n->heard_ms + MADE_STALE_MS + 2));
	ck_assert_uint_eq(farm->index[n->slot], 100); /* the last known one stays */
}
END_TEST

START_TEST(silence_ends_with_two_heartbeats_in_a_row)
{
	int64_t t = MADE_NOW_MS * 2;

	made_heard(n, 100);
	ck_assert(node_check_silence(n, MADE_STALE_MS, t));
	ck_assert_uint_eq(made_beat(n, 100, true, t), 0);
	ck_assert_int_eq(n->voice, NODE_SILENT);
	/* a pause between the two: they are not in a row */
	ck_assert(!node_check_silence(n, MADE_STALE_MS, t + MADE_STALE_MS + 1));
	t += MADE_STALE_MS + 10;
	ck_assert_uint_eq(made_beat(n, 100, true, t), 0);
	ck_assert_int_eq(n->voice, NODE_SILENT);
	ck_assert(!node_check_silence(n, MADE_STALE_MS, t + 15000));
	ck_assert_uint_eq(made_beat(n, 100, true, t + 15000), NODE_EVENT_HEARD);
	ck_assert_int_eq(n->voice, NODE_HEARD);
	ck_assert_uint_eq(flags(), 0);
}
END_TEST

START_TEST(replayed_heartbeats_are_known_by_their_number)
{
	ck_assert_int_eq(judge("b1", 0), HEARTBEAT_NEW);
	(void)apply("b1", 500, 1000);
	ck_assert_int_eq(judge("b1", 500), HEARTBEAT_REPLAYED);
	ck_assert_int_eq(judge("b1", 499), HEARTBEAT_REPLAYED);
	ck_assert_int_eq(judge("b1", 501), HEARTBEAT_NEW);
	ck_assert_int_eq(judge("b2", 3), HEARTBEAT_NEW); /* another boot counts anew */
}
END_TEST

START_TEST(a_replaced_boot_never_comes_back)
{
	static const char *const boots[] = {"b1", "b2", "b3", "b4", "b5"};

	ck_assert_uint_eq(apply("b1", 100, 1000), 0);
	for (int i = 1; i < 5; i++)
		ck_assert_uint_eq(
			apply(boots[i], 1, 1000) & NODE_EVENT_REBOOTED, NODE_EVENT_REBOOTED);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(judge(boots[i], 1000), HEARTBEAT_DUPLICATE);
	ck_assert_int_eq(judge("b5", 2), HEARTBEAT_NEW);
	/* the last four are kept, no more */
	(void)apply("b6", 1, 1000);
	ck_assert_int_eq(judge("b1", 1000), HEARTBEAT_NEW);
	ck_assert_int_eq(judge("b2", 1000), HEARTBEAT_DUPLICATE);
}
END_TEST

START_TEST(judging_changes_nothing)
{
	struct node before;

	made_heard(n, 5);
	before = *n;
	(void)judge("b1", 1);
	(void)judge("b9", 1);
	ck_assert_mem_eq(&before, n, sizeof(before));
}
END_TEST

START_TEST(full_is_told_once_a_crossing)
{
	made_heard(n, 9999);
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), NODE_EVENT_FULL);
	ck_assert_uint_eq(flags() & FARM_INDEX_FULL, FARM_INDEX_FULL);
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), 0);
	ck_assert_uint_eq(made_beat(n, 9999, true, 1), 0);
	ck_assert_uint_eq(flags() & FARM_INDEX_FULL, 0); /* takes users again at once */
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), 0);
	ck_assert_uint_eq(made_beat(n, 9500, true, 1), 0);
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), 0);
	ck_assert_uint_eq(made_beat(n, MADE_NO_INDEX, true, 1), 0); /* no index is no fall */
	ck_assert_uint_eq(made_beat(n, 9499, true, 1), NODE_EVENT_NOT_FULL);
	ck_assert_uint_eq(made_beat(n, 9499, true, 1), 0);
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), NODE_EVENT_FULL);
}
END_TEST

START_TEST(a_first_heartbeat_may_be_full_already)
{
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), NODE_EVENT_FULL);
	ck_assert_uint_eq(made_beat(n, 10000, true, 1), NODE_EVENT_HEARD);
}
END_TEST

START_TEST(another_index_after_a_change_of_rules)
{
	made_heard(n, 100);
	ck_assert_uint_eq(node_set_index(n, true, 300), 0);
	ck_assert_uint_eq(farm->index[n->slot], 300);
	ck_assert_uint_eq(node_set_index(n, true, 10000), NODE_EVENT_FULL);
	ck_assert_uint_eq(flags(), FARM_INDEX_FULL);
	ck_assert_uint_eq(node_set_index(n, false, 7), 0);
	ck_assert_uint_eq(flags(), FARM_STALE);
	ck_assert_uint_eq(farm->index[n->slot], LOAD_INDEX_MAX);
	ck_assert_uint_eq(n->index, 0);
}
END_TEST

START_TEST(no_metric_is_stale_and_not_accepting_is_told)
{
	made_heard(n, 100);
	(void)made_beat(n, MADE_NO_INDEX, false, 1);
	ck_assert_uint_eq(flags(), FARM_STALE | FARM_NOT_ACCEPTING);
	ck_assert_uint_eq(farm->index[n->slot], LOAD_INDEX_MAX);
	ck_assert(!n->has_index);
}
END_TEST

START_TEST(what_an_administrator_set_is_left_alone)
{
	made_change(fleet, n, mode = ADMIN_DRAIN);
	made_heard(n, 100);
	ck_assert_uint_eq(flags(), FARM_DRAIN);
	ck_assert(node_check_silence(n, 1, MADE_NOW_MS));
	ck_assert_uint_eq(flags(), FARM_DRAIN | FARM_SILENT);
	(void)made_beat(n, 100, true, MADE_NOW_MS);
	(void)made_beat(n, 100, true, MADE_NOW_MS);
	ck_assert_uint_eq(flags(), FARM_DRAIN);
	ck_assert_int_eq(n->spec.mode, ADMIN_DRAIN);
	made_change(fleet, n, mode = ADMIN_DISABLED);
	ck_assert_uint_eq(flags(), FARM_DISABLED);
	ck_assert_int_eq(n->voice, NODE_HEARD); /* nor does the administrator change the voice */
}
END_TEST

static const struct node_stored row = {
	.voice = NODE_HEARD,
	.boot_id = "b2",
	.old_boot_ids = {"b1"},
	.seq = 700,
	.accepting = true,
	.has_index = true,
	.index = 10000,
	.full_told = true,
	.heard_wall_us = 99,
	.agent_version = "1.0",
	.agent_address = "192.0.2.9",
};

START_TEST(rows_of_the_database_are_known_but_not_heard_here)
{
	node_load(n, &row, 5000);
	ck_assert_uint_eq(flags(), FARM_UNHEARD_SINCE_START | FARM_INDEX_FULL);
	ck_assert_int_eq(n->voice, NODE_HEARD);
	ck_assert_uint_eq(farm->heard_s[n->slot], 5); /* one stale_after from the start on */
	ck_assert_int_eq(judge("b2", 700), HEARTBEAT_REPLAYED);
	ck_assert_int_eq(judge("b1", 900), HEARTBEAT_DUPLICATE);
	/* one heartbeat is enough for a node that had been heard, and node-full had been told */
	ck_assert_uint_eq(apply("b2", 701, 6000), NODE_EVENT_NOT_FULL);
	ck_assert_uint_eq(flags(), 0);
	node_load(n, &row, 5000);
	ck_assert(node_check_silence(n, MADE_STALE_MS, 5000 + MADE_STALE_MS + 1));
	ck_assert_uint_eq(flags() & FARM_SILENT, FARM_SILENT);
}
END_TEST

START_TEST(a_row_that_was_silent_stays_so)
{
	struct node_stored silent = row;

	silent.voice = NODE_SILENT;
	silent.full_told = false;
	node_load(n, &silent, 5000);
	ck_assert_uint_eq(flags() & FARM_SILENT, FARM_SILENT);
	ck_assert(!node_check_silence(n, MADE_STALE_MS, 5000 + MADE_STALE_MS + 1));
	ck_assert_uint_eq(apply("b2", 701, 6000), 0);
	ck_assert_uint_eq(apply("b2", 702, 7000), NODE_EVENT_HEARD);
}
END_TEST

START_TEST(a_row_of_a_node_that_never_spoke)
{
	struct node_stored never = {.voice = NODE_NEVER_HEARD};

	node_load(n, &never, 5000);
	ck_assert_uint_eq(flags(), FARM_NEVER_HEARD);
	ck_assert(!node_check_silence(n, MADE_STALE_MS, 5000 + MADE_STALE_MS + 1));
}
END_TEST

START_TEST(assignments_are_numbered_in_the_farm)
{
	struct node *other = made_node(fleet, 2, 1, NULL);

	node_assigned(other);
	node_assigned(n);
	ck_assert_uint_eq(farm->assigned[other->slot], 1);
	ck_assert_uint_eq(farm->assigned[n->slot], 2);
}
END_TEST

START_TEST(mass_silence_is_a_switch)
{
	ck_assert(!n->provider->mass_silence);
	provider_set_mass_silence(n->provider, true);
	ck_assert(n->provider->mass_silence);
	provider_set_mass_silence(n->provider, false);
	ck_assert(!n->provider->mass_silence);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("node");
	TCase *t = tcase_create("voice");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, two_heartbeats_make_a_new_node_heard);
	tcase_add_test(t, a_new_node_never_falls_silent);
	tcase_add_test(t, silence_begins_after_stale_after_and_is_told_once);
	tcase_add_test(t, silence_ends_with_two_heartbeats_in_a_row);
	tcase_add_test(t, replayed_heartbeats_are_known_by_their_number);
	tcase_add_test(t, a_replaced_boot_never_comes_back);
	tcase_add_test(t, judging_changes_nothing);
	tcase_add_test(t, full_is_told_once_a_crossing);
	tcase_add_test(t, a_first_heartbeat_may_be_full_already);
	tcase_add_test(t, another_index_after_a_change_of_rules);
	tcase_add_test(t, no_metric_is_stale_and_not_accepting_is_told);
	tcase_add_test(t, what_an_administrator_set_is_left_alone);
	tcase_add_test(t, rows_of_the_database_are_known_but_not_heard_here);
	tcase_add_test(t, a_row_that_was_silent_stays_so);
	tcase_add_test(t, a_row_of_a_node_that_never_spoke);
	tcase_add_test(t, assignments_are_numbered_in_the_farm);
	tcase_add_test(t, mass_silence_is_a_switch);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
