/* SPDX-License-Identifier: ISC */
/*
 * A PostgreSQL server of one's own for tests in C, from packaging/private-postgres. It ends with
 * the process that started it. Failures end the test (ck_abort_msg).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pg {
	pid_t script; /* private-postgres */
	char dir[64]; /* cluster, socket, log */
	char socket[80];
	char options[3][64]; /* settings, NAME=VALUE */
	size_t option_count;
};

/* Makes a cluster and waits until it answers. SETTING: one more of postgresql.conf, or NULL. */
void pg_start(struct pg *pg, const char *setting);
/* Ends the server and removes its folder. */
void pg_stop(struct pg *pg);
/* kill -9 to every process of the server. */
void pg_kill(struct pg *pg);
/* Starts it again on the same data. */
void pg_restart(struct pg *pg);
/* SIGSTOP or SIGCONT to every process of the server. */
void pg_freeze(struct pg *pg);
void pg_thaw(struct pg *pg);

#define PG_CONNINFO_SIZE 256
/* "host=… user=… dbname=…". Returns RET. */
char *pg_conninfo(
	const struct pg *pg, const char *user, const char *database, char ret[PG_CONNINFO_SIZE]);
/* Runs SQL and returns the first value of the last statement ("" if none), which lives until the
 * next call. A failure ends the test. */
const char *pg_sql(const struct pg *pg, const char *user, const char *database, const char *sql);
/* The same, but returns the SQLSTATE of its failure, "" on success. */
const char *pg_try(const struct pg *pg, const char *user, const char *database, const char *sql);
/* sql/bootstrap.sql. */
void pg_bootstrap(const struct pg *pg, const char *database);
