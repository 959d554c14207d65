/* SPDX-License-Identifier: ISC */
/* The stream of states and events: what a batch writes, keeps apart, and loads again. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/session.h"
#include "tap.h"
#include "world.h"

static struct pg pg;
static struct world w;
static char database[32];
static struct provider *provider;
static struct node *node;

static void start(void)
{
	pg_start(&pg, NULL);
	world_database(&pg, "template");
}

static void stop(void)
{
	pg_stop(&pg);
}

static void open_world(void)
{
	char text[128];

	snprintf(database, sizeof(database), "t%d", (int)getpid());
	snprintf(text, sizeof(text), "CREATE DATABASE %s TEMPLATE template OWNER termbroker_owner",
		database);
	pg_sql(&pg, "postgres", "postgres", text);
	world_up(&w, &pg, database, 5000);
	provider = world_provider(&w, "east");
	node = world_node(&w, "ts1", "192.0.2.1", provider);
}

static void close_world(void)
{
	world_close(&w);
}

static const char *sql(const char *text)
{
	return pg_sql(&pg, "postgres", database, text);
}

static void reload(void)
{
	char conninfo[PG_CONNINFO_SIZE];

	world_close(&w);
	world_open(&w, pg_conninfo(&pg, "termbrokerd", database, conninfo), 5000);
	world_await(&w, &w.ends, 1, 10000);
	node = fleet_node(w.fleet, "ts1");
}

static void beat(struct node *n, uint64_t seq)
{
	struct heartbeat h = {.boot_id = "0b1c7d2e-0000-4000-8000-000000000001",
		.seq = seq,
		.accepting = true,
		.has_cpu = true,
		.cpu_busy = 2550,
		.cpu_count = 8,
		.window_samples = 12,
		.window_seconds = 60,
		.sessions_complete = true,
		.agent_version = "0.1"};
	struct node_metrics m = {.has_cpu = true,
		.cpu_busy = 2550,
		.cpu_count = 8,
		.missing = true,
		.window_samples = 12,
		.window_seconds = 60};

	node_apply_heartbeat(
		n, &h, &m, true, 4242, "198.51.100.7", 1000, INT64_C(1700000000654321));
}

START_TEST(node_state_comes_back)
{
	beat(node, 5);
	store_touch_node(w.store, node);
	/* Read when the batch is made: the latest wins. */
	beat(node, 77);
	node->sessions_complete = true;
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT seq || ' ' || load_index || ' ' || cpu_busy || ' ' || "
			     "(memory_total IS NULL)"
			     " FROM node_load"),
		"77 4242 2550 true");
	reload();
	ck_assert_uint_eq(w.stored.seq, 77);
	ck_assert_uint_eq(w.stored.index, 4242);
	ck_assert(w.stored.has_index && w.stored.accepting && w.stored.sessions_complete);
	ck_assert(w.stored.metrics.has_cpu && !w.stored.metrics.has_memory &&
		  w.stored.metrics.missing);
	ck_assert_uint_eq(w.stored.metrics.cpu_count, 8);
	ck_assert_int_eq(w.stored.heard_wall_us, INT64_C(1700000000654321));
	ck_assert_str_eq(w.stored.boot_id, "0b1c7d2e-0000-4000-8000-000000000001");
	ck_assert_str_eq(w.stored.agent_address, "198.51.100.7");
}
END_TEST

START_TEST(heartbeats_update_in_place)
{
	for (uint64_t i = 1; i <= 50; i++) {
		beat(node, i);
		store_touch_node(w.store, node);
		ck_assert_int_eq(world_flush(&w, 5000), 0);
	}
	ck_assert_str_eq(sql("SELECT seq FROM node_load"), "50");
	sql("SELECT pg_stat_force_next_flush()");
	world_close(&w); /* a backend reports its statistics at its end at the latest */
	for (int64_t deadline = clock_mono_ms() + 10000; clock_mono_ms() < deadline;) {
		if (strcmp(sql("SELECT n_tup_hot_upd >= 45 FROM pg_stat_user_tables WHERE relname "
			       "= 'node_load'"),
			    "t") == 0)
			break;
	}
	ck_assert_str_eq(sql("SELECT n_tup_hot_upd >= 45 FROM pg_stat_user_tables WHERE relname = "
			     "'node_load'"),
		"t");
	world_up(&w, &pg, database, 5000);
}
END_TEST

static const char *const odd_names[] = {"null", "NULL", "\"quoted\"", "back\\slash", "{1,2}", "a,b",
	" ", "$1", "'; DELETE FROM session; --", "\xd0\xb8\xd0\xb2\xd0\xb0\xd0\xbd", "tab\there",
	"line\nbreak", "\x7f\x01"};

START_TEST(odd_names_survive)
{
	size_t count = sizeof(odd_names) / sizeof(odd_names[0]);
	char id[16];

	for (size_t i = 0; i < count; i++) {
		snprintf(id, sizeof(id), "s%zu", i);
		store_write_session(
			w.store, SESSION_ADDED, world_session(&w, node, id, odd_names[i]));
	}
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_uint_eq(w.warnings, 0);
	reload();
	ck_assert_uint_eq(w.sessions, count);
	for (size_t i = 0; i < count; i++) {
		struct session *s;

		snprintf(id, sizeof(id), "s%zu", i);
		s = fleet_find_session(node, id);
		ck_assert_ptr_nonnull(s);
		ck_assert_str_eq(session_key(s), odd_names[i]);
		ck_assert_str_eq(session_client(s), "192.0.2.9");
		ck_assert_int_eq(s->since_ms, INT64_C(1700000000000));
		ck_assert_int_eq(s->first_seen_ms, INT64_C(1700000001000));
		ck_assert(s->active);
	}
}
END_TEST

START_TEST(session_changes_and_ends)
{
	struct session *a = world_session(&w, node, "1", "alice"),
		       *b = world_session(&w, node, "2", "bob");
	struct store_stats before, after;

	store_write_session(w.store, SESSION_ADDED, a);
	store_write_session(w.store, SESSION_ADDED, b);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	a->active = false;
	store_write_session(w.store, SESSION_CHANGED, a);
	store_write_session(w.store, SESSION_ENDED, b);
	/* Ended and begun again in one batch: the newest state counts. */
	store_write_session(w.store, SESSION_ADDED, b);
	store_write_session(w.store, SESSION_ENDED, b);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(
		sql("SELECT string_agg(id || ' ' || active, ';') FROM session"), "1 false");
	/* Begun and ended between two batches: nothing to write. */
	store_stats(w.store, &before);
	store_write_session(w.store, SESSION_ADDED, b);
	store_write_session(w.store, SESSION_ENDED, b);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	store_stats(w.store, &after);
	ck_assert_uint_eq(after.batch_rows, before.batch_rows);
}
END_TEST

START_TEST(one_turn_is_one_batch)
{
	struct store_stats before, after;
	struct event ev;
	char id[16];

	store_stats(w.store, &before);
	for (int i = 0; i < 500; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		store_touch_node(w.store, node);
		store_write_session(w.store, SESSION_ADDED, world_session(&w, node, id, "alice"));
		store_write_event(w.store, world_event(&ev, node, "alice"));
	}
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	store_stats(w.store, &after);
	ck_assert_uint_le(after.batches - before.batches, 2);
	ck_assert_uint_eq(after.batch_rows - before.batch_rows, 1001);
	ck_assert_uint_eq(after.events_written - before.events_written, 500);
	ck_assert_int_eq(store_oldest_wait_ms(w.store), 0);
	ck_assert_str_eq(sql("SELECT count(DISTINCT request_id) FROM event"), "500");
	ck_assert_str_eq(sql("SELECT bool_and(at = '2023-11-14 22:13:20.123456+00' AND node = "
			     "'ts1') FROM event"),
		"t");
}
END_TEST

/* Nobody waits for numbers: they go with the next that somebody waits for, or by themselves. */
START_TEST(numbers_wait_for_company)
{
	struct store_stats before, after;
	bool together = false;
	struct event ev;

	for (int tries = 0; tries < 20 && !together; tries++) {
		int64_t began = clock_mono_ms();

		ck_assert_int_eq(world_flush(&w, 5000), 0);
		store_stats(w.store, &before);
		beat(node, 100 + (uint64_t)tries);
		store_touch_node(w.store, node);
		world_run(&w, 50); /* time enough for a batch, were it sent */
		store_write_event(w.store, world_event(&ev, node, "anna"));
		ck_assert_int_eq(world_flush(&w, 5000), 0);
		store_stats(w.store, &after);
		/* A machine that stood still meanwhile tells nothing. */
		if (clock_mono_ms() - began < 400)
			together = true;
	}
	ck_assert_uint_eq(after.batches, before.batches + 1);
	ck_assert_uint_eq(after.batch_rows, before.batch_rows + 2);
	beat(node, 200);
	store_touch_node(w.store, node);
	for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end;) {
		world_run(&w, 50);
		store_stats(w.store, &after);
		if (after.batches == before.batches + 2)
			break;
	}
	ck_assert_str_eq(sql("SELECT seq FROM node_load"), "200");
}
END_TEST

START_TEST(barrier_of_nothing)
{
	ck_assert_int_eq(world_flush(&w, 0), 0);
}
END_TEST

/* ---- bad rows ---- */

START_TEST(bad_row_is_alone)
{
	char id[16];

	for (int i = 0; i < 300; i++) {
		struct session *s;

		snprintf(id, sizeof(id), "s%d", i);
		s = world_session(&w, node, id, i == 123 ? "\xff\xfe" : "alice");
		store_write_session(w.store, SESSION_ADDED, s);
	}
	beat(node, 9);
	node->index = 10001;
	store_touch_node(w.store, node);
	for (int i = 0; i < 50; i++) {
		struct event ev;

		world_event(&ev, node, "alice");
		if (i == 7)
			ev.params[0].value = "\xff";
		store_write_event(w.store, &ev);
	}
	ck_assert_int_eq(world_flush(&w, 10000), 0);
	ck_assert_str_eq(sql("SELECT count(*) FROM session"), "299");
	ck_assert_str_eq(sql("SELECT count(*) FROM session WHERE id = 's123'"), "0");
	ck_assert_str_eq(sql("SELECT count(*) FROM node_load"), "0");
	ck_assert_int_ge(atoi(sql("SELECT count(*) FROM event")), 49);
	ck_assert_uint_ge(w.warnings, 2);
	ck_assert_ptr_nonnull(strstr(w.warning, "was not written"));
	/* And the next state of the node is written again. */
	node->index = 10000;
	store_touch_node(w.store, node);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT load_index FROM node_load"), "10000");
}
END_TEST

/* Sessions of a node that another dispatcher removed harm nobody. */
START_TEST(gone_node_is_left_out)
{
	struct node *other = world_node(&w, "ts2", "192.0.2.2", provider);

	sql("DELETE FROM node WHERE name = 'ts2'");
	store_touch_node(w.store, other);
	store_write_session(w.store, SESSION_ADDED, world_session(&w, other, "1", "alice"));
	store_write_session(w.store, SESSION_ADDED, world_session(&w, node, "1", "alice"));
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_uint_eq(w.warnings, 0);
	ck_assert_str_eq(sql("SELECT count(*) FROM session"), "1");
}
END_TEST

START_TEST(dropped_node_is_not_touched)
{
	struct node *other = world_node(&w, "ts2", "192.0.2.2", provider);

	store_touch_node(w.store, other);
	store_touch_node(w.store, node);
	store_drop_node(w.store, other);
	ck_assert_int_eq(fleet_remove_node(w.fleet, other->spec.id), 0);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT count(*) FROM node_load"), "1");
}
END_TEST

/* Two dispatchers that write the same rows at the same time. */
START_TEST(two_writers_do_not_block_each_other)
{
	struct world v;

	world_up(&v, &pg, database, 5000);
	for (int round = 0; round < 20; round++) {
		char id[16];

		for (int i = 0; i < 100; i++) {
			int k = round % 2 ? i : 99 - i;

			snprintf(id, sizeof(id), "s%d", k);
			store_write_session(
				w.store, SESSION_CHANGED, world_session(&w, node, id, "alice"));
			snprintf(id, sizeof(id), "s%d", 99 - k);
			store_write_session(v.store, SESSION_CHANGED,
				world_session(&v, fleet_node(v.fleet, "ts1"), id, "bob"));
		}
		event_base_loop(w.base, EVLOOP_NONBLOCK);
		event_base_loop(v.base, EVLOOP_NONBLOCK);
	}
	ck_assert_int_eq(world_flush(&v, 5000), 0);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT count(*) FROM session"), "100");
	ck_assert_uint_eq(w.warnings + v.warnings + w.losts + v.losts, 0);
	world_close(&v);
}
END_TEST

/* ---- changes while it loads ---- */

static void change_others(struct world *in, const char *id)
{
	if (strcmp(id, "s000") != 0)
		return;
	ck_assert(!store_is_up(in->store));
	store_write_session(in->store, SESSION_ENDED, fleet_find_session(node, "s998"));
	ck_assert_int_eq(fleet_forget_session(in->fleet, node, "s998"), 0);
	store_write_session(in->store, SESSION_CHANGED, world_session(in, node, "s999", "bob"));
}

/* An old row of the database does not bring back what has ended, nor undo a change. */
START_TEST(load_does_not_undo)
{
	sql("INSERT INTO session SELECT n.id, 's' || to_char(i, 'FM000'), 'alice', '', '', true, "
	    "now(), now()"
	    " FROM node n, generate_series(0, 999) i");
	world_session(&w, node, "s998", "alice");
	w.on_session = change_others;
	sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'termbrokerd' "
	    "AND datname ="
	    " current_database()");
	world_await(&w, &w.ends, 2, 20000);
	ck_assert_uint_eq(w.sessions, 998);
	ck_assert_ptr_null(fleet_find_session(node, "s998"));
	ck_assert_str_eq(session_key(fleet_find_session(node, "s999")), "bob");
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT count(*) || ' ' || max(user_key) FROM session"), "999 bob");
}
END_TEST

/* ---- size ---- */

START_TEST(large_fleet_loads_while_the_loop_turns)
{
	int64_t begin;

	sql("INSERT INTO node (name, provider_id, address, fqdn, port, tags, max_sessions, "
	    "load_multiplier, mode,"
	    " mode_reason) SELECT 'n' || i, (SELECT id FROM provider), '10.0.' || i / 250 || '.' "
	    "|| i % 250, '', 3389,"
	    " '{}', 100, 10000, 'enabled', '' FROM generate_series(1, 2000) i");
	sql("INSERT INTO session SELECT n.id, 's' || i, 'user' || n.id * 20 + i, '', '192.0.2.1', "
	    "true, now(), now()"
	    " FROM node n, generate_series(1, 20) i WHERE n.name LIKE 'n%'");
	world_close(&w);
	begin = clock_mono_ms();
	world_up(&w, &pg, database, 5000);
	fprintf(stderr, "loaded 2000 nodes, 40000 sessions in %lld ms, longest turn %lld us\n",
		(long long)(clock_mono_ms() - begin), (long long)w.worst_gap_us);
	ck_assert_uint_eq(w.sessions, 40000);
	ck_assert_uint_gt(w.ticks, 5);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("batch");
	TCase *t = tcase_create("batch");

	tcase_set_timeout(t, 60);
	tcase_add_unchecked_fixture(t, start, stop);
	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_add_test(t, node_state_comes_back);
	tcase_add_test(t, heartbeats_update_in_place);
	tcase_add_test(t, odd_names_survive);
	tcase_add_test(t, session_changes_and_ends);
	tcase_add_test(t, one_turn_is_one_batch);
	tcase_add_test(t, numbers_wait_for_company);
	tcase_add_test(t, barrier_of_nothing);
	tcase_add_test(t, bad_row_is_alone);
	tcase_add_test(t, gone_node_is_left_out);
	tcase_add_test(t, dropped_node_is_not_touched);
	tcase_add_test(t, two_writers_do_not_block_each_other);
	tcase_add_test(t, load_does_not_undo);
	tcase_add_test(t, large_fleet_loads_while_the_loop_turns);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
