/* SPDX-License-Identifier: ISC */
#include "wire/route_token.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"

#define NONCE 12
#define TAG 16
#define FIXED 13 /* of the body: version, end, pool */
#define BODY_MAX (FIXED + ROUTE_TOKEN_USER_MAX)
#define SEALED_MAX (NONCE + BODY_MAX + TAG)
#define VERSION 1

_Static_assert(
	(SEALED_MAX + 2) / 3 * 4 + sizeof(ROUTE_TOKEN_PREFIX) <= ROUTE_TOKEN_SIZE, "it fits");
_Static_assert(ROUTE_TOKEN_SIZE - 1 <= 254 - 6 - 2 - 8 - 36, "a client can send it");

/* ---- base64url without padding, by OpenSSL's base64 ---- */

static void encode(const uint8_t *data, size_t len, char *ret)
{
	size_t out = (size_t)EVP_EncodeBlock((unsigned char *)ret, data, (int)len);

	while (out > 0 && ret[out - 1] == '=')
		ret[--out] = '\0';
	for (; *ret; ret++)
		*ret = *ret == '+' ? '-' : *ret == '/' ? '_' : *ret;
}

/* The number of bytes, at most SEALED_MAX, or -EINVAL. One spelling for each token: what OpenSSL
 * forgives is compared. */
static int decode(const char *text, uint8_t ret[SEALED_MAX + 2])
{
	char padded[ROUTE_TOKEN_SIZE + 4], again[ROUTE_TOKEN_SIZE + 4];
	size_t len = strlen(text), padding = (4 - len % 4) % 4;
	int n;

	if (len == 0 || len > (SEALED_MAX + 2) / 3 * 4 || padding == 3)
		return -EINVAL;
	memcpy(padded, text, len);
	memcpy(padded + len, "==", padding);
	padded[len + padding] = '\0';
	for (char *p = padded; *p; p++)
		*p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
	n = EVP_DecodeBlock(ret, (unsigned char *)padded, (int)(len + padding));
	if (n < (int)padding)
		return -EINVAL;
	n -= (int)padding;
	if (n > SEALED_MAX)
		return -EINVAL;
	encode(ret, (size_t)n, again);
	return strcmp(again, text) == 0 ? n : -EINVAL;
}

/* ---- the seal ---- */

static bool seal(
	EVP_CIPHER_CTX *c, const uint8_t *key, const uint8_t *body, size_t len, uint8_t *out)
{
	int n = 0, more = 0;

	secret_random(out, NONCE);
	return EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, out) == 1 &&
	       EVP_EncryptUpdate(c, out + NONCE, &n, body, (int)len) == 1 &&
	       EVP_EncryptFinal_ex(c, out + NONCE + n, &more) == 1 &&
	       (size_t)n + (size_t)more == len &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, out + NONCE + len) == 1;
}

static bool unseal(
	EVP_CIPHER_CTX *c, const uint8_t *key, uint8_t *sealed, size_t body_len, uint8_t *body)
{
	int n = 0, more = 0;

	return EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, sealed) == 1 &&
	       EVP_DecryptUpdate(c, body, &n, sealed + NONCE, (int)body_len) == 1 &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, sealed + NONCE + body_len) == 1 &&
	       EVP_DecryptFinal_ex(c, body + n, &more) == 1;
}

int route_token_seal(const uint8_t key[ROUTE_KEY_SIZE], const struct route_ticket *t,
	char ret[ROUTE_TOKEN_SIZE], struct err *e)
{
	uint8_t body[BODY_MAX], sealed[SEALED_MAX];
	size_t user_len = strlen(t->user), len = user_len + (t->tags[0] ? 1 + strlen(t->tags) : 0);
	EVP_CIPHER_CTX *c;
	bool ok;

	if (len > ROUTE_TOKEN_USER_MAX)
		return err_set(e, -EMSGSIZE,
			"user name and tags are longer than the %d bytes that fit into a route "
			"token",
			ROUTE_TOKEN_USER_MAX);
	c = EVP_CIPHER_CTX_new();
	body[0] = VERSION;
	for (unsigned i = 0; i < 8; i++)
		body[1 + i] = (uint8_t)((uint64_t)t->ends_s >> 8 * i);
	for (unsigned i = 0; i < 4; i++)
		body[9 + i] = (uint8_t)(t->pool_id >> 8 * i);
	memcpy(body + FIXED, t->user, user_len);
	if (t->tags[0]) {
		body[FIXED + user_len] = '\0';
		memcpy(body + FIXED + user_len + 1, t->tags, len - user_len - 1);
	}
	ok = c && seal(c, key, body, FIXED + len, sealed);
	EVP_CIPHER_CTX_free(c);
	if (!ok)
		return err_set(e, -EIO, "could not seal a route token");
	memcpy(ret, ROUTE_TOKEN_PREFIX, sizeof(ROUTE_TOKEN_PREFIX));
	encode(sealed, NONCE + FIXED + len + TAG, ret + sizeof(ROUTE_TOKEN_PREFIX) - 1);
	return 0;
}

static int read_body(const uint8_t *body, size_t len, struct route_ticket *ret)
{
	const char *user = (const char *)body + FIXED;
	size_t left = len - FIXED, user_len = strnlen(user, left);
	size_t tags_len = user_len < left ? left - user_len - 1 : 0;
	const char *tags = user + user_len + 1;
	uint64_t ends = 0;

	if (body[0] != VERSION || !text_utf8_valid(user, user_len))
		return -EINVAL;
	if (user_len < left &&
		(tags_len == 0 || memchr(tags, '\0', tags_len) || !text_utf8_valid(tags, tags_len)))
		return -EINVAL;
	*ret = (struct route_ticket){0};
	for (unsigned i = 0; i < 8; i++)
		ends |= (uint64_t)body[1 + i] << 8 * i;
	for (unsigned i = 0; i < 4; i++)
		ret->pool_id |= (uint32_t)body[9 + i] << 8 * i;
	ret->ends_s = (int64_t)ends;
	memcpy(ret->user, user, user_len);
	if (tags_len > 0)
		memcpy(ret->tags, tags, tags_len);
	return 0;
}

int route_token_open(const uint8_t key[ROUTE_KEY_SIZE], const char *text, int64_t now_s,
	struct route_ticket *ret, struct err *e)
{
	const size_t prefix = sizeof(ROUTE_TOKEN_PREFIX) - 1;
	uint8_t sealed[SEALED_MAX + 2], body[BODY_MAX];
	struct route_ticket ticket;
	EVP_CIPHER_CTX *c;
	int n = strncmp(text, ROUTE_TOKEN_PREFIX, prefix) == 0 ? decode(text + prefix, sealed)
							       : -EINVAL;
	size_t len = n < NONCE + FIXED + TAG ? 0 : (size_t)n - NONCE - TAG;
	bool ok;

	if (len == 0)
		return err_set(e, -EINVAL, "the route token is malformed");
	c = EVP_CIPHER_CTX_new();
	ok = c && unseal(c, key, sealed, len, body);
	EVP_CIPHER_CTX_free(c);
	if (!ok || read_body(body, len, &ticket) < 0)
		return err_set(
			e, -EINVAL, "the route token is not of this cluster, or was altered");
	if (ticket.ends_s <= now_s)
		return err_set(e, -ETIME, "the route token has expired");
	*ret = ticket;
	return 0;
}

int route_address_format(const char *address, uint16_t port, char ret[ROUTE_ADDRESS_SIZE])
{
	uint8_t b[4] = {0};

	if (inet_pton(AF_INET, address, b) != 1)
		return -EINVAL;
	snprintf(ret, ROUTE_ADDRESS_SIZE, "Cookie: msts=%u.%u.0000",
		(unsigned)b[0] | (unsigned)b[1] << 8 | (unsigned)b[2] << 16 | (unsigned)b[3] << 24,
		(unsigned)(port >> 8 | (port & 0xff) << 8));
	return 0;
}
