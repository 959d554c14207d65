/* SPDX-License-Identifier: ISC */
/*
 * The hash function of model/, and how uthash is set up here. Included before every other header by
 * the files that use uthash's macros.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Multiplies and folds the halves: each input bit reaches every output bit. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = a;

	product *= b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const unsigned char *at = data;
	uint64_t h = seed ^ (len * UINT64_C(0x9e3779b97f4a7c15));
	uint64_t word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		h = hash_mix(h ^ word, seed | 1);
	}
	word = 0;
	memcpy(&word, at, len);
	h = hash_mix(h ^ word, seed | 1);
	h = hash_mix(h, UINT64_C(0xd6e8feb86659fd93));
	return (uint32_t)(h ^ h >> 32);
}

#define HASH_SEED UINT64_C(0x8ebc6af09c88c6e3)
#define HASH_FUNCTION(key, len, value) ((value) = hash_bytes(HASH_SEED, (key), (len)))
#define HASH_NONFATAL_OOM 1 /* a failed HASH_ADD leaves the handle's tbl NULL */
