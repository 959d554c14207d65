/* SPDX-License-Identifier: ISC */
/*
 * Plain scans, block by block, so that a block's keys stay in the first-level cache and no memory
 * is allocated. A node's key is one int16: its index, plus KEY_LAST for one that is ordered last,
 * or KEY_NONE for one that is no candidate. The loops over a block are free of branches and of
 * calls: both compilers turn them into vector code with nothing beyond SSE2.
 *
 * Choosing uniformly among equals takes two passes: the first finds the least key and how many have
 * it, the second walks on from the first block that has it to the k-th.
 */
#include "policy/choose_scan.h"

#define BLOCK 1024u
#define KEY_LAST (1 << 14) /* above every index */
#define KEY_NONE INT16_MAX
#define TURN_LAST (FARM_SEQ_MAX + 1)
#define TURN_NONE INT32_MAX

struct block {
	uint32_t base, n;
	int16_t key[BLOCK];
	uint16_t hit[BLOCK], miss[BLOCK]; /* scratch of the tag filters; non-zero = yes */
};

/*
 * Nearly always every node that is not marked silent is fresh. A hasty scan does not look at
 * heard_s, which is half of what a scan reads, and so sees at least the candidates there are; if
 * what it chose is no candidate, a careful scan follows.
 */
enum pace { HASTY, CAREFUL };

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

static void hit_flags(uint16_t *restrict hit, const uint16_t *restrict flags, uint32_t n,
	bool untagged, bool tagged)
{
	uint16_t base = untagged, differ = untagged ^ tagged;

	for (uint32_t i = 0; i < n; i++)
		hit[i] = base ^ (flags[i] / FARM_TAGGED & differ);
}

static void or_plane(
	uint16_t *restrict out, const uint16_t *restrict words, uint32_t n, uint16_t mask)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] |= words[i] & mask;
}

/* Makes KEY_NONE of every key whose node FILTER does not match. */
static void apply_filter(struct block *b, const struct farm *farm, const struct tag_filter *f)
{
	int16_t *restrict key = b->key;
	uint16_t *restrict hit = b->hit;
	uint16_t *restrict miss = b->miss;
	uint32_t n = b->n;

	if (f->tagged && f->untagged && !needs_planes(f))
		return;
	hit_flags(hit, farm->flags + b->base, n, f->untagged, f->tagged);
	for (uint32_t i = 0; i < n; i++)
		miss[i] = 0;
	for (uint32_t w = 0; w < farm->tag_words; w++) {
		const uint16_t *words = farm->tags + (size_t)w * farm->cap + b->base;

		if (f->include[w])
			or_plane(hit, words, n, f->include[w]);
		if (f->exclude[w])
			or_plane(miss, words, n, f->exclude[w]);
	}
	for (uint32_t i = 0; i < n; i++) {
		int16_t pass = -(hit[i] != 0) & -(miss[i] == 0);

		key[i] |= ~pass & KEY_NONE;
	}
}

/* Keys without regard to tags and freshness. */
static void hasty_keys(const struct scan *s, uint16_t blocked, struct block *b)
{
	const uint16_t *restrict flags = s->farm->flags + b->base;
	const uint16_t *restrict index = s->farm->index + b->base;
	int16_t *restrict key = b->key;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int16_t none = flags[i] & blocked ? KEY_NONE : 0;
		int16_t late = flags[i] & FARM_UNHEARD_SINCE_START ? KEY_LAST : 0;

		key[i] = (int16_t)index[i] | late | none;
	}
}

/* Keys without regard to tags. */
static void careful_keys(const struct scan *s, uint16_t blocked, struct block *b)
{
	const uint16_t *restrict flags = s->farm->flags + b->base;
	const uint16_t *restrict index = s->farm->index + b->base;
	const uint32_t *restrict heard = s->farm->heard_s + b->base;
	int16_t *restrict key = b->key;
	int32_t fresh_from = (int32_t)s->fresh_from;
	uint16_t excused = (uint16_t)s->excused, last = (uint16_t)s->last;
	int16_t keep = s->keep_stale ? -1 : 0;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int16_t none = flags[i] & blocked ? -1 : 0;
		int16_t late = flags[i] & last ? -1 : 0;
		int16_t excuse = flags[i] & excused ? -1 : 0;
		int16_t stale = (int32_t)heard[i] < fresh_from ? ~excuse : 0;

		none |= stale & ~keep;
		late |= stale & keep;
		key[i] = (int16_t)index[i] | (late & KEY_LAST) | (none & KEY_NONE);
	}
}

static void make_keys(const struct scan *s, uint32_t blocked, struct block *b, enum pace pace)
{
	if (pace == HASTY)
		hasty_keys(s, (uint16_t)blocked, b);
	else
		careful_keys(s, (uint16_t)blocked, b);
	if (s->tags && needs_planes(s->tags))
		apply_filter(b, s->farm, s->tags);
	if (s->forced)
		apply_filter(b, s->farm, s->forced);
}

static int16_t least_key(const struct block *b)
{
	const int16_t *key = b->key;
	int16_t least = KEY_NONE;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++)
		least = key[i] < least ? key[i] : least;
	return least;
}

static uint32_t count_key(const struct block *b, int16_t wanted)
{
	const int16_t *key = b->key;
	uint32_t count = 0, n = b->n;

	for (uint32_t i = 0; i < n; i++)
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
static uint32_t find_kth(const struct scan *s, uint32_t blocked, enum pace pace, struct block *b,
	uint32_t base, int16_t wanted, uint32_t k)
{
	for (;; base += BLOCK) {
		uint32_t count;

		set_block(s, b, base);
		make_keys(s, blocked, b, pace);
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

static uint32_t least_loaded(
	const struct scan *s, uint32_t blocked, enum pace pace, uint64_t random)
{
	struct block b;
	uint32_t count = 0, first = 0;
	int16_t least = KEY_NONE;
	uint32_t k;

	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		int16_t here;

		set_block(s, &b, base);
		make_keys(s, blocked, &b, pace);
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
	return find_kth(s, blocked, pace, &b, first, least, k);
}

/* Another random number out of RANDOM: the one that led to a rejected node says where the others
 * are. */
static uint64_t stir(uint64_t random)
{
	random = (random ^ random >> 32) * UINT64_C(0xd6e8feb86659fd93);
	random = (random ^ random >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return random ^ random >> 32;
}

uint32_t scan_least_loaded(const struct scan *s, uint64_t random)
{
	uint32_t blocked = s->blocked;

	if (flags_of_filter(s->tags, &blocked))
		return SCAN_NONE;
	if (!s->keep_stale) {
		uint32_t slot = least_loaded(s, blocked, HASTY, random);

		if (slot == SCAN_NONE || scan_eligible(s, slot))
			return slot;
		random = stir(random);
	}
	return least_loaded(s, blocked, CAREFUL, random);
}

/* The least turn of a block: when a node was last assigned, those ordered last behind all others.
 */
static int32_t least_turn(
	const struct block *b, const uint32_t *restrict assigned, int32_t *restrict turn)
{
	int32_t least = TURN_NONE;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int32_t key = b->key[i];
		int32_t none = -(key == KEY_NONE);

		turn[i] = (int32_t)(assigned[i] & FARM_SEQ_MAX) |
			  (key & KEY_LAST) * (int32_t)(TURN_LAST / KEY_LAST) | (none & TURN_NONE);
		least = turn[i] < least ? turn[i] : least;
	}
	return least;
}

static uint32_t longest_ago(const struct scan *s, uint32_t blocked, enum pace pace)
{
	struct block b;
	int32_t turn[BLOCK];
	uint32_t best = SCAN_NONE;
	int32_t least = TURN_NONE;

	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		int32_t here;

		set_block(s, &b, base);
		make_keys(s, blocked, &b, pace);
		here = least_turn(&b, s->farm->assigned + base, turn);
		if (here >= least)
			continue;
		least = here;
		for (best = base; turn[best - base] != here; best++)
			;
	}
	return best;
}

uint32_t scan_round_robin(const struct scan *s)
{
	uint32_t blocked = s->blocked;

	if (flags_of_filter(s->tags, &blocked))
		return SCAN_NONE;
	if (!s->keep_stale) {
		uint32_t slot = longest_ago(s, blocked, HASTY);

		if (slot == SCAN_NONE || scan_eligible(s, slot))
			return slot;
	}
	return longest_ago(s, blocked, CAREFUL);
}

bool scan_eligible(const struct scan *s, uint32_t slot)
{
	uint32_t flags = s->farm->flags[slot];

	if (flags & s->blocked)
		return false;
	return s->keep_stale || (flags & s->excused) || s->farm->heard_s[slot] >= s->fresh_from;
}
