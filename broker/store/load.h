/* SPDX-License-Identifier: ISC */
/* Loading everything into the fleet, in one snapshot, row by row while the loop goes on. */
#pragma once

#include "store/queue.h"
#include "store/reader.h"
#include "store/store.h"

struct load;

/* RESULT 0, or as for store_done. */
typedef void load_done(void *ctx, int result, const struct fault *fault);

/* Sessions that wait in QUEUE are left out: the fleet knows better. */
struct load *load_new(const struct store_handler *handler, void *handler_ctx,
	const struct queue *queue, load_done *done, void *ctx);
void load_free(struct load *l);
/* Begins (anew). False: no connection. */
bool load_start(struct load *l, struct reader *reader);
/* The identity of the cluster, "" before the first load. */
const char *load_cluster_id(const struct load *l);
/* The key of route tokens, ROUTE_KEY_SIZE bytes. */
const uint8_t *load_route_key(const struct load *l);
