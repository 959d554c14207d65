/* SPDX-License-Identifier: ISC */
/* CPU, memory, container limits and the RDP port, on recorded trees and on broken ones. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "agent/cgroup.h"
#include "agent/collect_cpu.h"
#include "agent/collect_memory.h"
#include "agent/listening.h"
#include "agent/scan.h"
#include "check_agent_tree.h"
#include "lib/tap.h"

/* Reads frame after frame; the share of each from the one before. */
static struct cpu_share next_share(struct sysroot *r, struct cpu_reading *before)
{
	struct cpu_reading now;
	struct cpu_share share;
	struct err e;

	ck_assert_int_eq(cpu_read(r, 0, &now, &e), 0);
	cpu_share(before, &now, &share);
	*before = now;
	sysroot_advance(r);
	return share;
}

START_TEST(bare_metal_counts_steal_and_not_guest)
{
	struct cpu_reading before = {0};
	struct cpu_share s;
	struct sysroot r;

	tree_recorded(&r, "bare-metal");
	s = next_share(&r, &before);
	ck_assert(!s.has_busy); /* one reading is no share */
	ck_assert_uint_eq(s.count, 4);
	s = next_share(&r, &before);
	ck_assert(s.has_busy);
	ck_assert_uint_eq(s.busy, 2500);
	s = next_share(&r, &before);
	ck_assert_uint_eq(s.busy, 3500);
	s = next_share(&r, &before); /* from the beginning: counters ran backwards */
	ck_assert(!s.has_busy);
	s = next_share(&r, &before);
	ck_assert_uint_eq(s.busy, 2500);
	sysroot_close(&r);
}
END_TEST

START_TEST(a_container_is_bound_by_its_quota)
{
	struct cpu_reading before = {0};
	struct memory_reading m;
	struct cpu_share s;
	struct sysroot r;
	struct err e;

	tree_recorded(&r, "container-half-cpu");
	next_share(&r, &before);
	s = next_share(&r, &before); /* 1.0 s used of 5 s × 0.5; the machine itself is at 50 % */
	ck_assert(s.has_busy);
	ck_assert_uint_eq(s.busy, 4000);
	ck_assert_uint_eq(s.count, 1);
	s = next_share(&r, &before); /* 2.6 s of 2.5 */
	ck_assert_uint_eq(s.busy, 10000);
	ck_assert_int_eq(memory_read(&r, &m, &e), 0);
	ck_assert_uint_eq(m.total, 2147483648u);
	ck_assert_uint_eq(m.available, 2147483648u - (1610612736u - 536870912u));
	sysroot_close(&r);
}
END_TEST

START_TEST(ninety_six_cpus)
{
	struct cpu_reading before = {0};
	struct cpu_share s;
	struct sysroot r;

	tree_recorded(&r, "cpus-96");
	next_share(&r, &before);
	s = next_share(&r, &before);
	ck_assert_uint_eq(s.busy, 9000);
	ck_assert_uint_eq(s.count, 96);
	sysroot_close(&r);
}
END_TEST

/* Two texts of /proc/stat and whether they make a share. */
static const struct {
	const char *before, *now;
	bool has;
	uint32_t busy;
} stat_cases[] = {
	{"cpu  100 0 0 100 0 0 0 0 0 0\n", "cpu  150 0 0 150 0 0 0 0 0 0\n", true, 5000},
	{"cpu  100 0 0 100\n", "cpu  200 0 0 100\n", true, 10000},
	{"cpu  100 0 0 100\n", "cpu  100 0 0 200\n", true, 0},
	{"cpu  0 0 0 0\n", "cpu  1 0 0 2\n", true, 3333},
	{"cpu  0 0 0 0\n", "cpu  2 0 0 1\n", true, 6667},
	{"cpu  0 0 0 0\n", "cpu  1 0 0 19999\n", true, 1},	    /* half up */
	{"cpu  100 0 0 100\n", "cpu  100 0 0 100\n", false, 0},	    /* nothing moved */
	{"cpu  100 0 0 100\n", "cpu  90 0 0 200\n", false, 0},	    /* busy ran backwards */
	{"cpu  100 0 0 100\n", "cpu  200 0 0 90\n", false, 0},	    /* idle ran backwards */
	{"cpu  0 0 0 100 10\n", "cpu  50 0 0 155 5\n", true, 5000}, /* iowait alone may fall */
	{"cpu  0 0 0 0\n", "cpu  18446744073709551615 1 0 0\n", false, 0}, /* does not add up */
	{"cpu  0 0 0 0\n", "cpu  99999999999999999999 1 0 0\n", false, 0},
	{"cpu  0 0 0 0\n", "cpu  1 2 3\n", false, 0},
	{"cpu  0 0 0 0\n", "cpu0 1 2 3 4\n", false, 0},
	{"cpu  0 0 0 0\n", "", false, 0},
	{"cpu  0 0 0 0\n", "cpu  9000000000000000000 0 0 9000000000000000000\n", true, 5000},
};

START_TEST(a_doubtful_counter_is_missing)
{
	struct cpu_reading before, now;
	struct cpu_share share;
	char *dir = tree_new();
	struct sysroot r;
	struct err e;

	tree_open(&r, dir);
	tree_put(dir, "proc/stat", stat_cases[_i].before);
	ck_assert_int_eq(cpu_read(&r, 0, &before, &e), 0);
	tree_put(dir, "proc/stat", stat_cases[_i].now);
	cpu_read(&r, 5000000, &now, &e);
	cpu_share(&before, &now, &share);
	ck_assert_int_eq(share.has_busy, stat_cases[_i].has);
	ck_assert_uint_eq(share.busy, stat_cases[_i].busy);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

START_TEST(an_unreadable_file_is_named)
{
	struct memory_reading m = {1, 1};
	struct cpu_reading c = {.valid = true};
	struct sysroot r;
	struct err e;
	bool found = true;
	char *dir = tree_new();

	tree_open(&r, dir);
	ck_assert_int_eq(cpu_read(&r, 0, &c, &e), -ENOENT);
	ck_assert(!c.valid);
	ck_assert_ptr_nonnull(strstr(e.text, "/proc/stat"));
	ck_assert_int_eq(memory_read(&r, &m, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/proc/meminfo"));
	ck_assert_uint_eq(m.total, 1);
	ck_assert_int_eq(listening_on(&r, 3389, &found, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/proc/net/tcp"));
	ck_assert(found);
	sysroot_close(&r);
	tree_end(dir);
	ck_assert_int_eq(sysroot_open(&r, "/nonexistent/tree", &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/nonexistent/tree"));
}
END_TEST

static const struct {
	const char *max, *cpuset;
	bool bounded;
	uint64_t millicpus;
} quota_cases[] = {
	{"max 100000\n", "0-7\n", false, 8000}, {"50000 100000\n", "0-7\n", true, 500},
	{"200000 100000\n", NULL, true, 2000},
	{"900000 100000\n", NULL, false, 8000}, /* more than there is */
	{"max 100000\n", "0-1,5\n", true, 3000}, {"150000 100000\n", "3\n", true, 1000},
	{"1 1000000\n", NULL, true, 1}, /* never 0 */
	{"0 100000\n", NULL, false, 8000}, {"50000 0\n", NULL, false, 8000},
	{"rubbish\n", "4-2\n", false, 8000}, {"max 100000\n", "0-4294967295\n", false, 8000},
	{"max 100000\n", "0-1,x\n", false, 8000},
	{NULL, "0-1\n", false, 0}, /* the real root has no cpu.max */
};

START_TEST(quotas)
{
	char *dir = tree_new();
	struct cgroup_cpu c;
	struct sysroot r;

	tree_open(&r, dir);
	if (quota_cases[_i].max)
		tree_put(dir, "sys/fs/cgroup/cpu.max", quota_cases[_i].max);
	if (quota_cases[_i].cpuset)
		tree_put(dir, "sys/fs/cgroup/cpuset.cpus.effective", quota_cases[_i].cpuset);
	cgroup_read_cpu(&r, 8, &c);
	ck_assert_int_eq(c.bounded, quota_cases[_i].bounded);
	ck_assert_uint_eq(c.millicpus, quota_cases[_i].millicpus);
	ck_assert(!c.has_usage);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

START_TEST(a_bound_that_cannot_be_measured_is_missing)
{
	char *dir = tree_new();
	struct memory_reading m;
	struct cpu_reading c;
	struct sysroot r;
	struct err e;

	tree_open(&r, dir);
	tree_put(dir, "proc/stat", "cpu  1 1 1 1\ncpu0 1 1 1 1\ncpu1 1 1 1 1\n");
	tree_put(dir, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
	tree_put(dir, "sys/fs/cgroup/cpu.max", "50000 100000\n");
	tree_put(dir, "sys/fs/cgroup/memory.max", "500000\n");
	ck_assert_int_ne(cpu_read(&r, 0, &c, &e), 0);
	ck_assert_ptr_nonnull(strstr(e.text, "cpu.stat"));
	ck_assert_int_ne(memory_read(&r, &m, &e), 0);
	ck_assert_ptr_nonnull(strstr(e.text, "memory.current"));
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

static const struct {
	const char *max, *high, *current, *inactive;
	int error;
	uint64_t total, available; /* of 1000 KiB with 900 available */
} limit_cases[] = {
	{"max\n", "max\n", "1\n", "inactive_file 0\n", 0, 1024000, 921600},
	{"512000\n", "max\n", "112000\n", "inactive_file 12000\n", 0, 512000, 412000},
	{"512000\n", "256000\n", "112000\n", "inactive_file 12000\n", 0, 256000,
		156000}, /* the smaller */
	{"max\n", "256000\n", "300000\n", "inactive_file 0\n", 0, 256000, 0},
	{"512000\n", "max\n", "100\n", "inactive_file 200\n", 0, 512000, 512000},
	{"9999999999\n", "max\n", NULL, NULL, 0, 1024000, 921600}, /* no bound at all */
	{"1000000\n", "max\n", "0\n", "inactive_file 0\n", 0, 1000000,
		921600}, /* the machine has less */
	{"0\n", "max\n", "0\n", "inactive_file 0\n", -ENODATA, 0, 0},
	{"512000\n", "max\n", "112000\n", "anon 1\n", -ENODATA, 0, 0},
};

START_TEST(memory_limits)
{
	char *dir = tree_new();
	struct memory_reading m = {0, 0};
	struct sysroot r;
	struct err e;

	tree_open(&r, dir);
	tree_put(dir, "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:  900 kB\n");
	tree_put(dir, "sys/fs/cgroup/memory.max", limit_cases[_i].max);
	tree_put(dir, "sys/fs/cgroup/memory.high", limit_cases[_i].high);
	if (limit_cases[_i].current)
		tree_put(dir, "sys/fs/cgroup/memory.current", limit_cases[_i].current);
	if (limit_cases[_i].inactive)
		tree_put(dir, "sys/fs/cgroup/memory.stat", limit_cases[_i].inactive);
	ck_assert_int_eq(memory_read(&r, &m, &e), limit_cases[_i].error);
	ck_assert_uint_eq(m.total, limit_cases[_i].total);
	ck_assert_uint_eq(m.available, limit_cases[_i].available);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

START_TEST(no_memavailable_is_computed)
{
	struct memory_reading m;
	struct sysroot r;
	struct err e;

	tree_recorded(&r, "no-memavailable");
	ck_assert_int_eq(memory_read(&r, &m, &e), 0);
	/* low = 64000 × 5/4 = 80000; 1000000 − low + 2000000 − low + 200000 − low */
	ck_assert_uint_eq(m.available, UINT64_C(2960000) * 1024);
	ck_assert_uint_eq(m.total, UINT64_C(8192000) * 1024);
	sysroot_close(&r);
}
END_TEST

static const struct {
	const char *text;
	bool good;
} meminfo_cases[] = {
	{"MemTotal: 10 kB\nMemAvailable: 5 kB\n", true},
	{"MemTotal: 10 kB\nMemAvailable: 50 kB\n", true}, /* cut to the total */
	{"MemTotal: 0 kB\nMemAvailable: 0 kB\n", false},
	{"MemTotal: 10 kB\nMemFree: 5 kB\n", false}, /* too little to compute it */
	{"MemAvailable: 5 kB\n", false},
	{"MemTotal: -10 kB\nMemAvailable: 5 kB\n", false},
	{"MemTotal: 18446744073709551616 kB\nMemAvailable: 5 kB\n", false},
	{"MemTotal: 18446744073709551615 kB\nMemAvailable: 5 kB\n", false},
	{"", false},
};

START_TEST(memory_texts)
{
	struct memory_reading m = {0, 0};
	char *dir = tree_new();
	struct sysroot r;
	struct err e;

	tree_open(&r, dir);
	tree_put(dir, "proc/meminfo", meminfo_cases[_i].text);
	ck_assert_int_eq(memory_read(&r, &m, &e) == 0, meminfo_cases[_i].good);
	ck_assert_uint_le(m.available, m.total);
	ck_assert_int_eq(m.total > 0, meminfo_cases[_i].good);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

START_TEST(the_port_of_recorded_trees)
{
	static const struct {
		const char *tree;
		bool listens;
	} cases[] = {
		{"bare-metal", true}, {"container-half-cpu", true}, {"no-memavailable", false}};
	struct sysroot r;
	struct err e;
	bool found;

	for (size_t i = 0; i < 3; i++) {
		tree_recorded(&r, cases[i].tree);
		found = !cases[i].listens;
		ck_assert_int_eq(listening_on(&r, 3389, &found, &e), 0);
		ck_assert_int_eq(found, cases[i].listens);
		ck_assert_int_eq(listening_on(&r, 3390, &found, &e), 0);
		ck_assert(!found);
		sysroot_close(&r);
	}
}
END_TEST

START_TEST(the_port_among_thousands_of_connections)
{
	struct buf b = BUF_INIT(4 * 1024 * 1024);
	char *dir = tree_new();
	struct sysroot r;
	struct err e;
	bool found = true;

	buf_adds(&b, "  sl  local_address rem_address   st\n");
	for (int i = 0; i < 20000; i++)
		buf_addf(&b, "%4d: 0100007F:0D3D 0100007F:%04X 01 00000000:00000000\n", i, i);
	tree_open(&r, dir);
	tree_put(dir, "proc/net/tcp", buf_str(&b));
	ck_assert_int_eq(listening_on(&r, 3389, &found, &e), 0);
	ck_assert(!found);
	buf_adds(&b, "9999: 00000000:0D3D 00000000:0000 0A"); /* no line end */
	tree_put(dir, "proc/net/tcp", buf_str(&b));
	ck_assert_int_eq(listening_on(&r, 3389, &found, &e), 0);
	ck_assert(found);
	buf_deinit(&b);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

/* A listener on a port that the kernel chose. */
static int listen_somewhere(int family, uint16_t *ret_port)
{
	struct sockaddr_storage a = {.ss_family = (sa_family_t)family};
	socklen_t len = sizeof(a);
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a,
			      family == AF_INET ? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6)) != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
					    : ((struct sockaddr_in6 *)&a)->sin6_port);
	return fd;
}

START_TEST(the_port_of_this_machine)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct sysroot r;
	struct err e;

	tree_open(&r, "/");
	for (size_t i = 0; i < 2; i++) {
		uint16_t port = 0;
		int fd = listen_somewhere(families[i], &port);
		bool found = false;

		if (fd < 0)
			continue; /* no IPv6 here */
		ck_assert_int_eq(listening_on(&r, port, &found, &e), 0);
		ck_assert(found);
		close(fd);
		ck_assert_int_eq(listening_on(&r, port, &found, &e), 0);
		ck_assert(!found);
	}
	sysroot_close(&r);
}
END_TEST

START_TEST(this_machine_has_figures)
{
	struct cpu_reading c;
	struct memory_reading m;
	struct sysroot r;
	struct err e;

	tree_open(&r, NULL);
	ck_assert(!r.recorded);
	ck_assert_int_eq(cpu_read(&r, 1, &c, &e), 0);
	ck_assert(c.valid && c.count > 0);
	ck_assert_int_eq(memory_read(&r, &m, &e), 0);
	ck_assert(m.total > 0 && m.available <= m.total);
	sysroot_close(&r);
}
END_TEST

START_TEST(numbers)
{
	const char *p = "  42 x";
	uint64_t v = 7;

	ck_assert(scan_u64(&p, &v));
	ck_assert_uint_eq(v, 42);
	ck_assert_str_eq(p, " x");
	ck_assert(!scan_u64(&p, &v));
	p = "18446744073709551616";
	ck_assert(!scan_u64(&p, &v));
	p = "0D3d:";
	ck_assert(scan_hex(&p, &v));
	ck_assert_uint_eq(v, 3389);
	ck_assert(scan_key_u64("ab 1\nabc 2\n", "abc", &v));
	ck_assert_uint_eq(v, 2);
	ck_assert(!scan_key_u64("ab 1\nabc 2", "bc", &v));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_collect");
	TCase *c = tcase_create("all");

	suite_add_tcase(s, c);
	tcase_add_test(c, bare_metal_counts_steal_and_not_guest);
	tcase_add_test(c, a_container_is_bound_by_its_quota);
	tcase_add_test(c, ninety_six_cpus);
	tcase_add_loop_test(
		c, a_doubtful_counter_is_missing, 0, sizeof(stat_cases) / sizeof(stat_cases[0]));
	tcase_add_test(c, an_unreadable_file_is_named);
	tcase_add_loop_test(c, quotas, 0, sizeof(quota_cases) / sizeof(quota_cases[0]));
	tcase_add_test(c, a_bound_that_cannot_be_measured_is_missing);
	tcase_add_loop_test(c, memory_limits, 0, sizeof(limit_cases) / sizeof(limit_cases[0]));
	tcase_add_test(c, no_memavailable_is_computed);
	tcase_add_loop_test(c, memory_texts, 0, sizeof(meminfo_cases) / sizeof(meminfo_cases[0]));
	tcase_add_test(c, the_port_of_recorded_trees);
	tcase_add_test(c, the_port_among_thousands_of_connections);
	tcase_add_test(c, the_port_of_this_machine);
	tcase_add_test(c, this_machine_has_figures);
	tcase_add_test(c, numbers);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
