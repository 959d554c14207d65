/* SPDX-License-Identifier: ISC */
/*
 * The first byte says what the rest is: 'T' a token's text, 'B' a body, sealed here as a dispatcher
 * with the same key and other ideas would, 'U' a user name to seal, perhaps with NUL and tags. What
 * opens can be sealed and opened again; what does not leaves the ticket alone and says why without
 * a word of the token.
 */
#include "lib/fuzz.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "wire/route_token.h"

#define NOW 2000000000
#define NONCE 12
#define TAG 16

static const uint8_t key[ROUTE_KEY_SIZE] = "the key of the corpus: 32 bytes";

static void check_there_and_back(const struct route_ticket *t)
{
	struct route_ticket back;
	char text[ROUTE_TOKEN_SIZE];
	struct err e;

	FUZZ_CHECK(route_token_seal(key, t, text, &e) == 0);
	FUZZ_CHECK(route_token_open(key, text, NOW, &back, &e) == 0);
	FUZZ_CHECK(back.ends_s == t->ends_s && back.pool_id == t->pool_id);
	FUZZ_CHECK(strcmp(back.user, t->user) == 0 && strcmp(back.tags, t->tags) == 0);
}

static int open_text(const char *text)
{
	struct route_ticket t, untouched;
	struct err e = {""};
	int r;

	memset(&t, 0x5a, sizeof(t));
	untouched = t;
	r = route_token_open(key, text, NOW, &t, &e);
	if (r == 0) {
		FUZZ_CHECK(strlen(text) < ROUTE_TOKEN_SIZE && t.ends_s > NOW);
		FUZZ_CHECK(text_utf8_valid(t.user, strlen(t.user)));
		FUZZ_CHECK(text_utf8_valid(t.tags, strlen(t.tags)));
		check_there_and_back(&t);
		return r;
	}
	FUZZ_CHECK((r == -EINVAL || r == -ETIME) && e.text[0]);
	FUZZ_CHECK(memcmp(&t, &untouched, sizeof(t)) == 0);
	FUZZ_CHECK(strlen(text) < 24 || !strstr(e.text, text + 4));
	return r;
}

static void try_text(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1); /* exact: reading behind its NUL shows */

	FUZZ_CHECK(text);
	if (size)
		memcpy(text, data, size);
	open_text(text);
	free(text);
}

/* What version 1 promises of a body's end: a name in UTF-8, perhaps NUL and tags in UTF-8. */
static bool is_name(const char *name, size_t size)
{
	size_t len = strnlen(name, size);
	const char *tags = name + len + 1;

	if (size > ROUTE_TOKEN_USER_MAX || !text_utf8_valid(name, len))
		return false;
	return len == size || (size - len > 1 && text_utf8_valid(tags, size - len - 1));
}

static int expected(const uint8_t *body, size_t size)
{
	uint64_t ends = 0;

	if (size < 13 || body[0] != 1 || !is_name((const char *)body + 13, size - 13))
		return -EINVAL;
	for (unsigned i = 0; i < 8; i++)
		ends |= (uint64_t)body[1 + i] << 8 * i;
	return (int64_t)ends > NOW ? 0 : -ETIME;
}

static void try_body(const uint8_t *body, size_t size)
{
	uint8_t sealed[NONCE + 256 + TAG] = "other nonce!";
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	char text[8 + sizeof(sealed) * 4 / 3 + 8] = ROUTE_TOKEN_PREFIX;
	int n = 0;

	FUZZ_CHECK(c && EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, sealed) == 1);
	FUZZ_CHECK(EVP_EncryptUpdate(c, sealed + NONCE, &n, body, (int)size) == 1);
	FUZZ_CHECK(EVP_EncryptFinal_ex(c, sealed + NONCE + n, &n) == 1);
	FUZZ_CHECK(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, sealed + NONCE + size) == 1);
	EVP_CIPHER_CTX_free(c);
	EVP_EncodeBlock((unsigned char *)text + strlen(text), sealed, (int)(NONCE + size + TAG));
	for (char *p = text; *p; p++)
		*p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p == '=' ? '\0' : *p);
	FUZZ_CHECK(open_text(text) == expected(body, size));
}

static void try_user(const char *name, size_t size)
{
	struct route_ticket t = {.ends_s = NOW + 1, .pool_id = (uint32_t)size};
	size_t len = strnlen(name, size);

	if (!is_name(name, size))
		return;
	memcpy(t.user, name, len);
	if (len < size)
		memcpy(t.tags, name + len + 1, size - len - 1);
	check_there_and_back(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == 'T')
		try_text(data + 1, size - 1);
	else if (size > 0 && size <= 256 && data[0] == 'B')
		try_body(data + 1, size - 1);
	else if (size > 0 && data[0] == 'U')
		try_user((const char *)data + 1, size - 1);
	return 0;
}
