/* SPDX-License-Identifier: ISC */
/* What the rooms of model/ share among themselves and nobody else includes. */
#pragma once

#include "model/fleet.h"
#include "model/session_index.h"

struct fleet {
	/* uthash heads: one by id (which keeps the order of insertion) and one for each other key
	 */
	struct provider *providers, *provider_names;
	struct pool *pools, *pool_names;
	struct node *nodes, *node_names, *node_folded, *node_endpoints;
	struct token *tokens, *token_names, *token_hashes;

	struct session_index sessions;
	uint32_t spellings; /* generation of the rules for user names */

	/* Scratch of fleet_apply_sessions, kept to spare two allocations a heartbeat. */
	const struct heartbeat_session **order;
	struct session **fresh;
	size_t scratch_cap;
};

/* ---- farm.c ---- */

/* Room for one more node: -ENOMEM. */
int farm_reserve(struct farm *f);
/* How many distinct tags the farm has with SET in place of OLD (NULL = none). */
uint32_t farm_tags_with(const struct farm *f, const struct tag_set *old, const struct tag_set *set);
/* Whether the farm can hold SET in place of OLD (NULL = none): 0 with room made, -E2BIG, -ENOMEM.
 */
int farm_prepare_tags(struct farm *f, const struct tag_set *old, const struct tag_set *set);
/* Takes N in after farm_reserve, without tags; sets N->slot. */
void farm_add(struct farm *f, struct node *n);
void farm_remove(struct farm *f, uint32_t slot);
/* Replaces the tags of SLOT after farm_prepare_tags. */
void farm_set_tags(struct farm *f, uint32_t slot, const struct tag_set *set);
void farm_deinit(struct farm *f);

/* ---- node.c ---- */

/* Writes what the farm needs to know of N. Every state change ends here. */
void node_refresh(struct node *n);

/* ---- session.c ---- */

struct session_text {
	const char *id, *key, *display, *client; /* display "" or NULL: same as the key */
};
/* NULL: no memory, or a text beyond its limit. Linked nowhere yet. */
struct session *session_new(const struct session_text *text);
/* The position of ID among N's sessions, or where it would go. */
uint32_t session_position(const struct node *n, const char *id, bool *ret_found);
/* Room for COUNT sessions: -ENOMEM. */
int session_reserve(struct node *n, uint32_t count);
/* Unlinks every session of N and frees them. */
void session_drop_all(struct fleet *f, struct node *n);
