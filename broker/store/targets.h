/* SPDX-License-Identifier: ISC */
/*
 * A connection string taken apart: the hosts it names, in order, and the settings they share. Ours
 * to walk, because asynchronous libpq waits for a dead first host for ever.
 */
#pragma once

#include <libpq-fe.h>
#include <stddef.h>

#include "base/err.h"

struct target {
	char *host;	/* name, socket folder, or NULL: libpq's default socket */
	char *hostaddr; /* numeric address, or NULL */
	char *port;	/* or NULL: the default */
};

struct targets {
	PQconninfoOption *options; /* may hold the password */
	struct target *list;
	size_t count; /* at least one */
};

#define TARGETS_MAX 32

/* -EINVAL (the text in E never quotes the string: it may hold a password), -ENOMEM. */
int targets_parse(const char *connection, struct targets *ret, struct err *e);
void targets_deinit(struct targets *t);

/* Whether HOST must be resolved: neither a socket nor given by address. */
int target_needs_name(const struct target *t);

/* PQconnectStartParams to target I; ADDRESS (may be NULL) is its resolved address. */
PGconn *targets_connect(const struct targets *t, size_t i, const char *address,
	const char *application, long statement_timeout_ms);
