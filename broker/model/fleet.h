/* SPDX-License-Identifier: ISC */
/*
 * The fleet: everything one dispatcher knows, in memory. The service is its only writer; policy reads
 * it as a const snapshot. Providers, pools, nodes and tokens are found by id and by name, sessions by
 * user key. Nothing here does I/O or reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/node.h"
#include "model/provider.h"
#include "model/session.h"
#include "model/spec.h"
#include "wire/heartbeat.h"
#include "wire/user_key.h"

struct fleet;

struct fleet *fleet_new(void); /* NULL: no memory */
void fleet_free(struct fleet *f);

/* Adds or changes by id (id != 0). *ret (may be NULL) is owned by the fleet. -ENOMEM; -EEXIST: another
 * has the name, or the (address, port); -ENOENT: its provider (a pool's, a node's) is unknown;
 * -E2BIG: more than FARM_TAGS_MAX distinct tags in the provider; -EINVAL: id 0. A node may move to
 * another provider. On error nothing changed. */
int fleet_put_provider(struct fleet *f, const struct provider_spec *spec, struct provider **ret);
int fleet_put_pool(struct fleet *f, const struct pool_spec *spec, struct pool **ret);
int fleet_put_node(struct fleet *f, const struct node_spec *spec, struct node **ret);
int fleet_put_token(struct fleet *f, const struct token_spec *spec, struct token **ret);
/* Whether fleet_put_node would not fail with -E2BIG, though OTHERS more distinct tags were added to the
 * provider before: to be asked before SPEC is stored. */
bool fleet_tags_fit(const struct fleet *f, const struct node_spec *spec, uint32_t others);
/* 0 or -ENOENT; a provider that still has nodes or pools: -EBUSY. A node takes its
 * sessions and its agent's tokens along, as in the database. */
int fleet_remove_provider(struct fleet *f, uint32_t id);
int fleet_remove_pool(struct fleet *f, uint32_t id);
int fleet_remove_node(struct fleet *f, uint32_t id);
int fleet_remove_token(struct fleet *f, uint32_t id);

/* NULL when unknown. */
struct provider *fleet_provider(const struct fleet *f, const char *name);
struct provider *fleet_provider_by_id(const struct fleet *f, uint32_t id);
struct pool *fleet_pool(const struct fleet *f, const char *name);
struct pool *fleet_pool_by_id(const struct fleet *f, uint32_t id);
struct node *fleet_node(const struct fleet *f, const char *name);
/* The same in any case of letters; of several the one that is spelled so, else any. */
struct node *fleet_node_any_case(const struct fleet *f, const char *name);
struct node *fleet_node_by_id(const struct fleet *f, uint32_t id);
struct node *fleet_node_by_endpoint(const struct fleet *f, const char *address, uint16_t port);
struct token *fleet_token(const struct fleet *f, const char *name);
struct token *fleet_token_by_hash(const struct fleet *f, const uint8_t hash[SECRET_HASH_SIZE]);

/* Iteration in the order of insertion: first with PREV = NULL, NULL at the end. The current item must not be removed. */
struct provider *fleet_next_provider(const struct fleet *f, const struct provider *prev);
struct pool *fleet_next_pool(const struct fleet *f, const struct pool *prev);
struct node *fleet_next_node(const struct fleet *f, const struct node *prev);
struct token *fleet_next_token(const struct fleet *f, const struct token *prev);

struct fleet_counts {
	size_t providers, pools, nodes, tokens, sessions, users;
};
void fleet_counts(const struct fleet *f, struct fleet_counts *ret);

/* ---- sessions ---- */

/* The first of the user's sessions (follow ->user_next), NULL when there is none. */
struct session *fleet_user_sessions(const struct fleet *f, const char *user_key);
/* The sessions of the one user whom HINT fits, a name as an RDP client's first packet has it: perhaps without
 * domain, perhaps cut after nine bytes. NULL: nobody's, several users', or no name at all. */
struct session *fleet_hinted_sessions(
	const struct fleet *f, const struct user_names *names, const char *hint);
struct session *fleet_find_session(const struct node *n, const char *id);

/* One row of the database. Adds or replaces. -ENOMEM. */
int fleet_load_session(struct fleet *f, struct node *n, const char *id, const char *user_key,
	const char *display, const char *client, bool active, int64_t since_ms, int64_t first_seen_ms);
/* Forgets one session: 0 or -ENOENT. */
int fleet_forget_session(struct fleet *f, struct node *n, const char *id);

/* What an update of sessions changed, for the store and the journal. */
enum session_change { SESSION_ADDED, SESSION_CHANGED, SESSION_ENDED };
typedef void session_change_callback(void *ctx, enum session_change change, const struct session *s);

/* The sessions part of a heartbeat. A complete list is the truth: what is absent has ended. CALLBACK
 * is called for each change (for ENDED just before it is freed). A user name that makes no key,
 * and what is new beyond LIMIT_SESSIONS on the node, is left out and counted in *ret_bad. -ENOMEM leaves what was applied so far. */
int fleet_apply_sessions(struct fleet *f, struct node *n, const struct heartbeat *h,
	const struct user_names *names, int64_t now_wall_ms, session_change_callback *callback, void *ctx,
	size_t *ret_bad);

/* The rules for user names changed (aliases, default domain): the next heartbeat of each node makes the
 * keys of its sessions anew. Without this call a name spelled as before keeps its key. */
void fleet_user_names_changed(struct fleet *f);

/* ---- voice ---- */

enum heartbeat_verdict {
	HEARTBEAT_NEW,
	HEARTBEAT_REPLAYED,  /* same boot, sequence not above the last: "already have it" */
	HEARTBEAT_DUPLICATE, /* a boot id that was replaced came back: two machines with one token */
};
/* Whether H may be applied to N. Changes nothing. */
enum heartbeat_verdict node_judge_heartbeat(const struct node *n, const struct heartbeat *h);

enum node_event { /* bit set of what happened, for the journal */
	NODE_EVENT_HEARD = 1,     /* silent before, now not: the second heartbeat in a row */
	NODE_EVENT_FULL = 2,      /* index reached 10000 */
	NODE_EVENT_NOT_FULL = 4,  /* fell 5 % below after having been full */
	NODE_EVENT_REBOOTED = 8,  /* another boot id */
};
/* Takes a NEW heartbeat's metrics with the index that policy computed (HAS_INDEX false: no metric at
 * all, the node is stale), from ADDRESS at NOW. Returns node_event bits. */
unsigned node_apply_heartbeat(struct node *n, const struct heartbeat *h, const struct node_metrics *metrics,
	bool has_index, uint32_t index, const char *address, int64_t now_ms, int64_t now_wall_us);

/* A row of the database at start: what was last known; not heard here yet. */
struct node_stored {
	enum node_voice voice;
	char boot_id[LIMIT_BOOT_ID_SIZE];
	char old_boot_ids[4][LIMIT_BOOT_ID_SIZE];
	uint64_t seq;
	bool accepting;
	struct node_metrics metrics;
	bool has_index;
	uint32_t index;
	bool full_told;
	bool sessions_complete;
	int64_t heard_wall_us;
	char agent_version[LIMIT_VERSION_SIZE];
	char agent_address[LIMIT_ADDRESS_SIZE];
};
void node_load(struct node *n, const struct node_stored *stored, int64_t now_ms);
/* An administrator has said which machine the node is: one that was replaced may come back. */
void node_forget_boots(struct node *n);

/* Marks N silent if it was heard and STALE_AFTER_MS have passed since. True if it changed now. */
bool node_check_silence(struct node *n, int64_t stale_after_ms, int64_t now_ms);

/* Orders N behind all others until UNTIL_MS (monotonic, not 0): users who were sent there did not get in. True
 * if it was no suspect before. */
bool node_suspect(struct node *n, int64_t until_ms);
/* Ends the suspicion if its time is over at NOW_MS; INT64_MAX: at once, a user got in. True if it ended. */
bool node_trust(struct node *n, int64_t now_ms);

/* Round robin: notes that N was given a user now. */
void node_assigned(struct node *n);
/* Another index after a change of rules, multiplier or max_sessions. Returns node_event bits. */
unsigned node_set_index(struct node *n, bool has_index, uint32_t index);
/* Sets or clears "more than half fell silent within one stale_after". */
void provider_set_mass_silence(struct provider *p, bool on);
