/* SPDX-License-Identifier: ISC */
/* Who is meant by a name that is cut or lacks its domain: against a walk over all users. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"
#include "model/hint_index.h"

#define SEED 42
#define USERS 3000

static struct hint_index x;
static char keys[USERS][40];
static bool present[USERS];

static void setup(void)
{
	x = (struct hint_index){0};
	memset(present, 0, sizeof(present));
}

static void teardown(void)
{
	hint_index_deinit(&x);
}

/* Key hashes are made up: the number of the user, and one. */
static void add(unsigned i)
{
	ck_assert_int_eq(hint_index_add(&x, SEED, keys[i], strlen(keys[i]), i + 1), 0);
	present[i] = true;
}

static void take_away(unsigned i)
{
	hint_index_remove(&x, SEED, keys[i], strlen(keys[i]), i + 1);
	present[i] = false;
}

static uint32_t find(const char *name)
{
	uint32_t hash = 0;

	return hint_index_find(&x, SEED, name, strlen(name), &hash) == 0 ? hash : 0;
}

/* By the rules, from all users: whole names first, then names cut to nine. */
static uint32_t expected(const char *name)
{
	size_t len = strlen(name), part_len;
	uint32_t whole = 0, cut = 0, wholes = 0, cuts = 0;

	for (unsigned i = 0; i < USERS; i++) {
		const char *part = hint_user_part(keys[i], strlen(keys[i]), &part_len);
		size_t n = len < HINT_PREFIX ? len : HINT_PREFIX;

		if (!present[i])
			continue;
		if (len > HINT_PREFIX && part != keys[i] && strcmp(part, name) == 0) {
			whole = i + 1;
			wholes++;
		}
		if (strncmp(part, name, n) == 0 && (part_len == n || part_len > HINT_PREFIX - 1) &&
			(len >= HINT_PREFIX || part_len == len)) {
			cut = i + 1;
			cuts++;
		}
	}
	return wholes == 1 ? whole : cuts == 1 ? cut : 0;
}

START_TEST(parts)
{
	size_t len;

	ck_assert_str_eq(hint_user_part("corp\\alice", 10, &len), "alice");
	ck_assert_uint_eq(len, 5);
	ck_assert_str_eq(hint_user_part("\\node\\bob", 9, &len), "bob");
	ck_assert_str_eq(hint_user_part("carol", 5, &len), "carol");
	ck_assert_uint_eq(find("alice"), 0); /* of nobody */
	ck_assert_uint_eq(find(""), 0);
}
END_TEST

START_TEST(as_a_walk_over_all_users)
{
	unsigned state = 7, found = 0;

	for (unsigned i = 0; i < USERS; i++) {
		static const char *const domains[] = {"", "corp\\", "other.example\\", "\\node\\"};
		static const char *const names[] = {"u", "user00", "employee", "maximilian."};

		snprintf(keys[i], sizeof(keys[i]), "%s%s%u", domains[i % 4], names[i / 4 % 4],
			i % 7 ? i : i / 2);
	}
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (state = state * 1103515245 + 12345) >> 8;

		i %= USERS;
		if (present[i])
			take_away(i);
		else
			add(i);
		if (step % 50 == 0) {
			size_t len;
			const char *part = hint_user_part(keys[i], strlen(keys[i]), &len);
			char cut[HINT_PREFIX + 1];

			snprintf(cut, sizeof(cut), "%s", part);
			ck_assert_uint_eq(find(part), expected(part));
			ck_assert_uint_eq(find(cut), expected(cut));
			found += find(part) != 0;
		}
	}
	ck_assert_uint_gt(found, 20);
	for (unsigned i = 0; i < USERS; i++) {
		if (present[i])
			take_away(i);
	}
	ck_assert_uint_eq(x.count, 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("hint_index");
	TCase *t = tcase_create("hint_index");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, parts);
	tcase_add_test(t, as_a_walk_over_all_users);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
