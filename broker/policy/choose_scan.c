/* SPDX-License-Identifier: ISC */
/*
 * Plain scans, block by block, so that a block's keys stay in the first-level cache and no memory
 * is allocated. A node's key is one int16: its index, plus KEY_LAST for one that is ordered last,
 * or KEY_NONE for one that is no candidate. The loops over a block are free of branches and of
 * calls: both compilers turn them into vector code with nothing beyond SSE2.
 *
 * Choosing uniformly among equals takes one pass: a block's keys give their least and how many have
 * it; a block that ties with the best so far takes the win over with its share of all equals seen
 * (reservoir sampling, a block at a time). Only the block that won is looked into again.
 */
#include "policy/choose_scan.h"

#include <string.h>

#include "policy/choose.h"

#define BLOCK 1024u
#define KEY_LAST (1 << 14) /* above every index */
#define KEY_NONE INT16_MAX
#define TURN_NONE ((int32_t)KEY_NONE << 16)

_Static_assert(FARM_SEQ_MAX < (uint32_t)KEY_LAST << 16, "a turn leaves room for a key above it");
_Static_assert(((uint32_t)KEY_LAST << 16 | FARM_SEQ_MAX) < TURN_NONE, "none comes after the last");
_Static_assert(BLOCK <= INT16_MAX, "what is counted in a block fits into 16 bits");
_Static_assert(KEY_LAST % FARM_UNHEARD_SINCE_START == 0 && KEY_LAST % FARM_SUSPECT == 0,
	"the flags are shifted to their place");

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

static bool any_bits(const uint16_t words[FARM_TAG_WORDS])
{
	for (uint32_t w = 0; w < FARM_TAG_WORDS; w++) {
		if (words[w])
			return true;
	}
	return false;
}

/* Whether FILTER says something that the flags alone do not. */
static bool needs_planes(const struct tag_filter *f)
{
	return any_bits(f->include) || any_bits(f->exclude);
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

static void or_planes(uint16_t *out, const struct block *b, const struct farm *farm,
	const uint16_t masks[FARM_TAG_WORDS])
{
	for (uint32_t w = 0; w < farm->tag_words; w++) {
		if (masks[w])
			or_plane(out, farm->tags + (size_t)w * farm->cap + b->base, b->n, masks[w]);
	}
}

/* Makes KEY_NONE of what stands in OUT for each node that FILTER does not match. */
static void apply_filter(
	int16_t *restrict out, struct block *b, const struct farm *farm, const struct tag_filter *f)
{
	uint16_t *restrict hit = b->hit;
	uint16_t *restrict miss = b->miss;
	uint32_t n = b->n;

	if (f->tagged && f->untagged && !needs_planes(f))
		return;
	hit_flags(hit, farm->flags + b->base, n, f->untagged, f->tagged);
	or_planes(hit, b, farm, f->include);
	if (!any_bits(f->exclude)) {
		for (uint32_t i = 0; i < n; i++)
			out[i] |= hit[i] ? 0 : KEY_NONE;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		miss[i] = 0;
	or_planes(miss, b, farm, f->exclude);
	for (uint32_t i = 0; i < n; i++) {
		int16_t pass = -(hit[i] != 0) & -(miss[i] == 0);

		out[i] |= ~pass & KEY_NONE;
	}
}

/* Without regard to tags and freshness. */
static inline int16_t hasty_key(uint16_t flags, uint16_t index, uint16_t blocked)
{
	int16_t none = flags & blocked ? KEY_NONE : 0;
	uint16_t unheard = (uint16_t)(flags * (KEY_LAST / FARM_UNHEARD_SINCE_START));
	uint16_t suspect = (uint16_t)(flags * (KEY_LAST / FARM_SUSPECT));

	return (int16_t)(index | ((unheard | suspect) & KEY_LAST)) | none;
}

/* INDEX NULL = 0 for every node. */
static void hasty_keys(
	const struct scan *s, uint16_t blocked, struct block *b, const uint16_t *restrict index)
{
	const uint16_t *restrict flags = s->farm->flags + b->base;
	int16_t *restrict key = b->key;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++)
		key[i] = hasty_key(flags[i], index ? index[i] : 0, blocked);
}

/* Keys without regard to tags. */
static void careful_keys(
	const struct scan *s, uint16_t blocked, struct block *b, const uint16_t *restrict index)
{
	const uint16_t *restrict flags = s->farm->flags + b->base;
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
		key[i] = (int16_t)(index ? index[i] : 0) | (late & KEY_LAST) | (none & KEY_NONE);
	}
}

static void leave_out_avoided(const struct scan *s, struct block *b)
{
	for (uint32_t i = 0; i < s->avoid_count; i++) {
		if (s->avoid[i] - b->base < b->n) /* below base it wraps */
			b->key[s->avoid[i] - b->base] = KEY_NONE;
	}
}

/* The keys of a block; INDEX is the farm's, or NULL where the index does not matter. */
static void make_keys(const struct scan *s, uint32_t blocked, struct block *b, enum pace pace,
	const uint16_t *index)
{
	if (index)
		index += b->base;
	if (pace == HASTY)
		hasty_keys(s, (uint16_t)blocked, b, index);
	else
		careful_keys(s, (uint16_t)blocked, b, index);
	if (s->tags && needs_planes(s->tags))
		apply_filter(b->key, b, s->farm, s->tags);
	if (s->forced)
		apply_filter(b->key, b, s->farm, s->forced);
	leave_out_avoided(s, b);
}

/*
 * The least key of a block, and in *RET_COUNT how many keys are GUESS: most blocks' least is that
 * of the blocks before, so that one look is enough.
 */
static int16_t least_key(const struct block *b, int16_t guess, uint32_t *ret_count)
{
	const int16_t *key = b->key;
	int16_t least = KEY_NONE, count = 0;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		least = key[i] < least ? key[i] : least;
		count = (int16_t)(count + (key[i] == guess));
	}
	*ret_count = (uint16_t)count;
	return least;
}

/* The same of keys that are not kept: the whole of a hasty scan without tags. */
static int16_t least_hasty_key(const struct scan *s, uint16_t blocked, const struct block *b,
	int16_t guess, uint32_t *ret_count)
{
	const uint16_t *flags = s->farm->flags + b->base;
	const uint16_t *index = s->farm->index + b->base;
	int16_t least = KEY_NONE, count = 0;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int16_t key = hasty_key(flags[i], index[i], blocked);

		least = key < least ? key : least;
		count = (int16_t)(count + (key == guess));
	}
	*ret_count = (uint16_t)count;
	return least;
}

/* Whether flags and pace leave nothing to look up but the arrays of a hasty scan. */
static bool is_plain(const struct scan *s, enum pace pace)
{
	return pace == HASTY && !s->forced && !s->avoid_count &&
	       !(s->tags && needs_planes(s->tags));
}

static void set_block(const struct scan *s, struct block *b, uint32_t base)
{
	uint32_t left = s->farm->count - base;

	b->base = base;
	b->n = left < BLOCK ? left : BLOCK;
}

/* Another random number out of RANDOM. */
static uint64_t stir(uint64_t random)
{
	random = (random ^ random >> 32) * UINT64_C(0xd6e8feb86659fd93);
	random = (random ^ random >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return random ^ random >> 32;
}

/* 0..COUNT-1. The high half of a product: for counts far below 2^64 as good as unbiased. */
static uint32_t below(uint64_t random, uint32_t count)
{
	return (uint32_t)((__extension__(unsigned __int128) random * count) >> 64);
}

/* The nodes of least key that were seen so far, and which of them wins. */
struct equals {
	int16_t least;
	uint32_t count;
	uint32_t base, k; /* the winner: the K-th of that key in the block at BASE */
};

/* COUNT more nodes of the least key, in the block at BASE. */
static void add_equals(struct equals *e, uint32_t base, uint32_t count, uint64_t random)
{
	uint32_t k;

	e->count += count;
	if (e->count > count) /* each draw a number of its own */
		random = stir(random + base * UINT64_C(0x9e3779b97f4a7c15));
	k = below(random, e->count);
	if (k < count) {
		e->base = base;
		e->k = k;
	}
}

static uint32_t find_winner(const struct scan *s, uint32_t blocked, enum pace pace, struct block *b,
	const struct equals *e)
{
	uint32_t k = e->k;

	set_block(s, b, e->base);
	make_keys(s, blocked, b, pace, s->farm->index);
	for (uint32_t i = 0;; i++) {
		if (b->key[i] == e->least && k-- == 0)
			return e->base + i;
	}
}

static int16_t sweep(const struct scan *s, uint32_t blocked, enum pace pace, struct block *b,
	int16_t guess, uint32_t *ret_count)
{
	if (is_plain(s, pace))
		return least_hasty_key(s, (uint16_t)blocked, b, guess, ret_count);
	make_keys(s, blocked, b, pace, s->farm->index);
	return least_key(b, guess, ret_count);
}

static uint32_t least_loaded(
	const struct scan *s, uint32_t blocked, enum pace pace, uint64_t random)
{
	struct block b;
	struct equals e = {.least = KEY_NONE};

	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		int16_t here;
		uint32_t count;

		set_block(s, &b, base);
		here = sweep(s, blocked, pace, &b, e.least, &count);
		if (here < e.least) {
			e = (struct equals){.least = here};
			(void)sweep(s, blocked, pace, &b, here, &count);
		}
		if (here == e.least && here != KEY_NONE)
			add_equals(&e, base, count, random);
	}
	return e.count ? find_winner(s, blocked, pace, &b, &e) : SCAN_NONE;
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
		random = stir(random); /* the old one says where the others are */
	}
	return least_loaded(s, blocked, CAREFUL, random);
}

/*
 * When a node was last assigned, those ordered last behind all others; TURN_NONE and above for one
 * that is no candidate. KEY is made without index.
 */
static inline int32_t turn_of(int16_t key, uint32_t assigned)
{
	return (int32_t)((uint32_t)(uint16_t)key << 16 | assigned);
}

static int32_t least_turn(const struct block *b, const uint32_t *assigned)
{
	const int16_t *key = b->key;
	int32_t least = TURN_NONE;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int32_t turn = turn_of(key[i], assigned[i]);

		least = turn < least ? turn : least;
	}
	return least;
}

/* The same of turns that are not kept. */
static int32_t least_hasty_turn(const struct scan *s, uint16_t blocked, const struct block *b)
{
	const uint16_t *flags = s->farm->flags + b->base;
	const uint32_t *assigned = s->farm->assigned + b->base;
	int32_t least = TURN_NONE;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int32_t turn = turn_of(hasty_key(flags[i], 0, blocked), assigned[i]);

		least = turn < least ? turn : least;
	}
	return least;
}

static int32_t sweep_turns(const struct scan *s, uint32_t blocked, enum pace pace, struct block *b)
{
	if (is_plain(s, pace))
		return least_hasty_turn(s, (uint16_t)blocked, b);
	make_keys(s, blocked, b, pace, NULL);
	return least_turn(b, s->farm->assigned + b->base);
}

static uint32_t longest_ago(const struct scan *s, uint32_t blocked, enum pace pace)
{
	const uint32_t *assigned = s->farm->assigned;
	struct block b;
	uint32_t best = SCAN_NONE;
	int32_t least = TURN_NONE;

	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		int32_t here;

		set_block(s, &b, base);
		here = sweep_turns(s, blocked, pace, &b);
		if (here < least) {
			least = here;
			best = base;
		}
	}
	if (best == SCAN_NONE)
		return SCAN_NONE;
	set_block(s, &b, best);
	make_keys(s, blocked, &b, pace, NULL);
	for (uint32_t i = 0;; i++) {
		if (turn_of(b.key[i], assigned[best + i]) == least)
			return best + i;
	}
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

bool scan_avoids(const struct scan *s, uint32_t slot)
{
	for (uint32_t i = 0; i < s->avoid_count; i++) {
		if (s->avoid[i] == slot)
			return true;
	}
	return false;
}

bool scan_eligible(const struct scan *s, uint32_t slot)
{
	uint32_t flags = s->farm->flags[slot];

	if ((flags & s->blocked) || scan_avoids(s, slot))
		return false;
	return s->keep_stale || (flags & s->excused) || s->farm->heard_s[slot] >= s->fresh_from;
}

/* ---- why there is no candidate ---- */

/* KEY of each node: 0 where one of the stages, and what is forced, matches, else KEY_NONE. */
static void match_any_stage(
	const struct scan *s, const struct tag_filter *stages, uint32_t count, struct block *b)
{
	int16_t *restrict key = b->key;
	int16_t one[BLOCK];
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++)
		key[i] = KEY_NONE;
	for (uint32_t stage = 0; stage < count; stage++) {
		memset(one, 0, sizeof(one));
		apply_filter(one, b, s->farm, &stages[stage]);
		for (uint32_t i = 0; i < n; i++)
			key[i] &= one[i];
	}
	if (s->forced)
		apply_filter(key, b, s->farm, s->forced);
}

/* How many nodes of a block each filter leaves, one after the other: 16 bits are enough. */
static void count_block(const struct scan *s, const struct block *b, struct choice_counts *c)
{
	const uint16_t *flags = s->farm->flags + b->base;
	const uint32_t *heard = s->farm->heard_s + b->base;
	uint16_t maintenance = (uint16_t)(s->blocked & (FARM_DRAIN | FARM_DISABLED));
	uint16_t silent = (uint16_t)(s->blocked & (FARM_SILENT | FARM_NEVER_HEARD | FARM_STALE));
	uint16_t deaf = (uint16_t)(s->blocked & FARM_NOT_ACCEPTING);
	uint16_t full = (uint16_t)(s->blocked & (FARM_INDEX_FULL | FARM_CAPACITY_FULL));
	uint16_t excused = (uint16_t)s->excused;
	int32_t fresh_from = s->keep_stale ? 0 : (int32_t)s->fresh_from;
	int16_t matching = 0, kept = 0, heard_of = 0, accepting = 0, free = 0, candidates = 0;
	uint32_t n = b->n;

	for (uint32_t i = 0; i < n; i++) {
		int16_t left = b->key[i] ? 0 : -1;
		int16_t fresh = flags[i] & excused ? -1 : 0;

		fresh |= (int32_t)heard[i] < fresh_from ? 0 : -1;
		matching = (int16_t)(matching - left);
		left &= flags[i] & maintenance ? 0 : -1;
		kept = (int16_t)(kept - left);
		left &= flags[i] & silent ? 0 : -1;
		heard_of = (int16_t)(heard_of - left);
		left &= flags[i] & deaf ? 0 : -1;
		accepting = (int16_t)(accepting - left);
		left &= flags[i] & full ? 0 : -1;
		free = (int16_t)(free - left);
		left &= fresh;
		candidates = (int16_t)(candidates - left);
	}
	c->nodes += n;
	c->tag_mismatch += n - (uint16_t)matching;
	c->maintenance += (uint32_t)(matching - kept);
	c->silent += (uint32_t)(kept - heard_of + (free - candidates));
	c->not_accepting += (uint32_t)(heard_of - accepting);
	c->full += (uint32_t)(accepting - free);
	c->candidates += (uint16_t)candidates;
}

void scan_count(const struct scan *s, const struct tag_filter *stages, uint32_t count,
	struct choice_counts *ret)
{
	struct block b;

	*ret = (struct choice_counts){0};
	for (uint32_t base = 0; base < s->farm->count; base += BLOCK) {
		set_block(s, &b, base);
		match_any_stage(s, stages, count, &b);
		count_block(s, &b, ret);
	}
}
