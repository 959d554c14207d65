/* SPDX-License-Identifier: ISC */
/*
 * Model: a request lives inside its connection, one at a time. EVREQ is set from request_arrived
 * until it is answered or the connection closes; a handler that answers later holds a reference to
 * the connection's memory meanwhile.
 *
 * The answer is written here and not by evhttp: one text in one piece, sent at once where the
 * socket takes it, which spares the event that evhttp would wait for and most of its allocations.
 * evhttp is told that the answer ended (evhttp_send_reply_end) and goes on to the next request or
 * closes.
 */
#include "api/request.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http_struct.h>
#include <openssl/err.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/connection.h"
#include "api/problem.h"
#include "api/routes.h"

#define TLS_AT_ONCE 12288 /* below what the bufferevent gives OpenSSL in one piece: a retry */
#define SCRATCH_KEPT (1024 * 1024) /* an answer beyond it gives its memory back */

static enum method method_of(enum evhttp_cmd_type type)
{
	switch (type) {
	case EVHTTP_REQ_GET:
		return METHOD_GET;
	case EVHTTP_REQ_HEAD:
		return METHOD_HEAD;
	case EVHTTP_REQ_POST:
		return METHOD_POST;
	case EVHTTP_REQ_PUT:
		return METHOD_PUT;
	case EVHTTP_REQ_PATCH:
		return METHOD_PATCH;
	case EVHTTP_REQ_DELETE:
		return METHOD_DELETE;
	default:
		return METHOD_OTHER;
	}
}

void request_arrived(struct evhttp_request *evreq, void *listener)
{
	struct listener *l = listener;
	struct conn *c = conn_of(l->api, evreq);
	struct request *r;

	if (!c || c->state == CONN_REFUSED || c->state == CONN_LINGER ||
		!evhttp_request_get_uri(evreq)) {
		if (c)
			conn_close(c);
		else /* one that memory did not suffice for */
			evhttp_connection_free(evhttp_request_get_connection(evreq));
		return;
	}
	conn_ref(c);
	conn_set_state(c, CONN_BUSY);
	r = &c->request;
	r->evreq = evreq;
	r->method = method_of(evhttp_request_get_command(evreq));
	r->path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(evreq));
	r->query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(evreq));
	if (!r->query)
		r->query = "";
	r->segments = 0;
	r->header_bytes = 0;
	routes_dispatch(r);
	conn_unref(c);
}

void request_hold(struct request *r)
{
	conn_ref(r->conn);
}

void request_release(struct request *r)
{
	conn_unref(r->conn);
}

bool request_gone(const struct request *r)
{
	return r->evreq == NULL;
}

const char *request_body(struct request *r, size_t *ret_len)
{
	struct evbuffer *input = evhttp_request_get_input_buffer(r->evreq);
	size_t len = evbuffer_get_length(input);
	const char *data = len ? (const char *)evbuffer_pullup(input, -1) : "";

	*ret_len = data ? len : 0;
	return data ? data : "";
}

const char *request_header_value(const struct request *r, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(r->evreq), name);
}

bool request_accepts(const struct request *r, const char *type)
{
	const char *accept = request_header_value(r, "Accept");
	size_t len = strlen(type);

	while (accept && *accept) {
		accept += strspn(accept, " \t,");
		if (strncasecmp(accept, type, len) == 0 && strchr(" \t,;", accept[len]))
			return true;
		accept += strcspn(accept, ",");
	}
	return false;
}

struct buf *request_out(struct request *r)
{
	buf_reset(&r->api->body);
	return &r->api->body;
}

void request_add_header(struct request *r, const char *name, const char *value)
{
	size_t room = sizeof(r->headers) - r->header_bytes;
	int n = snprintf(r->headers + r->header_bytes, room, "%s: %s\r\n", name, value);

	if (n > 0 && (size_t)n < room)
		r->header_bytes += (unsigned)n;
}

static const char *date_now(struct api *a)
{
	time_t now = time(NULL);
	struct tm tm;

	if (now != a->date_at && gmtime_r(&now, &tm)) {
		strftime(a->date, sizeof(a->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		a->date_at = now;
	}
	return a->date;
}

/* Whether the client, or we, end the connection with this answer; evhttp decides by the same facts.
 */
static bool closes(const struct request *r)
{
	const struct frame *f = &r->conn->frame;

	return f->close || (f->http10 && !f->keep_alive) || r->api->stopping;
}

static void format_head(struct request *r, unsigned status, const char *content_type)
{
	struct api *a = r->api;
	struct buf *b = &a->head;
	bool close = closes(r);

	buf_reset(b);
	buf_adds(b, "HTTP/1.1 ");
	buf_addu(b, status);
	buf_addc(b, ' ');
	buf_adds(b, status_text(status));
	buf_adds(b, "\r\nDate: ");
	buf_adds(b, date_now(a));
	if (content_type) {
		buf_adds(b, "\r\nContent-Type: ");
		buf_adds(b, content_type);
		buf_adds(b, "\r\nContent-Length: ");
		buf_addu(b, a->body.len);
	}
	buf_adds(b, "\r\nCache-Control: no-store\r\n");
	buf_add(b, r->headers, r->header_bytes);
	if (close)
		buf_adds(b, "Connection: close\r\n");
	else if (r->conn->frame.http10)
		buf_adds(b, "Connection: keep-alive\r\n");
	buf_adds(b, "\r\n");
	if (close)
		evhttp_add_header(
			evhttp_request_get_output_headers(r->evreq), "Connection", "close");
}

/* Sends what the socket takes now; returns how much. */
static size_t send_plain(const struct conn *c, const struct buf *text)
{
	ssize_t n = send(c->fd, text->data, text->len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n > 0 ? (size_t)n : 0; /* an error shows again, to the bufferevent */
}

static size_t send_tls(const struct conn *c, const struct buf *text)
{
	int n;

	if (text->len > TLS_AT_ONCE)
		return 0;
	ERR_clear_error();
	n = SSL_write(bufferevent_openssl_get_ssl(c->bev), text->data, (int)text->len);
	if (n <= 0)
		ERR_clear_error();
	return n > 0 ? (size_t)n : 0;
}

/* The bufferevent has written everything. */
static void completed(struct evhttp_request *evreq, void *arg)
{
	conn_request_done(arg);
}

static void transmit(struct request *r)
{
	struct conn *c = r->conn;
	struct evhttp_request *evreq = r->evreq;
	const struct buf *text = &r->api->head;
	size_t sent = 0;

	r->evreq = NULL;
	evreq->chunked = 0; /* the request was; evhttp would end the answer like it */
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
		sent = c->listener->kind == LISTENER_TLS ? send_tls(c, text) : send_plain(c, text);
	if (sent == text->len) {
		conn_request_done(c);
		evhttp_send_reply_end(evreq); /* nothing is left to write: done at once */
		return;
	}
	conn_set_state(c, CONN_WRITING);
	c->left = 0;
	bufferevent_write(c->bev, text->data + sent, text->len - sent);
	bufferevent_setcb(c->bev, NULL, c->write_cb, c->event_cb, c->evcon);
	evhttp_request_set_on_complete_cb(evreq, completed, c);
	bufferevent_enable(c->bev, EV_WRITE);
	evhttp_send_reply_end(evreq);
}

/* A body that could not be made becomes a 500, which always fits. */
static void give_scratch_back(struct api *a)
{
	if (a->body.cap > SCRATCH_KEPT)
		buf_deinit(&a->body);
	if (a->head.cap > SCRATCH_KEPT)
		buf_deinit(&a->head);
}

static void send_text(struct request *r, unsigned status, const char *content_type)
{
	struct api *a = r->api;

	format_head(r, status, content_type);
	if (content_type && r->method != METHOD_HEAD)
		buf_add(&a->head, buf_str(&a->body), a->body.len);
	if (buf_error(&a->head)) {
		conn_close(r->conn);
		return;
	}
	a->counters.requests[status / 100]++;
	transmit(r);
}

void request_send(struct request *r, unsigned status, const char *content_type)
{
	struct api *a = r->api;
	int error = buf_error(&a->body);

	if (request_gone(r))
		return;
	if (error) {
		buf_deinit(&a->body);
		problem_format(&a->body, 500, error == -ENOMEM ? "no_memory" : "answer_too_large",
			error == -ENOMEM ? "there is no memory for the answer"
					 : "the answer is larger than 64 MiB");
		status = 500;
		content_type = CONTENT_PROBLEM;
	}
	send_text(r, status, content_type);
	give_scratch_back(a);
}

void request_send_empty(struct request *r)
{
	if (request_gone(r))
		return;
	buf_reset(&r->api->body);
	send_text(r, 204, NULL);
}
