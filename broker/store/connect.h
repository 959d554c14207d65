/* SPDX-License-Identifier: ISC */
/*
 * Making a connection without blocking: host by host, address by address, each with its own
 * deadline; then checked: a writable primary, the schema of this program, the rights this program
 * needs.
 */
#pragma once

#include <event2/event.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/targets.h"

struct connector;

struct connector_config {
	const struct targets *targets; /* outlives the connector */
	const char *application;       /* application_name, unless the connection string has one */
	int64_t timeout_ms;	       /* for each address, names and checks included */
	int64_t statement_timeout_ms;
};

/* CONN: checked, non-blocking, idle; the callee's. NULL: no host served; REASON says why, for each
 * host; UNUSABLE: one was reached and must not be used before somebody changes something. */
typedef void connector_done(void *ctx, PGconn *conn, bool unusable, const char *reason);

/* NULL when there is no memory. */
struct connector *connector_new(struct event_base *base, const struct connector_config *config,
	connector_done *done, void *ctx);
void connector_free(struct connector *c);
/* Tries every host in order. SERVER_TIMEOUT_MS: the session's statement_timeout. */
void connector_start(struct connector *c, int64_t server_timeout_ms);
/* A second connection to the address that served last, and nowhere else. */
void connector_start_again(struct connector *c, int64_t server_timeout_ms);
/* Stops without calling DONE. */
void connector_stop(struct connector *c);
