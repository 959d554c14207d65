/* SPDX-License-Identifier: ISC */
/*
 * What a front door asks a dispatcher, and what it tells it: plain values, so that the door may be another
 * process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/limits.h"
#include "wire/route_token.h"

enum door_who {
	DOOR_NOBODY, /* the client told no name: placed by load */
	DOOR_USER,   /* NAME is the whole name that the client told, DOMAIN\user perhaps */
	DOOR_HINT,   /* NAME is of the first packet: perhaps cut, perhaps without its domain */
	DOOR_TICKET, /* NAME is a route token of an .rdp file, which names user and pool */
};

#define DOOR_AVOID_MAX 8

struct door_question {
	enum door_who who;
	char pool[LIMIT_NAME_SIZE];
	char name[LIMIT_USER_SIZE];
	char endpoint[LIMIT_ADDRESS_SIZE]; /* that the client's routing token names; "" none */
	uint16_t endpoint_port;
	bool wants_ticket; /* the client is to come back with a route token */
	char client[LIMIT_ADDRESS_SIZE];
	char avoid[DOOR_AVOID_MAX][LIMIT_NAME_SIZE]; /* nodes that refused this connection */
	unsigned avoid_count;
};

enum door_verdict {
	DOOR_PLACED,
	DOOR_REFUSED,	  /* no node for this client */
	DOOR_UNAVAILABLE, /* no answer to be had: starting, stopping, no dispatcher */
};

struct door_answer {
	enum door_verdict verdict;
	char detail[480]; /* why not */
	char node[LIMIT_NAME_SIZE], address[LIMIT_ADDRESS_SIZE], fqdn[LIMIT_ADDRESS_SIZE];
	uint16_t port;
	char ticket[ROUTE_TOKEN_SIZE]; /* if one was wanted */
	char pool[LIMIT_NAME_SIZE], user[LIMIT_USER_SIZE]; /* for reports; the ticket's where there was one */
};
/* A is borrowed for the length of the call. */
typedef void door_answered(void *ctx, const struct door_answer *a);

enum door_happening {
	DOOR_REDIRECTED,   /* node, pool, user, client, ms since it was accepted */
	DOOR_RELAYED,	   /* the same: the node has answered */
	DOOR_ENDED,	   /* of a relayed one: bytes, ms since it was relayed, reason */
	DOOR_TURNED_AWAY,  /* it was told that there is no node; the decision is journalled already */
	DOOR_FAILED,	   /* client, step, reason */
	DOOR_NODE_REFUSED, /* node, reason: it did not take a client */
};

/* Strings are borrowed; what does not belong to the happening is NULL or 0. */
struct door_report {
	enum door_happening what;
	const char *node, *pool, *user, *client, *step, *reason;
	uint64_t from_client, from_node; /* bytes */
	int64_t ms;
};
