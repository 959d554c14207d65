/* SPDX-License-Identifier: ISC */
/*
 * HTTPS to one server at a time, on the event loop: libcurl's multi interface, at most one request
 * under way and one connection kept alive. No proxy, no redirect, no other protocol.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HTTP_ANSWER_MAX (256 * 1024)
#define HTTP_CONNECT_SECONDS 5
#define HTTP_TOTAL_SECONDS 10

struct http;

struct http_options {
	const char *ca_file; /* NULL: the system's, unless pins are set */
	const char *pins;    /* "sha256//…;…"; NULL or "" none. Alone they replace the CA. */
	const char *token;   /* bearer token; NULL none */
};

struct http_result {
	bool answered;	/* false: see error */
	bool connected; /* a new connection was made for it */
	bool distrust;	/* the server could not prove who it is */
	char error[480];
	long status;
	long retry_after; /* seconds, 0 if not told */
	const char *body; /* NUL-terminated, valid in the callback */
	size_t length;
};

typedef void http_callback(void *ctx, const struct http_result *r);

/* 0, or a negative errno with words. CALLBACK is called once for each request, never from inside
 * http_send; it may send again, it must not free H. */
int http_new(struct event_base *base, const struct http_options *o, http_callback *callback,
	void *ctx, struct http **ret, struct err *e);
/* A request under way is dropped without a callback. */
void http_free(struct http *h);
bool http_busy(const struct http *h);
/* POSTs BODY (JSON, must live until the callback), or GETs when BODY is NULL. Not while busy. 0 or
 * a negative errno. */
int http_send(struct http *h, const char *url, const char *body, size_t length);
