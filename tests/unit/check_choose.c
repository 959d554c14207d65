/* SPDX-License-Identifier: ISC */
/*
 * The decision: every row of the truth table, every filter and its refusal, the order, the live
 * session, an administrator's wish, and what a pure function owes: the same answer to the same
 * question, a uniform choice among equals, and agreement with a slow reading of the rules on random
 * fleets.
 */
#include "lib/made_fleet.h"
#include "lib/tap.h"
#include "policy/choose.h"

static struct fleet *fleet;
static struct provider *provider;
static struct pool *pool;
static struct choose_input in;
static struct tag_request asked, forced;
static struct choose_probe probes[4];
static struct choice c;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	provider = made_provider(fleet, 1, "p");
	pool = made_pool(fleet, 1, "pool", 1);
	memset(&asked, 0, sizeof(asked));
	memset(&forced, 0, sizeof(forced));
	in = (struct choose_input){
		.pool = pool,
		.tags = &asked,
		.forced = &forced,
		.probes = probes,
		.now_ms = MADE_NOW_MS,
		.stale_after_ms = MADE_STALE_MS,
		.random = 12345,
	};
}

static void teardown(void)
{
	fleet_free(fleet);
}

static struct node *node(uint32_t id, const char *tags, uint32_t index)
{
	struct node *n = made_node(fleet, id, 1, tags);

	made_heard(n, index);
	return n;
}

static struct session *session(struct node *n, const char *id, bool active, int64_t first_seen)
{
	ck_assert_int_eq(
		fleet_load_session(fleet, n, id, "alice", NULL, "", active, 1, first_seen), 0);
	in.sessions = fleet_user_sessions(fleet, "alice");
	return fleet_find_session(n, id);
}

static void ask(const char *tags)
{
	ck_assert_int_eq(tag_request_parse(tags, &asked, NULL), 0);
}

static void force(const char *tags)
{
	ck_assert_int_eq(tag_request_parse(tags, &forced, NULL), 0);
}

static void silence(struct node *n)
{
	ck_assert(node_check_silence(n, 100, MADE_NOW_MS));
}

static const char *reason(void)
{
	choose(&in, &c);
	ck_assert((c.node == NULL) == choice_is_refusal(c.reason));
	return choice_reason_name(c.reason);
}

#define goes_to(n, why)                          \
	do {                                     \
		ck_assert_str_eq(reason(), why); \
		ck_assert_ptr_eq(c.node, n);     \
	} while (0)

#define refused(why)                             \
	do {                                     \
		ck_assert_str_eq(reason(), why); \
		ck_assert_ptr_null(c.node);      \
	} while (0)

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

static struct node_stored stored(uint32_t index)
{
	return (struct node_stored){
		.voice = NODE_HEARD,
		.boot_id = "b0",
		.seq = 5,
		.accepting = true,
		.has_index = true,
		.index = index,
	};
}

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
	Suite *s = suite_create("choose");
	TCase *t = tcase_create("rules"), *u = tcase_create("properties");

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
	tcase_add_checked_fixture(u, setup, teardown);
	tcase_set_timeout(u, 60);
	tcase_add_test(u, every_reason_has_its_name);
	tcase_add_test(u, uniform_among_equals);
	tcase_add_test(u, uniform_among_equals_beside_overdue_ones);
	tcase_add_test(u, extremes_of_the_random_number);
	tcase_add_loop_test(u, agrees_with_a_slow_reading_on_random_fleets, 0, 120);
	tcase_add_test(u, same_question_same_answer);
	suite_add_tcase(s, t);
	suite_add_tcase(s, u);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
