/* SPDX-License-Identifier: ISC */
/*
 * Reading scanned JSON in place: a cursor over a private copy, whose strings are decoded and
 * terminated where they stand. Only for text that json_scan has passed: nothing is checked again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those that take a cursor want it at the first byte of a value (or of a key), and move it behind.
 */

/* To the next item of the container that the cursor is in; false, and behind its end, if there is
 * none. */
bool json_slice_next(char **p);
/* A string, decoded; it lives as long as the copy. */
const char *json_slice_string(char **p, size_t *ret_len);
/* A key and its colon: the cursor is then at the value. */
const char *json_slice_key(char **p, size_t *ret_len);
void json_slice_skip(char **p);

/* The number at P. False: it is not written as an integer, or has a fraction or an exponent. The
 * scanner has seen that it fits: VALUE is its magnitude, up to 2^64 - 1, or 2^63 if negative. */
bool json_slice_integer(const char *p, uint64_t *ret_value, bool *ret_negative);
/* The number at P, rounded as strtod does, in whatever locale. */
double json_slice_number(const char *p);
