/* SPDX-License-Identifier: ISC */
/*
 * An answer on its way to the caller: told from the loop, never from inside the call that asked.
 * Embedded in what was asked.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "store/store.h"

struct answer {
	TAILQ_ENTRY(answer) link;
	store_done *done;
	void *ctx;
	int result;
	uint32_t id; /* of a created row */
	struct err why;
	void *asked; /* freed with FREE after telling */
	void (*free)(void *asked);
};

TAILQ_HEAD(answer_list, answer);
