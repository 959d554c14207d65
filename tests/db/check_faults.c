/* SPDX-License-Identifier: ISC */
/* The database killed, stopped, restarted, locked or not there at all: what was confirmed is kept,
 * what waits is written once, and the loop never waits. */
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"
#include "world.h"

#define TIMEOUT_MS 600

static struct pg pg;
static struct world w;
static struct provider *provider;
static struct node *node;

static void start_server(void)
{
	pg_start(&pg, NULL);
	world_database(&pg, "termbroker");
}

static void start(void)
{
	start_server();
	world_up(&w, &pg, "termbroker", TIMEOUT_MS);
	provider = world_provider(&w, "east");
	node = world_node(&w, "ts1", "192.0.2.1", provider);
}

static void stop_server(void)
{
	pg_stop(&pg);
}

static void stop(void)
{
	world_close(&w);
	stop_server();
}

static const char *sql(const char *text)
{
	return pg_sql(&pg, "postgres", "termbroker", text);
}

static void write_event(unsigned number)
{
	struct event ev;
	char user[16];

	snprintf(user, sizeof(user), "%u", number);
	store_write_event(w.store, world_event(&ev, node, user));
}

/* ---- killed ---- */

/* Writes events one by one, each confirmed by a barrier, while the server is killed and comes back.
 */
struct stream {
	unsigned next, confirmed, last;
	struct got got;
};

static void confirmed(void *ctx, int result, uint32_t id, const char *why)
{
	struct stream *s = ctx;

	if (result == 0)
		s->confirmed = s->next;
	if (s->next >= s->last)
		return;
	write_event(++s->next);
	store_barrier(w.store, 30000, confirmed, s);
}

static void expect_events(unsigned count)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "%u %u %u", count, count, count);
	ck_assert_str_eq(sql("SELECT count(*) || ' ' || count(DISTINCT params->>'user') || ' ' ||"
			     " max((params->>'user')::int) FROM event"),
		expected);
}

START_TEST(kill_loses_nothing_and_doubles_nothing)
{
	struct stream s = {.last = 100000};
	unsigned kills = 0;

	confirmed(&s, 0, 0, "");
	while (kills < 3) {
		world_await(&w, &s.confirmed, s.confirmed + 40, 20000);
		/* A batch is under way: the loop has just sent the next one. */
		pg_kill(&pg);
		kills++;
		for (unsigned i = 0; i < 20; i++)
			event_base_loop(w.base, EVLOOP_ONCE);
		pg_restart(&pg);
		{
			unsigned before = s.confirmed;
			char text[96];

			snprintf(text, sizeof(text), "SELECT count(*) >= %u FROM event", before);
			ck_assert_str_eq(sql(text), "t");
		}
		world_await_up(&w, 20000);
	}
	s.last = s.next;
	world_await(&w, &s.confirmed, s.last, 20000);
	expect_events(s.last);
	ck_assert_uint_eq(w.ends, 4);
	ck_assert_uint_ge(w.losts, 3);
}
END_TEST

/* The commit happened, its answer was lost: the retry must not write again. */
START_TEST(retry_writes_once)
{
	for (unsigned i = 1; i <= 5; i++)
		write_event(i);
	/* The batch goes out, and the loop stands still until the connection is gone. */
	event_base_loop(w.base, EVLOOP_NONBLOCK);
	for (int64_t deadline = clock_mono_ms() + 10000;
		strcmp(sql("SELECT count(*) FROM event"), "5") != 0;)
		ck_assert_int_lt(clock_mono_ms(), deadline);
	sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'termbrokerd'");
	ck_assert_int_eq(world_flush(&w, 20000), 0);
	expect_events(5);
}
END_TEST

START_TEST(retry_of_a_whole_batch_writes_once)
{
	struct store_stats stats;

	/* The commit itself takes longer than the client waits, so the batch is in doubt. */
	sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
	    " IF EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory') THEN PERFORM "
	    "pg_sleep(1.2); END IF;"
	    " RETURN NULL; END $$;"
	    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED"
	    " FOR EACH ROW WHEN (NEW.params->>'user' = '1') EXECUTE FUNCTION slow()");
	{
		char conninfo[PG_CONNINFO_SIZE];
		PGconn *lock = PQconnectdb(pg_conninfo(&pg, "postgres", "termbroker", conninfo));

		PQclear(PQexec(lock, "SELECT pg_advisory_lock(1)"));
		for (unsigned i = 1; i <= 5; i++)
			write_event(i);
		world_await(&w, &w.losts, 1, 10000);
		PQfinish(lock);
	}
	ck_assert_int_eq(world_flush(&w, 20000), 0);
	store_stats(w.store, &stats);
	ck_assert_uint_ge(stats.batch_retries, 1);
	ck_assert_uint_eq(w.warnings, 0);
	expect_events(5);
}
END_TEST

/* ---- stopped ---- */

static void no_row(void *ctx, const struct event_row *row)
{
}

START_TEST(stopped_server_does_not_stop_the_loop)
{
	struct got put = {0}, barrier = {0}, read = {0};
	struct event_query q = {.limit = 10};
	struct provider_spec spec = provider->spec;
	int64_t begin;
	unsigned ticks;

	pg_freeze(&pg);
	begin = clock_mono_ms();
	ticks = w.ticks;
	write_event(1);
	store_touch_node(w.store, node);
	store_write_session(w.store, SESSION_ADDED, world_session(&w, node, "1", "alice"));
	store_put_provider(w.store, &spec, NULL, got_done, &put);
	store_read_events(w.store, &q, no_row, got_done, &read);
	store_barrier(w.store, 300, got_done, &barrier);
	ck_assert_int_eq(world_answer(&w, &barrier), -ENOTCONN);
	ck_assert_int_lt(clock_mono_ms() - begin, TIMEOUT_MS + 1000);
	ck_assert_int_eq(world_answer(&w, &put), -ETIMEDOUT);
	ck_assert_int_lt(world_answer(&w, &read), 0);
	ck_assert(!store_is_up(w.store));
	ck_assert_uint_ge(w.losts, 1);
	ck_assert_int_gt(store_oldest_wait_ms(w.store), 250);
	/* New connections find nobody either. */
	world_run(&w, 2500);
	ck_assert_uint_gt(w.ticks - ticks, 500);
	ck_assert_int_lt(w.worst_gap_us, 500000);
	put = (struct got){0};
	store_put_provider(w.store, &spec, NULL, got_done, &put);
	ck_assert_uint_eq(put.calls, 0);
	ck_assert_int_eq(world_answer(&w, &put), -ENOTCONN);
	pg_thaw(&pg);
	world_await_up(&w, 20000);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	expect_events(1);
	ck_assert_str_eq(sql("SELECT count(*) FROM session JOIN node_load USING (node_id)"), "1");
	/* Abandoned attempts leave no backends behind. */
	ck_assert_str_eq(
		sql("SELECT count(*) <= 2 FROM pg_stat_activity WHERE usename = 'termbrokerd'"),
		"t");
}
END_TEST

START_TEST(stopped_before_the_start)
{
	char conninfo[PG_CONNINFO_SIZE];

	start_server();
	pg_freeze(&pg);
	world_open(&w, pg_conninfo(&pg, "termbrokerd", "termbroker", conninfo), TIMEOUT_MS);
	world_await(&w, &w.losts, 1, 10000);
	ck_assert_msg(strstr(w.reason, "no answer within 1000 ms"), "%s", w.reason);
	ck_assert_uint_gt(w.ticks, 200);
	pg_thaw(&pg);
	world_await_up(&w, 20000);
	stop();
}
END_TEST

/* ---- gone and back ---- */

START_TEST(restart_loads_again)
{
	struct session *kept, *ended;

	kept = world_session(&w, node, "kept", "alice");
	ended = world_session(&w, node, "ended", "bob");
	store_write_session(w.store, SESSION_ADDED, kept);
	store_write_session(w.store, SESSION_ADDED, ended);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	pg_kill(&pg);
	world_await(&w, &w.losts, 1, 10000);
	/* What happens meanwhile is written before anything is read. */
	store_write_session(w.store, SESSION_ENDED, ended);
	ck_assert_int_eq(fleet_forget_session(w.fleet, node, "ended"), 0);
	store_write_session(w.store, SESSION_ADDED, world_session(&w, node, "new", "carol"));
	pg_restart(&pg);
	sql("UPDATE provider SET mode = 'drain'");
	world_await(&w, &w.ends, 2, 20000);
	ck_assert_uint_eq(w.sessions, 2);
	ck_assert_ptr_null(fleet_find_session(node, "ended"));
	ck_assert_ptr_nonnull(fleet_find_session(node, "new"));
	ck_assert_int_eq(fleet_provider(w.fleet, "east")->spec.mode, ADMIN_DRAIN);
}
END_TEST

START_TEST(either_connection_lost_renews_both)
{
	char text[160];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof(text),
			"SELECT pg_terminate_backend((SELECT pid FROM pg_stat_activity WHERE "
			"usename = 'termbrokerd'"
			" ORDER BY backend_start LIMIT 1 OFFSET %u))",
			i);
		sql(text);
		world_await(&w, &w.losts, i + 1, 10000);
		world_await(&w, &w.ends, i + 2, 20000);
		write_event(i + 1);
		ck_assert_int_eq(world_flush(&w, 5000), 0);
	}
	expect_events(2);
	ck_assert_str_eq(
		sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'termbrokerd'"), "2");
}
END_TEST

START_TEST(events_are_bounded)
{
	struct store_stats stats;

	pg_kill(&pg);
	world_await(&w, &w.losts, 1, 10000);
	for (unsigned i = 1; i <= 1500; i++)
		write_event(i);
	store_stats(w.store, &stats);
	ck_assert_uint_eq(stats.events_dropped, 500);
	ck_assert_uint_eq(stats.queued_events, 1000);
	pg_restart(&pg);
	world_await_up(&w, 20000);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT count(*) || ' ' || min((params->>'user')::int) FROM event"),
		"1000 501");
	ck_assert_str_eq(sql("SELECT bool_and((params->>'user')::int = 500 + id - (SELECT min(id) "
			     "FROM event) + 1)"
			     " FROM event"),
		"t");
}
END_TEST

START_TEST(lock_is_waited_out)
{
	char conninfo[PG_CONNINFO_SIZE];
	PGconn *lock = PQconnectdb(pg_conninfo(&pg, "postgres", "termbroker", conninfo));

	PQclear(PQexec(lock, "BEGIN; LOCK TABLE event"));
	write_event(1);
	world_await(&w, &w.losts, 1, 10000);
	/* Reached again, but what waits still cannot be written. */
	world_run(&w, 1500);
	PQfinish(lock);
	world_await_up(&w, 20000);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	expect_events(1);
}
END_TEST

START_TEST(rights_taken_away)
{
	write_event(1);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	sql("REVOKE INSERT ON event FROM termbrokerd");
	write_event(2);
	world_await(&w, &w.losts, 1, 10000);
	ck_assert_msg(strstr(w.reason, "permission denied for table event"), "%s", w.reason);
	world_await(&w, &w.losts, 2, 10000);
	ck_assert_msg(strstr(w.reason, "INSERT on event"), "%s", w.reason);
	ck_assert_uint_eq(w.unusables, 0);
	sql("GRANT INSERT ON event TO termbrokerd");
	world_await_up(&w, 20000);
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	expect_events(2);
}
END_TEST

/* ---- hosts ---- */

/* Listens and never answers. */
static int silent_port(int *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(listen(fd, 5), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

START_TEST(dead_hosts_are_passed_over)
{
	char conninfo[512];
	int port, fd = silent_port(&port);
	int64_t begin;

	start_server();
	snprintf(conninfo, sizeof(conninfo),
		"host=/nowhere,127.0.0.1,localhost,%s port=5432,%d,1,5432 dbname=termbroker "
		"user=termbrokerd",
		pg.socket, port);
	begin = clock_mono_ms();
	world_open(&w, conninfo, TIMEOUT_MS);
	world_await(&w, &w.ends, 1, 10000);
	ck_assert_int_ge(clock_mono_ms() - begin, 900);
	ck_assert_uint_eq(w.losts, 0);
	ck_assert_uint_gt(w.ticks, 200);
	close(fd);
	stop();
}
END_TEST

START_TEST(every_host_is_named_and_no_password)
{
	char conninfo[256];
	int port, fd = silent_port(&port);

	snprintf(conninfo, sizeof(conninfo),
		"host=/nowhere,127.0.0.1 port=5432,%d dbname=termbroker user=termbrokerd "
		"password=hunter2",
		port);
	world_open(&w, conninfo, TIMEOUT_MS);
	world_await(&w, &w.losts, 1, 10000);
	ck_assert_msg(
		strstr(w.reason, "/nowhere: ") && strstr(w.reason, "127.0.0.1: no answer within"),
		"%s", w.reason);
	ck_assert_ptr_null(strstr(w.reason, "hunter2"));
	world_close(&w);
	close(fd);
}
END_TEST

START_TEST(malformed_connection_strings)
{
	static const char *const bad[] = {"host=/x password=very secret", "postgresql://u:secret@[",
		"service=x", "host=a,b port=1,2,3", "secret"};
	struct event_base *base = event_base_new();
	struct store_handler none = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct store_config c = {.connection = bad[i], .dispatcher = "d1"};
		struct store *s;
		struct err e;

		ck_assert_int_eq(store_new(base, &c, &none, NULL, &s, &e), -EINVAL);
		ck_assert_msg(!strstr(e.text, "secret"), "%s", e.text);
	}
	event_base_free(base);
}
END_TEST

START_TEST(read_only_server_is_passed_over)
{
	char conninfo[PG_CONNINFO_SIZE];

	start_server();
	sql("ALTER ROLE termbrokerd SET default_transaction_read_only = on");
	world_open(&w, pg_conninfo(&pg, "termbrokerd", "termbroker", conninfo), TIMEOUT_MS);
	world_await(&w, &w.losts, 1, 10000);
	ck_assert_msg(strstr(w.reason, "read-only"), "%s", w.reason);
	sql("ALTER ROLE termbrokerd RESET default_transaction_read_only");
	world_await_up(&w, 20000);
	stop();
}
END_TEST

/* ---- ending at any moment ---- */

START_TEST(freed_at_any_moment)
{
	char conninfo[PG_CONNINFO_SIZE];

	start_server();
	pg_conninfo(&pg, "termbrokerd", "termbroker", conninfo);
	for (int turns = 0; turns < 120; turns += 3) {
		struct got barrier = {0}, put = {0};
		struct provider_spec spec;

		world_open(&w, conninfo, TIMEOUT_MS);
		for (int i = 0; i < turns; i++)
			event_base_loop(w.base, EVLOOP_ONCE);
		provider_spec_init(&spec);
		snprintf(spec.name, sizeof(spec.name), "p%d", turns);
		store_put_provider(w.store, &spec, NULL, got_done, &put);
		{
			struct event ev;

			event_start(&ev, EVENT_DISPATCHER_STOPPED, 1);
			store_write_event(w.store, &ev);
		}
		store_barrier(w.store, 60000, got_done, &barrier);
		if (turns % 2)
			event_base_loop(w.base, EVLOOP_NONBLOCK);
		world_close(&w);
		ck_assert_uint_eq(barrier.calls, 1);
		ck_assert_uint_eq(put.calls, 1);
	}
	stop_server();
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("faults");
	TCase *t = tcase_create("running"), *own = tcase_create("starting");

	tcase_set_timeout(t, 90);
	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, kill_loses_nothing_and_doubles_nothing);
	tcase_add_test(t, retry_writes_once);
	tcase_add_test(t, retry_of_a_whole_batch_writes_once);
	tcase_add_test(t, stopped_server_does_not_stop_the_loop);
	tcase_add_test(t, restart_loads_again);
	tcase_add_test(t, either_connection_lost_renews_both);
	tcase_add_test(t, events_are_bounded);
	tcase_add_test(t, lock_is_waited_out);
	tcase_add_test(t, rights_taken_away);
	suite_add_tcase(s, t);
	tcase_set_timeout(own, 90);
	tcase_add_test(own, stopped_before_the_start);
	tcase_add_test(own, dead_hosts_are_passed_over);
	tcase_add_test(own, every_host_is_named_and_no_password);
	tcase_add_test(own, malformed_connection_strings);
	tcase_add_test(own, read_only_server_is_passed_over);
	tcase_add_test(own, freed_at_any_moment);
	suite_add_tcase(s, own);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
