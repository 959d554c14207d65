/* SPDX-License-Identifier: ISC */
/*
 * PostgreSQL array literals in text form: {1,2,"a\"b",NULL}. Every text item is quoted, so a user
 * called null stays a name and no item can end the array. A literal is built item by item with
 * array_text, array_u64 … and closed by array_end; failures stick in the buffer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/spec.h"

/* Empties B and opens a literal. */
void array_begin(struct buf *b);
/* NULL becomes the array's NULL. */
void array_text(struct buf *b, const char *item);
void array_u64(struct buf *b, uint64_t item);
void array_i64(struct buf *b, int64_t item);
void array_bool(struct buf *b, bool item);
void array_null(struct buf *b);
void array_end(struct buf *b);
/* The whole literal of a set of tags. */
void array_tags(struct buf *b, const struct tag_set *tags);
