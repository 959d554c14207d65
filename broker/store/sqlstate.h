/* SPDX-License-Identifier: ISC */
/*
 * What an error of the server means, by its SQLSTATE: words differ with the server's language,
 * codes do not.
 */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>

#include "base/err.h"

/* What went wrong with one transaction. */
struct fault {
	char sqlstate[6]; /* "" when the connection failed rather than a statement */
	char constraint[64];
	char table[64];
	struct err message; /* the server's primary message, one line */
};

enum fault_kind {
	FAULT_ROW,   /* the data: the same statement would fail again */
	FAULT_RETRY, /* a deadlock or the like: again at once */
	FAULT_LOST,  /* this connection is of no use now: reconnect, later again */
};

/* Fills F from an error result, or from a broken connection (RESULT NULL). */
void fault_from(struct fault *f, const PGresult *result, const PGconn *conn);
enum fault_kind fault_kind_of(const char *sqlstate);
/* Whether connecting again cannot help before somebody changes something: no such database, wrong
 * password, missing rights or tables. */
bool fault_is_unusable(const char *sqlstate);
/* One of the results of store_done (negative errno) for an administrative change. */
int fault_result(const char *sqlstate);

/* A connection's message, which libpq gives as text alone, in the verbose form: the SQLSTATE is cut
 * out (or ""), the first line remains. */
void fault_from_text(const char *text, char ret_sqlstate[6], struct err *ret);
