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
#include "door/pipes.h"
#include "door/proxy_header.h"
#include "door/x224.h"
#include "service/addresses.h"

struct client;
struct relay;
struct flow;
struct approach;
struct evdns_base;

struct door_listener {
	struct door *door;
	struct evconnlistener *socket;
	SSL_CTX *tls, *next_tls; /* the latter while a reload is prepared; NULL: no certificate */
	unsigned index;		 /* in the configuration */
	uint16_t port;
};

struct door {
	struct event_base *base;
	const struct config *config;
	struct door_broker broker;
	struct door_listener listeners[CONFIG_DOORS_MAX];
	unsigned listener_count;
	struct loop_timer *resume; /* accepting, after a lack of descriptors */
	struct log_limit accept_log;
	bool stopping;
	void (*drained)(void *ctx);
	void *drained_ctx;
	struct loop_timer *drain; /* the end of waiting for relayed clients */
	struct evdns_base *dns;	  /* for nodes given by host name; made at the first need */

	struct client *clients; /* until they are redirected or relayed */
	unsigned client_count;
	struct address_count *addresses;

	struct relay *relays;
	unsigned relay_count;
	struct address_count *relay_addresses;
	struct pipes pipes;
	struct flow *starved; /* wait for a pipe */
	struct loop_timer *feed;
};

/* ---- client.c ---- */

enum stage {
	STAGE_PROXY, /* a balancer's header is awaited */
	STAGE_FIRST, /* the first packet */
	STAGE_TLS,
	STAGE_DIALOGUE,
	STAGE_ASKING,  /* the broker has it */
	STAGE_NODE,    /* a node is being connected */
	STAGE_LEAVING, /* all is said, or will be once it is written */
};

struct client {
	struct client *next, **prev_next;
	struct door *door;
	struct door_listener *listener;
	struct address_count *counted, *relay_counted;
	char address[LIMIT_ADDRESS_SIZE];
	struct sockaddr_storage peer;
	int64_t accepted_ms;
	enum stage stage;
	bool closed;	  /* but the broker still has it */
	bool shut;	  /* nothing more is said */
	bool relayed;	  /* is to be, by mode or ticket */
	bool refused;	  /* a client of the relay that is told so within TLS */
	bool renamed;	  /* question.name is not what it typed: the node must be told */
	uint32_t refusal; /* what it is told, ERRINFO */
	int fd;
	struct event *readable;
	struct bufferevent *bev; /* owns FD */
	struct loop_timer *timer;
	struct approach *approach;
	size_t have;
	uint8_t first[PROXY_HEADER_MAX > X224_REQUEST_MAX ? PROXY_HEADER_MAX : X224_REQUEST_MAX];
	struct x224_request request;
	struct dialogue dialogue;
	struct door_question question;
};

/* Takes FD over; perhaps it is closed at once. */
void client_accept(struct door_listener *l, int fd, const struct sockaddr *peer);
/* Ends a client, wherever it is. */
void client_close(struct client *c);
/* The same, and tells why. */
void client_fail(struct client *c, const char *reason);
/* Asks the broker the client's question, once more perhaps. */
void client_ask(struct client *c);
/* All was said: the client's end is waited for. */
void client_shut(struct client *c);
/* No node, or no service, for this client: tells it so if that is possible. */
void client_turn_away(struct client *c, uint32_t errinfo);
/* The configuration of the client's door. */
const struct config_door *client_config(const struct client *c);
/* Until when the handshake must be over, from now. */
int64_t client_time_left(const struct client *c);

/* ---- talk.c: inside TLS ---- */
void talk_start(struct client *c);
void talk_redirect(struct client *c, const struct door_answer *a);
void talk_refuse(struct client *c);

/* ---- approach.c: to a node on behalf of a client ---- */
/* Ends in relay_begin, or in client_ask once more, or in client_fail. */
void approach_start(struct client *c, const struct door_answer *a);
void approach_free(struct approach *a);

/* ---- relay.c ---- */
/* NODE_FD has answered; takes it over, and what C has; C is gone. */
void relay_begin(struct client *c, int node_fd, const struct door_answer *a);
/* Ends one and tells why. */
void relay_end(struct relay *r, const char *reason);
void relay_feed(void *door);
