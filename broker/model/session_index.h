/* SPDX-License-Identifier: ISC */
/*
 * User key → chain of that user's sessions. Open addressing with linear probing over bare pointers:
 * one word for each user. Deletion shifts back, so there are no tombstones.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/hint_index.h"

struct session;

struct session_index {
	struct session **slot; /* heads of chains (user_next), NULL = free */
	uint32_t cap;	       /* a power of two; 0 before the first */
	uint32_t users;
	size_t sessions;
	struct hint_index hints; /* the same users, by the beginning of their names */
	uint64_t seed; /* names come from outside: nobody shall choose what collides */
};

void session_index_init(struct session_index *x);
/* Frees the table, not the sessions. */
void session_index_deinit(struct session_index *x);
/* First of the chain, or NULL. */
struct session *session_index_find(const struct session_index *x, const char *key);
/* The sessions of the only user whose name, without domain, is NAME or is cut to it (from nine bytes
 * on); NULL for none or several. NAME is folded as keys are. */
struct session *session_index_hinted(const struct session_index *x, const char *name);
/* Puts S at the head of its user's chain; fills S->key_hash. -ENOMEM. */
int session_index_add(struct session_index *x, struct session *s);
/* Takes S, which is in the index, out of it. */
void session_index_remove(struct session_index *x, struct session *s);
/* Puts FRESH, of the same key, into the place of S. Cannot fail. */
void session_index_replace(struct session_index *x, struct session *s, struct session *fresh);
