/* SPDX-License-Identifier: ISC */
/*
 * HAProxy's agent-check: whoever connects is told in one line how this node is, so that a TCP balancer beside us
 * knows what the dispatcher knows. Format: HAProxy's configuration manual, "agent-check".
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* What the answer is made of. */
struct check_facts {
	bool accepting;	  /* something listens on the RDP port */
	bool answered;	  /* a dispatcher has answered lately: the next three are its words */
	bool maintenance; /* takes no new users, for whatever cause */
	bool has_load_index;
	uint32_t load_index;	/* 0..10000 */
	bool has_busy;		/* the node's own measure, for when no dispatcher answers */
	uint32_t busy;		/* hundredths of a percent, the worse of CPU and memory */
};

/* The line, its line feed included. The administrative word is always there, since only this check takes back what
 * it said before. */
void check_format(const struct check_facts *f, struct buf *out);

struct agent_check;

/* Listens on ADDRESS and PORT (0 = any, which is logged). FACTS is asked for each client. 0 or a negative errno with
 * words. */
int agent_check_new(struct event_base *base, const char *address, uint16_t port,
	void (*facts)(void *ctx, struct check_facts *ret), void *ctx, struct agent_check **ret,
	struct err *e);
void agent_check_free(struct agent_check *c);
