/* SPDX-License-Identifier: ISC */
/*
 * The decision (DESIGN §4), as one pure function of a snapshot, a request, a clock and a random
 * number: same input, same output; no I/O, no allocation, no state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/fleet.h"
#include "policy/tags.h"

enum choice_reason {
	CHOICE_SESSION,       /* back to the live session */
	CHOICE_LEAST_LOADED,
	CHOICE_ROUND_ROBIN,
	CHOICE_ADMINISTRATOR, /* the node that the administrator named */
	CHOICE_TOKEN,         /* the node that the client's routing token names */
	/* refusals */
	CHOICE_POOL_UNKNOWN,
	CHOICE_POOL_MAINTENANCE,
	CHOICE_NO_NODES,
	CHOICE_NO_TAG_MATCH,
	CHOICE_ALL_MAINTENANCE,
	CHOICE_NO_METRICS,
	CHOICE_ALL_FULL,
	CHOICE_TAG_DENIED,    /* of allowed_tags, found outside the function */
	CHOICE_NODE_UNKNOWN,  /* the named node is not in the provider */
};
/* "session", "least_loaded", … "all_full": the code in answers and in the journal. */
const char *choice_reason_name(enum choice_reason r);
bool choice_is_refusal(enum choice_reason r);

/* How the probe of a silent node's RDP port ended; absent = not probed. */
struct choose_probe {
	const struct node *node;
	bool answers;
};

#define CHOOSE_AVOID_MAX 8

struct choose_input {
	const struct pool *pool;            /* NULL = unknown */
	const struct session *sessions;     /* the user's, in any provider (user_next); NULL none */
	const struct tag_request *tags;     /* effective: the request's, else the pool's default_tags */
	const struct tag_request *forced;   /* the pool's forced_tags */
	const char *node_name;              /* an administrator's wish, or NULL */
	const struct node *named;           /* that node, NULL if there is none of that name */
	const struct node *routed;          /* that a routing token names, which anyone can write; or NULL */
	const struct node *const *avoid;    /* that refused this user's connection just now */
	uint32_t avoid_count;               /* 0..CHOOSE_AVOID_MAX */
	const struct choose_probe *probes;
	uint32_t probe_count;
	int64_t now_ms;                     /* monotonic */
	int64_t stale_after_ms;
	bool grace;                         /* just started: unheard nodes still count, last */
	uint64_t random;
};

struct choice_counts { /* what each filter left out, and how many passed */
	uint32_t nodes, tag_mismatch, maintenance, silent, not_accepting, full, candidates;
};

struct choice {
	enum choice_reason reason;
	const struct node *node;             /* NULL on refusal */
	const struct session *session;       /* CHOICE_SESSION: which */
	const struct session *suspended;     /* a live session passed over since its node does not answer */
	bool tags_fell_back;                 /* an optional request matched nothing */
	uint32_t load_index;
	struct choice_counts counts;         /* filled on refusal only */
	uint32_t retry_after_s;              /* refusals; 0 = asking again is of no use */
};

/* Always gives a reason. */
void choose(const struct choose_input *in, struct choice *ret);

/* The silent nodes that hold a live session which step 3 would use: what must be probed before
 * choosing. Returns how many were put into RET (at most MAX). */
uint32_t choose_needs_probe(const struct choose_input *in, const struct node **ret, uint32_t max);

/* explain: the same verdict for one node, in the order of §4.6. */
enum node_verdict {
	VERDICT_CANDIDATE,
	VERDICT_TAG_MISMATCH,
	VERDICT_MAINTENANCE,
	VERDICT_SILENT,
	VERDICT_STALE,
	VERDICT_NOT_ACCEPTING,
	VERDICT_INDEX_FULL,
	VERDICT_CAPACITY_FULL,
};
const char *node_verdict_name(enum node_verdict v);
enum node_verdict choose_verdict(const struct choose_input *in, const struct node *node);
