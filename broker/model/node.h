/* SPDX-License-Identifier: ISC */
/*
 * A node: what the administrator set, what its agent said last, and whether it is silent.
 *
 * State changes go through the functions here, each of which keeps the provider's farm in step:
 * node_apply_heartbeat, node_check_silence, node_suspect, fleet_put_node. Nothing else writes a member.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "model/spec.h"
#include "wire/heartbeat.h"

struct provider;
struct session;

/* The metrics of the last heartbeat, all integers. */
struct node_metrics {
	bool has_cpu, has_memory, has_custom_load;
	bool missing;            /* a rule that is on had no metric: the node is marked */
	uint32_t cpu_busy;       /* hundredths of a percent */
	uint32_t cpu_count;
	uint64_t memory_total, memory_available;
	uint32_t custom_load;    /* hundredths of a percent */
	uint32_t window_samples, window_seconds;
};

enum node_voice { NODE_NEVER_HEARD, NODE_SILENT, NODE_HEARD };

struct node {
	struct node_spec spec;
	struct provider *provider;
	uint32_t slot; /* in provider->farm */

	enum node_voice voice;
	uint32_t streak;        /* heartbeats in a row since it was silent, capped */
	bool heard_here;        /* a heartbeat came to this process */
	int64_t heard_ms;       /* monotonic, receive time; start-up time for rows of the database */
	int64_t silent_ms;      /* monotonic, when it fell silent here; far past for rows of the database */
	int64_t heard_wall_us;  /* wall clock of the same, for display and storage; 0 never */
	char boot_id[LIMIT_BOOT_ID_SIZE];
	char old_boot_ids[4][LIMIT_BOOT_ID_SIZE]; /* replaced ones: never come back */
	uint64_t seq;
	bool accepting;
	struct node_metrics metrics;
	bool has_index;
	uint32_t index;         /* reported load index, slv */
	int64_t suspect_until_ms; /* monotonic; 0 = no suspect */
	bool full_told;         /* node-full was written; again only after a fall of 5 % */
	char agent_version[LIMIT_VERSION_SIZE];
	char agent_address[LIMIT_ADDRESS_SIZE]; /* where the last heartbeat came from */

	struct session **sessions; /* sorted by id */
	uint32_t session_count, session_cap;
	bool sessions_complete;
	uint32_t spellings;     /* of the fleet's, when the keys of these sessions were made */

	char endpoint[LIMIT_ADDRESS_SIZE + 8]; /* "address port": unique */
	char folded[LIMIT_NAME_SIZE];          /* the name in small letters: not unique */
	UT_hash_handle by_id, by_name, by_folded, by_endpoint;
};
