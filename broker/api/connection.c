/* SPDX-License-Identifier: ISC */
/*
 * Model: evhttp calls conn_make for a new connection before it knows the descriptor, so a one-shot
 * event (kick) admits it in the same turn of the loop: finds evhttp's object, counts, sets the
 * close callback, of which there is one. From then on our callback on the input runs before
 * evhttp's.
 *
 * Invariants: evhttp's read callback is in place only while the frame is whole or nothing of a
 * request has come, so evhttp never sees half a request. A connection is in by_fd exactly while
 * EVCON is set. Nothing but conn_close and evhttp frees EVCON, and both come through closed(),
 * which clears EVCON, BEV and the timer; the struct goes with its last reference.
 */
#include "api/connection.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/addresses.h"
#include "api/auth.h"
#include "api/last_words.h"
#include "base/clock.h"

#define LAST_WORDS_MS 5000
#define LINGER_MS 2000

/* ---- life ---- */

void conn_ref(struct conn *c)
{
	c->refs++;
}

void conn_unref(struct conn *c)
{
	if (--c->refs > 0)
		return;
	if (c->timer)
		event_free(c->timer);
	if (c->kick)
		event_free(c->kick);
	free(c);
}

static void unlink_conn(struct conn *c)
{
	struct api *a = c->api;

	*c->prev_next = c->next;
	if (c->next)
		c->next->prev_next = c->prev_next;
	a->connections--;
	a->by_fd[c->fd] = NULL;
	if (c->counted)
		addresses_drop(&a->addresses, c->counted);
	c->counted = NULL;
}

/* A polite end of TLS, while the descriptor is still there; evhttp would shut the socket down
 * first. */
static void end_tls(struct conn *c)
{
	SSL *ssl = c->listener->kind == LISTENER_TLS ? bufferevent_openssl_get_ssl(c->bev) : NULL;

	if (ssl && SSL_is_init_finished(ssl) && SSL_get_shutdown(ssl) == 0) {
		SSL_shutdown(ssl);
		ERR_clear_error();
	}
}

/* evhttp frees the connection now. */
static void closed(struct evhttp_connection *evcon, void *arg)
{
	struct conn *c = arg;

	end_tls(c);
	evbuffer_remove_cb_entry(bufferevent_get_input(c->bev), c->input_cb);
	event_del(c->timer);
	event_del(c->kick);
	unlink_conn(c);
	c->evcon = NULL;
	c->bev = NULL;
	c->request.evreq = NULL; /* goes with the connection */
	conn_unref(c);
}

void conn_close(struct conn *c)
{
	if (c->evcon)
		evhttp_connection_free(c->evcon);
}

struct conn *conn_of(struct api *a, struct evhttp_request *evreq)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(evreq);
	int fd = evcon ? bufferevent_getfd(evhttp_connection_get_bufferevent(evcon)) : -1;

	return fd >= 0 && (size_t)fd < a->by_fd_count ? a->by_fd[fd] : NULL;
}

/* ---- deadlines ---- */

static int64_t due_ms(const struct conn *c)
{
	const struct config *config = c->api->config;

	switch (c->state) {
	case CONN_READING:
		return c->since_ms + config->request_deadline_ms;
	case CONN_REFUSED:
		return c->since_ms + LAST_WORDS_MS;
	case CONN_LINGER:
		return c->since_ms + LINGER_MS;
	case CONN_IDLE:
	case CONN_BUSY:
	case CONN_WRITING:
		break;
	}
	return c->since_ms + config->idle_timeout_ms;
}

static void arm(struct conn *c, int64_t delay_ms)
{
	struct timeval tv;

	if (delay_ms < 1)
		delay_ms = 1;
	tv.tv_sec = (time_t)(delay_ms / 1000);
	tv.tv_usec = (suseconds_t)(delay_ms % 1000 * 1000);
	evtimer_add(c->timer, &tv);
}

/* The timer is moved only where a state's end may come before the last one's: a busy connection
 * would otherwise pay for it with every request. */
void conn_set_state(struct conn *c, enum conn_state state)
{
	c->state = state;
	c->since_ms = clock_mono_ms();
	if (state == CONN_READING || state == CONN_REFUSED || state == CONN_LINGER)
		arm(c, due_ms(c) - c->since_ms);
}

/* Whether a peer that is sent a long answer took some of it since the last look. */
static bool answer_moves(struct conn *c)
{
	size_t left = evbuffer_get_length(bufferevent_get_output(c->bev));
	bool moves = left != c->left;

	c->left = left;
	return moves;
}

static void out_of_time(struct conn *c)
{
	static const struct refusal late = {408, "request_timeout",
		"the request was not complete within the time allowed from its first byte"};

	if (c->state == CONN_READING) {
		c->api->counters.deadlines++;
		last_words(c, &late);
	} else if (c->state == CONN_BUSY || (c->state == CONN_WRITING && answer_moves(c))) {
		c->since_ms = clock_mono_ms();
		arm(c, due_ms(c) - c->since_ms);
	} else {
		conn_close(c);
	}
}

static bool handshaking(const struct conn *c)
{
	SSL *ssl = c->listener->kind == LISTENER_TLS ? bufferevent_openssl_get_ssl(c->bev) : NULL;

	return ssl && !SSL_is_init_finished(ssl);
}

static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	int64_t left = due_ms(c) - clock_mono_ms();

	if (c->state == CONN_IDLE && handshaking(c)) {
		c->api->counters.deadlines++;
		conn_close(c); /* armed with the request's deadline when it was admitted */
	} else if (left > 0) {
		arm(c, left);
	} else {
		out_of_time(c);
	}
}

/* ---- what comes in ---- */

/* Keeps evhttp from what is in the input, or gives it back. Its write callback stays away until a
 * handler answers: it would be called for a "100 Continue" of ours and take it for the end of an
 * answer. */
static void hold_back(struct conn *c, bool held)
{
	if (c->held == held)
		return;
	c->held = held;
	bufferevent_setcb(c->bev, held ? NULL : c->read_cb, NULL, c->event_cb, c->evcon);
}

static enum frame_stage look_at_head(struct conn *c, struct evbuffer *input)
{
	size_t len = evbuffer_get_length(input);
	const unsigned char *data;

	if (len > FRAME_HEAD_MAX)
		len = FRAME_HEAD_MAX;
	data = evbuffer_pullup(input, (ev_ssize_t)len);
	return data ? frame_head(&c->frame, (const char *)data, len) : FRAME_HEAD;
}

static enum frame_stage look_at_chunks(struct conn *c, struct evbuffer *input)
{
	struct evbuffer_iovec piece;
	struct evbuffer_ptr at;

	while (c->frame.stage == FRAME_BODY) {
		size_t seen = c->frame.head + (size_t)c->frame.fed;

		if (seen >= evbuffer_get_length(input) ||
			evbuffer_ptr_set(input, &at, seen, EVBUFFER_PTR_SET) < 0 ||
			evbuffer_peek(input, -1, &at, &piece, 1) < 1)
			break;
		frame_chunks(&c->frame, piece.iov_base, piece.iov_len);
	}
	return c->frame.stage;
}

static enum frame_stage advance(struct conn *c)
{
	struct evbuffer *input = bufferevent_get_input(c->bev);
	enum frame_stage stage = c->frame.stage;

	if (stage == FRAME_HEAD)
		stage = look_at_head(c, input);
	if (stage == FRAME_BODY && c->frame.chunked)
		stage = look_at_chunks(c, input);
	else if (stage == FRAME_BODY &&
		 evbuffer_get_length(input) >= c->frame.head + c->frame.length)
		stage = c->frame.stage = FRAME_WHOLE;
	return stage;
}

static void say_continue(struct conn *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	c->frame.expects = false;
	if (evbuffer_get_length(bufferevent_get_input(c->bev)) > c->frame.head)
		return; /* it did not wait */
	bufferevent_write(c->bev, text, sizeof(text) - 1);
	bufferevent_enable(c->bev, EV_WRITE);
}

/* Something of a request is in the input. */
static void look(struct conn *c)
{
	enum frame_stage stage = advance(c);

	if (stage == FRAME_WHOLE) {
		hold_back(c, false);
		return;
	}
	if (stage == FRAME_REFUSED) {
		c->api->counters.bad_framing++;
		last_words(c, &c->frame.refusal);
		return;
	}
	hold_back(c, true);
	if (c->state == CONN_IDLE)
		conn_set_state(c, CONN_READING);
	if (stage == FRAME_BODY && c->frame.expects)
		say_continue(c);
}

/* Runs before evhttp's read callback, in the same call of the bufferevent. */
static void input_came(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
	struct conn *c = arg;

	if (info->n_added == 0 || !c->evcon)
		return;
	if (c->state == CONN_IDLE || c->state == CONN_READING)
		look(c);
}

void conn_request_done(struct conn *c)
{
	frame_init(&c->frame);
	c->held = false; /* evhttp sets its own callbacks now */
	conn_set_state(c, CONN_IDLE);
	if (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0)
		event_active(c->kick, EV_TIMEOUT,
			0); /* a pipelined request: before evhttp looks at it */
}

/* ---- admission ---- */

static bool remember(struct conn *c)
{
	struct api *a = c->api;
	size_t count = (size_t)c->fd + 1;

	if (count > a->by_fd_count) {
		struct conn **table;

		count = count < 64 ? 64 : count * 2;
		table = realloc(a->by_fd, count * sizeof(struct conn *));
		if (!table)
			return false;
		memset(table + a->by_fd_count, 0, (count - a->by_fd_count) * sizeof(struct conn *));
		a->by_fd = table;
		a->by_fd_count = count;
	}
	a->by_fd[c->fd] = c;
	c->next = a->conns;
	c->prev_next = &a->conns;
	if (c->next)
		c->next->prev_next = &c->next;
	a->conns = c;
	a->connections++;
	return true;
}

static void name_peer(struct conn *c)
{
	char *address = NULL;
	ev_uint16_t port;

	if (c->listener->kind == LISTENER_SOCKET) {
		snprintf(c->address, sizeof(c->address), "local");
		auth_peer_name(c->fd, c->peer, sizeof(c->peer));
		return;
	}
	evhttp_connection_get_peer(c->evcon, &address, &port);
	snprintf(c->address, sizeof(c->address), "%s", address ? address : "unknown");
}

/* Whether the caps allow one more; the admin socket is never locked out by the network's load. */
static const struct refusal *over_cap(struct conn *c, bool *ret_no_memory)
{
	static const struct refusal total = {503, "too_many_connections",
		"this dispatcher has as many connections as it takes; try again later"};
	static const struct refusal one = {429, "too_many_connections_from_address",
		"your address has as many connections as one address may have"};
	const struct config *config = c->api->config;
	uint32_t count = 0;

	if (c->listener->kind == LISTENER_SOCKET)
		return NULL;
	c->counted = addresses_take(&c->api->addresses, c->address, &count);
	*ret_no_memory = !c->counted;
	if (c->api->connections > config->max_connections ||
		c->api->connections > c->api->descriptor_limit)
		return &total;
	return count > config->max_connections_per_address ? &one : NULL;
}

static void admit(struct conn *c)
{
	const struct refusal *refusal;
	bool no_memory = false;

	if (!remember(c)) {
		struct evhttp_connection *evcon = c->evcon;

		c->evcon = NULL;
		evbuffer_remove_cb_entry(bufferevent_get_input(c->bev), c->input_cb);
		evhttp_connection_free(evcon);
		conn_unref(c);
		return;
	}
	evhttp_connection_set_closecb(c->evcon, closed, c);
	name_peer(c);
	c->api->counters.accepted_connections++;
	refusal = over_cap(c, &no_memory);
	if (refusal || no_memory || c->api->stopping) {
		c->api->counters.refused_connections++;
		if (refusal && c->listener->kind != LISTENER_TLS)
			last_words_now(c, refusal);
		conn_close(c);
		return;
	}
	conn_set_state(c, CONN_IDLE);
	arm(c, c->listener->kind == LISTENER_TLS ? c->api->config->request_deadline_ms
						 : c->api->config->idle_timeout_ms);
}

/* Twice in a connection's life: to admit it, and for each pipelined request. */
static void kicked(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	struct bufferevent *bev = c->bev;
	void *evcon = NULL;

	if (c->evcon) {
		if (c->state == CONN_IDLE)
			look(c);
		return;
	}
	bufferevent_getcb(bev, &c->read_cb, &c->write_cb, &c->event_cb, &evcon);
	c->fd = bufferevent_getfd(bev);
	if (evcon && c->fd >= 0) {
		c->evcon = evcon;
		admit(c);
	} else { /* evhttp gave up on it: the bufferevent lives by our reference alone */
		evbuffer_remove_cb_entry(bufferevent_get_input(bev), c->input_cb);
		c->bev = NULL;
		conn_unref(c);
	}
	bufferevent_decref(bev);
}

static struct bufferevent *make_bufferevent(struct event_base *base, struct listener *l)
{
	struct bufferevent *bev;
	SSL *ssl;

	if (l->kind != LISTENER_TLS)
		return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	ssl = SSL_new(l->tls);
	if (!ssl)
		return NULL;
	bev = bufferevent_openssl_socket_new(
		base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!bev)
		SSL_free(ssl);
	else
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

struct bufferevent *conn_make(struct event_base *base, void *listener)
{
	struct listener *l = listener;
	struct conn *c = calloc(1, sizeof(*c));
	struct bufferevent *bev = c ? make_bufferevent(base, l) : NULL;

	if (!bev) {
		free(c);
		ERR_clear_error();
		return server_spare_bufferevent(l->api);
	}
	c->api = l->api;
	c->listener = l;
	c->refs = 1;
	c->bev = bev;
	c->fd = -1;
	c->request.api = l->api;
	c->request.conn = c;
	frame_init(&c->frame);
	c->timer = evtimer_new(base, timer_fired, c);
	c->kick = event_new(base, -1, 0, kicked, c);
	c->input_cb = evbuffer_add_cb(bufferevent_get_input(bev), input_came, c);
	if (!c->input_cb || !c->timer || !c->kick) {
		bufferevent_free(bev);
		conn_unref(c);
		return server_spare_bufferevent(l->api);
	}
	bufferevent_incref(bev);
	event_active(c->kick, EV_TIMEOUT, 0);
	return bev;
}
