/* SPDX-License-Identifier: ISC */
/*
 * Model: what comes is left in the bufferevent's input until it is one whole request; then a
 * handler has it where it lies, until the answer is written and its bytes are drained. While a
 * handler that answers later has it, nothing is read: input is bounded by one request and one read.
 *
 * Invariants: BEV is set while the connection is open, and in the list of all; conn_close alone
 * ends that. The struct goes with its last reference. REQUEST.LIVE is set from request_arrived
 * until the request is answered or the connection closed.
 */
#include "api/connection.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/addresses.h"
#include "api/admission.h"
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
	free(c);
}

static void unlink_conn(struct conn *c)
{
	struct api *a = c->api;

	*c->prev_next = c->next;
	if (c->next)
		c->next->prev_next = c->prev_next;
	a->connections--;
	if (c->counted)
		addresses_drop(&a->addresses, c->counted);
	c->counted = NULL;
}

/* A polite end of TLS, while the descriptor is still there. */
static void end_tls(struct conn *c)
{
	SSL *ssl = c->listener->kind == LISTENER_TLS ? bufferevent_openssl_get_ssl(c->bev) : NULL;

	if (ssl && SSL_is_init_finished(ssl) && SSL_get_shutdown(ssl) == 0) {
		SSL_shutdown(ssl);
		ERR_clear_error();
	}
}

void conn_close(struct conn *c)
{
	if (!c->bev)
		return;
	end_tls(c);
	event_del(c->timer);
	unlink_conn(c);
	bufferevent_free(c->bev); /* closes the descriptor */
	c->bev = NULL;
	c->request.live = false;
	conn_unref(c);
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
	if (evbuffer_get_length(bufferevent_get_input(c->bev)) == c->frame.head)
		bufferevent_write(c->bev, text, sizeof(text) - 1); /* else it did not wait */
}

/* Something of a request is in the input. */
static void look(struct conn *c)
{
	enum frame_stage stage = advance(c);

	if (stage == FRAME_WHOLE) {
		request_arrived(c);
	} else if (stage == FRAME_REFUSED) {
		c->api->counters.bad_framing++;
		last_words(c, &c->frame.refusal);
	} else {
		if (c->state == CONN_IDLE)
			conn_set_state(c, CONN_READING);
		if (stage == FRAME_BODY && c->frame.expects)
			say_continue(c);
	}
}

/* Whether LOOK would find something it has not seen. */
static bool more_to_see(const struct conn *c)
{
	return c->bev && c->state == CONN_IDLE &&
	       evbuffer_get_length(bufferevent_get_input(c->bev)) > 0;
}

/* One request after the other: answering one does not look for the next from within, which would
 * take stack. */
static void look_on(struct conn *c)
{
	if (c->looking)
		return;
	conn_ref(c);
	c->looking = true;
	if (c->bev && (c->state == CONN_IDLE || c->state == CONN_READING))
		look(c);
	while (more_to_see(c))
		look(c);
	c->looking = false;
	if (c->bev && (c->state == CONN_BUSY || c->state == CONN_WRITING))
		bufferevent_disable(c->bev, EV_READ);
	conn_unref(c);
}

static void input_came(struct bufferevent *bev, void *arg)
{
	look_on(arg);
}

void conn_request_done(struct conn *c)
{
	struct evbuffer *input = bufferevent_get_input(c->bev);
	const struct frame *f = &c->frame;

	if (c->close_after) {
		conn_close(c);
		return;
	}
	evbuffer_drain(input, f->head + (size_t)(f->chunked ? f->fed : f->length));
	frame_init(&c->frame);
	conn_set_state(c, CONN_IDLE);
	if (!c->looking) {
		bufferevent_enable(c->bev, EV_READ);
		if (evbuffer_get_length(input) > 0)
			look_on(c);
	}
}

static void output_went(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (c->state == CONN_WRITING && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		conn_request_done(c);
}

static void peer_ended(struct bufferevent *bev, short what, void *arg)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		conn_close(arg);
}

/* ---- admission ---- */

static void link_conn(struct conn *c)
{
	struct api *a = c->api;

	c->next = a->conns;
	c->prev_next = &a->conns;
	if (c->next)
		c->next->prev_next = &c->next;
	a->conns = c;
	a->connections++;
}

/* Owns FD when it is not NULL. */
static struct bufferevent *make_bufferevent(struct listener *l, int fd)
{
	struct event_base *base = l->api->base;
	struct bufferevent *bev;
	SSL *ssl;

	if (l->kind != LISTENER_TLS)
		return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	ssl = SSL_new(l->tls);
	if (!ssl)
		return NULL;
	bev = bufferevent_openssl_socket_new(
		base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!bev)
		SSL_free(ssl);
	else
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

/* NULL: no memory; FD is then still the caller's. */
static struct conn *conn_new(struct listener *l, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->api = l->api;
	c->listener = l;
	c->refs = 1;
	c->fd = fd;
	c->request.api = l->api;
	c->request.conn = c;
	frame_init(&c->frame);
	c->timer = evtimer_new(l->api->base, timer_fired, c);
	c->bev = c->timer ? make_bufferevent(l, fd) : NULL;
	if (!c->bev) {
		ERR_clear_error();
		conn_unref(c);
		return NULL;
	}
	return c;
}

void conn_accept(struct listener *l, int fd, const struct sockaddr *peer)
{
	struct conn *c = conn_new(l, fd);
	const struct refusal *refusal;

	if (!c) {
		close(fd);
		server_pause_accepting(l->api);
		return;
	}
	link_conn(c);
	l->api->counters.accepted_connections++;
	refusal = admission_check(c, peer);
	if (refusal) {
		l->api->counters.refused_connections++;
		if (l->kind != LISTENER_TLS)
			last_words_now(c, refusal);
		conn_close(c);
		return;
	}
	bufferevent_setcb(c->bev, input_came, output_went, peer_ended, c);
	bufferevent_enable(c->bev, l->kind == LISTENER_TLS ? EV_READ | EV_WRITE : EV_READ);
	conn_set_state(c, CONN_IDLE);
	arm(c, l->kind == LISTENER_TLS ? l->api->config->request_deadline_ms
				       : l->api->config->idle_timeout_ms);
}
