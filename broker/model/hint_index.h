/* SPDX-License-Identifier: ISC */
/*
 * From the beginning of a user name to the one user whom it fits: RDP clients tell a name without
 * its domain, and some cut it after nine bytes. Knows for each beginning how many users it fits
 * and, folded into one word, whose they are: with one user left the word is the hash of his key.
 * Twelve bytes an entry, no strings.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HINT_PREFIX 9 /* bytes of a name that is cut */

struct hint {
	uint32_t tag;	/* hash of the beginning, never 0; 0 = free */
	uint32_t users; /* whom it fits */
	uint32_t keys;	/* exclusive or of their key hashes */
};

struct hint_index {
	struct hint *slot;
	uint32_t cap; /* a power of two; 0 before the first */
	uint32_t count;
};

void hint_index_deinit(struct hint_index *x);
/* A user of KEY ("user", "domain\user", "\node\user") came or went. Adding: -ENOMEM, nothing
 * changed. */
int hint_index_add(
	struct hint_index *x, uint64_t seed, const char *key, size_t len, uint32_t key_hash);
void hint_index_remove(
	struct hint_index *x, uint64_t seed, const char *key, size_t len, uint32_t key_hash);
/* The hash of the only user whose name (LEN bytes, folded, without domain) is this or, from nine
 * bytes on, begins so: 0, or -ENOENT for none or several. Hashes meet: the caller compares the
 * name. */
int hint_index_find(const struct hint_index *x, uint64_t seed, const char *name, size_t len,
	uint32_t *ret_key_hash);
/* KEY's part behind the domain. */
const char *hint_user_part(const char *key, size_t len, size_t *ret_len);
