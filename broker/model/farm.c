/* SPDX-License-Identifier: ISC */
/*
 * The packed arrays. Invariants: nodes[i]->slot == i for i < count; the tag words of slots at and
 * above count are zero; a tag's bit is its position in tag_names, tag_users[bit] counts the nodes
 * that have it, and a position without users is free to take another name.
 */
#include "model/farm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/fleet_private.h"

#define FIRST_CAP 16u

int farm_find_tag(const struct farm *f, const char *tag)
{
	for (uint32_t i = 0; i < f->tag_count; i++) {
		if (f->tag_users[i] && strcmp(f->tag_names[i], tag) == 0)
			return (int)i;
	}
	return -ENOENT;
}

static uint16_t *plane(const struct farm *f, uint32_t w)
{
	return f->tags + (size_t)w * f->cap;
}

/* The planes anew for CAP slots and WORDS words each. */
static int resize_planes(struct farm *f, uint32_t cap, uint32_t words, uint16_t **ret)
{
	uint16_t *fresh = calloc((size_t)cap * words, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	for (uint32_t w = 0; w < f->tag_words && f->count; w++)
		memcpy(fresh + (size_t)w * cap, plane(f, w), f->count * sizeof(*fresh));
	*ret = fresh;
	return 0;
}

/* Grows *ARRAY; what fails leaves the old one valid. */
static int grow_array(void *array, size_t cap, size_t size)
{
	void **p = array;
	void *grown = reallocarray(*p, cap, size);

	if (!grown)
		return -ENOMEM;
	*p = grown;
	return 0;
}

static int grow_tag_words(struct farm *f, uint32_t words)
{
	uint32_t old = f->tag_names ? f->tag_words * FARM_TAG_BITS : 0;
	uint16_t *planes;

	if (f->tag_names && words <= f->tag_words)
		return 0;
	if (grow_array(&f->tag_names, (size_t)words * FARM_TAG_BITS, sizeof(f->tag_names[0])) < 0 ||
		grow_array(&f->tag_users, (size_t)words * FARM_TAG_BITS, sizeof(f->tag_users[0])) <
			0)
		return -ENOMEM;
	if (words != f->tag_words && f->cap) {
		if (resize_planes(f, f->cap, words, &planes) < 0)
			return -ENOMEM;
		free(f->tags);
		f->tags = planes;
	}
	memset(f->tag_users + old, 0, (words * FARM_TAG_BITS - old) * sizeof(f->tag_users[0]));
	f->tag_words = words;
	return 0;
}

int farm_reserve(struct farm *f)
{
	uint32_t cap = f->cap ? f->cap * 2 : FIRST_CAP;
	uint16_t *planes;

	if (f->count < f->cap)
		return 0;
	if (f->tag_words == 0)
		f->tag_words = 1;
	if (grow_array(&f->flags, cap, sizeof(*f->flags)) < 0 ||
		grow_array(&f->index, cap, sizeof(*f->index)) < 0 ||
		grow_array(&f->heard_s, cap, sizeof(*f->heard_s)) < 0 ||
		grow_array(&f->assigned, cap, sizeof(*f->assigned)) < 0 ||
		grow_array(&f->nodes, cap, sizeof(*f->nodes)) < 0 ||
		resize_planes(f, cap, f->tag_words, &planes) < 0)
		return -ENOMEM;
	free(f->tags);
	f->tags = planes;
	f->cap = cap;
	return 0;
}

uint32_t farm_tags_with(const struct farm *f, const struct tag_set *old, const struct tag_set *set)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < f->tag_count; i++)
		used += f->tag_users[i] > 0;
	for (uint32_t i = 0; old && i < old->count; i++) {
		int bit = farm_find_tag(f, old->tag[i]);

		if (bit >= 0 && f->tag_users[bit] == 1 && !tag_set_has(set, old->tag[i]))
			used--;
	}
	for (uint32_t i = 0; i < set->count; i++)
		used += farm_find_tag(f, set->tag[i]) < 0;
	return used;
}

int farm_prepare_tags(struct farm *f, const struct tag_set *old, const struct tag_set *set)
{
	uint32_t used = farm_tags_with(f, old, set), positions;

	if (used > FARM_TAGS_MAX)
		return -E2BIG;
	positions = used > f->tag_count ? used : f->tag_count;
	return positions ? grow_tag_words(f, (positions + FARM_TAG_BITS - 1) / FARM_TAG_BITS) : 0;
}

void farm_add(struct farm *f, struct node *n)
{
	n->slot = f->count++;
	f->nodes[n->slot] = n;
	f->flags[n->slot] = 0;
	f->index[n->slot] = LOAD_INDEX_MAX;
	f->heard_s[n->slot] = 0;
	f->assigned[n->slot] = 0;
}

static void clear_tags(struct farm *f, uint32_t slot)
{
	for (uint32_t w = 0; w < f->tag_words; w++) {
		uint32_t bits = plane(f, w)[slot];

		for (; bits; bits &= bits - 1)
			f->tag_users[w * FARM_TAG_BITS + (uint32_t)__builtin_ctz(bits)]--;
		plane(f, w)[slot] = 0;
	}
}

/* The bit of TAG, given one if it has none. farm_prepare_tags has seen to it that one is free. */
static uint32_t claim_bit(struct farm *f, const char *tag)
{
	int found = farm_find_tag(f, tag);
	uint32_t bit;

	if (found >= 0)
		return (uint32_t)found;
	for (bit = 0; bit < f->tag_count && f->tag_users[bit]; bit++)
		;
	if (bit == f->tag_count)
		f->tag_count++;
	memset(f->tag_names[bit], 0, sizeof(f->tag_names[bit]));
	memcpy(f->tag_names[bit], tag, strnlen(tag, LIMIT_NAME_SIZE - 1));
	return bit;
}

void farm_set_tags(struct farm *f, uint32_t slot, const struct tag_set *set)
{
	clear_tags(f, slot);
	for (uint32_t i = 0; i < set->count; i++) {
		uint32_t bit = claim_bit(f, set->tag[i]);

		uint16_t *word = &plane(f, bit / FARM_TAG_BITS)[slot];
		uint16_t mask = (uint16_t)(1u << bit % FARM_TAG_BITS);

		f->tag_users[bit] += !(*word & mask);
		*word |= mask;
	}
}

void farm_remove(struct farm *f, uint32_t slot)
{
	uint32_t last = f->count - 1;

	clear_tags(f, slot);
	if (slot != last) {
		f->flags[slot] = f->flags[last];
		f->index[slot] = f->index[last];
		f->heard_s[slot] = f->heard_s[last];
		f->assigned[slot] = f->assigned[last];
		f->nodes[slot] = f->nodes[last];
		f->nodes[slot]->slot = slot;
		for (uint32_t w = 0; w < f->tag_words; w++) {
			plane(f, w)[slot] = plane(f, w)[last];
			plane(f, w)[last] = 0;
		}
	}
	f->count--;
}

void farm_deinit(struct farm *f)
{
	free(f->flags);
	free(f->index);
	free(f->heard_s);
	free(f->tags);
	free(f->assigned);
	free(f->nodes);
	free(f->tag_names);
	free(f->tag_users);
	*f = (struct farm){0};
}
