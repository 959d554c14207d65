/* SPDX-License-Identifier: ISC */
/* wire/names: what may be a name, a tag, an address. */
#include "wire/names.h"

#include <stdio.h>
#include <string.h>

#include "lib/tap.h"
#include "wire/limits.h"

START_TEST(names)
{
	static const char *const good[] = {
		"a", "Z", "0", "_", "ts-01.example.com", "A_b-c.d", "a-", "a."};
	static const char *const bad[] = {"", "-a", ".a", ".", "..", "../etc", "a/b", "a b", "a\n",
		" a", "a;b", "a,b", "a\\b", "a'b", "a\"b", "a%b", "\xd0\xb8", "a\x7f", "a:b",
		"a@b"};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(name_valid(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(!name_valid(bad[i]), "%s", bad[i]);
	ck_assert(!name_valid(NULL));
}
END_TEST

START_TEST(tags)
{
	static const char *const good[] = {"gpu", "None", "ANY", "any.", "nonesuch", ".a", "2"};
	static const char *const bad[] = {
		"", "-east", "none", "any", "a;b", "a,b", "gpu!", " gpu", "a b"};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(tag_name_valid(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(!tag_name_valid(bad[i]), "%s", bad[i]);
	ck_assert(!tag_name_valid(NULL));
}
END_TEST

/* Every byte alone and behind a letter. */
START_TEST(every_byte)
{
	for (int c = 1; c < 256; c++) {
		bool alnum =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		char alone[] = {(char)c, '\0'}, second[] = {'a', (char)c, '\0'};

		ck_assert(name_valid(alone) == (alnum || c == '_'));
		ck_assert(tag_name_valid(alone) == (alnum || c == '_' || c == '.'));
		ck_assert(name_valid(second) == (alnum || c == '_' || c == '.' || c == '-'));
	}
}
END_TEST

START_TEST(lengths)
{
	char name[LIMIT_NAME_SIZE + 1];

	memset(name, 'x', sizeof(name));
	name[LIMIT_NAME_SIZE - 1] = '\0';
	ck_assert(name_valid(name));
	ck_assert(tag_name_valid(name));
	name[LIMIT_NAME_SIZE - 1] = 'x';
	name[LIMIT_NAME_SIZE] = '\0';
	ck_assert(!name_valid(name));
	ck_assert(!tag_name_valid(name));
}
END_TEST

START_TEST(addresses)
{
	static const char *const good[] = {"10.0.0.1", "255.255.255.255", "::1", "2001:db8::7",
		"::ffff:10.0.0.1", "localhost", "ts-01.example.com", "3com.example", "a", "x1",
		"1.2.3.4a", "xn--e1afmkfd.xn--p1ai"};
	static const char *const bad[] = {"", "10.0.0", "10.0.0.256", "1.2.3.4.5", "010.0.0.1.",
		"12345", "[::1]", "fe80::1%eth0", ":::", "1::2::3", "-a.example", "a-.example",
		"a..b", ".a", "a.", "a b", "a_b", "a/b", "a:3389", "a\n", "host;rm", "\xd0\xb8.ru",
		"10.0.0.1 "};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(address_valid(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(!address_valid(bad[i]), "%s", bad[i]);
	ck_assert(!address_valid(NULL));
}
END_TEST

START_TEST(host_name_lengths)
{
	char label[64 + 1], host[300] = "";

	memset(label, 'x', 64);
	label[64] = '\0';
	ck_assert(!address_valid(label));
	label[63] = '\0';
	ck_assert(address_valid(label));
	snprintf(host, sizeof(host), "%s.%s.%s.%.61s", label, label, label, label);
	ck_assert_uint_eq(strlen(host), 253);
	ck_assert(address_valid(host));
	snprintf(host, sizeof(host), "%s.%s.%s.%.62s", label, label, label, label);
	ck_assert(!address_valid(host));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("names");
	TCase *t = tcase_create("names");

	tcase_add_test(t, names);
	tcase_add_test(t, tags);
	tcase_add_test(t, every_byte);
	tcase_add_test(t, lengths);
	tcase_add_test(t, addresses);
	tcase_add_test(t, host_name_lengths);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
