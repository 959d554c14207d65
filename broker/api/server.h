/* SPDX-License-Identifier: ISC */
/*
 * Inside api/: what the rooms of this folder share. struct api is written by server.c (listeners)
 * and connection.c (connections); handlers read it.
 */
#pragma once

#include <event2/event.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "api/api.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/loop.h"
#include "service/service.h"

struct address_count;
struct conn;
struct event_polls;
struct evconnlistener;

enum listener_kind { LISTENER_PLAIN, LISTENER_TLS, LISTENER_SOCKET };

struct listener {
	struct api *api;
	enum listener_kind kind;
	struct evconnlistener *socket; /* NULL once accepting was ended */
	SSL_CTX *tls;		       /* LISTENER_TLS */
	SSL_CTX *next_tls;	       /* between api_prepare and api_take or api_leave */
	uint16_t port;
};

#define API_ANSWER_MAX (64u * 1024 * 1024)
#define API_STATUS_CLASSES 6

struct api_counters {
	uint64_t requests[API_STATUS_CLASSES]; /* answered, by the first digit of the status */
	uint64_t refused_connections;
	uint64_t accepted_connections;
	uint64_t accept_pauses;
	uint64_t bad_framing; /* refused before a handler saw it */
	uint64_t deadlines;
};

struct api {
	struct event_base *base;
	const struct config *config; /* borrowed */
	struct service *service;     /* borrowed */
	bool stopping;

	struct listener listeners[CONFIG_LISTENERS_MAX + 1];
	unsigned listener_count;
	char *socket_path; /* owned; unlinked at the end */
	bool socket_made;

	/* connections */
	struct conn *conns;	   /* list of all */
	uint32_t connections;	   /* admitted */
	uint32_t descriptor_limit; /* connections that descriptors suffice for */
	struct address_count *addresses;

	/* out of descriptors */
	SSL_CTX *signer, *next_signer; /* of .rdp files; NULL: they are not signed */
	int spare_fd;
	struct loop_timer *resume;
	struct log_limit accept_log;

	/* scratch of the answer being made: nothing is kept in it across a return to the loop */
	struct buf head, body;
	char date[40];
	time_t date_at;

	struct event_polls *polls;
	struct api_counters counters;
};

/* Stops taking connections for a moment: descriptors or memory are short. */
void server_pause_accepting(struct api *a);
