/* SPDX-License-Identifier: ISC */
/*
 * The parts of json_parse, for a message with one long array that is better read in place: json-c
 * needs some two microseconds for each object of a few members.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "base/err.h"

/* Where an array lies in a text, both brackets included; len 0: nowhere. */
struct json_hole {
	size_t at, len;
};

/* json_scan that also finds the array KEY of the outermost object. */
int json_scan_hole(
	const char *data, size_t len, const char *key, struct json_hole *ret, struct err *e);
/* json-c's tree of a text that was scanned, with the array at HOLE left empty. HOLE may be NULL. */
int json_build(const char *data, size_t len, const struct json_hole *hole, struct json_object **ret,
	struct err *e);
