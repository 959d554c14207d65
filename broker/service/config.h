/* SPDX-License-Identifier: ISC */
/*
 * termbrokerd.conf as a struct. Read whole or not at all; a reload makes a new one and swaps it in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "journal/journal.h"
#include "service/config_door.h"
#include "wire/limits.h"
#include "wire/user_key.h"

#define CONFIG_LISTENERS_MAX 8

struct config_listener {
	char *address;		 /* IP address to bind */
	uint16_t port;		 /* 0 = any free one; what it became is logged and published */
	bool tls;		 /* false only on loopback */
	char *certificate, *key; /* PEM files */
};

/* How an .rdp file tells where its user belongs. */
enum config_rdp_route {
	RDP_TO_NODE,  /* it names the node itself */
	RDP_BY_TOKEN, /* it names a door, and carries a route token */
	RDP_BY_MSTS,  /* it names a door or another balancer, and carries the node's address as a cookie */
};

struct config {
	char *name;	 /* of this dispatcher; default: the host's name */
	char *advertise; /* URL that agents are told; default https://HOSTNAME:PORT of the first
			    listener */

	struct config_listener listeners[CONFIG_LISTENERS_MAX];
	unsigned listener_count;

	struct config_door doors[CONFIG_DOORS_MAX];
	unsigned door_count;

	char *socket_path;  /* "" = no admin socket */
	char *socket_group; /* "" = the daemon's own */

	char *database;		  /* conninfo of the service's role */
	char *migration_database; /* conninfo of the owner, for --migrate; "" = database */

	int64_t stale_after_ms;	  /* 45 s */
	unsigned push_interval_s; /* told to agents; 15 */

	struct journal_config journal; /* strings owned by this struct */
	char *journal_file;
	char *syslog_socket;
	enum log_level log_level;

	struct user_names *user_names;

	/* limits */
	unsigned max_connections;	      /* 4096 in total */
	unsigned max_connections_per_address; /* 512 */
	int64_t request_deadline_ms;	      /* first byte → request complete; 10 s */
	int64_t idle_timeout_ms;	      /* kept-alive connection without a request; 75 s */

	unsigned door_connections;	       /* handshakes under way in total; 1024 */
	unsigned door_connections_per_address; /* 64 */
	int64_t door_first_packet_ms;	       /* accepted → first packet whole; 10 s */
	int64_t door_handshake_ms;	       /* accepted → redirected or relayed; 30 s */
	int64_t door_node_ms;		       /* a node's first answer to a relayed client; 5 s */
	unsigned door_relayed;		       /* relayed clients in total; 10000 */
	unsigned door_relayed_per_address;     /* 1000 */
	int64_t door_drain_ms;		       /* stop → relayed clients are cut off; 30 s, 0 = at once */

	/* .rdp files */
	enum config_rdp_route rdp_route;
	char *rdp_address; /* what they lead to instead of the node: host name or IP address; "" with RDP_TO_NODE */
	uint16_t rdp_port;
	int64_t rdp_lifetime_s;	     /* of route tokens; 1 h */
	char *rdp_certificate, *rdp_key; /* that they are signed with; "" not at all */

	bool open_metrics; /* /metrics without a token; default false */
};

/* 0 and *ret (caller: config_free); negative errno with file and line in E. CONF_D may be NULL. */
int config_load(const char *file, const char *conf_d, struct config **ret, struct err *e);
void config_free(struct config *c);
/* For a reload: what only a start can change (name, listeners, doors, admin socket, database) is set in
 * FRESH as it is in RUNNING, but for the files of certificates where the listeners are the same.
 * CHANGED gets the names of what differed, "" if nothing did. -ENOMEM. */
int config_keep_fixed(
	struct config *fresh, const struct config *running, char *changed, size_t size);
