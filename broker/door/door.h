/* SPDX-License-Identifier: ISC */
/*
 * The front door: RDP clients on port 3389 are told where their session is, or the least loaded
 * node, by a Server Redirection.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/err.h"
#include "service/config.h"
#include "service/service.h"

struct door;

/* Opens the configured doors and accepts. CONFIG and SERVICE are borrowed. 0 or a negative errno. */
int door_new(struct event_base *base, const struct config *config, struct service *service,
	struct door **ret, struct err *e);
/* Accepts no more; clients in the middle of their handshake may finish it. */
void door_stop(struct door *d);
/* Closes what is left. After service_free, which has answered every client that waited for it. */
void door_free(struct door *d);
/* A reload in two steps, as api_prepare: CONFIG has the same doors, perhaps with other certificates,
 * pools or limits. */
int door_prepare(struct door *d, const struct config *config, struct err *e);
void door_take(struct door *d, const struct config *config);
void door_leave(struct door *d);
/* The port of door I, as it was bound; 0 = no such door. */
uint16_t door_port(const struct door *d, unsigned i);
