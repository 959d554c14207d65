/* SPDX-License-Identifier: ISC */
/*
 * The window: averages, ages, logins, and a file that survives kill -9, damage, a full disk, a
 * reboot and clocks that jump. Time is a number handed in, so nothing here waits.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "agent/window.h"
#include "agent/window_db.h"
#include "base/log.h"
#include "check_agent_tree.h"
#include "lib/tap.h"

#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

static struct window *open_window(const char *dir, const char *boot_id, size_t cache_size)
{
	struct window_options o = {
		.dir = dir, .boot_id = boot_id, .cache_size = cache_size, .collect_interval = 5};
	struct window *w = NULL;
	struct err e;

	ck_assert_msg(window_new(&o, &w, &e) == 0, "window_new");
	return w;
}

/* A list of sessions "ID:USER" in one string, separated by blanks. */
static struct session_list sessions_of(const char *text)
{
	struct session_list l = {.complete = true};
	char *copy = strdup(text), *save = NULL;

	for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		struct session s = {.mark = 1, .display = SESSION_NO_DISPLAY};
		char *colon = strchr(p, ':');

		*colon = '\0';
		snprintf(s.id, sizeof(s.id), "%s", p);
		ck_assert_int_eq(session_list_add(&l, &s, colon + 1, strlen(colon + 1), NULL), 0);
	}
	free(copy);
	return l;
}

static void add(struct window *w, uint64_t boot_ms, uint32_t busy, const char *sessions)
{
	struct sample s = {.boot_ms = boot_ms,
		.has_cpu = true,
		.cpu_busy = busy,
		.cpu_count = 2,
		.has_memory = true,
		.memory_total = 1000,
		.memory_available = 1000 - busy % 1000};
	struct session_list l = sessions_of(sessions);

	window_add(w, &s, &l);
	session_list_deinit(&l);
}

static void add_incomplete(struct window *w, uint64_t boot_ms, const char *sessions)
{
	struct sample s = {.boot_ms = boot_ms};
	struct session_list l = sessions_of(sessions);

	l.complete = false;
	window_add(w, &s, &l);
	session_list_deinit(&l);
}

static struct heartbeat average(const struct window *w, uint64_t now)
{
	struct heartbeat h = {0};

	window_average(w, now, &h);
	return h;
}

/* The waiting logins as "alice bob". */
static void expect_logins(const struct window *w, const char *expected)
{
	char text[256] = "";
	size_t n;
	const struct login *l = window_logins(w, &n);

	for (size_t i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			l[i].user);
	ck_assert_str_eq(text, expected);
}

static void acknowledge_all(struct window *w)
{
	size_t n;
	const struct login *l = window_logins(w, &n);

	window_acknowledge(w, n ? l[n - 1].serial : 0);
}

/* Averages ------------------------------------------------------------------------------------- */

START_TEST(averages)
{
	struct sample s[] = {
		{.boot_ms = 1000, .has_cpu = true, .cpu_busy = 1, .cpu_count = 4},
		{.boot_ms = 6000, .has_cpu = true, .cpu_busy = 2, .cpu_count = 4},
		{.boot_ms = 11000, .has_memory = true, .memory_total = 100, .memory_available = 50},
		{.boot_ms = 16000,
			.has_memory = true,
			.memory_total = 200,
			.memory_available = 200},
	};
	struct heartbeat h = {0};

	sample_average(s, 4, 16400, &h);
	ck_assert_uint_eq(h.window_samples, 4);
	ck_assert_uint_eq(h.window_seconds, 15);
	ck_assert(h.has_cpu && h.has_memory && !h.has_custom_load);
	ck_assert_uint_eq(h.cpu_busy, 2); /* 1.5, half up: over the samples that have it */
	ck_assert_uint_eq(h.memory_total, 150);
	ck_assert_uint_eq(h.memory_available, 125);
	sample_average(s, 0, 16400, &h);
	ck_assert(!h.has_cpu && !h.has_memory);
	ck_assert_uint_eq(h.window_samples, 0);
}
END_TEST

START_TEST(the_last_cache_size_samples_count)
{
	struct window *w = open_window(NULL, BOOT_A, 3);

	for (uint32_t i = 0; i < 10; i++)
		add(w, 1000 * i, 100 * i, "");
	ck_assert_uint_eq(average(w, 9000).cpu_busy, 800);
	ck_assert_uint_eq(average(w, 9000).window_samples, 3);
	ck_assert_int_eq(window_resize(w, 2, 5), 0);
	ck_assert_uint_eq(average(w, 9000).cpu_busy, 850);
	ck_assert_int_eq(window_resize(w, 5, 5), 0);
	add(w, 10000, 1000, "");
	ck_assert_uint_eq(average(w, 10000).window_samples, 3);
	window_free(w);
}
END_TEST

START_TEST(old_and_future_samples_do_not_count)
{
	struct window *w = open_window(NULL, BOOT_A, 3);
	uint64_t limit = 3 * 5 * 2 * 1000;

	add(w, 1000, 1000, "");
	add(w, 2000, 2000, "");
	ck_assert_uint_eq(average(w, 1000 + limit).window_samples, 2);
	ck_assert_uint_eq(average(w, 1001 + limit).window_samples, 1);
	ck_assert_uint_eq(average(w, 1001 + limit).cpu_busy, 2000);
	ck_assert_uint_eq(average(w, 2001 + limit).window_samples, 0);
	ck_assert(!average(w, 2001 + limit).has_cpu);
	ck_assert_uint_eq(
		average(w, 1500).window_samples, 1); /* a snapshot brought the clock back */
	window_free(w);
}
END_TEST

/* Logins --------------------------------------------------------------------------------------- */

START_TEST(logins_are_what_is_new)
{
	struct window *w = open_window(NULL, BOOT_A, 3);

	add(w, 1, 0, "1:alice");
	expect_logins(w, ""); /* the first enumeration is how things are */
	add(w, 2, 0, "1:alice 2:bob");
	expect_logins(w, "bob");
	add(w, 3, 0, "1:alice"); /* a short session is seen all the same */
	expect_logins(w, "bob");
	add(w, 4, 0, "1:alice 3:bob 2:carol");
	expect_logins(w, "bob carol bob");
	acknowledge_all(w);
	expect_logins(w, "");
	add(w, 5, 0, "1:alice 3:bob 2:carol");
	expect_logins(w, "");
	add(w, 6, 0, "1:mallory 3:bob 2:carol"); /* an id used again by another user */
	expect_logins(w, "mallory");
	window_free(w);
}
END_TEST

START_TEST(an_incomplete_list_ends_nothing)
{
	struct window *w = open_window(NULL, BOOT_A, 3);

	add_incomplete(w, 1, "1:alice");
	add(w, 2, 0, "1:alice 2:bob");
	expect_logins(w, ""); /* the first whole one */
	add_incomplete(w, 3, "");
	add(w, 4, 0, "1:alice 2:bob");
	expect_logins(w, ""); /* they were there all the time */
	add_incomplete(w, 5, "3:carol");
	expect_logins(w, "carol");
	add(w, 6, 0, "3:carol");
	add(w, 7, 0, "3:carol 1:alice");
	expect_logins(w, "carol alice");
	window_free(w);
}
END_TEST

START_TEST(an_id_used_again_has_another_mark)
{
	struct session_list l = sessions_of("1:alice");
	struct logins logins = {0};
	struct logins_change c;

	ck_assert_int_eq(logins_update(&logins, &l, &c), 0);
	ck_assert(c.known_changed);
	ck_assert_int_eq(logins_update(&logins, &l, &c), 0);
	ck_assert(!c.known_changed);
	l.items[0].mark = 2; /* the container was started anew and counts from 1 again */
	ck_assert_int_eq(logins_update(&logins, &l, &c), 0);
	ck_assert_uint_eq(c.new_waiting, 1);
	ck_assert_uint_eq(logins.waiting_count, 1);
	session_list_deinit(&l);
	logins_deinit(&logins);
}
END_TEST

START_TEST(waiting_logins_are_bounded)
{
	struct logins logins = {.have_baseline = true};
	struct logins_change c;
	struct session s = {.display = SESSION_NO_DISPLAY};

	for (int round = 0; round < 3; round++) {
		struct session_list l = {.complete = true};

		for (int i = 0; i < 3000; i++) {
			snprintf(s.id, sizeof(s.id), "%d-%d", round, i);
			ck_assert_int_eq(session_list_add(&l, &s, "u", 1, NULL), 0);
		}
		ck_assert_int_eq(logins_update(&logins, &l, &c), 0);
		session_list_deinit(&l);
	}
	ck_assert_uint_eq(logins.waiting_count, LOGINS_MAX);
	ck_assert_uint_eq(logins.lost, 4000);
	ck_assert_uint_eq(logins.waiting[0].serial, 4001);
	ck_assert_uint_eq(logins.waiting[LOGINS_MAX - 1].serial, 9000);
	logins_deinit(&logins);
}
END_TEST

/* The file ------------------------------------------------------------------------------------- */

START_TEST(a_restart_goes_on)
{
	char *dir = tree_new();
	struct window *w = open_window(dir, BOOT_A, 12);

	add(w, 1000, 100, "1:alice");
	add(w, 2000, 200, "1:alice 2:bob");
	window_free(w);
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 2000).cpu_busy, 150);
	expect_logins(w, "bob");
	add(w, 3000, 300, "1:alice 2:bob 3:carol"); /* carol came while the agent was away */
	expect_logins(w, "bob carol");
	acknowledge_all(w);
	window_free(w);
	w = open_window(dir, BOOT_A, 2); /* a smaller cache: the newest */
	expect_logins(w, "");
	ck_assert_uint_eq(average(w, 3000).window_samples, 2);
	ck_assert_uint_eq(average(w, 3000).cpu_busy, 250);
	add(w, 4000, 0, "1:alice 2:bob 3:carol");
	expect_logins(w, "");
	window_free(w);
	tree_end(dir);
}
END_TEST

START_TEST(a_reboot_drops_samples_and_keeps_logins)
{
	char *dir = tree_new();
	struct window *w = open_window(dir, BOOT_A, 12);

	add(w, 900000, 9000, "1:alice");
	add(w, 905000, 9000, "1:alice 2:bob");
	window_free(w);
	w = open_window(dir, BOOT_B, 12);
	ck_assert_uint_eq(average(w, 20000).window_samples, 0);
	ck_assert_uint_eq(average(w, 906000).window_samples, 0);
	expect_logins(w, "bob");
	add(w, 20000, 100, "1:alice"); /* ids begin again: she logged in after the boot */
	expect_logins(w, "bob alice");
	ck_assert_uint_eq(average(w, 20000).cpu_busy, 100);
	window_free(w);
	tree_end(dir);
}
END_TEST

static char *db_path(const char *dir)
{
	return tree_path(dir, "window.db");
}

static size_t count_files(const char *dir, const char *with)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		n += strstr(e->d_name, with) != NULL;
	closedir(d);
	return n;
}

static void make_file(const char *dir)
{
	struct window *w = open_window(dir, BOOT_A, 12);

	for (uint64_t i = 0; i < 20; i++)
		add(w, 1000 * i, 100, i % 2 ? "1:alice 2:bob" : "1:alice");
	window_free(w);
}

static void damage_garbage(const char *dir)
{
	tree_put(dir, "window.db",
		"this is not a database, and it is long enough to be looked at: "
		"0123456789012345678901234567890123456789012345678901234567890123456789");
}

static void damage_truncated(const char *dir)
{
	char *path = db_path(dir);

	ck_assert_int_eq(truncate(path, 8192 + 100), 0);
	free(path);
}

static void damage_middle(const char *dir)
{
	char *path = db_path(dir);
	int fd = open(path, O_WRONLY);
	char junk[4096];

	memset(junk, 0xa5, sizeof(junk));
	for (int page = 1; page < 5; page++)
		ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), page * 4096), sizeof(junk));
	close(fd);
	free(path);
}

static void damage_header(const char *dir)
{
	char *path = db_path(dir);
	int fd = open(path, O_WRONLY);

	ck_assert_int_eq(pwrite(fd, "SQLite format 9", 15, 0), 15);
	close(fd);
	free(path);
}

static void run_sql(const char *dir, const char *sql)
{
	char *path = db_path(dir);
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	free(path);
}

static void damage_version(const char *dir)
{
	run_sql(dir, "PRAGMA user_version = 99");
}

static void damage_table(const char *dir)
{
	run_sql(dir, "DROP TABLE login");
}

static void damage_foreign(const char *dir)
{
	run_sql(dir, "PRAGMA user_version = 0; CREATE TABLE mine (x)");
}

static void damage_folder(const char *dir)
{
	char *path = db_path(dir);

	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	free(path);
}

static void (*const damages[])(const char *dir) = {damage_garbage, damage_truncated, damage_middle,
	damage_header, damage_version, damage_table, damage_foreign, damage_folder};

START_TEST(a_damaged_file_is_set_aside)
{
	char *dir = tree_new();
	struct window *w;

	log_set_level(LOG_LEVEL_ERROR);
	make_file(dir);
	damages[_i](dir);
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(count_files(dir, "window.db.damaged-1"), 1);
	ck_assert(window_is_stored(w));
	ck_assert_uint_eq(average(w, 20000).window_samples, 0);
	add(w, 21000, 500, "1:alice");
	window_free(w);
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 21000).cpu_busy, 500);
	window_free(w);
	for (int i = 0; i < 6; i++) { /* not without bound */
		damage_garbage(dir);
		window_free(open_window(dir, BOOT_A, 12));
	}
	ck_assert_uint_le(count_files(dir, "damaged"), 6);
	ck_assert_uint_eq(count_files(dir, "damaged-4"), 0);
	tree_end(dir);
}
END_TEST

START_TEST(damage_while_running_loses_nothing)
{
	char *dir = tree_new();
	struct window *w;

	log_set_level(LOG_LEVEL_ERROR);
	w = open_window(dir, BOOT_A, 12);
	add(w, 1000, 100, "1:alice");
	add(w, 2000, 300, "1:alice 2:bob");
	window_free(w);
	w = open_window(dir, BOOT_A, 12);
	add(w, 3000, 500,
		"1:alice 2:bob"); /* it is in the log now, and the pages below it go bad */
	damage_middle(dir);
	for (uint64_t i = 0; i < 600; i++) /* until a checkpoint or a read meets them */
		add(w, 4000 + i, 500, i % 2 ? "1:alice 2:bob" : "1:alice 2:bob 3:c");
	ck_assert(window_is_stored(w));
	window_free(w);
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 4600).cpu_busy, 500);
	window_free(w);
	tree_end(dir);
}
END_TEST

START_TEST(rows_that_nobody_wrote_are_skipped)
{
	char *dir = tree_new();
	struct window *w;

	make_file(dir);
	run_sql(dir,
		"DELETE FROM sample; DELETE FROM login; DELETE FROM session;"
		"INSERT INTO sample VALUES (0, '" BOOT_A "', 1000, 10001, 2, 10, 5, NULL);"
		"INSERT INTO sample VALUES (1, '" BOOT_A "', 1000, 100, 0, 10, 5, NULL);"
		"INSERT INTO sample VALUES (2, '" BOOT_A "', 1000, 100, 2, 10, 11, NULL);"
		"INSERT INTO sample VALUES (3, '" BOOT_A "', -1, 100, 2, 10, 5, NULL);"
		"INSERT INTO sample VALUES (4, '" BOOT_A "', 1000, NULL, NULL, NULL, NULL, 10001);"
		"INSERT INTO sample VALUES (5, '" BOOT_A "', 1000, 700, 2, 10, 5, NULL);"
		"INSERT INTO login VALUES (-1, 'early'), (5, 'alice'), (6, ''), (7, CAST(x'ff' AS "
		"TEXT));"
		"INSERT INTO session VALUES ('', 'x', 1), ('9', CAST(x'fe' AS TEXT), 1)");
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 2000).window_samples, 1);
	ck_assert_uint_eq(average(w, 2000).cpu_busy, 700);
	expect_logins(w, "alice");
	window_free(w);
	tree_end(dir);
}
END_TEST

START_TEST(one_file_has_one_agent)
{
	char *dir = tree_new();
	struct window *w = open_window(dir, BOOT_A, 12);
	pid_t child = fork(); /* SQLite's locks are a process's */
	int status;

	if (child == 0) {
		struct window_options o = {
			.dir = dir, .boot_id = BOOT_A, .cache_size = 1, .collect_interval = 1};
		struct window *second;
		struct err e;

		_exit(window_new(&o, &second, &e) == -EBUSY && strstr(e.text, "another agent") ? 0
											       : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	add(w, 1, 1, "");
	ck_assert(window_is_stored(w));
	window_free(w);
	tree_end(dir);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written)
{
	char *dir = tree_new(), *below;
	struct window *w;

	log_set_level(LOG_LEVEL_ERROR);
	tree_put(dir, "file", "");
	below = tree_path(dir, "file/state"); /* also root cannot make this */
	w = open_window(below, BOOT_A, 12);
	ck_assert(!window_is_stored(w));
	add(w, 1000, 100, "1:alice");
	add(w, 2000, 300, "1:alice 2:bob");
	ck_assert_uint_eq(average(w, 2000).cpu_busy, 200);
	expect_logins(w, "bob");
	tree_remove(dir, "file");
	tree_put(dir, "file/x", ""); /* a folder now: it recovers with all it has */
	add(w, 3000, 500, "1:alice 2:bob");
	ck_assert(window_is_stored(w));
	window_free(w);
	w = open_window(below, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 3000).cpu_busy, 300);
	expect_logins(w, "bob");
	window_free(w);
	free(below);
	tree_end(dir);
}
END_TEST

/* Fills what is left on the disk of DIR. */
static void fill_disk(const char *dir)
{
	char *path = tree_path(dir, "filler"), block[4096] = {0};
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	ck_assert_int_ge(fd, 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
	free(path);
}

/* A tmpfs of 1 MiB on DIR, or false where we may not mount. */
static bool small_disk(const char *dir)
{
	return geteuid() == 0 && mount("tmpfs", dir, "tmpfs", 0, "size=1m") == 0;
}

START_TEST(a_full_disk_stops_nothing)
{
	char *dir = tree_new();
	struct window *w;

	log_set_level(LOG_LEVEL_ERROR);
	if (!small_disk(dir)) {
		fprintf(stderr, "# skipped: mounting a small disk needs root\n");
		tree_end(dir);
		return;
	}
	w = open_window(dir, BOOT_A, 12);
	add(w, 1000, 100, "1:alice");
	fill_disk(dir);
	for (uint64_t i = 2; i <= 600; i++) /* more than the log has room for */
		add(w, 1000 * i, 300, i % 2 ? "1:alice 2:bob" : "1:alice");
	ck_assert(!window_is_stored(w));
	ck_assert_uint_eq(average(w, 600000).cpu_busy, 300);
	tree_remove(dir, "filler");
	add(w, 601000, 300, "1:alice 3:carol");
	ck_assert(window_is_stored(w));
	acknowledge_all(w);
	add(w, 602000, 300, "1:alice 3:carol 4:dave");
	window_free(w);
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 602000).window_samples, 12);
	expect_logins(w, "dave");
	window_free(w);
	ck_assert_int_eq(umount(dir), 0);
	tree_end(dir);
}
END_TEST

START_TEST(a_disk_that_is_full_from_the_start)
{
	char *dir = tree_new();
	struct window *w;

	log_set_level(LOG_LEVEL_ERROR);
	if (!small_disk(dir)) {
		fprintf(stderr, "# skipped: mounting a small disk needs root\n");
		tree_end(dir);
		return;
	}
	fill_disk(dir);
	w = open_window(dir, BOOT_A, 12);
	add(w, 1000, 100, "1:alice");
	ck_assert(!window_is_stored(w));
	tree_remove(dir, "filler");
	add(w, 2000, 300, "1:alice 2:bob");
	ck_assert(window_is_stored(w));
	window_free(w);
	w = open_window(dir, BOOT_A, 12);
	ck_assert_uint_eq(average(w, 2000).cpu_busy, 200);
	expect_logins(w, "bob");
	window_free(w);
	ck_assert_int_eq(umount(dir), 0);
	tree_end(dir);
}
END_TEST

/* kill -9 -------------------------------------------------------------------------------------- */

/* Writes for ever; tells through FD how far it surely came. Sample N has busy N % 10000 at N ms,
 * and each step a new user logs in. */
static void write_for_ever(const char *dir, uint32_t from, int fd)
{
	struct window *w = open_window(dir, BOOT_A, 12);
	char sessions[64];

	for (uint32_t n = from;; n++) {
		snprintf(sessions, sizeof(sessions), "s%u:user%u", n, n);
		add(w, n, n % 10000, sessions);
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

/* Lets a child write from FROM on and kills it after it said so STEPS times; what it said last. */
static uint32_t write_and_kill(const char *dir, uint32_t from, uint32_t steps)
{
	uint32_t said = 0, last = 0;
	int fds[2];
	pid_t child;

	ck_assert_int_eq(pipe(fds), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close(fds[0]);
		write_for_ever(dir, from, fds[1]);
	}
	close(fds[1]);
	while (said < steps && read(fds[0], &last, sizeof(last)) == sizeof(last))
		said++;
	ck_assert_uint_eq(said, steps);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (read(fds[0], &last, sizeof(last)) == sizeof(last)) /* what was in the pipe */
		;
	close(fds[0]);
	return last;
}

START_TEST(kill_9_in_a_loop)
{
	char *dir = tree_new();
	uint32_t last = 0;
	unsigned seed = 20;

	window_free(open_window(dir, BOOT_A, 12));
	for (int round = 0; round < 60; round++) {
		struct window *w;
		struct heartbeat h;
		const struct login *l;
		size_t n;

		last = write_and_kill(dir, last + 1, 1 + (uint32_t)(rand_r(&seed) % 40));
		w = open_window(dir, BOOT_A, 12);
		ck_assert_uint_eq(count_files(dir, "damaged"), 0);
		h = average(w, last + 100);
		ck_assert(h.has_cpu);
		/* One more may have been written than was said. */
		ck_assert_uint_ge(h.cpu_busy + 12, last);
		l = window_logins(w, &n);
		ck_assert_uint_gt(n, 0);
		for (size_t i = 1; i < n; i++)
			ck_assert_uint_eq(l[i].serial, l[i - 1].serial + 1);
		{
			char user[32];

			snprintf(user, sizeof(user), "user%u", last);
			ck_assert(strcmp(l[n - 1].user, user) == 0 ||
				  (n > 1 && strcmp(l[n - 2].user, user) == 0));
		}
		if (strncmp(l[n - 1].user, "user", 4) == 0)
			last = (uint32_t)strtoul(l[n - 1].user + 4, NULL, 10);
		window_free(w);
	}
	tree_end(dir);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_window");
	TCase *c = tcase_create("all");

	suite_add_tcase(s, c);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, averages);
	tcase_add_test(c, the_last_cache_size_samples_count);
	tcase_add_test(c, old_and_future_samples_do_not_count);
	tcase_add_test(c, logins_are_what_is_new);
	tcase_add_test(c, an_incomplete_list_ends_nothing);
	tcase_add_test(c, an_id_used_again_has_another_mark);
	tcase_add_test(c, waiting_logins_are_bounded);
	tcase_add_test(c, a_restart_goes_on);
	tcase_add_test(c, a_reboot_drops_samples_and_keeps_logins);
	tcase_add_loop_test(
		c, a_damaged_file_is_set_aside, 0, sizeof(damages) / sizeof(damages[0]));
	tcase_add_test(c, damage_while_running_loses_nothing);
	tcase_add_test(c, rows_that_nobody_wrote_are_skipped);
	tcase_add_test(c, one_file_has_one_agent);
	tcase_add_test(c, a_folder_that_cannot_be_written);
	tcase_add_test(c, a_full_disk_stops_nothing);
	tcase_add_test(c, a_disk_that_is_full_from_the_start);
	tcase_add_test(c, kill_9_in_a_loop);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
