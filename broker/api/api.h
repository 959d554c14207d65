/* SPDX-License-Identifier: ISC */
/*
 * The HTTP face of a dispatcher: listeners (TLS, plain on loopback), the admin socket, routes.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "base/err.h"
#include "service/service.h"

struct api;

/* Opens every listener and the socket of CONFIG. Errors name address, port or file: in use,
 * unreadable certificate, no such group. */
int api_new(struct event_base *base, const struct config *config, struct service *service,
	struct api **ret, struct err *e);
/* Stops accepting; requests under way are answered by service_free, then call api_free. */
void api_stop(struct api *a);
void api_free(struct api *a);
/* New certificates and limits, all or nothing; addresses need a restart. */
int api_reload(struct api *a, const struct config *config, struct err *e);
/* The port of listener I as bound. */
uint16_t api_port(const struct api *a, unsigned i);
