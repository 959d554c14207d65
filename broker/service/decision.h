/* SPDX-License-Identifier: ISC */
/* From a request to the input of choose(): what connecting and explaining have in common. */
#pragma once

#include "service/state.h"

#define DECISION_PROBES_MAX 8

struct decision {
	char key[LIMIT_USER_KEY_SIZE];
	struct tag_request tags, forced;
	struct choose_probe probes[DECISION_PROBES_MAX];
	const struct node *avoid[CHOOSE_AVOID_MAX];
	struct choose_input input;
	struct choice choice;
};

enum wish_who {
	WISH_USER,   /* request->user is his name */
	WISH_HINT,   /* it is what the first packet of an RDP client tells of it */
	WISH_NOBODY, /* it is a word for the journal */
};

/* A request for a node, and what only the door may add. */
struct wish {
	const struct connection_request *request;
	enum wish_who who;
	char endpoint[LIMIT_ADDRESS_SIZE]; /* of a routing token; "" none */
	uint16_t endpoint_port;
	uint32_t avoid[CHOOSE_AVOID_MAX]; /* ids of nodes */
	uint32_t avoid_count;
};

enum decision_step { DECISION_READY, DECISION_WAIT, DECISION_ERROR };

/* READY: d->choice is made. WAIT: a probe is under way, ask again when it ended. ERROR: told in
 * ERROR; with an unknown pool d->choice says so, too. */
enum decision_step decision_make(struct service *s, const struct caller *caller,
	const struct wish *w, struct decision *d, struct service_error *error);
/* service_connect, with what the door may add (connect.c). W and its request are copied where they must
 * outlive the call. */
void connect_wish(struct service *s, const struct caller *caller, const struct wish *w,
	service_connect_done *done, void *ctx);
/* The refusal in D as an error for the asker: what and what to do next. */
void decision_refusal(const struct decision *d, const struct connection_request *request,
	struct service_error *ret);
