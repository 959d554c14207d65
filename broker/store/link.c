/* SPDX-License-Identifier: ISC */
/*
 * The life of the two connections. They live and die together: the loss of one closes both, and a
 * new pair loads everything anew, so there is one state to be in and not four.
 *
 * Callbacks of the connections only note that they broke; the next turn of the loop closes them
 * (link_check), because libpq and libevent are still inside the connection when they call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "store/store_private.h"

#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS 5000

void link_break(struct store *s, bool unusable, const char *reason)
{
	if (s->broken)
		return;
	s->broken = true;
	s->broken_unusable = unusable;
	err_set(&s->broken_reason, 0, "%s", reason);
	store_kick(s);
}

bool link_writes(const struct store *s)
{
	return !s->broken && (s->state == LINK_DRAIN || s->state == LINK_UP);
}

/* ---- going down ---- */

static void tell(struct store *s, bool was_up, bool unusable, const char *reason)
{
	if (!was_up && strcmp(reason, s->told_reason.text) == 0)
		return;
	err_set(&s->told_reason, 0, "%s", reason);
	if (unusable && !s->loaded_once)
		s->handler->unusable(s->ctx, s->told_reason.text);
	else
		s->handler->lost(s->ctx, s->told_reason.text);
}

/* Doubles from attempt to attempt; half of it at random, so that dispatchers do not come back in
 * step. */
static int64_t retry_delay(unsigned attempts)
{
	int64_t delay = RETRY_FIRST_MS;

	while (attempts-- > 1 && delay < RETRY_MAX_MS)
		delay *= 2;
	if (delay > RETRY_MAX_MS)
		delay = RETRY_MAX_MS;
	return delay / 2 + (int64_t)(secret_random_u64() % (uint64_t)(delay / 2 + 1));
}

static void go_down(struct store *s, bool unusable, const char *reason)
{
	bool was_up = s->state == LINK_UP;

	s->state = LINK_DOWN;
	connector_stop(s->connector);
	pipeline_close(s->pipeline);
	reader_close(s->reader);
	/* Closing may have noted once more that they are closed. */
	s->broken = false;
	store_fail_operations(s, reason);
	loop_timer_arm(s->retry, retry_delay(++s->attempts));
	tell(s, was_up, unusable, reason);
}

void link_check(struct store *s)
{
	struct err reason = s->broken_reason;

	if (s->broken)
		go_down(s, s->broken_unusable, reason.text);
}

/* ---- coming up ---- */

static void connect_writer(void *ctx)
{
	struct store *s = ctx;

	s->state = LINK_CONNECT_WRITER;
	connector_start(s->connector, s->statement_timeout_ms);
}

static void connected(void *ctx, PGconn *conn, bool unusable, const char *reason)
{
	struct store *s = ctx;
	bool writer = s->state == LINK_CONNECT_WRITER;

	if (!conn) {
		link_break(s, unusable, reason);
		return;
	}
	s->state = writer ? LINK_PREPARE_WRITER : LINK_PREPARE_READER;
	if ((writer ? pipeline_open(s->pipeline, conn) : reader_open(s->reader, conn)) < 0)
		link_break(s, false, "could not set up the connection");
}

static void writer_ready(void *ctx)
{
	struct store *s = ctx;

	s->state = LINK_CONNECT_READER;
	/* The server gives a slow read up before we do: only that read fails then, and not the
	 * link. */
	connector_start_again(s->connector, s->statement_timeout_ms * 4 / 5);
}

static void connection_lost(void *ctx, const struct fault *fault)
{
	struct store *s = ctx;

	/* Statements that cannot even be prepared: not the schema it says it is. */
	link_break(s, s->state < LINK_DRAIN && fault_is_unusable(fault->sqlstate),
		fault->message.text);
}

static void reader_ready(void *ctx)
{
	struct store *s = ctx;

	s->state = LINK_DRAIN;
	s->drain_seq = s->queue.seq;
	link_drained(s);
	store_kick(s);
}

void link_drained(struct store *s)
{
	if (s->broken || s->state != LINK_DRAIN || !batch_is_empty(s->batch) ||
		queue_oldest_seq(&s->queue) <= s->drain_seq)
		return;
	s->state = LINK_LOAD;
	if (!load_start(s->load, s->reader))
		link_break(s, false, "the connection was closed");
}

static void loaded(void *ctx, int result, const struct fault *fault)
{
	struct store *s = ctx;

	if (result < 0) {
		link_break(s, fault_is_unusable(fault->sqlstate), fault->message.text);
		return;
	}
	if (s->loaded_once)
		s->stats.reconnects++;
	s->state = LINK_UP;
	s->loaded_once = true;
	s->attempts = 0;
	s->told_reason.text[0] = '\0';
	store_kick(s);
	s->handler->load_end(s->ctx, load_cluster_id(s->load), load_route_key(s->load));
}

static const struct pipeline_handler pipeline_handler = {writer_ready, connection_lost};
static const struct reader_handler reader_handler = {reader_ready, connection_lost};

/* ---- life ---- */

int link_init(struct store *s, const struct store_config *config)
{
	const struct connector_config connector = {
		.targets = &s->targets,
		.application = s->application,
		.timeout_ms = config->connect_timeout_ms > 0 ? config->connect_timeout_ms : 3000,
		.statement_timeout_ms = s->statement_timeout_ms,
	};

	s->connector = connector_new(s->base, &connector, connected, s);
	s->pipeline = pipeline_new(s->base, s->statement_timeout_ms, &pipeline_handler, s);
	s->reader = reader_new(s->base, s->statement_timeout_ms, &reader_handler, s);
	s->load = load_new(s->handler, s->ctx, &s->queue, loaded, s);
	s->retry = loop_timer_new(s->base, connect_writer, s);
	return s->connector && s->pipeline && s->reader && s->load && s->retry ? 0 : -ENOMEM;
}

void link_deinit(struct store *s)
{
	loop_timer_free(s->retry);
	connector_free(s->connector);
	pipeline_free(s->pipeline);
	reader_free(s->reader);
	load_free(s->load);
}

void link_start(struct store *s)
{
	/* From the loop, like everything else that is told. */
	loop_timer_arm(s->retry, 0);
}
