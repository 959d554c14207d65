/* SPDX-License-Identifier: ISC */
/*
 * Inside api/: one connection of a client. It looks for one whole request (smuggle.h), sets the
 * deadlines, counts against the caps, and ends what breaks them.
 */
#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/request.h"
#include "api/server.h"
#include "api/smuggle.h"

enum conn_state {
	CONN_IDLE,    /* between requests */
	CONN_READING, /* a request has begun and is not whole */
	CONN_BUSY,    /* a handler has it */
	CONN_WRITING, /* an answer is under way */
	CONN_REFUSED, /* our last words are under way */
	CONN_LINGER /* last words sent: what still comes is thrown away, so that they can be read */
};

struct conn {
	struct conn *next, **prev_next;
	struct api *api;
	struct listener *listener;
	unsigned refs;		 /* the open connection, and a request that a handler holds */
	struct bufferevent *bev; /* NULL once closed */
	int fd;

	enum conn_state state;
	bool looking;	  /* a turn of reading is on the stack */
	bool close_after; /* the answer under way is the last */
	int64_t since_ms; /* monotonic: when STATE began, or the first byte of the request */
	size_t left;	  /* CONN_WRITING: output left at the last look; CONN_LINGER: thrown away */
	struct event *timer; /* libevent's, not the journal's */
	struct frame frame;

	struct address_count *counted;
	char address[LIMIT_ADDRESS_SIZE];
	char peer[96];		/* "uid 1000 (alice)" on the admin socket */
	struct request request; /* one at a time, as HTTP/1.1 has it */
};

struct sockaddr;

/* Takes the accepted descriptor FD over, whatever comes of it. */
void conn_accept(struct listener *l, int fd, const struct sockaddr *peer);
/* The answer is wholly written: the next request may begin. */
void conn_request_done(struct conn *c);
void conn_set_state(struct conn *c, enum conn_state state);
/* Closes at once. C lives on while a handler holds its request. */
void conn_close(struct conn *c);
void conn_ref(struct conn *c);
void conn_unref(struct conn *c);
