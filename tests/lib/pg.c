/* SPDX-License-Identifier: ISC */
/* The server's processes: script → unshare → postmaster (postmaster.pid) → backends. */
#include "lib/pg.h"

#include <check.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define READY_MS 60000

/* A template cluster in the build folder, shared by all tests: copying is faster than initdb. */
static void template_path(char *ret, size_t size)
{
	const char *build = getenv("TERMBROKER_BUILD");

	ret[0] = '\0';
	if (build && access(build, W_OK) == 0)
		snprintf(ret, size, "%s/pg-template/c-%u", build, (unsigned)geteuid());
}

static void run_script(const struct pg *pg, int out)
{
	char template[512];
	const char *argv[20];
	int n = 0;

	argv[n++] = SOURCE_ROOT "/packaging/private-postgres";
	template_path(template, sizeof(template));
	if (template[0]) {
		argv[n++] = "--template";
		argv[n++] = template;
	}
	/* The processes die in these tests, never the machine. */
	argv[n++] = "--fsync";
	argv[n++] = "off";
	for (size_t i = 0; i < pg->option_count; i++) {
		argv[n++] = "--set";
		argv[n++] = pg->options[i];
	}
	argv[n++] = pg->dir;
	argv[n] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static void await_line(int fd)
{
	int64_t deadline = clock_mono_ms() + READY_MS;
	char c = 0;

	while (c != '\n') {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = deadline - clock_mono_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0 || read(fd, &c, 1) != 1)
			ck_abort_msg("private-postgres did not become ready");
	}
}

void pg_restart(struct pg *pg)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	pg->script = fork();
	ck_assert_int_ge(pg->script, 0);
	if (pg->script == 0) {
		close(fds[0]);
		run_script(pg, fds[1]);
	}
	close(fds[1]);
	await_line(fds[0]);
	close(fds[0]);
}

void pg_start(struct pg *pg, const char *setting)
{
	*pg = (struct pg){0};
	snprintf(pg->dir, sizeof(pg->dir), "/tmp/termbroker-db.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(pg->dir));
	snprintf(pg->socket, sizeof(pg->socket), "%s/socket", pg->dir);
	if (setting)
		snprintf(pg->options[pg->option_count++], sizeof(pg->options[0]), "%s", setting);
	pg_restart(pg);
}

static void remove_folder(const char *dir)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", dir, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

void pg_stop(struct pg *pg)
{
	if (pg->script > 0) {
		pg_thaw(pg);
		kill(pg->script, SIGTERM);
		waitpid(pg->script, NULL, 0);
		pg->script = 0;
	}
	remove_folder(pg->dir);
}

static pid_t postmaster(const struct pg *pg)
{
	char path[128];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/postmaster.pid", pg->dir);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	return pid;
}

void pg_kill(struct pg *pg)
{
	pid_t pid = postmaster(pg);

	ck_assert_int_gt(pid, 0);
	kill(pid, SIGKILL);
	waitpid(pg->script, NULL, 0);
	pg->script = 0;
}

static void signal_all(pid_t pid, int signo)
{
	char path[64];
	int child;
	FILE *f;

	/* Stopped first: it cannot fork others behind us. */
	kill(pid, signo);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fscanf(f, "%d", &child) == 1)
		kill(child, signo);
	fclose(f);
}

void pg_freeze(struct pg *pg)
{
	ck_assert_int_gt(postmaster(pg), 0);
	signal_all(postmaster(pg), SIGSTOP);
}

void pg_thaw(struct pg *pg)
{
	if (postmaster(pg) > 0)
		signal_all(postmaster(pg), SIGCONT);
}

char *pg_conninfo(
	const struct pg *pg, const char *user, const char *database, char ret[PG_CONNINFO_SIZE])
{
	snprintf(ret, PG_CONNINFO_SIZE, "host=%s user=%s dbname=%s", pg->socket, user, database);
	return ret;
}

static PGresult *run(
	const struct pg *pg, const char *user, const char *database, const char *sql, PGconn **conn)
{
	char conninfo[PG_CONNINFO_SIZE];

	*conn = PQconnectdb(pg_conninfo(pg, user, database, conninfo));
	if (PQstatus(*conn) != CONNECTION_OK)
		ck_abort_msg("%s", PQerrorMessage(*conn));
	return PQexec(*conn, sql);
}

const char *pg_sql(const struct pg *pg, const char *user, const char *database, const char *sql)
{
	static char value[4096];
	PGconn *conn;
	PGresult *r = run(pg, user, database, sql, &conn);

	if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
		ck_abort_msg("%s: %s", sql, PQerrorMessage(conn));
	snprintf(value, sizeof(value), "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
	PQclear(r);
	PQfinish(conn);
	return value;
}

const char *pg_try(const struct pg *pg, const char *user, const char *database, const char *sql)
{
	static char state[6];
	PGconn *conn;
	PGresult *r = run(pg, user, database, sql, &conn);
	const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	snprintf(state, sizeof(state), "%s", code ? code : "");
	PQclear(r);
	PQfinish(conn);
	return state;
}

void pg_bootstrap(const struct pg *pg, const char *database)
{
	char conninfo[PG_CONNINFO_SIZE], variable[96];
	int status;
	pid_t pid;

	pg_conninfo(pg, "postgres", "postgres", conninfo);
	snprintf(variable, sizeof(variable), "database=%s", database);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		execlp("psql", "psql", "-XAtq", "-d", conninfo, "-v", variable, "-f",
			SOURCE_ROOT "/sql/bootstrap.sql", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
