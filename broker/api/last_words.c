/* SPDX-License-Identifier: ISC */
/*
 * Model: the connection's callbacks are replaced, so no request is looked for any more.
 * CONN_REFUSED until the text is written, then CONN_LINGER: closing a socket with unread input
 * sends a reset, which throws away the answer at the other end.
 */
#include "api/last_words.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include "api/problem.h"

#define LINGER_BYTES (4u * 1024 * 1024) /* thrown away at most */

static void format(struct api *a, const struct refusal *why)
{
	buf_reset(&a->body);
	problem_format(&a->body, why->status, why->code, why->detail);
	buf_reset(&a->head);
	buf_addf(&a->head,
		"HTTP/1.1 %u %s\r\nContent-Type: " CONTENT_PROBLEM "\r\nContent-Length: %zu\r\n"
		"%sConnection: close\r\n\r\n",
		why->status, status_text(why->status), a->body.len,
		why->status == 429 || why->status == 503 ? "Retry-After: 5\r\n" : "");
	buf_add(&a->head, buf_str(&a->body), a->body.len);
	a->counters.requests[why->status / 100]++;
}

static void throw_away(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(input);

	evbuffer_drain(input, len);
	c->left += len;
	if (c->left > LINGER_BYTES)
		conn_close(c);
}

static void written(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (c->state != CONN_REFUSED || evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return;
	if (c->listener->kind == LISTENER_TLS) {
		SSL_shutdown(bufferevent_openssl_get_ssl(bev));
		ERR_clear_error();
	}
	shutdown(c->fd, SHUT_WR);
	conn_set_state(c, CONN_LINGER);
}

static void ended(struct bufferevent *bev, short what, void *arg)
{
	struct conn *c = arg;

	if ((what & BEV_EVENT_EOF) && c->state == CONN_REFUSED)
		bufferevent_disable(bev, EV_READ); /* it may still read */
	else if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		conn_close(c);
}

void last_words(struct conn *c, const struct refusal *why)
{
	struct api *a = c->api;
	struct evbuffer *input = bufferevent_get_input(c->bev);

	format(a, why);
	c->left = 0;
	conn_set_state(c, CONN_REFUSED);
	bufferevent_setcb(c->bev, throw_away, written, ended, c);
	evbuffer_drain(input, evbuffer_get_length(input));
	bufferevent_write(c->bev, buf_str(&a->head), a->head.len);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

void last_words_now(struct conn *c, const struct refusal *why)
{
	struct api *a = c->api;

	format(a, why);
	send(c->fd, buf_str(&a->head), a->head.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}
