/* SPDX-License-Identifier: ISC */
/* Inside door/: the listeners, which know all clients, and the life of one client. */
#pragma once

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "door/dialogue.h"
#include "door/door.h"
#include "door/x224.h"
#include "service/addresses.h"

struct door_listener {
	struct door *door;
	struct evconnlistener *socket;
	SSL_CTX *tls, *next_tls; /* the latter while a reload is prepared */
	unsigned index; /* in the configuration */
	uint16_t port;
};

struct door {
	struct event_base *base;
	const struct config *config;
	struct service *service;
	struct door_listener listeners[CONFIG_DOORS_MAX];
	unsigned listener_count;
	struct loop_timer *resume; /* accepting, after a lack of descriptors */
	struct log_limit accept_log;
	bool stopping;

	struct client *clients;
	unsigned client_count;
	struct address_count *addresses;
};

/* Takes FD over; perhaps it is closed at once. */
void client_accept(struct door_listener *l, int fd, const struct sockaddr *peer);
/* Ends a client, wherever it is. */
void client_close(struct client *c);
