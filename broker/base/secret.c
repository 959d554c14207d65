/* SPDX-License-Identifier: ISC */
/* Randomness comes from the kernel alone; hashes from OpenSSL. Nothing here keeps a copy
 * of a secret. */
#include "base/secret.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void secret_random(void *p, size_t len)
{
	unsigned char *at = p;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			abort(); /* a guessable token is worse than no service */
		at += n;
		len -= (size_t)n;
	}
}

uint64_t secret_random_u64(void)
{
	uint64_t v;

	secret_random(&v, sizeof(v));
	return v;
}

void secret_token_new(char ret[SECRET_TOKEN_SIZE])
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bits[33] = {0}; /* 32 random bytes; the 33rd pads the last digit with zeros */
	size_t out = 0;

	secret_random(bits, 32);
	for (size_t i = 0; i < sizeof(bits); i += 3) {
		uint32_t v = (uint32_t)bits[i] << 16 | (uint32_t)bits[i + 1] << 8 | bits[i + 2];

		for (int shift = 18; shift >= 0 && out < SECRET_TOKEN_SIZE - 1; shift -= 6)
			ret[out++] = alphabet[v >> shift & 63];
	}
	ret[out] = '\0';
	secret_wipe(bits, sizeof(bits));
}

void secret_hash(const void *data, size_t len, uint8_t ret[SECRET_HASH_SIZE])
{
	static EVP_MD *md; /* looked up once: that costs more than the hash of a token */

	if (!md)
		md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!md || !EVP_Digest(data, len, ret, NULL, md, NULL))
		SHA256(data, len, ret);
}

bool secret_hash_equal(const uint8_t a[SECRET_HASH_SIZE], const uint8_t b[SECRET_HASH_SIZE])
{
	return CRYPTO_memcmp(a, b, SECRET_HASH_SIZE) == 0;
}

void secret_hex(const uint8_t hash[SECRET_HASH_SIZE], char ret[SECRET_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SECRET_HASH_SIZE; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[SECRET_HEX_SIZE - 1] = '\0';
}

void secret_wipe(void *p, size_t len)
{
	if (p)
		explicit_bzero(p, len);
}
