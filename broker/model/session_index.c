/* SPDX-License-Identifier: ISC */
/*
 * Invariants: the table is at most three quarters full, so a probe ends; walking from a head's home
 * slot to its slot meets no free slot; every session of a chain has the same key and the same hash.
 */
#include "model/session_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "model/hash.h"
#include "model/session.h"

#define FIRST_CAP 64u
#define MAX_CAP (1u << 30)

void session_index_init(struct session_index *x)
{
	*x = (struct session_index){.seed = secret_random_u64()};
}

void session_index_deinit(struct session_index *x)
{
	hint_index_deinit(&x->hints);
	free(x->slot);
	x->slot = NULL;
	x->cap = x->users = 0;
	x->sessions = 0;
}

/* The slot of KEY's chain, or the free one where it would go. */
static uint32_t probe(const struct session_index *x, const char *key, size_t len, uint32_t hash)
{
	uint32_t mask = x->cap - 1;
	uint32_t i = hash & mask;

	for (; x->slot[i]; i = (i + 1) & mask) {
		const struct session *s = x->slot[i];

		if (s->key_hash == hash && s->key_len == len &&
			memcmp(session_key(s), key, len) == 0)
			break;
	}
	return i;
}

struct session *session_index_find(const struct session_index *x, const char *key)
{
	size_t len = strlen(key);

	if (x->cap == 0)
		return NULL;
	return x->slot[probe(x, key, len, hash_bytes(x->seed, key, len))];
}

struct session *session_index_hinted(const struct session_index *x, const char *name)
{
	size_t len = strlen(name), part_len;
	const char *part;
	uint32_t hash, mask = x->cap - 1;

	if (hint_index_find(&x->hints, x->seed, name, len, &hash) < 0)
		return NULL;
	for (uint32_t i = hash & mask; x->slot[i]; i = (i + 1) & mask) {
		struct session *s = x->slot[i];

		part = hint_user_part(session_key(s), s->key_len, &part_len);
		if (s->key_hash == hash && part_len >= len && memcmp(part, name, len) == 0 &&
			(part_len == len || len >= HINT_PREFIX))
			return s;
	}
	return NULL;
}

static int grow(struct session_index *x)
{
	uint32_t cap = x->cap ? x->cap * 2 : FIRST_CAP;
	struct session **slot;

	if (x->cap >= MAX_CAP)
		return -ENOMEM;
	slot = calloc(cap, sizeof(struct session *));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->cap; i++) {
		uint32_t to;

		if (!x->slot[i])
			continue;
		to = x->slot[i]->key_hash & (cap - 1);
		while (slot[to])
			to = (to + 1) & (cap - 1);
		slot[to] = x->slot[i];
	}
	free(x->slot);
	x->slot = slot;
	x->cap = cap;
	return 0;
}

int session_index_add(struct session_index *x, struct session *s)
{
	uint32_t i;

	if ((uint64_t)(x->users + 1) * 4 > (uint64_t)x->cap * 3 && grow(x) < 0)
		return -ENOMEM;
	s->key_hash = hash_bytes(x->seed, session_key(s), s->key_len);
	i = probe(x, session_key(s), s->key_len, s->key_hash);
	if (!x->slot[i]) {
		if (hint_index_add(&x->hints, x->seed, session_key(s), s->key_len, s->key_hash) < 0)
			return -ENOMEM;
		x->users++;
	}
	s->user_next = x->slot[i];
	x->slot[i] = s;
	x->sessions++;
	return 0;
}

/* Closes the gap at FREE: a head whose home lies at or before the gap moves into it. */
static void shift_back(struct session_index *x, uint32_t gap)
{
	uint32_t mask = x->cap - 1;

	x->slot[gap] = NULL;
	for (uint32_t i = (gap + 1) & mask; x->slot[i]; i = (i + 1) & mask) {
		uint32_t home = x->slot[i]->key_hash & mask;

		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		x->slot[gap] = x->slot[i];
		x->slot[i] = NULL;
		gap = i;
	}
}

/* The pointer that points at S: the table's or its predecessor's. */
static struct session **link_of(
	struct session_index *x, const struct session *s, uint32_t *ret_slot)
{
	struct session **link;

	*ret_slot = probe(x, session_key(s), s->key_len, s->key_hash);
	for (link = &x->slot[*ret_slot]; *link != s; link = &(*link)->user_next)
		;
	return link;
}

void session_index_remove(struct session_index *x, struct session *s)
{
	uint32_t i;
	struct session **link = link_of(x, s, &i);

	*link = s->user_next;
	s->user_next = NULL;
	x->sessions--;
	if (!x->slot[i]) {
		hint_index_remove(&x->hints, x->seed, session_key(s), s->key_len, s->key_hash);
		x->users--;
		shift_back(x, i);
	}
}

void session_index_replace(struct session_index *x, struct session *s, struct session *fresh)
{
	uint32_t i;
	struct session **link = link_of(x, s, &i);

	fresh->key_hash = s->key_hash;
	fresh->user_next = s->user_next;
	s->user_next = NULL;
	*link = fresh;
}
