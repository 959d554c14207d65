/* SPDX-License-Identifier: ISC */
/* The journal's log file and syslog on real files and sockets, in a private folder. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "journal/journal.h"
#include "lib/tap.h"

static char folder[64];
static char log_path[128];
static char socket_path[128];

static const int64_t when = 1796081997123456; /* 2026-11-30T23:39:57.123Z */

static void setup(void)
{
	strcpy(folder, "/tmp/check-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(log_path, sizeof(log_path), "%s/broker.log", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/log", folder);
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static struct journal *open_journal(const struct journal_config *config)
{
	struct journal *j = NULL;
	struct err e = {0};

	ck_assert_msg(journal_new(config, &j, &e) == 0, "%s", e.text);
	return j;
}

static struct journal_config file_config(void)
{
	return (struct journal_config){.file = log_path, .ident = "check"};
}

static void write_login(struct journal *j, const char *user)
{
	struct event ev;

	event_start(&ev, EVENT_USER_LOGIN, when);
	ev.pool = "office";
	event_param(&ev, "user", user);
	event_param(&ev, "node", "ts1");
	journal_write(j, &ev);
}

/* The whole file; the caller frees. */
static char *read_path(const char *path)
{
	char *text = NULL;
	size_t len;

	ck_assert_int_eq(text_read_file(path, 1 << 20, &text, &len), 0);
	ck_assert_uint_eq(strlen(text), len);
	return text;
}

static void expect_file(const char *path, const char *want)
{
	char *text = read_path(path);

	ck_assert_str_eq(text, want);
	free(text);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

#define ALICE                                                                                    \
	"2026-11-30T23:39:57.123Z INFO user-login office User alice has logged in successfully " \
	"user=\"alice\" node=\"ts1\"\n"

START_TEST(a_line_has_everything)
{
	struct journal_config config = file_config();
	struct journal *j = open_journal(&config);
	struct stat st;
	struct event ev;

	write_login(j, "alice");
	event_start(&ev, EVENT_RELOADED, when);
	event_param(&ev, "result", "done");
	journal_write(j, &ev);
	expect_file(log_path,
		ALICE "2026-11-30T23:39:57.123Z INFO reloaded - The configuration was read again: "
		      "done result=\"done\"\n");
	ck_assert_int_eq(stat(log_path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	journal_free(j);
}
END_TEST

START_TEST(russian_and_level)
{
	struct journal_config config = file_config();
	struct journal *j;
	struct event ev;

	config.language = LANGUAGE_RU;
	config.level = EVENT_INFO;
	j = open_journal(&config);
	event_start(&ev, EVENT_NODE_CHOSEN, when);
	journal_write(j, &ev);
	write_login(j, "alice");
	expect_file(log_path,
		"2026-11-30T23:39:57.123Z INFO user-login office Пользователь alice успешно вошел "
		"в систему user=\"alice\" node=\"ts1\"\n");
	journal_free(j);
}
END_TEST

START_TEST(a_mode_that_was_chosen_stays)
{
	struct journal_config config = file_config();
	struct journal *j;
	struct stat st;
	int fd = open(log_path, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
	j = open_journal(&config);
	ck_assert_int_eq(stat(log_path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	journal_free(j);
}
END_TEST

static const char *const forgers[] = {
	"x\n2026-11-30T23:39:57.123Z INFO user-login office User root has logged in",
	"x\r\nINFO",
	"x\xc2\x85y",
	"x\xe2\x80\xa8y",
	"x\xe2\x80\xa9y",
	"\xff\xfe\n",
	"\x1b[2K\rroot",
	"x\" user=\"root",
	"x\\\" user=\"root",
	"x\\",
	"\xe2\x80",
};

/* One event is one line, and no key="value" stands in it that is not the event's own. */
START_TEST(a_name_cannot_forge)
{
	struct journal_config config = file_config();
	struct journal *j = open_journal(&config);
	char *text, *pair;

	write_login(j, forgers[_i]);
	text = read_path(log_path);
	ck_assert_uint_eq(count_lines(text), 1);
	ck_assert(text_utf8_valid(text, strlen(text)));
	for (const char *p = text; *p; p++)
		ck_assert((unsigned char)*p >= ' ' || (*p == '\n' && p[1] == '\0'));
	ck_assert_ptr_null(strstr(text, "\xc2\x85"));
	ck_assert_ptr_null(strstr(text, "\xe2\x80\xa8"));
	ck_assert_ptr_null(strstr(text, "\xe2\x80\xa9"));
	pair = strstr(text, "user=\"");
	ck_assert_ptr_nonnull(pair);
	pair += strlen("user=\"");
	while (*pair && *pair != '"') /* reads as any parser of the form does */
		pair += *pair == '\\' && pair[1] ? 2 : 1;
	ck_assert_str_eq(pair, "\" node=\"ts1\"\n");
	free(text);
	journal_free(j);
}
END_TEST

START_TEST(the_longest_line_fits)
{
	static char name[8192];
	struct journal_config config = file_config();
	struct journal *j = open_journal(&config);
	struct event ev;
	char *text;

	memset(name, 1, sizeof(name) - 1);
	event_start(&ev, EVENT_SESSION_SUSPENDED, when);
	event_param(&ev, "node", name);
	event_param(&ev, "address", name);
	event_param(&ev, "user", name);
	event_param(&ev, "session", name);
	ev.pool = name;
	journal_write(j, &ev);
	ck_assert_uint_eq(journal_lost(j), 0);
	text = read_path(log_path);
	ck_assert_uint_eq(count_lines(text), 1);
	free(text);
	journal_free(j);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_is_named)
{
	struct journal_config config = file_config();
	struct journal *j = NULL;
	struct err e = {0};

	config.file = "/nonexistent/broker.log";
	ck_assert_int_eq(journal_new(&config, &j, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/nonexistent/broker.log"));
	ck_assert_ptr_null(j);
	config.file = folder;
	ck_assert_int_eq(journal_new(&config, &j, &e), -EISDIR);
}
END_TEST

START_TEST(reopen_follows_the_name)
{
	struct journal_config config = file_config();
	struct journal *j = open_journal(&config);
	struct err e = {0};
	char old[160];

	write_login(j, "alice");
	snprintf(old, sizeof(old), "%s.1", log_path);
	ck_assert_int_eq(rename(log_path, old), 0);
	write_login(j, "alice");
	ck_assert_int_eq(journal_reopen(j, &e), 0);
	write_login(j, "alice");
	expect_file(old, ALICE ALICE);
	expect_file(log_path, ALICE);
	journal_free(j);
}
END_TEST

START_TEST(a_failed_reopen_keeps_the_old)
{
	struct journal_config config = file_config(), other = config;
	struct journal *j = open_journal(&config);
	struct err e = {0};
	char old[160];

	snprintf(old, sizeof(old), "%s.1", log_path);
	ck_assert_int_eq(rename(log_path, old), 0);
	ck_assert_int_eq(mkdir(log_path, 0700), 0);
	ck_assert_int_eq(journal_reopen(j, &e), -EISDIR);
	other.level = EVENT_ERROR;
	ck_assert_int_eq(journal_configure(j, &other, &e), -EISDIR);
	write_login(j, "alice");
	expect_file(old, ALICE);
	journal_free(j);
}
END_TEST

START_TEST(configure_takes_all)
{
	struct journal_config config = file_config();
	struct journal *j = open_journal(&config);
	struct err e = {0};
	char second[160];

	snprintf(second, sizeof(second), "%s.second", log_path);
	config.file = second;
	config.level = EVENT_INFO;
	ck_assert_int_eq(journal_configure(j, &config, &e), 0);
	write_login(j, "alice");
	config.level = EVENT_WARNING;
	ck_assert_int_eq(journal_configure(j, &config, &e), 0);
	write_login(j, "alice");
	expect_file(log_path, "");
	expect_file(second, ALICE);
	config.file = NULL;
	ck_assert_int_eq(journal_configure(j, &config, &e), 0);
	write_login(j, "alice");
	ck_assert_uint_eq(journal_lost(j), 0);
	journal_free(j);
}
END_TEST

START_TEST(a_torn_line_is_ended_first)
{
	struct journal_config config = file_config();
	FILE *f = fopen(log_path, "w");
	struct journal *j;

	ck_assert_ptr_nonnull(f);
	fputs("half a li", f);
	fclose(f);
	j = open_journal(&config);
	write_login(j, "alice");
	expect_file(log_path, "half a li\n" ALICE);
	journal_free(j);
}
END_TEST

START_TEST(a_full_device_is_counted)
{
	struct journal_config config = file_config();
	struct journal *j;
	struct err e = {0};

	config.file = "/dev/full";
	j = open_journal(&config);
	for (int i = 0; i < 5; i++)
		write_login(j, "alice");
	ck_assert_uint_eq(journal_lost(j), 5);
	config.file = log_path;
	ck_assert_int_eq(journal_configure(j, &config, &e), 0);
	write_login(j, "alice");
	write_login(j, "alice");
	ck_assert_uint_eq(journal_lost(j), 5);
	expect_file(log_path,
		"2026-11-30T23:39:57.123Z WARNING journal-gap - Lines missing here: 5. They could "
		"not be written: No space left on device lines=\"5\" reason=\"No space left on "
		"device\"\n" ALICE ALICE);
	journal_free(j);
}
END_TEST

/* Check's own messages go through a file too: no ck_ call while files are limited. */
static int limit_files(rlim_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return -1;
	limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
	return setrlimit(RLIMIT_FSIZE, &limit);
}

/* The disk fills up within the second line, at each of its bytes; then there is room again. */
START_TEST(a_line_cut_by_a_full_disk)
{
	const size_t line = strlen(ALICE), cut = (size_t)_i;
	struct journal_config config = file_config();
	struct journal *j = open_journal(&config);
	int limited, unlimited;
	char *text, *p;

	ck_assert_uint_lt(cut, line);
	signal(SIGXFSZ, SIG_IGN);
	write_login(j, "alice");
	limited = limit_files(line + cut);
	write_login(j, "alice");
	write_login(j, "alice");
	unlimited = limit_files(RLIM_INFINITY);
	ck_assert_int_eq(limited, 0);
	ck_assert_int_eq(unlimited, 0);
	ck_assert_uint_eq(journal_lost(j), 2);
	write_login(j, "alice");
	text = read_path(log_path);
	ck_assert_int_eq(strncmp(text, ALICE, line), 0);
	ck_assert_int_eq(strncmp(text + line, ALICE, cut), 0);
	p = text + line + cut;
	if (cut > 0)
		ck_assert_int_eq(*p++, '\n');
	ck_assert_ptr_eq(strstr(p, "2026-11-30T23:39:57.123Z WARNING journal-gap - "), p);
	ck_assert_ptr_nonnull(strstr(p, " lines=\"2\" "));
	p = strchr(p, '\n');
	ck_assert_ptr_nonnull(p);
	ck_assert_str_eq(p + 1, ALICE);
	free(text);
	journal_free(j);
}
END_TEST

/* ---- syslog ---- */

static int listen_syslog(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	strcpy(address.sun_path, socket_path);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void expect_message(int fd, const char *priority, const char *tail)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char text[16384];
	ssize_t n;

	ck_assert_int_eq(poll(&p, 1, 5000), 1);
	n = recv(fd, text, sizeof(text) - 1, 0);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	ck_assert_msg(strncmp(text, priority, strlen(priority)) == 0, "%s", text);
	ck_assert_ptr_nonnull(strstr(text, " check["));
	ck_assert_uint_ge((size_t)n, strlen(tail));
	ck_assert_str_eq(text + n - strlen(tail), tail);
}

#define ALICE_TAIL                                                                        \
	"]: INFO user-login office User alice has logged in successfully user=\"alice\" " \
	"node=\"ts1\""

static struct journal_config syslog_config(void)
{
	return (struct journal_config){
		.ident = "check", .syslog = true, .syslog_socket = socket_path};
}

START_TEST(syslog_gets_the_line)
{
	struct journal_config config = syslog_config();
	int fd = listen_syslog();
	struct journal *j = open_journal(&config);
	struct event ev;

	setenv("TZ", "UTC", 1);
	tzset();
	write_login(j, "alice");
	expect_message(fd, "<30>Nov 30 23:39:57 check[", ALICE_TAIL);
	event_start(&ev, EVENT_MASS_SILENCE, when);
	event_param(&ev, "silent", "7");
	event_param(&ev, "nodes", "9");
	journal_write(j, &ev);
	expect_message(fd, "<27>", " silent=\"7\" nodes=\"9\"");
	journal_free(j);
	close(fd);
}
END_TEST

START_TEST(syslog_comes_back)
{
	struct journal_config config = syslog_config();
	struct journal *j = open_journal(&config);
	int fd;

	write_login(j, "alice"); /* nobody there yet */
	ck_assert_uint_eq(journal_syslog_lost(j), 1);
	fd = listen_syslog();
	write_login(j, "alice");
	expect_message(fd, "<30>", ALICE_TAIL);
	close(fd);
	ck_assert_int_eq(unlink(socket_path), 0);
	write_login(j, "alice");
	ck_assert_uint_eq(journal_syslog_lost(j), 2);
	fd = listen_syslog();
	write_login(j, "alice");
	expect_message(fd, "<30>", ALICE_TAIL);
	ck_assert_uint_eq(journal_syslog_lost(j), 2);
	journal_free(j);
	close(fd);
}
END_TEST

/* A daemon that does not read costs messages, never time. */
START_TEST(syslog_never_blocks)
{
	struct journal_config config = syslog_config();
	int fd = listen_syslog();
	struct journal *j = open_journal(&config);

	for (int i = 0; i < 5000 && journal_syslog_lost(j) == 0; i++)
		write_login(j, "alice");
	ck_assert_uint_gt(journal_syslog_lost(j), 0);
	ck_assert_uint_eq(journal_lost(j), 0);
	journal_free(j);
	close(fd);
}
END_TEST

START_TEST(syslog_socket_with_a_long_name)
{
	struct journal_config config = syslog_config();
	struct journal *j = NULL;
	struct err e = {0};
	char name[300];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	config.syslog_socket = name;
	ck_assert_int_eq(journal_new(&config, &j, &e), -ENAMETOOLONG);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("journal");
	TCase *t = tcase_create("file"), *log = tcase_create("syslog");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_line_has_everything);
	tcase_add_test(t, russian_and_level);
	tcase_add_test(t, a_mode_that_was_chosen_stays);
	tcase_add_loop_test(t, a_name_cannot_forge, 0, (int)(sizeof(forgers) / sizeof(forgers[0])));
	tcase_add_test(t, the_longest_line_fits);
	tcase_add_test(t, a_file_that_cannot_be_opened_is_named);
	tcase_add_test(t, reopen_follows_the_name);
	tcase_add_test(t, a_failed_reopen_keeps_the_old);
	tcase_add_test(t, configure_takes_all);
	tcase_add_test(t, a_torn_line_is_ended_first);
	tcase_add_test(t, a_full_device_is_counted);
	tcase_add_loop_test(t, a_line_cut_by_a_full_disk, 0, (int)strlen(ALICE) - 1);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(log, setup, teardown);
	tcase_add_test(log, syslog_gets_the_line);
	tcase_add_test(log, syslog_comes_back);
	tcase_add_test(log, syslog_never_blocks);
	tcase_add_test(log, syslog_socket_with_a_long_name);
	suite_add_tcase(s, log);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
