/* SPDX-License-Identifier: ISC */
/* The rows of a batch as arrays for unnest, one column each, and as words. */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/queue.h"

#define BATCH_COLUMNS 20

struct batch_rows {
	const char *dispatcher; /* of the events */
	struct buf columns[BATCH_COLUMNS];
};

void batch_rows_init(struct batch_rows *b, const char *dispatcher);
void batch_rows_deinit(struct batch_rows *b);
/* For qsort on struct row *: by kind, then by key. */
int batch_rows_compare(const void *a, const void *b);
/* Sends the statements for COUNT sorted rows. */
bool batch_rows_send(struct batch_rows *b, struct row *const *rows, size_t count, PGconn *conn);
void batch_rows_describe(const struct row *r, struct err *ret);
