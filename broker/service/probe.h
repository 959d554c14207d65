/* SPDX-License-Identifier: ISC */
/*
 * Whether a silent node's RDP port answers: a TCP connect, 1 s at most, the result kept for 10 s.
 * Made outside the decision, so that the decision stays pure. One probe a node at a time; at most
 * PROBES_MAX at once (more wait as "does not answer").
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct node;
struct probes;

/* FINISHED is called from the loop after each probe. NULL: no memory. */
struct probes *probes_new(struct event_base *base, void (*finished)(void *ctx), void *ctx);
void probes_free(struct probes *p);

enum probe_state { PROBE_WAIT, PROBE_ANSWERS, PROBE_DEAD };
/* The cached result, or starts a probe and says to wait for FINISHED. */
enum probe_state probes_ask(struct probes *p, const struct node *n, int64_t now_ms);
/* Forgets a node that is about to be freed or moved to another address. Who waited for a probe of
 * it is told by FINISHED in the next turn of the loop. */
void probes_forget(struct probes *p, uint32_t node_id);
