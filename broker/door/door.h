/* SPDX-License-Identifier: ISC */
/*
 * The front door: RDP clients on port 3389 are told where their session is, or the least loaded node, by a Server
 * Redirection; or they are connected through to it.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/err.h"
#include "service/config.h"
#include "wire/door_message.h"

struct door;

/* Who decides, and keeps the journal: the dispatcher of this process, or one that is asked over HTTP. */
struct door_broker {
	/* DONE is called once, perhaps before this returns, and at the latest when the broker ends. */
	void (*ask)(void *ctx, const struct door_question *q, door_answered *done, void *done_ctx);
	void (*tell)(void *ctx, const struct door_report *r);
	void *ctx;
};

/* Opens the configured doors and accepts. CONFIG and what BROKER points to are borrowed. 0 or a negative errno. */
int door_new(struct event_base *base, const struct config *config, const struct door_broker *broker,
	struct door **ret, struct err *e);
/* Accepts no more; clients in the middle of their handshake may finish it. */
void door_stop(struct door *d);
/* door_stop, then DRAINED is called once nobody is relayed any more, or after the time that is configured. */
void door_drain(struct door *d, void (*drained)(void *ctx), void *ctx);
/* Closes what is left. After the end of the broker, which has answered every client that waited for it; the reports
 * of clients that are cut off here go nowhere: door_cut before tells them. */
void door_free(struct door *d);
/* Ends the clients that are relayed, and tells it. */
void door_cut(struct door *d);
/* A reload in two steps, as api_prepare: CONFIG has the same doors, perhaps with other certificates,
 * pools or limits. */
int door_prepare(struct door *d, const struct config *config, struct err *e);
void door_take(struct door *d, const struct config *config);
void door_leave(struct door *d);
/* The port of door I, as it was bound; 0 = no such door. */
uint16_t door_port(const struct door *d, unsigned i);
/* Clients that are relayed now. */
unsigned door_relayed(const struct door *d);
