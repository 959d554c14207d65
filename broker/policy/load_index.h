/* SPDX-License-Identifier: ISC */
/*
 * The load index (DESIGN §5), in integer arithmetic with one rounding, half up:
 *   10000 if any rule is full, else min(9999, m × (w + Σo / (20 k)))
 * with rules r, worst w, the k others o, node multiplier m; the last term 0 if k = 0.
 * The formula is our own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/fleet.h"

struct load_rule_value { /* one rule, for explain */
	bool on, present;
	uint32_t slv;    /* rounded, for display */
};
struct load_detail {
	struct load_rule_value cpu, memory, sessions, load_script;
	bool missing; /* a rule that is on has no metric */
};

/* Index of METRICS with SESSIONS users on it. False when no rule has a metric: *ret_index untouched.
 * RET_DETAIL may be NULL. */
bool load_index_compute(const struct provider_spec *rules, const struct node_spec *node,
	const struct node_metrics *metrics, uint32_t sessions, uint32_t *ret_index,
	struct load_detail *ret_detail);
/* The metrics of a heartbeat as the model keeps them. */
void load_metrics_of(const struct heartbeat *h, struct node_metrics *ret);
