/* SPDX-License-Identifier: ISC */
/* The scans of choose.c over a farm's packed arrays. Inside policy/ alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/farm.h"
#include "policy/tags.h"

#define SCAN_NONE UINT32_MAX

struct scan {
	const struct farm *farm;
	uint32_t blocked;			/* farm flags of which none may be set */
	uint32_t excused;			/* farm flags that make up for not being fresh */
	uint32_t last;				/* farm flags that order a node last */
	uint32_t fresh_from;			/* heard_s from which on a node is fresh */
	bool keep_stale;			/* a node that is not fresh counts, last */
	const struct tag_filter *tags, *forced; /* NULL = every node */
	const uint32_t *avoid; /* slots that are no candidates */
	uint32_t avoid_count;
};

/* A node of least index, uniformly among equals by RANDOM; SCAN_NONE if there is no candidate. */
uint32_t scan_least_loaded(const struct scan *s, uint64_t random);
/* The node assigned longest ago. */
uint32_t scan_round_robin(const struct scan *s);
bool scan_avoids(const struct scan *s, uint32_t slot);
/* Whether one node is a candidate, by the same rules, tags apart. */
bool scan_eligible(const struct scan *s, uint32_t slot);

struct choice_counts;
/* How many nodes each filter leaves out, in the order of §4.6, and how many pass. A node that any of
 * the COUNT filters at STAGES matches is no mismatch; S->tags and S->avoid are not looked at. */
void scan_count(const struct scan *s, const struct tag_filter *stages, uint32_t count,
	struct choice_counts *ret);
