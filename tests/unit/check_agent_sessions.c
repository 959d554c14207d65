/* SPDX-License-Identifier: ISC */
/* Sessions from logind, xrdp and utmp, merged; names that mean harm. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <utmp.h>

#include "agent/sessions.h"
#include "check_agent_tree.h"
#include "lib/tap.h"

struct world {
	struct sysroot root;
	struct users *users;
	struct sessions_options options;
	struct session_list list;
	struct err e;
};

static void world_init(struct world *w)
{
	w->users = users_new(&w->root);
	ck_assert_ptr_nonnull(w->users);
	w->options = (struct sessions_options){0};
}

static int look(struct world *w)
{
	int r = sessions_collect(&w->root, w->users, &w->options, &w->list, &w->e);

	for (size_t i = 1; i < w->list.count; i++)
		ck_assert_str_lt(w->list.items[i - 1].id, w->list.items[i].id);
	return r;
}

static void world_end(struct world *w)
{
	session_list_deinit(&w->list);
	users_free(w->users);
	sysroot_close(&w->root);
}

static const struct session *find(const struct world *w, const char *id)
{
	for (size_t i = 0; i < w->list.count; i++)
		if (strcmp(w->list.items[i].id, id) == 0)
			return &w->list.items[i];
	return NULL;
}

static const struct session *need(
	const struct world *w, const char *id, const char *user, bool active)
{
	const struct session *s = find(w, id);

	ck_assert_msg(s != NULL, "no session %s", id);
	ck_assert_str_eq(s->user, user);
	ck_assert_msg(s->active == active, "state of %s", id);
	return s;
}

START_TEST(logind_desktops)
{
	const struct session *s;
	struct world w;

	tree_recorded(&w.root, "logind");
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert(w.list.complete);
	ck_assert_uint_eq(w.list.count, 4); /* neither closing, ssh, greeter nor manager */
	s = need(&w, "3", "alice", true);
	ck_assert_str_eq(s->client, "192.168.1.33");
	ck_assert_int_eq(s->since_ms, 1796080300123);
	need(&w, "4", "bob", false); /* online: another session is in front */
	need(&w, "5", "carol", true);
	need(&w, "c1", "EXAMPLE\\Эва", true); /* logind's quoting undone */
	session_list_deinit(&w.list);
	w.options.text_sessions = true;
	ck_assert_int_eq(look(&w), 0);
	ck_assert_uint_eq(w.list.count, 5);
	need(&w, "7", "dave", true);
	world_end(&w);
}
END_TEST

START_TEST(xrdp_displays)
{
	const struct session *s;
	struct world w;

	tree_recorded(&w.root, "xrdp");
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert(w.list.complete);
	ck_assert_uint_eq(w.list.count, 5);
	/* The display without logind's help belongs to the xrdp session, not to the one at the
	 * console. */
	s = need(&w, "21", "alice", true);
	ck_assert_int_eq(s->display, 10);
	ck_assert_str_eq(s->client, "192.168.1.33");
	s = need(&w, "22", "alice", true);
	ck_assert_int_eq(s->display, SESSION_NO_DISPLAY);
	need(&w, "xrdp-11-1796080400", "bob", false);
	s = need(&w, "xrdp-12-1796080450", "bob", true);
	ck_assert_int_eq(s->since_ms, 1796080450000);
	need(&w, "xrdp-13-1796080500", "dave", false); /* in a folder of the user's own */
	world_end(&w);
}
END_TEST

START_TEST(a_display_takes_its_state_from_xrdp)
{
	struct world w;
	char *dir = tree_new();

	/* logind says active for every session without a seat; xrdp knows that nobody is connected.
	 */
	tree_put(dir, "run/systemd/sessions/9",
		"UID=1001\nUSER=alice\nSTATE=active\nCLASS=user\nTYPE=x11\nDISPLAY=:10\n");
	tree_put(dir, "run/xrdp/sockdir/xrdp_display_10", "1001 5\n");
	tree_put(dir, "etc/passwd", "alice:x:1001:1001::/:/bin/sh\n");
	tree_put(dir, "proc/net/unix",
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000: 00000002 00000000 00010000 0001 01 1 /run/xrdp/sockdir/xrdp_display_10\n");
	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert_uint_eq(w.list.count, 1);
	need(&w, "9", "alice", false);
	session_list_deinit(&w.list);
	tree_put(dir, "proc/net/unix",
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000: 00000002 00000000 00010000 0001 01 1 /run/xrdp/sockdir/xrdp_display_10\n"
		"0000: 00000003 00000000 00000000 0001 03 2 /run/xrdp/sockdir/xrdp_display_10\n");
	ck_assert_int_eq(look(&w), 0);
	need(&w, "9", "alice", true);
	world_end(&w);
	tree_end(dir);
}
END_TEST

/* A real socket, as xrdp's X server makes it: its owner is the user, its time the start. */
START_TEST(a_display_is_its_socket_s_owner)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char passwd[64], *dir = tree_new();
	const struct session *s;
	struct world w;

	tree_put(dir, "run/xrdp/sockdir/x", "");
	snprintf(passwd, sizeof(passwd), "owner:x:%u:1::/:/bin/sh\n", (unsigned)geteuid());
	tree_put(dir, "etc/passwd", passwd);
	tree_put(dir, "proc/net/unix",
		"0000: 00000002 00000000 00010000 0001 01 1 /run/xrdp/sockdir/xrdp_display_10\n");
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/run/xrdp/sockdir/xrdp_display_10", dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert_uint_eq(w.list.count, 1);
	s = &w.list.items[0];
	ck_assert_str_eq(s->user, "owner");
	ck_assert(!s->active);
	ck_assert_int_ge(s->since_ms, (time(NULL) - 60) * INT64_C(1000));
	ck_assert_int_le(s->since_ms, (time(NULL) + 60) * INT64_C(1000));
	close(fd);
	world_end(&w);
	tree_end(dir);
}
END_TEST

START_TEST(a_tree_may_change_while_we_look)
{
	struct world w;
	char *dir = tree_new();

	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), 0); /* no source at all: nobody is there */
	ck_assert(w.list.complete);
	ck_assert_uint_eq(w.list.count, 0);
	session_list_deinit(&w.list);
	tree_put(dir, "run/systemd/sessions/1",
		"UID=1\nUSER=eve\nSTATE=active\nCLASS=user\nTYPE=x11\n");
	ck_assert_int_eq(look(&w), 0);
	need(&w, "1", "eve", true);
	session_list_deinit(&w.list);
	tree_remove(dir, "run/systemd/sessions/1");
	ck_assert_int_eq(look(&w), 0);
	ck_assert_uint_eq(w.list.count, 0);
	world_end(&w);
	tree_end(dir);
}
END_TEST

START_TEST(hostile_logind_files)
{
	static const char zero[] = "USER=alice\0bob\nTYPE=x11\nCLASS=user\n";
	struct world w;
	char *dir = tree_new();
	char *big = malloc(100000);

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', 99999);
	big[99999] = '\0';
	tree_put(dir, "run/systemd/sessions/1", "USER=line\033[31m\nTYPE=x11\n");
	tree_put(dir, "run/systemd/sessions/2", "USER=\xff\xfe\nTYPE=x11\n");
	tree_put(dir, "run/systemd/sessions/3", "USER=\nTYPE=x11\n");
	tree_put(dir, "run/systemd/sessions/4", "TYPE=x11\nUSER\n=\n\n====\n");
	tree_put_data(dir, "run/systemd/sessions/5", zero, sizeof(zero) - 1);
	tree_put(dir, "run/systemd/sessions/6", "");
	tree_put(dir, "run/systemd/sessions/.#7abc", "USER=half\nTYPE=x11\n");
	tree_put(dir, "run/systemd/sessions/8.ref", "USER=fifo\nTYPE=x11\n");
	tree_put(dir, "run/systemd/sessions/id with space", "USER=spaced\nTYPE=x11\n");
	tree_put(dir, "run/systemd/sessions/9",
		"USER=\"open\\\nTYPE=x11\nUID=99999999999\nREALTIME=-4\nLEADER=x\nDISPLAY=:x\n"
		"REMOTE_HOST=\001\n");
	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert(w.list.complete);
	ck_assert_uint_eq(w.list.count, 1);
	ck_assert_ptr_null(need(&w, "9", "open\\", true)->client);
	ck_assert_uint_eq(w.list.dropped, 4);
	session_list_deinit(&w.list);
	tree_put(dir, "run/systemd/sessions/10", big); /* not a session file: what is it? */
	ck_assert_int_eq(look(&w), -EOVERFLOW);
	ck_assert(!w.list.complete);
	ck_assert_uint_eq(w.list.count, 1);
	ck_assert_ptr_nonnull(strstr(w.e.text, "/run/systemd/sessions/10"));
	free(big);
	world_end(&w);
	tree_end(dir);
}
END_TEST

/* utmp ---------------------------------------------------------------------------------------- */

static struct utmp entry(const char *user, const char *line, int pid, int second)
{
	struct utmp u = {.ut_type = USER_PROCESS, .ut_pid = pid};

	/* As utmp has it: no NUL where the field is full. */
	memcpy(u.ut_user, user, strnlen(user, UT_NAMESIZE));
	memcpy(u.ut_line, line, strnlen(line, UT_LINESIZE));
	u.ut_tv.tv_sec = second;
	return u;
}

/* The recorded tree of hostile names with a utmp of N records and TAIL odd bytes. */
static char *utmp_tree(const struct utmp *records, size_t n, size_t tail)
{
	char *dir = tree_new();
	char *data = calloc(n + 1, sizeof(*records));
	char pid[32];

	ck_assert_ptr_nonnull(data);
	memcpy(data, records, n * sizeof(*records));
	tree_put_data(dir, "run/utmp", data, n * sizeof(*records) + tail);
	for (int i = 2001; i <= 2008; i++) {
		snprintf(pid, sizeof(pid), "proc/%d/comm", i);
		tree_put(dir, pid, "Xorg\n");
	}
	free(data);
	return dir;
}

START_TEST(hostile_utmp)
{
	struct utmp records[] = {
		entry("alice", ":10", 2001, 100), entry("bob", "xrdp:11", 2002, 200),
		entry("abcdefghijklmnopqrstuvwxyzABCDEF", ":12", 2003, 300), /* 32 bytes, no NUL */
		entry("evil\nnode-full", ":13", 2004, 400), entry("\xff\xfe\xfd", ":14", 2005, 500),
		entry("../../etc/passwd", ":15.0", 2006, 600),
		entry("'; DROP TABLE session; --", ":16", 2007, 700), entry("", ":17", 2007, 710),
		entry("   ", ":18", 2007, 720), entry("terminal", "pts/3", 2008, 730),
		entry("dead", ":19", 2999, 740), entry("negative", ":20", -5, 750),
		entry("alice", ":10", 2001, 100), /* the same again */
		entry("odd", ":1\x01:\xff", 2008, 760),
		entry("later", ":21", 2008, -1), /* a time before the epoch, or after 2106 */
	};
	const struct session *s;
	struct world w;
	char *dir;

	memset(records[0].ut_host, 'h', UT_HOSTSIZE); /* no NUL here either */
	strcpy(records[1].ut_host, "192.168.1.33");
	strcpy(records[5].ut_host, "a\nb");
	dir = utmp_tree(records, sizeof(records) / sizeof(records[0]), 100);
	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert(w.list.complete);
	s = need(&w, "utmp-2001-100-:10", "alice", true);
	ck_assert_uint_eq(strlen(s->client), UT_HOSTSIZE);
	ck_assert_str_eq(need(&w, "utmp-2002-200-xrdp:11", "bob", true)->client, "192.168.1.33");
	need(&w, "utmp-2003-300-:12", "abcdefghijklmnopqrstuvwxyzABCDEF", true);
	ck_assert_ptr_null(need(&w, "utmp-2006-600-:15.0", "../../etc/passwd", true)->client);
	need(&w, "utmp-2007-700-:16", "'; DROP TABLE session; --", true);
	need(&w, "utmp-2008-4294967295-:21", "later", true);
	ck_assert_uint_eq(w.list.count, 6);
	ck_assert_uint_eq(w.list.dropped, 3); /* line break, not UTF-8, blank */
	session_list_deinit(&w.list);
	w.options.text_sessions = true;
	ck_assert_int_eq(look(&w), 0);
	need(&w, "utmp-2008-730-pts/3", "terminal", true);
	need(&w, "utmp-2008-760-:1_:_", "odd", true);
	world_end(&w);
	tree_end(dir);
}
END_TEST

START_TEST(the_recorded_tree_takes_a_utmp)
{
	struct world w;
	bool has;

	tree_recorded(&w.root, "hostile-utmp");
	world_init(&w);
	has = sysroot_exists(&w.root, "proc/2001");
	ck_assert(has);
	ck_assert_int_eq(look(&w), 0); /* without one: nobody */
	ck_assert_uint_eq(w.list.count, 0);
	world_end(&w);
}
END_TEST

START_TEST(utmp_joins_what_others_know)
{
	struct utmp records[] = {
		entry("alice", ":10", 2001, 100),   /* the display of logind's */
		entry("bob", "xrdp:11", 2002, 200), /* the display of xrdp's */
		entry("carol", ":12", 2003, 300),   /* nobody else's */
	};
	struct world w;
	char *dir;

	strcpy(records[1].ut_host, "10.1.1.1");
	dir = utmp_tree(records, 3, 0);
	tree_put(dir, "run/systemd/sessions/c7",
		"UID=1001\nUSER=alice\nSTATE=active\nCLASS=user\nTYPE=x11\nDISPLAY=:10\n");
	tree_put(dir, "etc/passwd", "bob:x:1002:1002::/:/bin/sh\n");
	tree_put(dir, "run/xrdp/sockdir/xrdp_display_11", "1002 150\n");
	tree_put(dir, "proc/net/unix",
		"0000: 00000002 00000000 00010000 0001 01 1 /run/xrdp/sockdir/xrdp_display_11\n");
	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), 0);
	ck_assert_uint_eq(w.list.count, 3);
	need(&w, "c7", "alice", true);
	/* utmp does not know that nobody is connected */
	ck_assert_str_eq(need(&w, "xrdp-11-150", "bob", false)->client, "10.1.1.1");
	need(&w, "utmp-2003-300-:12", "carol", true);
	world_end(&w);
	tree_end(dir);
}
END_TEST

START_TEST(more_sessions_than_a_heartbeat_holds)
{
	struct session_list l = {.complete = true};
	struct session s = {.display = SESSION_NO_DISPLAY};

	for (int i = 0; i < LIMIT_SESSIONS + 3; i++) {
		snprintf(s.id, sizeof(s.id), "%d", i);
		ck_assert_int_eq(session_list_add(&l, &s, "user", 4, NULL), 0);
	}
	ck_assert_uint_eq(l.count, LIMIT_SESSIONS);
	ck_assert_uint_eq(l.dropped, 3);
	ck_assert(!l.complete);
	session_list_deinit(&l);
}
END_TEST

START_TEST(an_unreadable_source_makes_the_list_incomplete)
{
	struct world w;
	char *dir = tree_new();

	tree_put(dir, "run/systemd/sessions/1", "USER=eve\nTYPE=x11\n");
	tree_put(dir, "run/xrdp/x", ""); /* xrdp is here, and no proc/net/unix */
	tree_open(&w.root, dir);
	world_init(&w);
	ck_assert_int_eq(look(&w), -ENOENT);
	ck_assert(!w.list.complete);
	ck_assert_ptr_nonnull(strstr(w.e.text, "/proc/net/unix"));
	need(&w, "1", "eve", true);
	world_end(&w);
	tree_end(dir);
}
END_TEST

START_TEST(names_of_uids)
{
	struct sysroot r;
	struct users *u;
	char *dir = tree_new();

	tree_put(dir, "etc/passwd", "x\n:\n::\na:x:1x:\nb:x:-1:\n+\nalice:x:1001:1001:::\n");
	tree_open(&r, dir);
	u = users_new(&r);
	ck_assert_str_eq(users_name(u, 1001), "alice");
	ck_assert_str_eq(users_name(u, 1), "uid-1");
	tree_put(dir, "etc/passwd", "bob:x:1:1:::\n");
	ck_assert_str_eq(users_name(u, 1), "bob");	/* what was not found is asked again */
	ck_assert_str_eq(users_name(u, 1001), "alice"); /* what was found is kept */
	users_free(u);
	sysroot_close(&r);
	tree_open(&r, "/");
	u = users_new(&r);
	ck_assert_str_eq(users_name(u, 0), "root");
	users_free(u);
	sysroot_close(&r);
	tree_end(dir);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_sessions");
	TCase *c = tcase_create("all");

	suite_add_tcase(s, c);
	tcase_add_test(c, logind_desktops);
	tcase_add_test(c, xrdp_displays);
	tcase_add_test(c, a_display_takes_its_state_from_xrdp);
	tcase_add_test(c, a_display_is_its_socket_s_owner);
	tcase_add_test(c, a_tree_may_change_while_we_look);
	tcase_add_test(c, hostile_logind_files);
	tcase_add_test(c, hostile_utmp);
	tcase_add_test(c, the_recorded_tree_takes_a_utmp);
	tcase_add_test(c, utmp_joins_what_others_know);
	tcase_add_test(c, more_sessions_than_a_heartbeat_holds);
	tcase_add_test(c, an_unreadable_source_makes_the_list_incomplete);
	tcase_add_test(c, names_of_uids);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
