/* SPDX-License-Identifier: ISC */
/*
 * Reading scanned JSON in place: a cursor over a private copy, whose strings are decoded and
 * terminated where they stand. Only for text that json_scan has passed: nothing is checked again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All take the cursor at the first byte of a value (or of a key), and move it behind. */

/* To the next item of the container that the cursor is in; false, and behind its end, if there is
 * none. */
bool json_slice_next(char **p);
/* A string, decoded; it lives as long as the copy. */
const char *json_slice_string(char **p, size_t *ret_len);
/* A key and its colon: the cursor is then at the value. */
const char *json_slice_key(char **p, size_t *ret_len);
/* An integer; 0 when the number is not one, or beyond int64. */
int64_t json_slice_integer(char **p);
void json_slice_skip(char **p);
