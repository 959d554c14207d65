/* SPDX-License-Identifier: ISC */
/* base/secret: tokens, hashes with known values, comparison, wiping. */
#include "base/secret.h"

#include <string.h>

#include "lib/tap.h"

START_TEST(tokens_are_base64url_and_differ)
{
	char tokens[200][SECRET_TOKEN_SIZE];
	unsigned char used[128] = {0};

	for (int i = 0; i < 200; i++) {
		secret_token_new(tokens[i]);
		ck_assert_uint_eq(strlen(tokens[i]), 43);
		ck_assert_uint_eq(
			strspn(tokens[i],
				"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
			43);
		/* 256 bits in 43 digits: the last one holds four bits, so its low two are zero. */
		ck_assert_ptr_nonnull(strchr("AEIMQUYcgkosw048", tokens[i][42]));
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(tokens[i], tokens[j]);
		for (int k = 0; k < 43; k++)
			used[(unsigned char)tokens[i][k]] = 1;
	}
	/* 8600 random digits meet each of the 64 with a chance of failure below 10^-56. */
	for (const char *p = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"; *p;
		p++)
		ck_assert_int_eq(used[(unsigned char)*p], 1);
}
END_TEST

START_TEST(hashes_are_sha256)
{
	uint8_t a[SECRET_HASH_SIZE], b[SECRET_HASH_SIZE];
	char hex[SECRET_HEX_SIZE];

	secret_hash("", 0, a);
	secret_hex(a, hex);
	ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	secret_hash("abc", 3, b);
	secret_hex(b, hex);
	ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	ck_assert(secret_hash_equal(a, a));
	ck_assert(!secret_hash_equal(a, b));
	memcpy(a, b, sizeof(a));
	ck_assert(secret_hash_equal(a, b));
	for (int i = 0; i < SECRET_HASH_SIZE; i++) {
		a[i] ^= 1;
		ck_assert(!secret_hash_equal(a, b));
		a[i] ^= 1;
	}
}
END_TEST

START_TEST(fills_all_and_no_more)
{
	unsigned char p[1000], seen[1000] = {0};

	for (int round = 0; round < 20; round++) {
		memset(p, 0, sizeof(p));
		secret_random(p, sizeof(p) - 1);
		for (size_t i = 0; i < sizeof(p); i++)
			seen[i] |= p[i] != 0;
		ck_assert_int_eq(p[sizeof(p) - 1], 0);
	}
	for (size_t i = 0; i < sizeof(p) - 1; i++)
		ck_assert_int_eq(seen[i], 1);
	secret_random(p, 0);
	ck_assert(secret_random_u64() != secret_random_u64());
}
END_TEST

START_TEST(wipes)
{
	char p[] = "secret";

	secret_wipe(p, sizeof(p));
	for (size_t i = 0; i < sizeof(p); i++)
		ck_assert_int_eq(p[i], 0);
	secret_wipe(NULL, 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("secret");
	TCase *t = tcase_create("secret");

	tcase_add_test(t, tokens_are_base64url_and_differ);
	tcase_add_test(t, hashes_are_sha256);
	tcase_add_test(t, fills_all_and_no_more);
	tcase_add_test(t, wipes);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
