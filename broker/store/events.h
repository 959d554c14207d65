/* SPDX-License-Identifier: ISC */
/* Reading the journal's table. */
#pragma once

#include "store/answer.h"
#include "store/reader.h"
#include "store/store.h"

struct events_read {
	struct read read;
	struct answer answer;
	store_event_row *row;
	/* Its answer is complete. */
	void (*settled)(void *owner, struct events_read *r);
	void *owner;
};

/* NULL: no memory. */
struct events_read *events_read_new(
	const struct event_query *q, store_event_row *row, store_done *done, void *ctx);
