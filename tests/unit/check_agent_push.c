/* SPDX-License-Identifier: ISC */
/* What pushing decides without a network: the list of dispatchers, pauses, words for certificates,
 * the size of a heartbeat; and the load script, and what memory is given back. */
#include <curl/curl.h>
#include <openssl/x509_vfy.h>
#include <signal.h>
#include <sqlite3.h>

#include "agent/dispatchers.h"
#include "agent/load_script.h"
#include "agent/push.h"
#include "agent/report.h"
#include "agent/shed.h"
#include "agent/trust.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "check_agent_tree.h"
#include "lib/tap.h"
#include "wire/heartbeat.h"

/* Dispatchers ---------------------------------------------------------------------------------- */

static const char configured[][CONFIG_URL_SIZE] = {"https://a:1", "https://b:1", "https://c:1"};

static struct topology topology_of(const char *cluster, uint64_t version, const char *const *urls)
{
	struct topology t = {.version = version};

	snprintf(t.cluster_id, sizeof(t.cluster_id), "%s", cluster);
	for (; *urls; urls++, t.count++) {
		snprintf(t.dispatchers[t.count].name, LIMIT_NAME_SIZE, "d%zu", t.count);
		snprintf(t.dispatchers[t.count].url, CONFIG_URL_SIZE, "%s", *urls);
	}
	return t;
}

START_TEST(each_is_tried_once_before_a_pause)
{
	struct dispatchers d;

	dispatchers_init(&d, configured, 3, 1);
	ck_assert_str_eq(dispatchers_current(&d), "https://b:1");
	ck_assert(dispatchers_failed(&d));
	ck_assert_str_eq(dispatchers_current(&d), "https://c:1");
	ck_assert(dispatchers_failed(&d));
	ck_assert_str_eq(dispatchers_current(&d), "https://a:1");
	ck_assert(!dispatchers_failed(&d));
	ck_assert(dispatchers_failed(&d)); /* the next round */
	dispatchers_succeeded(&d);
	ck_assert(dispatchers_failed(&d));
	ck_assert(dispatchers_failed(&d));
	ck_assert(!dispatchers_failed(&d));
	dispatchers_init(&d, configured, 1, UINT64_MAX);
	ck_assert_str_eq(dispatchers_current(&d), "https://a:1");
	ck_assert(!dispatchers_failed(&d));
}
END_TEST

START_TEST(only_newer_lists_of_the_same_cluster)
{
	static const char *const first[] = {"https://a:1", "https://x:1", NULL};
	static const char *const second[] = {"https://y:1", NULL};
	static const char *const bad[] = {"http://plain:1", "https://a/path", "https://", NULL};
	static const char *const none[] = {NULL};
	struct dispatchers d;
	struct topology t = topology_of("one", 5, first);
	unsigned reached = 0;

	dispatchers_init(&d, configured, 2, 0);
	ck_assert_int_eq(dispatchers_learn(&d, &t, 1), DISPATCHERS_NEW);
	ck_assert_str_eq(dispatchers_current(&d), "https://x:1");
	ck_assert_int_eq(dispatchers_learn(&d, &t, 0), DISPATCHERS_SAME);
	t = topology_of("two", 9, second);
	ck_assert_int_eq(dispatchers_learn(&d, &t, 0), DISPATCHERS_FOREIGN);
	t = topology_of("one", 4, second);
	ck_assert_int_eq(dispatchers_learn(&d, &t, 0), DISPATCHERS_SAME);
	t = topology_of("one", 6, none);
	ck_assert_int_eq(dispatchers_learn(&d, &t, 0), DISPATCHERS_EMPTY);
	t = topology_of("one", 6, bad);
	ck_assert_int_eq(dispatchers_learn(&d, &t, 0), DISPATCHERS_EMPTY);
	t = topology_of("one", 7, first); /* a new version of the same list moves nobody */
	ck_assert_int_eq(dispatchers_learn(&d, &t, 0), DISPATCHERS_SAME);
	ck_assert_str_eq(dispatchers_current(&d), "https://x:1");
	/* The configured ones are the last resort; "a" is in both and tried once. */
	do
		reached++;
	while (dispatchers_failed(&d));
	ck_assert_uint_eq(reached, 3);
	t = topology_of("one", 8, second);
	ck_assert_int_eq(dispatchers_learn(&d, &t, 77), DISPATCHERS_NEW);
	ck_assert_str_eq(dispatchers_current(&d), "https://y:1");
}
END_TEST

START_TEST(agents_spread_over_the_list)
{
	static const char *const urls[] = {"https://p:1", "https://q:1", "https://r:1", NULL};
	unsigned hits[3] = {0};

	for (uint64_t pick = 0; pick < 300; pick++) {
		struct topology t = topology_of("one", 1, urls);
		struct dispatchers d;

		dispatchers_init(&d, configured, 1, pick);
		ck_assert_int_eq(dispatchers_learn(&d, &t, pick), DISPATCHERS_NEW);
		hits[dispatchers_current(&d)[8] - 'p']++;
	}
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(hits[i], 100);
}
END_TEST

START_TEST(pauses)
{
	for (unsigned n = 0; n < 40; n++) {
		int64_t most = n < 5 ? INT64_C(1000) << n : 30000;

		ck_assert_int_eq(push_backoff_ms(n, 0), most / 2);
		ck_assert_int_eq(push_backoff_ms(n, (uint64_t)(most / 2)), most);
		for (uint64_t r = 1; r < 100; r++) {
			int64_t p = push_backoff_ms(n, r * 7919);

			ck_assert(p >= most / 2 && p <= most);
		}
	}
}
END_TEST

/* Trust ---------------------------------------------------------------------------------------- */

static const struct {
	int code;
	long verify;
	bool distrust;
	const char *says;
} trust_cases[] = {
	{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_CERT_HAS_EXPIRED, true,
		"has expired: renew it"},
	{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_CERT_NOT_YET_VALID, true, "not valid yet"},
	{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, true, "set ca_file"},
	{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, true,
		"set ca_file"},
	{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_UNSPECIFIED, true, "another name"},
	{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_INVALID_PURPOSE, true, "not acceptable"},
	{CURLE_SSL_PINNEDPUBKEYNOTMATCH, 0, true, "not the pinned one"},
	{CURLE_SSL_CACERT_BADFILE, 0, true, "ca_file could not be used"},
	{CURLE_COULDNT_CONNECT, 0, false, "connect"},
	{CURLE_OPERATION_TIMEDOUT, 0, false, "imeout"},
};

START_TEST(words_for_a_failure)
{
	char text[480];

	ck_assert_int_eq(
		trust_explain(trust_cases[_i].code, trust_cases[_i].verify, "", text, sizeof(text)),
		trust_cases[_i].distrust);
	ck_assert_msg(strstr(text, trust_cases[_i].says) != NULL, "%s", text);
}
END_TEST

/* Report --------------------------------------------------------------------------------------- */

static void fill_sessions(struct session_list *l, size_t n, size_t name_length)
{
	char user[1000];

	memset(user, 'u', sizeof(user));
	*l = (struct session_list){.complete = true};
	for (size_t i = 0; i < n; i++) {
		struct session s = {.mark = i};

		snprintf(s.id, sizeof(s.id), "%zu", i);
		ck_assert_int_eq(session_list_add(l, &s, user, name_length, "192.0.2.1"), 0);
	}
}

/* What a dispatcher reads in a heartbeat of N sessions, all of them logins too. */
static struct heartbeat sent(
	size_t n, size_t name_length, size_t *ret_waiting, uint64_t *ret_serial)
{
	struct window_options o = {.boot_id = "11111111-1111-4111-8111-111111111111",
		.cache_size = 2,
		.collect_interval = 5};
	struct buf out = BUF_INIT(LIMIT_BODY);
	struct session_list none = {.complete = true}, all;
	struct sample s = {.boot_ms = 5};
	struct heartbeat h;
	struct window *w;
	struct err e;

	ck_assert_int_eq(window_new(&o, &w, &e), 0);
	window_add(w, &s, &none);
	fill_sessions(&all, n, name_length);
	window_add(w, &s, &all);
	{
		struct report r = {.node = "rdp-1",
			.boot_id = o.boot_id,
			.now_boot_ms = 10,
			.seq = 10,
			.accepting = true,
			.sessions = &all,
			.window = w};

		ck_assert_int_eq(report_format(&r, &out, ret_serial), 0);
	}
	window_logins(w, ret_waiting);
	ck_assert_uint_le(out.len, LIMIT_BODY);
	ck_assert_msg(heartbeat_parse(out.data, out.len, &h, &e) == 0, "%s", e.text);
	buf_deinit(&out);
	session_list_deinit(&all);
	window_free(w);
	return h;
}

START_TEST(a_heartbeat_of_many_sessions)
{
	uint64_t serial;
	size_t waiting;
	struct heartbeat h = sent(LIMIT_SESSIONS, 20, &waiting, &serial);

	ck_assert_uint_eq(h.session_count, LIMIT_SESSIONS);
	ck_assert_uint_eq(h.login_count, LIMIT_SESSIONS);
	ck_assert(h.sessions_complete);
	ck_assert_uint_eq(h.sessions_dropped, 0);
	ck_assert_uint_eq(serial, LIMIT_SESSIONS);
	heartbeat_deinit(&h);
}
END_TEST

START_TEST(a_heartbeat_that_would_be_too_long)
{
	uint64_t serial;
	size_t waiting;
	struct heartbeat h = sent(3000, 250, &waiting, &serial); /* sessions fit, logins do not */

	ck_assert_uint_eq(h.session_count, 3000);
	ck_assert(h.sessions_complete);
	ck_assert_uint_lt(h.login_count, 3000);
	ck_assert_uint_eq(serial, h.login_count); /* the others wait */
	heartbeat_deinit(&h);
	h = sent(5000, 250, &waiting, &serial);
	ck_assert_uint_lt(h.session_count, 5000);
	ck_assert_uint_gt(h.session_count, 1000);
	ck_assert(!h.sessions_complete); /* so that nobody is taken for gone */
	ck_assert_uint_eq(h.login_count, 0);
	ck_assert_uint_eq(serial, 0);
	heartbeat_deinit(&h);
}
END_TEST

/* Load script ---------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	bool good;
	uint32_t value;
} script_texts[] = {
	{"0\n", true, 0},
	{"100", true, 10000},
	{" 37.5 \n", true, 3750},
	{"37.129\n", true, 3712},
	{"100.00\n", true, 10000},
	{"100.01\n", false, 0},
	{"101\n", false, 0},
	{"-1\n", false, 0},
	{"+1\n", false, 0},
	{"1e1\n", false, 0},
	{"nan\n", false, 0},
	{"inf\n", false, 0},
	{"5.\n", false, 0},
	{".5\n", false, 0},
	{"5 6\n", false, 0},
	{"5%\n", false, 0},
	{"0x10\n", false, 0},
	{"\n", false, 0},
	{"", false, 0},
	{"99999999999999999999999\n", false, 0},
};

START_TEST(what_a_script_may_print)
{
	uint32_t v = 77;

	ck_assert_int_eq(load_script_parse(script_texts[_i].text, &v), script_texts[_i].good);
	ck_assert_uint_eq(v, script_texts[_i].good ? script_texts[_i].value : 77);
}
END_TEST

/* Runs TEXT as a script; whether it gave a value. */
static bool run_script(const char *text, int64_t timeout_ms, uint32_t *ret)
{
	struct event_base *base = event_base_new();
	char *dir = tree_new(), *path = tree_path(dir, "script");
	struct load_script *s = load_script_new(base, path, timeout_ms);
	int64_t end = clock_mono_ms() + 20000;
	bool has;

	log_set_level(LOG_LEVEL_ERROR);
	if (text) {
		tree_put(dir, "script", text);
		ck_assert_int_eq(chmod(path, 0700), 0);
	}
	load_script_start(s);
	while (load_script_running(s) && clock_mono_ms() < end)
		event_base_loop(base, EVLOOP_ONCE);
	ck_assert(!load_script_running(s));
	has = load_script_take(s, ret);
	ck_assert(!load_script_take(s, ret)); /* once */
	load_script_free(s);
	event_base_free(base);
	tree_end(dir);
	free(path);
	return has;
}

START_TEST(runs)
{
	uint32_t v = 0;

	ck_assert(run_script("#!/bin/sh\necho 42\n", 10000, &v));
	ck_assert_uint_eq(v, 4200);
	ck_assert(!run_script("#!/bin/sh\necho 42; exit 3\n", 10000, &v));
	ck_assert(!run_script("#!/bin/sh\nkill -9 $$\n", 10000, &v));
	ck_assert(!run_script("#!/bin/sh\necho 42; echo 43\n", 10000, &v));
	ck_assert(!run_script("#!/bin/sh\nprintf '42\\0'\n", 10000, &v));
	ck_assert(!run_script("#!/bin/sh\nyes 42 | head -c 10000\n", 10000, &v));
	ck_assert(!run_script("#!/nonexistent/interpreter\n", 10000, &v));
	ck_assert(!run_script(NULL, 10000, &v));
	ck_assert(
		run_script("#!/bin/sh\ncat; echo 5 >&2; test -z \"$HOME\" && echo 7\n", 10000, &v));
	ck_assert_uint_eq(v, 700);
}
END_TEST

START_TEST(a_hanging_run_is_killed_with_its_children)
{
	char *dir = tree_new(), *note = tree_path(dir, "pid");
	char script[512], text[32] = "";
	int64_t begin = clock_mono_ms();
	uint32_t v;
	FILE *f;
	pid_t grandchild;

	/* The grandchild keeps the pipe and would outlive the script. */
	snprintf(script, sizeof(script),
		"#!/bin/sh\nsh -c 'trap \"\" TERM HUP; echo $$ > %s; tail -f /dev/null' &\n"
		"echo 42\nwait\n",
		note);
	ck_assert(!run_script(script, 500, &v));
	ck_assert_int_ge(clock_mono_ms() - begin, 500);
	f = fopen(note, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
	fclose(f);
	grandchild = atoi(text);
	ck_assert_int_gt(grandchild, 1);
	/* It was killed; whoever inherits it may take a moment to bury it. */
	for (int64_t end = clock_mono_ms() + 10000;;) {
		char path[64], state = 'X', line[256];

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)grandchild);
		f = fopen(path, "r");
		if (!f)
			break;
		if (fgets(line, sizeof(line), f) && strrchr(line, ')'))
			state = strrchr(line, ')')[2];
		fclose(f);
		if (state == 'Z' || state == 'X')
			break;
		ck_assert_int_lt(clock_mono_ms(), end);
	}
	free(note);
	tree_end(dir);
}
END_TEST

START_TEST(a_script_that_ends_before_its_child)
{
	int64_t begin = clock_mono_ms();
	uint32_t v = 0;

	/* The background process holds the pipe open; the value counts at once all the same. */
	ck_assert(run_script("#!/bin/sh\ntail -f /dev/null &\necho 9\n", 10000, &v));
	ck_assert_uint_eq(v, 900);
	ck_assert_int_lt(clock_mono_ms() - begin, 9000);
}
END_TEST

/* Giving memory back ----------------------------------------------------------------------------
 */

/* Resident KiB of the text of SQLite, every page of it read before if TOUCH. */
static long resident_text(bool touch)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long from, to;
	bool ours = false;
	long kib = -1, sum = -1;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &from, &to) == 2) {
			ours = strstr(line, " r-xp ") && strstr(line, "libsqlite3");
			for (; ours && touch && from < to; from += 4096)
				(void)*(const volatile char *)from;
		} else if (ours && sscanf(line, "Rss: %ld kB", &kib) == 1) {
			sum = (sum < 0 ? 0 : sum) + kib;
		}
	}
	fclose(f);
	return sum;
}

START_TEST(pages_that_nobody_wrote_are_given_back)
{
	static int written = 1; /* in a page that was relocated and written */
	char *kept = strdup("kept");
	sqlite3 *sql = NULL;

	written++;
	(void)resident_text(true);
	ck_assert_int_gt(resident_text(false), 300);
	shed();
	ck_assert_int_eq(resident_text(false), 0);
	ck_assert_int_eq(written, 2);
	ck_assert_str_eq(kept, "kept");
	/* It comes back when it is used. */
	ck_assert_int_eq(sqlite3_open(":memory:", &sql), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_exec(sql, "CREATE TABLE t (x); INSERT INTO t VALUES (1)", NULL, NULL, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(sql), SQLITE_OK);
	ck_assert_int_gt(resident_text(false), 0);
	free(kept);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_push");
	TCase *c = tcase_create("all");

	suite_add_tcase(s, c);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, each_is_tried_once_before_a_pause);
	tcase_add_test(c, only_newer_lists_of_the_same_cluster);
	tcase_add_test(c, agents_spread_over_the_list);
	tcase_add_test(c, pauses);
	tcase_add_loop_test(
		c, words_for_a_failure, 0, sizeof(trust_cases) / sizeof(trust_cases[0]));
	tcase_add_test(c, a_heartbeat_of_many_sessions);
	tcase_add_test(c, a_heartbeat_that_would_be_too_long);
	tcase_add_loop_test(
		c, what_a_script_may_print, 0, sizeof(script_texts) / sizeof(script_texts[0]));
	tcase_add_test(c, runs);
	tcase_add_test(c, a_hanging_run_is_killed_with_its_children);
	tcase_add_test(c, a_script_that_ends_before_its_child);
	tcase_add_test(c, pages_that_nobody_wrote_are_given_back);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
