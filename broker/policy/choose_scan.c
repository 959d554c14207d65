/* SPDX-License-Identifier: ISC */
/*
 * Plain scans, block by block, so that a block's keys stay in the first-level cache and no memory is
 * allocated. A node's key is one int32: its index, plus KEY_LAST for one that is ordered last, or KEY_NONE
 * for one that is no candidate. The loops over a block are free of branches and of calls: both
 * compilers turn them into vector code with nothing beyond SSE2.
 *
 * Choosing uniformly among equals takes two passes: the first finds the least key and how many have it, the
 * second walks on from the first block that has it to the k-th.
 */
#include "policy/choose_scan.h"

#define BLOCK 1024u
#define KEY_LAST (1 << 16) /* above every index */
#define KEY_NONE INT32_MAX

struct block {
	uint32_t base, n;
	int32_t key[BLOCK];
	uint32_t hit[BLOCK], miss[BLOCK]; /* scratch of the tag filters; non-zero = yes */
};

/* Whether FILTER says something that the flags alone do not. */
static bool needs_planes(const struct tag_filter *f)
{
	for (uint32_t w = 0; w < FARM_TAG_WORDS; w++) {
		if (f->include[w] || f->exclude[w])
			return true;
	}
	return false;
}

/* Flags that FILTER alone blocks; true if nobody can pass. */
static bool flags_of_filter(const struct tag_filter *f, uint32_t *blocked)
{
	if (!f || needs_planes(f) || (f->tagged && f->untagged))
		return false;
	if (!f->tagged && !f->untagged)
		return true;
	if (!f->tagged)
		*blocked |= FARM_TAGGED;
	return false;
}

static void hit_flags(uint32_t *restrict hit, const uint32_t *restrict flags, uint32_t n,
	uint32_t untagged, uint32_t tagged)
{
	uint32_t differ = untagged ^ tagged;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t is_tagged = 0u - (flags[i] / FARM_TAGGED & 1u);

		hit[i] = untagged ^ (is_tagged & differ);
	}
}

static void or_plane(
	uint32_t *restrict out, const uint64_t *restrict words, uint32_t n, uint64_t mask)
{
	uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);

	for (uint32_t i = 0; i < n; i++)
		out[i] |= ((uint32_t)words[i] & low) | ((uint32_t)(words[i] >> 32) & high);
}

/* Makes KEY_NONE of every key whose node FILTER does not match. */
static void apply_filter(struct block *b, const struct farm *farm, const struct tag_filter *f)
{
	int32_t *restrict key = b->key;
	uint32_t *restrict hit = b->hit;
	uint32_t *restrict miss = b->miss;
	uint32_t n = b->n;

	if (!f || (f->tagged && f->untagged && !needs_planes(f)))
		return;
	hit_flags(hit, farm->flags + b->base, n, f->untagged, f->tagged);
	for (uint32_t i = 0; i < n; i++)
		miss[i] = 0;
	for (uint32_t w = 0; w < farm->tag_words; w++) {
		const uint64_t *words = farm->tags + (size_t)w * farm->cap + b->base;

		if (f->include[w])
			or_plane(hit, words, n, f->include[w]);
		if (f->exclude[w])
			or_plane(miss, words, n, f->exclude[w]);
	}
	for (uint32_t i = 0; i < n; i++) {
		int32_t pass = -((hit[i] != 0) & (miss[i] == 0));

		key[i] |= ~pass & KEY_NONE;
	}
}

/* Keys without regard to tags; BY_INDEX and PLAIN are constants where this is called. */
static inline __attribute__((always_inline)) void fill_keys(
	const struct scan *s, uint32_t blocked, struct block *b, bool by_index, bool plain)
{
	const uint32_t *restrict flags = s->farm->flags + b->base;
	const uint32_t *restrict index = s->farm->index + b->base;
	const uint32_t *restrict heard = s->farm->heard_s + b->base;
	int32_t *restrict key = b->key;
	int32_t fresh_from = (int32_t)s->fresh_from;
	uint32_t excused = s->excused, last = s->last, n = b->n;
	int32_t keep = -(int32_t)s->keep_stale;

	for (uint32_t i = 0; i < n; i++) {
		int32_t fresh = -((int32_t)heard[i] >= fresh_from);
		int32_t ok = -((flags[i] & blocked) == 0);
		int32_t k = by_index ? (int32_t)index[i] : 0;

		if (plain) {
			k |= (int32_t)((flags[i] & FARM_UNHEARD_SINCE_START) *
				(KEY_LAST / FARM_UNHEARD_SINCE_START));
			ok &= fresh;
		} else {
			int32_t excuse = -((flags[i] & excused) != 0);
			int32_t later = -((flags[i] & last) != 0) | (keep & ~fresh & ~excuse);

			k |= later & KEY_LAST;
			ok &= fresh | excuse | keep;
		}
		key[i] = k | (~ok & KEY_NONE);
	}
}

static void make_keys(const struct scan *s, uint32_t blocked, struct block *b, bool by_index)
{
	bool plain = s->excused == 0 && !s->keep_stale && s->last == FARM_UNHEARD_SINCE_START;

	if (by_index && plain)
		fill_keys(s, blocked, b, true, true);
	else if (by_index)
		fill_keys(s, blocked, b, true, false);
	else
		fill_keys(s, blocked, b, false, false);
	if (s->tags && needs_planes(s->tags))
		apply_filter(b, s->farm, s->tags);
	if (s->forced)
		apply_filter(b, s->farm, s->forced);
}

static int32_t least_key(const struct block *b)
{
	const int32_t *key = b->key;
	int32_t least = KEY_NONE;

	for (uint32_t i = 0; i < b->n; i++)
		least = key[i] < least ? key[i] : least;
	return least;
}

static uint32_t count_key(const struct block *b, int32_t wanted)
{
	const int32_t *key = b->key;
	uint32_t count = 0;

	for (uint32_t i = 0; i < b->n; i++)
		count += key[i] == wanted;
	return count;
}

static void set_block(const struct scan *s, struct block *b, uint32_t base)
{
	uint32_t left = s->farm->count - base;

	b->base = base;
	b->n = left < BLOCK ? left : BLOCK;
}

/* The K-th node of key WANTED from the block at BASE on; there is one. */
static uint32_t find_kth(const struct scan *s, uint32_t blocked, struct block *b, uint32_t base,
	int32_t wanted, uint32_t k)
{
	for (;; base += BLOCK) {
		uint32_t count;

		set_block(s, b, base);
		make_keys(s, blocked, b, true);
		count = count_key(b, wanted);
		if (k < count)
			break;
		k -= count;
	}
	for (uint32_t i = 0;; i++) {
		if (b->key[i] == wanted && k-- == 0)
			return base + i;
	}
}

uint32_t scan_least_loaded(const struct scan *s, uint64_t random)
{
	struct block b;
	uint32_t blocked = s->blocked, count = 0, first = 0;
	int32_t least = KEY_NONE;
	uint32_t k;

	if (flags_of_filter(s->tags, &blocked))
		return SCAN_NONE;
	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		int32_t here;

		set_block(s, &b, base);
		make_keys(s, blocked, &b, true);
		here = least_key(&b);
		if (here < least) {
			least = here;
			count = 0;
			first = base;
		}
		if (here == least && here != KEY_NONE)
			count += count_key(&b, here);
	}
	if (count == 0)
		return SCAN_NONE;
	/* The high half of a product: for counts far below 2^64 as good as unbiased. */
	k = (uint32_t)((__extension__(unsigned __int128) random * count) >> 64);
	return find_kth(s, blocked, &b, first, least, k);
}

uint32_t scan_round_robin(const struct scan *s)
{
	struct block b;
	uint32_t blocked = s->blocked, best = SCAN_NONE;
	uint64_t least = UINT64_MAX;

	if (flags_of_filter(s->tags, &blocked))
		return SCAN_NONE;
	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		const uint64_t *assigned = s->farm->assigned + base;

		set_block(s, &b, base);
		make_keys(s, blocked, &b, false);
		for (uint32_t i = 0; i < b.n; i++) {
			uint64_t turn = assigned[i] | (uint64_t)(b.key[i] >= KEY_LAST) << 63;

			if (b.key[i] != KEY_NONE && turn < least) {
				least = turn;
				best = base + i;
			}
		}
	}
	return best;
}

bool scan_eligible(const struct scan *s, uint32_t slot)
{
	uint32_t flags = s->farm->flags[slot];

	if (flags & s->blocked)
		return false;
	return s->keep_stale || (flags & s->excused) || s->farm->heard_s[slot] >= s->fresh_from;
}
