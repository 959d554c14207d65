/* SPDX-License-Identifier: ISC */
/* store_migrate, and what the store says about a database it cannot use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "world.h"

static struct pg pg;

static void start(void)
{
	pg_start(&pg, "max_connections=12");
}

static void stop(void)
{
	pg_stop(&pg);
}

static void count(void *ctx, const char *name)
{
	ck_assert_ptr_nonnull(strstr(name, ".sql"));
	++*(unsigned *)ctx;
}

static int migrate(const char *user, const char *database, unsigned *applied, struct err *e)
{
	char conninfo[PG_CONNINFO_SIZE];

	*applied = 0;
	e->text[0] = '\0';
	return store_migrate(pg_conninfo(&pg, user, database, conninfo), count, applied, e);
}

START_TEST(applies_once)
{
	unsigned applied;
	struct err e;

	pg_bootstrap(&pg, "once");
	ck_assert_msg(migrate("termbroker_owner", "once", &applied, &e) == 0, "%s", e.text);
	ck_assert_uint_ge(applied, 2);
	ck_assert_str_eq(pg_sql(&pg, "postgres", "once", "SELECT count(*) > 0 FROM cluster"), "t");
	ck_assert_int_eq(migrate("termbroker_owner", "once", &applied, &e), 0);
	ck_assert_uint_eq(applied, 0);
	/* The service owns nothing, even if a superuser migrated. */
	ck_assert_str_eq(
		pg_sql(&pg, "postgres", "once",
			"SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
			" AND relowner <> 'termbroker_owner'::regrole"),
		"0");
}
END_TEST

START_TEST(superuser_leaves_all_to_the_owner)
{
	unsigned applied;
	struct err e;

	pg_bootstrap(&pg, "super");
	ck_assert_msg(migrate("postgres", "super", &applied, &e) == 0, "%s", e.text);
	ck_assert_str_eq(
		pg_sql(&pg, "postgres", "super",
			"SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
			" AND relowner <> 'termbroker_owner'::regrole"),
		"0");
}
END_TEST

/* Both processes wait at a gate that opens for both at once. */
START_TEST(two_at_once)
{
	int gate[2], results[2];
	unsigned total = 0;
	pid_t pids[4];

	pg_bootstrap(&pg, "two");
	ck_assert_int_eq(pipe(gate), 0);
	ck_assert_int_eq(pipe(results), 0);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			unsigned applied;
			struct err e;
			char c;

			close(gate[1]);
			if (read(gate[0], &c, 1) != 0)
				_exit(3);
			if (migrate("termbroker_owner", "two", &applied, &e) < 0) {
				fprintf(stderr, "%s\n", e.text);
				_exit(1);
			}
			_exit(write(results[1], &applied, sizeof(applied)) == sizeof(applied) ? 0
											      : 4);
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < 4; i++) {
		unsigned applied = 0;
		int status;

		waitpid(pids[i], &status, 0);
		ck_assert_int_eq(status, 0);
		ck_assert_int_eq(read(results[0], &applied, sizeof(applied)), sizeof(applied));
		total += applied;
	}
	close(results[0]);
	close(results[1]);
	ck_assert_str_eq(pg_sql(&pg, "postgres", "two",
				 "SELECT count(*) = max(version) FROM schema_migration"),
		"t");
	ck_assert_int_eq(
		atoi(pg_sql(&pg, "postgres", "two", "SELECT count(*) FROM schema_migration")),
		(int)total);
	ck_assert_str_eq(pg_sql(&pg, "postgres", "two", "SELECT count(*) FROM cluster"), "1");
}
END_TEST

START_TEST(refuses_newer_and_changed)
{
	unsigned applied;
	struct err e;

	world_database(&pg, "newer");
	pg_sql(&pg, "postgres", "newer",
		"INSERT INTO schema_migration (version, name, sha256) VALUES (99, '0099-x.sql', "
		"sha256(''))");
	ck_assert_int_eq(migrate("termbroker_owner", "newer", &applied, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.text, "version 99"));
	pg_sql(&pg, "postgres", "newer",
		"DELETE FROM schema_migration WHERE version = 99;"
		"UPDATE schema_migration SET sha256 = sha256('x') WHERE version = 1");
	ck_assert_int_eq(migrate("termbroker_owner", "newer", &applied, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.text, "0001-schema.sql"));
}
END_TEST

START_TEST(says_what_is_missing)
{
	unsigned applied;
	struct err e;

	ck_assert_int_eq(migrate("postgres", "nowhere", &applied, &e), -EIO);
	ck_assert_ptr_nonnull(strstr(e.text, "\"nowhere\" does not exist"));
	world_database(&pg, "denied");
	ck_assert_int_eq(migrate("termbrokerd", "denied", &applied, &e), -EIO);
	ck_assert_ptr_nonnull(strstr(e.text, "may not act as"));
	/* A malformed string may hold a password: it is not quoted. */
	ck_assert_int_lt(store_migrate("host=/x password=my secret", NULL, NULL, &e), 0);
	ck_assert_ptr_null(strstr(e.text, "secret"));
}
END_TEST

START_TEST(without_roles)
{
	struct pg bare;
	char conninfo[PG_CONNINFO_SIZE];
	struct err e;

	pg_start(&bare, NULL);
	ck_assert_int_eq(
		store_migrate(pg_conninfo(&bare, "postgres", "postgres", conninfo), NULL, NULL, &e),
		-EIO);
	ck_assert_ptr_nonnull(strstr(e.text, "bootstrap.sql"));
	pg_sql(&bare, "postgres", "postgres", "CREATE ROLE termbroker_owner LOGIN");
	ck_assert_int_eq(store_migrate(conninfo, NULL, NULL, &e), -EIO);
	ck_assert_ptr_nonnull(strstr(e.text, "\"termbrokerd\" does not exist"));
	pg_stop(&bare);
}
END_TEST

/* ---- what the running store says ---- */

static void expect_unusable(const char *user, const char *database, const char *words)
{
	char conninfo[PG_CONNINFO_SIZE];
	struct world w;

	world_open(&w, pg_conninfo(&pg, user, database, conninfo), 2000);
	world_await(&w, &w.unusables, 1, 10000);
	ck_assert_msg(strstr(w.reason, words), "%s", w.reason);
	ck_assert_uint_eq(w.ends, 0);
	world_close(&w);
}

START_TEST(unusable_databases)
{
	pg_bootstrap(&pg, "empty");
	expect_unusable("termbrokerd", "empty", "is at version 0, this program needs");
	expect_unusable("termbrokerd", "empty", "termbroker db migrate");
	world_database(&pg, "wrong");
	pg_sql(&pg, "postgres", "wrong",
		"CREATE TABLE kept AS SELECT * FROM schema_migration;"
		"DELETE FROM schema_migration WHERE version > 1");
	expect_unusable("termbrokerd", "wrong", "is at version 1, this program needs");
	pg_sql(&pg, "postgres", "wrong",
		"TRUNCATE schema_migration; INSERT INTO schema_migration SELECT * FROM kept;"
		"INSERT INTO schema_migration (version, name, sha256) VALUES (99, 'x', "
		"sha256(''))");
	expect_unusable("termbrokerd", "wrong", "is at version 99, newer than");
	pg_sql(&pg, "postgres", "wrong",
		"DELETE FROM schema_migration WHERE version = 99;"
		"REVOKE INSERT ON event FROM termbrokerd");
	expect_unusable("termbrokerd", "wrong", "INSERT on event");
	expect_unusable("termbrokerd", "nowhere", "database \"nowhere\" does not exist");
	expect_unusable("stranger", "wrong", "Peer authentication failed");
}
END_TEST

/* A full server is waited for, not given up. */
START_TEST(connection_limit)
{
	char conninfo[PG_CONNINFO_SIZE];
	struct world w;

	world_database(&pg, "limit");
	pg_sql(&pg, "postgres", "postgres", "ALTER ROLE termbrokerd CONNECTION LIMIT 1");
	world_open(&w, pg_conninfo(&pg, "termbrokerd", "limit", conninfo), 2000);
	world_await(&w, &w.losts, 1, 10000);
	ck_assert_msg(strstr(w.reason, "too many connections for role"), "%s", w.reason);
	ck_assert_uint_eq(w.unusables, 0);
	pg_sql(&pg, "postgres", "postgres", "ALTER ROLE termbrokerd CONNECTION LIMIT -1");
	world_await(&w, &w.ends, 1, 20000);
	ck_assert_uint_eq(strlen(w.cluster_id), 36);
	world_close(&w);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("migrate");
	TCase *t = tcase_create("migrate");

	tcase_set_timeout(t, 120);
	tcase_add_unchecked_fixture(t, start, stop);
	tcase_add_test(t, applies_once);
	tcase_add_test(t, superuser_leaves_all_to_the_owner);
	tcase_add_test(t, two_at_once);
	tcase_add_test(t, refuses_newer_and_changed);
	tcase_add_test(t, says_what_is_missing);
	tcase_add_test(t, without_roles);
	tcase_add_test(t, unusable_databases);
	tcase_add_test(t, connection_limit);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
