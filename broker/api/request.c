/* SPDX-License-Identifier: ISC */
/*
 * Model: a request lives inside its connection, one at a time, and its strings in the connection's
 * input, where request_arrived ends them with NULs. A handler that answers later holds a reference
 * to the connection's memory meanwhile.
 *
 * The answer is one text in one piece, sent at once where the socket takes it; what is left goes
 * through the bufferevent.
 */
#include "api/request.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/connection.h"
#include "api/problem.h"
#include "api/routes.h"

#define TLS_AT_ONCE 12288 /* below what the bufferevent gives OpenSSL in one piece: a retry */
#define SCRATCH_KEPT (1024 * 1024) /* an answer beyond it gives its memory back */

static const char *end_span(char *data, struct span span)
{
	if (!span.at)
		return NULL;
	data[span.at + span.len] = '\0'; /* a space or a line break */
	return data + span.at;
}

/* False: no memory. */
static bool take_text(struct request *r, struct conn *c)
{
	const struct frame *f = &c->frame;
	size_t body = (size_t)(f->chunked ? f->fed : f->length);
	char *data = (char *)evbuffer_pullup(
		bufferevent_get_input(c->bev), (ev_ssize_t)(f->head + body));
	char *query;

	if (!data)
		return false;
	r->method = f->method;
	r->path = end_span(data, f->target);
	query = strchr(data + f->target.at, '?');
	if (query)
		*query++ = '\0';
	r->query = query ? query : "";
	r->authorization = end_span(data, f->authorization);
	r->accept = end_span(data, f->accept);
	r->body = data + f->head;
	r->body_len = f->chunked ? frame_unchunk(data + f->head, body) : body;
	return true;
}

void request_arrived(struct conn *c)
{
	struct request *r = &c->request;

	if (!take_text(r, c)) {
		conn_close(c);
		return;
	}
	conn_ref(c);
	conn_set_state(c, CONN_BUSY);
	c->close_after = false;
	r->live = true;
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
	return !r->live;
}

bool request_accepts(const struct request *r, const char *type)
{
	const char *accept = r->accept;
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
	r->conn->close_after = close;
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

static void transmit(struct request *r)
{
	struct conn *c = r->conn;
	const struct buf *text = &r->api->head;
	size_t sent = 0;

	r->live = false;
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
		sent = c->listener->kind == LISTENER_TLS ? send_tls(c, text) : send_plain(c, text);
	if (sent == text->len) {
		conn_request_done(c);
		return;
	}
	conn_set_state(c, CONN_WRITING);
	c->left = 0;
	if (bufferevent_write(c->bev, text->data + sent, text->len - sent) < 0)
		conn_close(c);
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
