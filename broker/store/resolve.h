/* SPDX-License-Identifier: ISC */
/*
 * Names to addresses off the loop: getaddrinfo in a thread of its own, because it blocks as long as
 * it likes. A request that is given up leaves its thread to finish alone.
 */
#pragma once

#include <event2/event.h>
#include <stddef.h>

#include "base/err.h"

#define RESOLVE_ADDRESSES 8
#define RESOLVE_ADDRESS_SIZE 64

struct resolved {
	char address[RESOLVE_ADDRESSES][RESOLVE_ADDRESS_SIZE]; /* numeric */
	size_t count;
};

struct resolve;
/* R is gone after the call. With no address, REASON says why. */
typedef void resolve_done(void *ctx, const struct resolved *result, const char *reason);

/* -ENOMEM, -EAGAIN (too many given up and still under way), -errno. */
int resolve_start(struct event_base *base, const char *host, resolve_done *done, void *ctx,
	struct resolve **ret, struct err *e);
/* Gives up: DONE is not called. NULL is fine. */
void resolve_cancel(struct resolve *r);
