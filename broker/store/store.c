/* SPDX-License-Identifier: ISC */
/*
 * The public face: calls queue something and kick; the kick, one event in the same turn of the
 * loop, tells answers, closes what broke and sends what may go. So nothing calls back from inside a
 * call, and all that was queued in one turn travels in one batch.
 */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "store/store_private.h"

/* Segments on the wire; operations beyond wait here, and beyond OPERATIONS_MAX are refused. */
#define IN_FLIGHT_MAX 16
#define OPERATIONS_MAX 4096
/* What is only the newest numbers of nodes waits that long for those of others: a farm whose
 * heartbeats trickle in would else cost the database a commit each. */
#define NUMBERS_WAIT_MS 500

void store_kick(struct store *s)
{
	event_active(s->kick, EV_TIMEOUT, 0);
}

static void post(struct store *s, struct answer *a)
{
	TAILQ_INSERT_TAIL(&s->answers, a, link);
	store_kick(s);
}

static void tell_answers(struct store *s)
{
	struct answer *a;

	while (s->failed_call_count > 0) {
		store_done *done = s->failed_calls[--s->failed_call_count].done;

		if (done)
			done(s->failed_calls[s->failed_call_count].ctx, -EIO, 0, "out of memory");
	}
	while ((a = TAILQ_FIRST(&s->answers))) {
		TAILQ_REMOVE(&s->answers, a, link);
		if (a->done)
			a->done(a->ctx, a->result, a->result == 0 ? a->id : 0,
				a->result == 0 ? "" : a->why.text);
		a->free(a->asked);
	}
}

/* A call for which there was no memory: told later all the same, if there is room to note it. */
static void fail_call(struct store *s, store_done *done, void *ctx)
{
	if (s->failed_call_count == FAILED_CALLS) {
		if (done)
			done(ctx, -EIO, 0, "out of memory");
		return;
	}
	s->failed_calls[s->failed_call_count].done = done;
	s->failed_calls[s->failed_call_count++].ctx = ctx;
	store_kick(s);
}

static void events_committed(struct store *s, size_t count)
{
	s->stats.events_written += count;
	if (count > 0 && s->on_events)
		s->on_events(s->on_events_ctx);
}

/* Something waits that a batch should take. */
static void queued(struct store *s)
{
	if (link_writes(s) && !batch_in_flight(s->batch))
		store_kick(s);
}

/* ---- barriers ---- */

static uint64_t oldest_seq(const struct store *s)
{
	uint64_t queue = queue_oldest_seq(&s->queue), batch = batch_oldest_seq(s->batch);

	return batch < queue ? batch : queue;
}

static void free_barrier(void *asked)
{
	struct barrier *b = asked;

	loop_timer_free(b->timer);
	free(b);
}

static void settle_barrier(struct store *s, struct barrier *b, int result)
{
	TAILQ_REMOVE(&s->barriers, b, link);
	if (b->timer)
		loop_timer_disarm(b->timer);
	b->answer.result = result;
	if (result < 0)
		err_set(&b->answer.why, 0, "the database did not confirm in time");
	post(s, &b->answer);
}

static void barrier_expired(void *ctx)
{
	struct barrier *b = ctx;

	settle_barrier(b->store, b, -ENOTCONN);
}

static void settle_barriers(struct store *s)
{
	uint64_t oldest = oldest_seq(s);
	struct barrier *b;

	while ((b = TAILQ_FIRST(&s->barriers)) && b->seq < oldest)
		settle_barrier(s, b, 0);
}

void store_barrier(struct store *s, int64_t timeout_ms, store_done *done, void *ctx)
{
	struct barrier *b = calloc(1, sizeof(*b));

	if (!b) {
		fail_call(s, done, ctx);
		return;
	}
	*b = (struct barrier){.store = s, .seq = s->queue.seq};
	b->answer = (struct answer){.done = done, .ctx = ctx, .asked = b, .free = free_barrier};
	TAILQ_INSERT_TAIL(&s->barriers, b, link);
	if (b->seq < oldest_seq(s)) {
		settle_barrier(s, b, 0);
		return;
	}
	b->timer = loop_timer_new(s->base, barrier_expired, b);
	if (!b->timer) {
		TAILQ_REMOVE(&s->barriers, b, link);
		free(b);
		fail_call(s, done, ctx);
		return;
	}
	loop_timer_arm(b->timer, timeout_ms > 0 ? timeout_ms : 0);
	queued(s);
}

/* ---- sending ---- */

static void batch_progress(void *ctx, size_t rows, size_t events, int64_t took_us)
{
	struct store *s = ctx;

	s->stats.batches += rows > 0;
	s->stats.batch_rows += rows;
	s->stats.last_batch_us = (uint64_t)took_us;
	s->stats.batch_us_total += (uint64_t)took_us;
	settle_barriers(s);
	link_drained(s);
	store_kick(s);
	events_committed(s, events);
}

static void batch_refused(void *ctx, const char *what)
{
	struct store *s = ctx;

	s->stats.rows_refused++;
	if (s->handler->warning)
		s->handler->warning(s->ctx, what);
}

static void batch_broken(void *ctx, const struct fault *fault)
{
	link_break(ctx, false, fault->message.text);
}

static const struct batch_handler batch_handler = {batch_progress, batch_refused, batch_broken};

static void send_operations(struct store *s)
{
	struct operation *op;

	while (s->state == LINK_UP && pipeline_in_flight(s->pipeline) < IN_FLIGHT_MAX &&
		(op = TAILQ_FIRST(&s->operations))) {
		if (!pipeline_send(s->pipeline, &op->segment))
			return;
		TAILQ_REMOVE(&s->operations, op, link);
	}
}

/* Whether somebody waits for what is queued, or it has waited long enough. */
static bool is_due(struct store *s)
{
	const struct queue *q = &s->queue;
	int64_t left;

	if (s->state != LINK_UP || q->session_count > 0 || q->event_count > 0 ||
		!TAILQ_EMPTY(&s->barriers) || queue_empty(q))
		return true;
	left = queue_oldest_ms(q) + NUMBERS_WAIT_MS - clock_mono_ms();
	if (left <= 0)
		return true;
	loop_timer_arm(s->numbers, left);
	return false;
}

static void numbers_waited(void *ctx)
{
	store_kick(ctx);
}

static void kicked(evutil_socket_t fd, short what, void *arg)
{
	struct store *s = arg;

	link_check(s);
	if (link_writes(s)) {
		if (!batch_in_flight(s->batch)) {
			if (batch_is_empty(s->batch) && is_due(s))
				batch_take(s->batch, &s->queue);
			if (!batch_is_empty(s->batch))
				batch_send(s->batch, s->pipeline);
		}
		send_operations(s);
	}
	tell_answers(s);
}

/* ---- administration ---- */

static void operation_settled(void *owner, struct operation *op)
{
	struct store *s = owner;

	s->operation_count--;
	if (op->new_token && op->answer.result == 0) {
		op->new_token->id = op->new_token_id;
		op->new_token->node_id = op->answer.id;
	}
	post(s, &op->answer);
	if (op->answer.result == 0 && op->event)
		events_committed(s, 1);
}

static void fail_operation(struct operation *op, int result, const char *why)
{
	op->answer.result = result;
	err_set(&op->answer.why, 0, "%s", why);
	op->settled(op->owner, op);
}

void store_fail_operations(struct store *s, const char *reason)
{
	struct operation *op;
	struct err why;

	err_set(&why, 0, "the database is away: %s", reason);
	while ((op = TAILQ_FIRST(&s->operations))) {
		TAILQ_REMOVE(&s->operations, op, link);
		fail_operation(op, -ENOTCONN, why.text);
	}
}

static void submit(struct store *s, struct operation *op)
{
	op->owner = s;
	op->settled = operation_settled;
	op->dispatcher = s->dispatcher;
	s->operation_count++;
	if (!store_is_up(s))
		fail_operation(op, -ENOTCONN, "the database is away");
	else if (s->operation_count > OPERATIONS_MAX)
		fail_operation(op, -EIO, "too many changes wait for the database");
	else
		TAILQ_INSERT_TAIL(&s->operations, op, link);
	store_kick(s);
}

/* NULL: there is no memory, and DONE will hear so. */
static struct operation *begin(struct store *s, enum operation_kind kind, uint32_t id,
	const struct event *ev, store_done *done, void *ctx)
{
	struct operation *op = operation_new(kind, &s->queue, ev, done, ctx);

	if (!op)
		fail_call(s, done, ctx);
	else
		op->id = id;
	return op;
}

void store_put_provider(struct store *s, const struct provider_spec *spec, const struct event *ev,
	store_done *done, void *ctx)
{
	struct operation *op = begin(s, OPERATION_PROVIDER, spec->id, ev, done, ctx);

	if (!op)
		return;
	op->of.provider = *spec;
	submit(s, op);
}

void store_put_pool(struct store *s, const struct pool_spec *spec, const struct event *ev,
	store_done *done, void *ctx)
{
	struct operation *op = begin(s, OPERATION_POOL, spec->id, ev, done, ctx);

	if (!op)
		return;
	op->of.pool = *spec;
	submit(s, op);
}

void store_put_node(struct store *s, const struct node_spec *spec, struct token_spec *token,
	const struct event *ev, store_done *done, void *ctx)
{
	struct operation *op = begin(s, OPERATION_NODE, spec->id, ev, done, ctx);

	if (!op)
		return;
	op->of.node = *spec;
	if (token) {
		op->token = *token;
		op->token.id = 0;
		op->token.node_id = spec->id;
		op->has_token = true;
		op->new_token = token;
	}
	submit(s, op);
}

void store_put_token(struct store *s, const struct token_spec *spec, const struct event *ev,
	store_done *done, void *ctx)
{
	struct operation *op = begin(s, OPERATION_TOKEN, spec->id, ev, done, ctx);

	if (!op)
		return;
	op->token = *spec;
	submit(s, op);
}

void store_remove(struct store *s, enum store_kind kind, uint32_t id, const struct event *ev,
	store_done *done, void *ctx)
{
	struct operation *op = begin(s, OPERATION_REMOVE, id, ev, done, ctx);

	if (!op)
		return;
	op->of.removed = kind;
	submit(s, op);
}

void store_forget_session(struct store *s, uint32_t node_id, const char *id, const struct event *ev,
	store_done *done, void *ctx)
{
	struct operation *op = begin(s, OPERATION_FORGET_SESSION, node_id, ev, done, ctx);

	if (!op)
		return;
	if (text_copy(op->of.session, sizeof(op->of.session), id) == 0)
		queue_forget_session(&s->queue, node_id, id);
	submit(s, op);
}

/* ---- the stream ---- */

void store_touch_node(struct store *s, const struct node *node)
{
	bool first = queue_empty(&s->queue);

	queue_node(&s->queue, node, clock_mono_ms());
	if (first)
		queued(s); /* else the kick or its timer is on its way */
}

void store_drop_node(struct store *s, const struct node *node)
{
	queue_forget_node(&s->queue, node);
	batch_forget_node(s->batch, node);
}

void store_write_session(struct store *s, enum session_change change, const struct session *session)
{
	queue_session(&s->queue, change, session, clock_mono_ms());
	queued(s);
}

void store_write_event(struct store *s, const struct event *ev)
{
	queue_event(&s->queue, ev, clock_mono_ms());
	queued(s);
}

/* ---- reading ---- */

static void read_settled(void *owner, struct events_read *r)
{
	post(owner, &r->answer);
}

void store_read_events(struct store *s, const struct event_query *q, store_event_row *row,
	store_done *done, void *ctx)
{
	struct events_read *r = events_read_new(q, row, done, ctx);

	if (!r) {
		fail_call(s, done, ctx);
		return;
	}
	r->owner = s;
	r->settled = read_settled;
	if (store_is_up(s) && reader_send(s->reader, &r->read))
		return;
	r->answer.result = -ENOTCONN;
	err_set(&r->answer.why, 0, "the database is away");
	post(s, &r->answer);
}

void store_on_events(struct store *s, void (*callback)(void *ctx), void *ctx)
{
	s->on_events = callback;
	s->on_events_ctx = ctx;
}

/* ---- state ---- */

bool store_is_up(const struct store *s)
{
	return s->state == LINK_UP && !s->broken;
}

int64_t store_oldest_wait_ms(const struct store *s)
{
	int64_t queue = queue_oldest_ms(&s->queue), batch = batch_oldest_ms(s->batch);
	int64_t oldest = batch < queue ? batch : queue;

	return oldest == INT64_MAX ? 0 : clock_mono_ms() - oldest;
}

void store_stats(const struct store *s, struct store_stats *ret)
{
	*ret = s->stats;
	ret->batch_retries = batch_retries(s->batch);
	ret->events_dropped = s->queue.events_dropped;
	ret->queued_nodes = s->queue.node_count;
	ret->queued_events = s->queue.event_count;
	ret->queued_operations = s->operation_count;
}

/* ---- life ---- */

static int set_up(struct store *s, const struct store_config *config, struct err *e)
{
	struct buf application = BUF_INIT(63);
	int r;

	r = targets_parse(config->connection, &s->targets, e);
	if (r < 0)
		return r;
	buf_addf(&application, "termbrokerd %.40s", config->dispatcher);
	s->application = buf_steal(&application);
	buf_deinit(&application);
	s->dispatcher = strdup(config->dispatcher);
	s->kick = event_new(s->base, -1, 0, kicked, s);
	s->numbers = loop_timer_new(s->base, numbers_waited, s);
	if (!s->application || !s->dispatcher || !s->kick || !s->numbers)
		return err_errno(e, -ENOMEM, "could not set up the store");
	s->batch = batch_new(s->dispatcher, &batch_handler, s);
	if (!s->batch || link_init(s, config) < 0)
		return err_errno(e, -ENOMEM, "could not set up the store");
	return 0;
}

int store_new(struct event_base *base, const struct store_config *config,
	const struct store_handler *handler, void *ctx, struct store **ret, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_errno(e, -ENOMEM, "could not set up the store");
	s->base = base;
	s->handler_copy = *handler;
	s->handler = &s->handler_copy;
	s->ctx = ctx;
	s->statement_timeout_ms =
		config->statement_timeout_ms > 0 ? config->statement_timeout_ms : 5000;
	queue_init(&s->queue, config->event_queue_max ? config->event_queue_max : 100000);
	TAILQ_INIT(&s->operations);
	TAILQ_INIT(&s->barriers);
	TAILQ_INIT(&s->answers);
	r = set_up(s, config, e);
	if (r < 0) {
		store_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void store_start(struct store *s)
{
	link_start(s);
}

void store_free(struct store *s)
{
	struct barrier *b;

	if (!s)
		return;
	if (s->kick) {
		s->state = LINK_DOWN;
		/* Tells what is under way that it is lost, while everything still stands. */
		link_deinit(s);
		store_fail_operations(s, "the dispatcher stops");
		while ((b = TAILQ_FIRST(&s->barriers)))
			settle_barrier(s, b, -ENOTCONN);
		tell_answers(s);
		event_free(s->kick);
	}
	loop_timer_free(s->numbers);
	batch_free(s->batch);
	queue_deinit(&s->queue);
	targets_deinit(&s->targets);
	free(s->dispatcher);
	free(s->application);
	free(s);
}
