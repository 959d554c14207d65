/* SPDX-License-Identifier: ISC */
/*
 * Secrets: random tokens, their hashes, comparison in constant time, wiping.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_HASH_SIZE 32
#define SECRET_TOKEN_SIZE 44 /* 256 bits as base64url without padding: 43 characters and the NUL */
#define SECRET_HEX_SIZE 65   /* a hash in hexadecimal and the NUL */

/* Fills P with LEN random bytes from the kernel. Ends the process if there are none to be had. */
void secret_random(void *p, size_t len);
/* A random 64-bit number for placement and jitter (not a secret). */
uint64_t secret_random_u64(void);
/* A new token of 256 random bits. The caller wipes it. */
void secret_token_new(char ret[SECRET_TOKEN_SIZE]);
/* SHA-256 of LEN bytes. */
void secret_hash(const void *data, size_t len, uint8_t ret[SECRET_HASH_SIZE]);
bool secret_hash_equal(const uint8_t a[SECRET_HASH_SIZE], const uint8_t b[SECRET_HASH_SIZE]);
void secret_hex(const uint8_t hash[SECRET_HASH_SIZE], char ret[SECRET_HEX_SIZE]);
void secret_wipe(void *p, size_t len);
