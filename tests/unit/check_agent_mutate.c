/* SPDX-License-Identifier: ISC */
/*
 * Every file that the agent reads, with bytes changed, cut, doubled and swapped at random (a fixed
 * seed). Whatever comes out must be a heartbeat that a dispatcher takes whole.
 */
#include <utmp.h>

#include "agent/collect_cpu.h"
#include "agent/collect_memory.h"
#include "agent/listening.h"
#include "agent/report.h"
#include "agent/sessions.h"
#include "base/log.h"
#include "check_agent_tree.h"
#include "lib/tap.h"
#include "wire/heartbeat.h"

#define ROUNDS 800
#define BOOT "12345678-0000-4000-8000-000000000001"

struct source {
	const char *path;
	const char *text; /* NULL: a utmp record */
};

static const struct source sources[] = {
	{"proc/stat", "cpu  100 1 50 800 9 0 1 2 7 0\ncpu0 50 1 25 400 4 0 1 1 3 0\nintr 1 2 3\n"},
	{"proc/uptime", "1000.25 4000.00\n"},
	{"proc/meminfo", "MemTotal:  1000 kB\nMemFree: 100 kB\nMemAvailable:  900 kB\n"
			 "Active(file): 10 kB\nInactive(file): 20 kB\nSReclaimable: 30 kB\n"},
	{"proc/sys/vm/min_free_kbytes", "64\n"},
	{"sys/fs/cgroup/cpu.max", "50000 100000\n"},
	{"sys/fs/cgroup/cpuset.cpus.effective", "0-3,8\n"},
	{"sys/fs/cgroup/cpu.stat", "usage_usec 30000000\nuser_usec 1\n"},
	{"sys/fs/cgroup/memory.max", "512000\n"},
	{"sys/fs/cgroup/memory.high", "max\n"},
	{"sys/fs/cgroup/memory.current", "112000\n"},
	{"sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 12000\n"},
	{"proc/net/tcp", "  sl  local_address\n   0: 00000000:0D3D 00000000:0000 0A\n"},
	{"proc/net/tcp6", "  sl  local_address\n   0: 0000:0D3E 0000:0000 01\n"},
	{"etc/passwd", "alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n"},
	{"run/systemd/sessions/3",
		"UID=1001\nUSER=alice\nSTATE=active\nCLASS=user\nTYPE=x11\nDISPLAY=:10\n"
		"REMOTE_HOST=192.0.2.1\nSERVICE=\"xrdp-sesman\"\nLEADER=5\nREALTIME="
		"1796080300123456\n"},
	{"proc/net/unix",
		"0: 00000002 00000000 00010000 0001 01 1 /run/xrdp/sockdir/xrdp_display_10\n"
		"0: 00000003 00000000 00000000 0001 03 2 /run/xrdp/sockdir/xrdp_display_10\n"
		"0: 00000002 00000000 00010000 0001 01 3 /run/xrdp/sockdir/1002/xrdp_display_11\n"},
	{"run/xrdp/sockdir/xrdp_display_10", "1001 1796080302\n"},
	{"run/utmp", NULL},
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

static size_t original(const struct source *s, char *data, size_t size)
{
	struct utmp u = {
		.ut_type = USER_PROCESS, .ut_pid = 7, .ut_line = ":12", .ut_user = "carol"};
	const void *from = s->text ? (const void *)s->text : &u;
	size_t len = s->text ? strlen(s->text) : sizeof(u);

	ck_assert_uint_lt(len * 2, size);
	memcpy(data, from, len);
	return len;
}

static size_t mutate(char *data, size_t len, unsigned *seed)
{
	static const char *const words[] = {"-1", "99999999999999999999", "nan", "\n\n", "=", "\"",
		"\\", "18446744073709551615", "0", "\xff\xfe", "../", ":", "max"};
	size_t at = len ? (size_t)rand_r(seed) % len : 0;
	const char *word = words[(size_t)rand_r(seed) % (sizeof(words) / sizeof(words[0]))];

	if (len == 0)
		return 0;
	switch (rand_r(seed) % 5) {
	case 0:
		data[at] = (char)rand_r(seed);
		return len;
	case 1:
		return at; /* cut */
	case 2:
		memmove(data + at, data + at + 1, len - at - 1);
		return len - 1;
	case 3: /* a word in place of what is there */
		for (size_t i = 0; word[i] && at + i < len; i++)
			data[at + i] = word[i];
		return len;
	default:
		memcpy(data + at, data, len - at < at ? len - at : at);
		return len;
	}
}

static void put_round(const char *dir, unsigned *seed)
{
	static char data[8192];

	for (size_t i = 0; i < SOURCES; i++) {
		size_t len = original(&sources[i], data, sizeof(data));

		for (int n = rand_r(seed) % 3; n > 0; n--)
			len = mutate(data, len, seed);
		tree_put_data(dir, sources[i].path, data, len);
	}
}

static void collect(const struct sysroot *r, struct users *users, struct cpu_reading *before,
	struct sample *s, struct session_list *l, bool *accepting)
{
	struct sessions_options o = {.text_sessions = true};
	struct memory_reading m;
	struct cpu_reading now;
	struct cpu_share share;
	struct err e;

	cpu_read(r, 0, &now, &e);
	cpu_share(before, &now, &share);
	*before = now;
	s->has_cpu = share.has_busy;
	s->cpu_busy = share.busy;
	s->cpu_count = share.count;
	if (memory_read(r, &m, &e) == 0) {
		s->has_memory = true;
		s->memory_total = m.total;
		s->memory_available = m.available;
	}
	listening_on(r, 3389, accepting, &e);
	sessions_collect(r, users, &o, l, &e);
}

static void report(const struct window *w, const struct session_list *l, bool accepting)
{
	struct report r = {.node = "n",
		.boot_id = BOOT,
		.now_boot_ms = 10,
		.seq = 10,
		.accepting = accepting,
		.sessions = l,
		.window = w};
	struct buf out = BUF_INIT(LIMIT_BODY);
	struct heartbeat h;
	uint64_t serial;
	struct err e;

	ck_assert_int_eq(report_format(&r, &out, &serial), 0);
	ck_assert_msg(heartbeat_parse(out.data, out.len, &h, &e) == 0, "%s: %s", e.text, out.data);
	ck_assert_msg(h.sessions_dropped == 0, "%s", out.data);
	ck_assert_uint_eq(h.session_count, l->count);
	heartbeat_deinit(&h);
	buf_deinit(&out);
}

START_TEST(whatever_the_files_say)
{
	struct window_options o = {.boot_id = BOOT, .cache_size = 3, .collect_interval = 5};
	struct cpu_reading before = {0};
	char *dir = tree_new();
	unsigned seed = 7, with_sessions = 0, with_cpu = 0, with_memory = 0;
	struct window *w;
	struct sysroot r;
	struct err e;

	log_set_level(LOG_LEVEL_ERROR);
	tree_put(dir, "proc/7/comm", "Xorg\n");
	tree_open(&r, dir);
	ck_assert_int_eq(window_new(&o, &w, &e), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct users *users = users_new(&r);
		struct session_list l;
		struct sample s = {.boot_ms = 5};
		bool accepting = false;

		put_round(dir, &seed);
		collect(&r, users, &before, &s, &l, &accepting);
		ck_assert(sample_valid(&s));
		with_sessions += l.count > 0;
		with_cpu += s.has_cpu;
		with_memory += s.has_memory;
		window_add(w, &s, &l);
		report(w, &l, accepting);
		session_list_deinit(&l);
		users_free(users);
	}
	/* The changes are small: much of it must still be readable, or this proves little. */
	ck_assert_uint_gt(with_sessions, ROUNDS / 2);
	ck_assert_uint_gt(with_memory, ROUNDS / 4);
	ck_assert_uint_gt(with_cpu, 10);
	window_free(w);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

/* A file of the window with a few bytes changed: it opens, or is set aside, and works. */
START_TEST(whatever_the_database_holds)
{
	struct window_options o = {.boot_id = BOOT, .cache_size = 3, .collect_interval = 5};
	struct session_list none = {.complete = true};
	unsigned seed = 11;

	log_set_level(LOG_LEVEL_ERROR);
	for (int round = 0; round < 150; round++) {
		char *dir = tree_new(), *path = tree_path(dir, "window.db");
		struct sample s = {.boot_ms = 5, .has_cpu = true, .cpu_busy = 5, .cpu_count = 1};
		struct heartbeat h = {0};
		struct window *w;
		struct err e;
		struct stat st;
		FILE *f;

		o.dir = dir;
		ck_assert_int_eq(window_new(&o, &w, &e), 0);
		window_add(w, &s, &none);
		window_free(w);
		ck_assert_int_eq(stat(path, &st), 0);
		f = fopen(path, "r+");
		ck_assert_ptr_nonnull(f);
		for (int n = 1 + rand_r(&seed) % 20; n > 0; n--) {
			/* Half of them where it hurts: headers of pages. */
			long at = rand_r(&seed) % 2 ? rand_r(&seed) % st.st_size
						    : rand_r(&seed) % (st.st_size / 4096) * 4096 +
							      rand_r(&seed) % 100;

			ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
			fputc(rand_r(&seed), f);
		}
		ck_assert_int_eq(fclose(f), 0);
		ck_assert_int_eq(window_new(&o, &w, &e), 0);
		window_add(w, &s, &none);
		ck_assert(window_is_stored(w));
		window_average(w, 10, &h);
		ck_assert(h.has_cpu && h.cpu_busy <= 10000);
		window_free(w);
		free(path);
		tree_end(dir);
	}
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_mutate");
	TCase *c = tcase_create("all");

	suite_add_tcase(s, c);
	tcase_set_timeout(c, 110);
	tcase_add_test(c, whatever_the_files_say);
	tcase_add_test(c, whatever_the_database_holds);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
