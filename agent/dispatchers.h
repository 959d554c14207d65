/* SPDX-License-Identifier: ISC */
/*
 * Which dispatchers there are and whose turn it is.
 *
 * The configured ones come first in time; a topology that a dispatcher tells goes before them once
 * it is accepted: of the same cluster as the first one heard, of a higher version, not empty. It
 * lives in memory only. The configured ones stay behind it as a last resort.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "wire/heartbeat.h"

struct dispatchers {
	char configured[LIMIT_DISPATCHERS][CONFIG_URL_SIZE];
	size_t configured_count;
	struct topology topology; /* count 0: none yet */
	size_t at;		  /* whose turn it is, in configured behind topology */
	size_t tried;		  /* failures in a row since the last success */
};

enum dispatchers_news {
	DISPATCHERS_SAME,    /* nothing new */
	DISPATCHERS_NEW,     /* taken over */
	DISPATCHERS_FOREIGN, /* of another cluster: refused */
	DISPATCHERS_EMPTY,   /* without a usable dispatcher: refused */
};

/* PICK: any number; spreads agents over the list. COUNT >= 1. */
void dispatchers_init(
	struct dispatchers *d, const char (*urls)[CONFIG_URL_SIZE], size_t count, uint64_t pick);
/* Whose turn it is. */
const char *dispatchers_current(const struct dispatchers *d);
/* The current one works. */
void dispatchers_succeeded(struct dispatchers *d);
/* The current one does not: the next one's turn. True if others are left to try now, false when
 * each was tried since the last success or the last false: time to wait. */
bool dispatchers_failed(struct dispatchers *d);
/* What a dispatcher says. After DISPATCHERS_NEW the turn is PICK's, so that agents spread over
 * dispatchers that joined, unless the same ones are listed. */
enum dispatchers_news dispatchers_learn(
	struct dispatchers *d, const struct topology *t, uint64_t pick);
