/* SPDX-License-Identifier: ISC */
/* A `door` section of termbrokerd.conf: where RDP clients come in, and what becomes of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CONFIG_DOORS_MAX 8
#define CONFIG_DOOR_POOLS_MAX 64
#define CONFIG_DOOR_DOMAINS_MAX 64
#define CONFIG_DOOR_PROXIES_MAX 32

enum config_door_mode {
	DOOR_MODE_REDIRECT, /* the client is told a node and goes there itself */
	DOOR_MODE_RELAY,    /* it is connected through to the node */
};

/* What a redirection leads to. */
enum config_redirect { REDIRECT_TO_NODE, REDIRECT_TO_RELAY };

/* What the door does with a client that tells no name. */
enum config_nobody { NOBODY_PLACE, NOBODY_REFUSE };

/* A network whose PROXY headers are believed. */
struct config_network {
	bool ipv6;
	uint8_t address[16]; /* network order; the first 4 of an IPv4 network */
	uint8_t bits;
};

struct config_domain {
	char *domain, *pool;
};

struct config_door {
	char *address; /* IP address to bind */
	uint16_t port; /* 3389; 0 = any free one */
	enum config_door_mode mode;
	enum config_redirect redirect_to;
	char *pool;		 /* that its clients ask for */
	char *certificate, *key; /* PEM files; both "" only in relay mode */
	enum config_nobody nobody;
	bool proxy_to_node; /* begins with a PROXY v2 header there */

	char *pools[CONFIG_DOOR_POOLS_MAX]; /* that a client may name besides */
	unsigned pool_count;
	struct config_domain domains[CONFIG_DOOR_DOMAINS_MAX];
	unsigned domain_count;
	struct config_network proxies[CONFIG_DOOR_PROXIES_MAX];
	unsigned proxy_count;
};

void config_door_deinit(struct config_door *d);
/* RET, which is empty, becomes a copy of its own. -ENOMEM: config_door_deinit frees what there is.
 */
int config_door_copy(const struct config_door *from, struct config_door *ret);
/* The pool that clients may name NAME by, in any case of letters: DOOR's own spelling; NULL none.
 */
const char *config_door_pool(const struct config_door *d, const char *name);
/* Whether a PROXY header must come first from PEER. */
bool config_door_is_proxy(const struct config_door *d, const struct sockaddr *peer);
