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
/* A reload in two steps. The first reads the certificates of CONFIG, whose listeners must be the
 * ones that are open, and changes nothing else; then exactly one of: api_take, which cannot fail
 * (CONFIG is borrowed from now on), and api_leave. */
int api_prepare(struct api *a, const struct config *config, struct err *e);
void api_take(struct api *a, const struct config *config);
void api_leave(struct api *a);
/* The port of listener I as bound. */
uint16_t api_port(const struct api *a, unsigned i);
