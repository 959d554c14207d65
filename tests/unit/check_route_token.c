/* SPDX-License-Identifier: ISC */
/* Route tokens: what is sealed can be opened with the same key, in time, unaltered, and not else.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/tap.h"
#include "wire/route_token.h"

static const uint8_t key[ROUTE_KEY_SIZE] = "0123456789abcdef0123456789abcde";
static struct err e;

static struct route_ticket ticket(const char *user)
{
	struct route_ticket t = {.ends_s = 5000000000, .pool_id = 0x89abcdef};

	snprintf(t.user, sizeof(t.user), "%s", user);
	return t;
}

START_TEST(there_and_back)
{
	static const char *const users[] = {"alice", "CORP\\alice", "Алиса@corp.example", ""};
	struct route_ticket t = ticket(users[_i]), back;
	char text[ROUTE_TOKEN_SIZE], again[ROUTE_TOKEN_SIZE];

	ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
	ck_assert_int_eq(route_token_open(key, text, 4999999999, &back, &e), 0);
	ck_assert_str_eq(back.user, users[_i]);
	ck_assert_str_eq(back.tags, "");
	ck_assert_int_eq(back.ends_s, t.ends_s);
	ck_assert_uint_eq(back.pool_id, t.pool_id);
	ck_assert_int_eq(route_token_seal(key, &t, again, &e), 0);
	ck_assert_str_ne(text, again);
	ck_assert_ptr_null(strstr(text, users[_i][0] ? users[_i] : "user"));
}
END_TEST

START_TEST(of_every_length)
{
	char text[ROUTE_TOKEN_SIZE];
	struct route_ticket t = ticket(""), back;

	for (size_t len = 0; len <= ROUTE_TOKEN_USER_MAX; len++) {
		memset(t.user, 'x', len);
		ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
		ck_assert_uint_lt(strlen(text), ROUTE_TOKEN_SIZE);
		ck_assert_int_eq(route_token_open(key, text, 0, &back, &e), 0);
		ck_assert_str_eq(back.user, t.user);
	}
}
END_TEST

START_TEST(tags_come_along)
{
	struct route_ticket t = ticket("alice"), back;
	char text[ROUTE_TOKEN_SIZE];

	snprintf(t.tags, sizeof(t.tags), "%s", "gpu;-east!");
	ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
	ck_assert_int_eq(route_token_open(key, text, 0, &back, &e), 0);
	ck_assert_str_eq(back.user, "alice");
	ck_assert_str_eq(back.tags, "gpu;-east!");
	for (size_t len = 1; len <= ROUTE_TOKEN_USER_MAX; len++) {
		memset(t.tags, 'x', len);
		t.tags[len] = '\0';
		if (strlen("alice") + 1 + len > ROUTE_TOKEN_USER_MAX) {
			ck_assert_int_eq(route_token_seal(key, &t, text, &e), -EMSGSIZE);
			ck_assert_ptr_nonnull(strstr(e.text, "106 bytes"));
			continue;
		}
		ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
		ck_assert_uint_lt(strlen(text), ROUTE_TOKEN_SIZE);
		ck_assert_int_eq(route_token_open(key, text, 0, &back, &e), 0);
		ck_assert_str_eq(back.tags, t.tags);
	}
}
END_TEST

START_TEST(its_end)
{
	struct route_ticket t = ticket("alice"), back = {.pool_id = 7};
	char text[ROUTE_TOKEN_SIZE];

	ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
	ck_assert_int_eq(route_token_open(key, text, t.ends_s, &back, &e), -ETIME);
	ck_assert_uint_eq(back.pool_id, 7);
	ck_assert_ptr_nonnull(strstr(e.text, "expired"));
}
END_TEST

START_TEST(another_key)
{
	struct route_ticket t = ticket("alice"), back;
	uint8_t other[ROUTE_KEY_SIZE];
	char text[ROUTE_TOKEN_SIZE];

	memcpy(other, key, sizeof(other));
	other[31] ^= 1;
	ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
	ck_assert_int_eq(route_token_open(other, text, 0, &back, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "not of this cluster"));
	ck_assert_ptr_null(strstr(e.text, text + 8));
}
END_TEST

/* Each character in turn becomes another one; each length but the right one. */
START_TEST(altered_or_cut)
{
	struct route_ticket t = ticket("alice"), back;
	char text[ROUTE_TOKEN_SIZE], bad[ROUTE_TOKEN_SIZE + 8];
	size_t len;

	ck_assert_int_eq(route_token_seal(key, &t, text, &e), 0);
	len = strlen(text);
	for (size_t i = 0; i < len; i++) {
		for (const char *c = "AB_-z7= ."; *c; c++) {
			memcpy(bad, text, len + 1);
			bad[i] = *c;
			if (*c != text[i])
				ck_assert_int_eq(route_token_open(key, bad, 0, &back, &e), -EINVAL);
		}
		memcpy(bad, text, i);
		bad[i] = '\0';
		ck_assert_int_eq(route_token_open(key, bad, 0, &back, &e), -EINVAL);
	}
	snprintf(bad, sizeof(bad), "%sAAAA", text);
	ck_assert_int_eq(route_token_open(key, bad, 0, &back, &e), -EINVAL);
	ck_assert_int_eq(route_token_open(key, "Cookie: msts=1.2.0000", 0, &back, &e), -EINVAL);
}
END_TEST

START_TEST(addresses)
{
	char text[ROUTE_ADDRESS_SIZE];

	ck_assert_int_eq(route_address_format("127.0.0.3", 3389, text), 0);
	ck_assert_str_eq(text, "Cookie: msts=50331775.15629.0000");
	ck_assert_int_eq(route_address_format("255.255.255.255", 65535, text), 0);
	ck_assert_str_eq(text, "Cookie: msts=4294967295.65535.0000");
	ck_assert_int_eq(route_address_format("::1", 3389, text), -EINVAL);
	ck_assert_int_eq(route_address_format("node.example", 3389, text), -EINVAL);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("route_token");
	TCase *t = tcase_create("route_token");

	tcase_add_loop_test(t, there_and_back, 0, 4);
	tcase_add_test(t, of_every_length);
	tcase_add_test(t, tags_come_along);
	tcase_add_test(t, its_end);
	tcase_add_test(t, another_key);
	tcase_add_test(t, altered_or_cut);
	tcase_add_test(t, addresses);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
