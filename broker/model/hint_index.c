/* SPDX-License-Identifier: ISC */
/*
 * A user is entered by the first nine bytes of his name, or all of a shorter one; one with a domain
 * and a longer name also by the whole of it, since clients that do not cut leave out the domain.
 * Open addressing as in session_index: at most three quarters full, deletion shifts back.
 */
#include "model/hint_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/hash.h"

#define FIRST_CAP 64u
#define MAX_CAP (1u << 30)

const char *hint_user_part(const char *key, size_t len, size_t *ret_len)
{
	size_t at = len;

	while (at > 0 && key[at - 1] != '\\')
		at--;
	*ret_len = len - at;
	return key + at;
}

static uint32_t tag_of(uint64_t seed, const char *name, size_t len)
{
	uint32_t hash = hash_bytes(seed + 1, name, len); /* another than that of whole keys */

	return hash ? hash : 1;
}

void hint_index_deinit(struct hint_index *x)
{
	free(x->slot);
	*x = (struct hint_index){0};
}

/* The slot of TAG, or the free one where it would go. */
static uint32_t probe(const struct hint_index *x, uint32_t tag)
{
	uint32_t mask = x->cap - 1, i = tag & mask;

	while (x->slot[i].tag && x->slot[i].tag != tag)
		i = (i + 1) & mask;
	return i;
}

static int grow(struct hint_index *x)
{
	struct hint_index wider = {.cap = x->cap ? x->cap * 2 : FIRST_CAP, .count = x->count};

	if (x->cap >= MAX_CAP)
		return -ENOMEM;
	wider.slot = calloc(wider.cap, sizeof(*wider.slot));
	if (!wider.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->cap; i++) {
		if (x->slot[i].tag)
			wider.slot[probe(&wider, x->slot[i].tag)] = x->slot[i];
	}
	free(x->slot);
	*x = wider;
	return 0;
}

static void add_tag(struct hint_index *x, uint32_t tag, uint32_t key_hash)
{
	struct hint *h = &x->slot[probe(x, tag)];

	if (!h->tag) {
		h->tag = tag;
		x->count++;
	}
	h->users++;
	h->keys ^= key_hash;
}

/* Closes the gap: an entry whose home lies at or before it moves into it. */
static void shift_back(struct hint_index *x, uint32_t gap)
{
	uint32_t mask = x->cap - 1;

	x->slot[gap] = (struct hint){0};
	for (uint32_t i = (gap + 1) & mask; x->slot[i].tag; i = (i + 1) & mask) {
		if (((i - x->slot[i].tag) & mask) < ((i - gap) & mask))
			continue;
		x->slot[gap] = x->slot[i];
		x->slot[i] = (struct hint){0};
		gap = i;
	}
}

static void remove_tag(struct hint_index *x, uint32_t tag, uint32_t key_hash)
{
	uint32_t i = probe(x, tag);

	if (!x->slot[i].tag)
		return;
	x->slot[i].keys ^= key_hash;
	if (--x->slot[i].users > 0)
		return;
	x->count--;
	shift_back(x, i);
}

/* The beginnings by which a key is entered: one or two. */
static unsigned tags_of(uint64_t seed, const char *key, size_t len, uint32_t ret[2])
{
	size_t name_len;
	const char *name = hint_user_part(key, len, &name_len);
	unsigned count = 1;

	ret[0] = tag_of(seed, name, name_len < HINT_PREFIX ? name_len : HINT_PREFIX);
	if (name_len > HINT_PREFIX && name != key)
		ret[count++] = tag_of(seed, name, name_len);
	return count;
}

int hint_index_add(
	struct hint_index *x, uint64_t seed, const char *key, size_t len, uint32_t key_hash)
{
	uint32_t tags[2];
	unsigned count = tags_of(seed, key, len, tags);

	while ((uint64_t)(x->count + count) * 4 > (uint64_t)x->cap * 3) {
		if (grow(x) < 0)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < count; i++)
		add_tag(x, tags[i], key_hash);
	return 0;
}

void hint_index_remove(
	struct hint_index *x, uint64_t seed, const char *key, size_t len, uint32_t key_hash)
{
	uint32_t tags[2];
	unsigned count = tags_of(seed, key, len, tags);

	for (unsigned i = 0; i < count; i++)
		remove_tag(x, tags[i], key_hash);
}

static int find_tag(const struct hint_index *x, uint32_t tag, uint32_t *ret_key_hash)
{
	const struct hint *h = &x->slot[probe(x, tag)];

	if (!h->tag || h->users != 1)
		return -ENOENT;
	*ret_key_hash = h->keys;
	return 0;
}

int hint_index_find(const struct hint_index *x, uint64_t seed, const char *name, size_t len,
	uint32_t *ret_key_hash)
{
	if (x->cap == 0 || len == 0)
		return -ENOENT;
	if (len > HINT_PREFIX && find_tag(x, tag_of(seed, name, len), ret_key_hash) == 0)
		return 0;
	return find_tag(x, tag_of(seed, name, len < HINT_PREFIX ? len : HINT_PREFIX), ret_key_hash);
}
