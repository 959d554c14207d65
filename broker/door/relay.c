/* SPDX-License-Identifier: ISC */
/*
 * A relayed client: two sockets and what flows between them by splice(2), never through this
 * process's memory.
 *
 * Each direction is a flow of its own. It reads while READABLE is pending; what its pipe holds and
 * the other side does not take waits for WRITABLE, and meanwhile nothing is read: the kernel's
 * windows slow the sender down. A pipe is held only while something is in it. The end of one
 * direction is handed on as such; the relay ends with both, with an error, or when the other
 * direction keeps silent too long after the first has ended.
 *
 * Both sockets have keepalive: a peer that is gone ends an idle relay.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "door/door_private.h"

#define ROUNDS 8 /* pipes full in a row before others get their turn */
#define HALF_CLOSED_MS 60000
#define FEED_MS 20

#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 15
#define KEEPALIVE_COUNT 4
#define UNACKNOWLEDGED_MS 120000

struct flow {
	struct relay *relay;
	int from, to;
	struct event *readable, *writable;
	int pipe[2]; /* -1: none is held */
	uint32_t piped;
	bool ended; /* all is handed on, the end included */
	bool starved;
	struct flow *next_starved;
	uint64_t bytes;
};

struct relay {
	struct relay *next, **prev_next;
	struct door *door;
	struct address_count *counted;
	struct flow up, down;	 /* from the client, from the node */
	struct loop_timer *half; /* since one direction has ended */
	uint64_t half_bytes;
	int64_t began_ms;
	const char *node, *pool, *user, *client; /* in TEXT */
	char text[];
};

/* ---- the end ---- */

static void flow_deinit(struct flow *f)
{
	if (f->readable)
		event_free(f->readable);
	if (f->writable)
		event_free(f->writable);
	if (f->pipe[0] >= 0)
		pipes_put(&f->relay->door->pipes, f->pipe, f->piped == 0);
	for (struct flow **at = &f->relay->door->starved; f->starved && *at;
		at = &(*at)->next_starved) {
		if (*at == f) {
			*at = f->next_starved;
			break;
		}
	}
}

static void tell(const struct relay *r, enum door_happening what, int64_t ms, const char *reason)
{
	const struct door_report report = {
		.what = what,
		.node = r->node,
		.pool = r->pool,
		.user = r->user,
		.client = r->client,
		.reason = reason,
		.from_client = r->up.bytes,
		.from_node = r->down.bytes,
		.ms = ms,
	};

	r->door->broker.tell(r->door->broker.ctx, &report);
}

static void relay_free(struct relay *r)
{
	flow_deinit(&r->up);
	flow_deinit(&r->down);
	loop_timer_free(r->half);
	close(r->up.from);
	close(r->up.to);
	free(r);
}

void relay_end(struct relay *r, const char *reason)
{
	struct door *d = r->door;

	*r->prev_next = r->next;
	if (r->next)
		r->next->prev_next = r->prev_next;
	d->relay_count--;
	if (r->counted)
		addresses_drop(&d->relay_addresses, r->counted);
	tell(r, DOOR_ENDED, clock_mono_ms() - r->began_ms, reason);
	relay_free(r);
	if (d->relay_count == 0 && d->drained)
		loop_timer_arm(d->drain, 0);
}

static const char *closed_by(const struct flow *f)
{
	return f == &f->relay->up ? "the client closed the connection"
				  : "the node closed the connection";
}

static void broken(struct flow *f, bool reading, int error)
{
	bool client = (f == &f->relay->up) == reading;

	if (error == ECONNRESET || error == EPIPE)
		relay_end(f->relay, client ? "the client reset the connection"
					   : "the node reset the connection");
	else
		relay_end(f->relay, strerror(error));
}

/* ---- half closed ---- */

static void half_over(void *ctx)
{
	struct relay *r = ctx;
	uint64_t bytes = r->up.bytes + r->down.bytes;

	if (bytes == r->half_bytes) {
		relay_end(r, closed_by(r->up.ended ? &r->up : &r->down));
		return;
	}
	r->half_bytes = bytes;
	loop_timer_arm(r->half, HALF_CLOSED_MS);
}

/* The direction F has ended. False: the relay is gone. */
static bool flow_end(struct flow *f)
{
	struct relay *r = f->relay;

	f->ended = true;
	event_del(f->readable);
	if (r->up.ended && r->down.ended) {
		relay_end(r, closed_by(f == &r->up ? &r->down : &r->up));
		return false;
	}
	(void)shutdown(f->to, SHUT_WR);
	r->half = loop_timer_new(r->door->base, half_over, r);
	if (!r->half) {
		relay_end(r, closed_by(f));
		return false;
	}
	r->half_bytes = r->up.bytes + r->down.bytes;
	loop_timer_arm(r->half, HALF_CLOSED_MS);
	return true;
}

/* ---- the flow ---- */

/* No pipe is to be had: nothing is read until there is one. */
static void starve(struct flow *f)
{
	struct door *d = f->relay->door;

	event_del(f->readable);
	f->starved = true;
	f->next_starved = d->starved;
	d->starved = f;
	loop_timer_arm(d->feed, FEED_MS);
}

void relay_feed(void *door)
{
	struct door *d = door;
	struct flow *f = d->starved, *next;

	d->starved = NULL;
	for (; f; f = next) {
		next = f->next_starved;
		f->starved = false;
		event_add(f->readable, NULL);
	}
}

enum step { STEP_MORE, STEP_WAIT, STEP_GONE };

/* Empties the pipe. WAIT: the receiver takes no more now. */
static enum step hand_on(struct flow *f)
{
	while (f->piped > 0) {
		ssize_t n = splice(
			f->pipe[0], NULL, f->to, NULL, f->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n > 0) {
			f->piped -= (uint32_t)n;
			f->bytes += (uint64_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			return STEP_WAIT;
		} else if (n == 0 || errno != EINTR) {
			broken(f, false, n == 0 ? EPIPE : errno);
			return STEP_GONE;
		}
	}
	return STEP_MORE;
}

/* Fills the empty pipe. WAIT: nothing more to read now. */
static enum step take_in(struct flow *f)
{
	ssize_t n = splice(
		f->from, NULL, f->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n > 0) {
		f->piped = (uint32_t)n;
		return STEP_MORE;
	}
	if (n == 0)
		return flow_end(f) ? STEP_WAIT : STEP_GONE;
	if (errno == EAGAIN || errno == EINTR)
		return STEP_WAIT;
	broken(f, true, errno);
	return STEP_GONE;
}

/* F may read, or write what its pipe holds. */
static void flow_run(struct flow *f)
{
	enum step step = STEP_MORE;

	for (unsigned i = 0; i < ROUNDS && step == STEP_MORE; i++) {
		if (f->pipe[0] < 0 && pipes_take(&f->relay->door->pipes, f->pipe) < 0) {
			starve(f);
			return;
		}
		if (f->piped == 0)
			step = take_in(f);
		if (step == STEP_MORE)
			step = hand_on(f);
	}
	if (step == STEP_GONE)
		return;
	if (f->piped == 0) {
		pipes_put(&f->relay->door->pipes, f->pipe, true);
		return;
	}
	event_del(f->readable);
	event_add(f->writable, NULL);
}

static void readable(evutil_socket_t fd, short what, void *flow)
{
	(void)fd;
	(void)what;
	flow_run(flow);
}

static void writable(evutil_socket_t fd, short what, void *arg)
{
	struct flow *f = arg;
	enum step step = hand_on(f);

	(void)fd;
	(void)what;
	if (step == STEP_GONE)
		return;
	if (step == STEP_WAIT) {
		event_add(f->writable, NULL);
		return;
	}
	pipes_put(&f->relay->door->pipes, f->pipe, true);
	event_add(f->readable, NULL);
}

/* ---- the beginning ---- */

static void watch_peer(int fd)
{
	const int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S;
	const int count = KEEPALIVE_COUNT;
	const unsigned unacknowledged = UNACKNOWLEDGED_MS;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(
		fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof(unacknowledged));
}

/* 0 or -ENOMEM; flow_deinit frees what there is. */
static int flow_init(struct flow *f, struct relay *r, int from, int to)
{
	struct event_base *base = r->door->base;

	f->relay = r;
	f->from = from;
	f->to = to;
	f->pipe[0] = f->pipe[1] = -1;
	f->readable = event_new(base, from, EV_READ | EV_PERSIST, readable, f);
	f->writable = event_new(base, to, EV_WRITE, writable, f);
	return f->readable && f->writable ? 0 : -ENOMEM;
}

static const char *put_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	const char *put = memcpy(*at, text, size);

	*at += size;
	return put;
}

static struct relay *relay_new(struct client *c, int node_fd, const struct door_answer *a)
{
	size_t size = strlen(a->node) + strlen(a->pool) + strlen(a->user) + strlen(c->address) + 4;
	struct relay *r = calloc(1, sizeof(*r) + size);
	char *at;
	int error;

	if (!r)
		return NULL;
	r->door = c->door;
	r->began_ms = clock_mono_ms();
	at = r->text;
	r->node = put_text(&at, a->node);
	r->pool = put_text(&at, a->pool);
	r->user = put_text(&at, a->user);
	r->client = put_text(&at, c->address);
	error = flow_init(&r->up, r, c->fd, node_fd);
	if (flow_init(&r->down, r, node_fd, c->fd) == 0 && error == 0)
		return r;
	flow_deinit(&r->up);
	flow_deinit(&r->down);
	free(r);
	return NULL;
}

static void link_relay(struct relay *r)
{
	struct door *d = r->door;

	r->next = d->relays;
	r->prev_next = &d->relays;
	if (r->next)
		r->next->prev_next = &r->next;
	d->relays = r;
	d->relay_count++;
}

void relay_begin(struct client *c, int node_fd, const struct door_answer *a)
{
	int64_t waited = clock_mono_ms() - c->accepted_ms;
	struct relay *r = relay_new(c, node_fd, a);

	if (!r) {
		close(node_fd);
		client_fail(c, "no memory");
		return;
	}
	watch_peer(c->fd);
	watch_peer(node_fd);
	r->counted = c->relay_counted;
	c->relay_counted = NULL;
	c->fd = -1; /* now the relay's */
	client_close(c);
	link_relay(r);
	tell(r, DOOR_RELAYED, waited, NULL);
	event_add(r->up.readable, NULL);
	event_add(r->down.readable, NULL);
}
