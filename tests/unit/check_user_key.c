/* SPDX-License-Identifier: ISC */
/* wire/user_key: the spellings of one person meet in one key, and no others do. */
#include "wire/user_key.h"

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buf.h"
#include "base/text.h"
#include "lib/tap.h"

static struct user_names *names;

static void setup(void)
{
	struct err e = {""};

	names = user_names_new();
	ck_assert_ptr_nonnull(names);
	ck_assert_int_eq(user_names_add_alias(names, "CORP", "corp.example.com", &e), 0);
	ck_assert_int_eq(user_names_add_alias(names, "Old", "CORP", &e), 0);
}

static void teardown(void)
{
	user_names_free(names);
}

static const char *key_at(const struct user_names *n, const char *input, const char *node)
{
	static char keys[4][LIMIT_USER_KEY_SIZE];
	static unsigned next;
	char *key = keys[next++ % 4];
	struct err e = {""};

	ck_assert_msg(user_key_make(n, input, strlen(input), node, key, &e) == 0, "%s: %s", input,
		e.text);
	return key;
}

static const char *key(const char *input)
{
	return key_at(names, input, NULL);
}

static void refuse(const char *input, size_t len, const char *what)
{
	char ret[LIMIT_USER_KEY_SIZE] = "kept";
	struct err e = {""};

	ck_assert_msg(
		user_key_make(names, input, len, NULL, ret, &e) == -EINVAL, "accepted: %s", input);
	ck_assert_msg(strstr(e.text, what) != NULL, "%s: %s", input, e.text);
	ck_assert_str_eq(ret, "kept");
}

START_TEST(spellings_of_one_person)
{
	static const char *const same[] = {"CORP\\alice", "corp\\ALICE", "Alice@corp",
		"alice@CORP.EXAMPLE.COM", "  Corp.Example.Com\\alice ", "OLD\\alice", "alice@old",
		("\xc2\xa0"
		 "alice@corp\xe3\x80\x80")};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		ck_assert_str_eq(key(same[i]), "corp.example.com\\alice");
	ck_assert_str_eq(key("alice"), "alice");
	ck_assert_str_eq(key("other\\alice"), "other\\alice");
	ck_assert_str_eq(key("ALICE@Other"), "other\\alice");
	ck_assert_str_eq(key("a@b@CORP"), "corp.example.com\\a@b");
	ck_assert_str_eq(key("CORP\\a@b"), "corp.example.com\\a@b");
	ck_assert_str_eq(key("first last"), "first last");
}
END_TEST

START_TEST(the_default_domain_completes)
{
	struct err e = {""};

	ck_assert_int_eq(user_names_set_default(names, "CORP", &e), 0);
	ck_assert_str_eq(key("Alice"), "corp.example.com\\alice");
	ck_assert_str_eq(key("Alice@x"), "x\\alice");
	ck_assert_int_eq(user_names_set_default(names, "", &e), 0);
	ck_assert_str_eq(key("Alice"), "alice");
	ck_assert_str_eq(key_at(NULL, "CORP\\Alice", NULL), "corp\\alice");
	ck_assert_str_eq(key_at(NULL, "Alice", NULL), "alice");
}
END_TEST

START_TEST(local_users_belong_to_their_node)
{
	struct err e = {""};

	ck_assert_int_eq(user_names_set_default(names, "CORP", &e), 0);
	ck_assert_str_eq(key_at(names, ".\\Bob", "TS1"), "\\ts1\\bob");
	ck_assert_str_eq(key_at(names, "ts1\\Bob", "TS1"), "\\ts1\\bob");
	ck_assert_str_eq(key_at(names, "Bob@Ts1", "TS1"), "\\ts1\\bob");
	ck_assert_str_eq(key_at(names, ".\\Bob", "TS2"), "\\ts2\\bob");
	ck_assert_str_eq(key_at(names, "ts1\\Bob", "TS2"), "ts1\\bob");
	ck_assert_str_eq(key_at(names, "Bob", "TS1"), "corp.example.com\\bob");
	ck_assert_str_eq(key_at(NULL, ".\\Bob", "TS1"), "\\ts1\\bob");
	/* No client can write a local key. */
	refuse(".\\Bob", 5, "this computer");
	refuse("\\ts1\\bob", 8, "more than one backslash");
	refuse("\\bob", 4, "no domain");
}
END_TEST

START_TEST(what_is_no_name_is_refused)
{
	static const struct {
		const char *input;
		size_t len;
		const char *what;
	} cases[] = {
		{"", 0, "empty"},
		{"   ", 3, "empty"},
		{"\xc2\xa0", 2, "empty"},
		{"a\nb", 3, "U+000A"},
		{"a\n", 2, "U+000A"},
		{"\ta", 2, "U+0009"},
		{"a\0b", 3, "U+0000"},
		{"a\x7f", 2, "U+007F"},
		{"a\xc2\x85", 3, "U+0085"},
		{"a\xe2\x80\xae"
		 "b",
			5, "U+202E"},
		{"a\xe2\x80\x8f"
		 "b",
			5, "U+200F"},
		{"a\xe2\x81\xa6"
		 "b",
			5, "U+2066"},
		{"a\xd8\x9c"
		 "b",
			4, "U+061C"},
		{"a\xe2\x80\x8b"
		 "b",
			5, "U+200B"},
		{"a\xe2\x80\x8d"
		 "b",
			5, "U+200D"},
		{"a\xef\xbb\xbf", 4, "U+FEFF"},
		{"a\xc2\xad"
		 "b",
			4, "U+00AD"},
		{"a\xcd\x8f"
		 "b",
			4, "U+034F"},
		{"a\xef\xb8\x8f"
		 "b",
			5, "U+FE0F"},
		{"a\xe2\x80\xa8"
		 "b",
			5, "U+2028"},
		{"a\xff", 2, "not valid UTF-8"},
		{"a\xed\xa0\x80", 4, "not valid UTF-8"},
		{"a\xe2\x82", 3, "not valid UTF-8"},
		{"D\\", 2, "no user"},
		{"D\\ ", 2, "no user"},
		{"@d", 2, "no user"},
		{"u@", 2, "no domain"},
		{"\\u", 2, "no domain"},
		{"a\\b\\c", 5, "more than one backslash"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuse(cases[i].input, cases[i].len, cases[i].what);
}
END_TEST

START_TEST(lengths)
{
	char input[LIMIT_USER_CHARS * 4 + 8], display[LIMIT_USER_SIZE];
	char ret[LIMIT_USER_KEY_SIZE];
	size_t len = 0;

	memset(input, 'x', sizeof(input));
	ck_assert_int_eq(user_key_make(names, input, LIMIT_USER_CHARS, NULL, ret, NULL), 0);
	refuse(input, LIMIT_USER_CHARS + 1, "longer than 256");
	/* U+0390 folds to three code points, six bytes from two. */
	for (int i = 0; i < LIMIT_USER_CHARS; i++, len += 2)
		memcpy(input + len, "\xce\x90", 2);
	ck_assert_int_eq(user_key_make(names, input, len, NULL, ret, NULL), 0);
	for (int i = 0; i < LIMIT_USER_CHARS; i++)
		memcpy(input + (size_t)i * 4, "\xf0\x9f\x98\x80", 4);
	ck_assert_int_eq(user_key_make(names, input, LIMIT_USER_CHARS * 4, NULL, ret, NULL), 0);
	ck_assert_int_eq(user_name_display(input, LIMIT_USER_CHARS * 4, display, NULL), 0);
	ck_assert_uint_eq(strlen(display), LIMIT_USER_CHARS * 4);
}
END_TEST

START_TEST(a_display_name_keeps_its_spelling)
{
	char display[LIMIT_USER_SIZE] = "kept";
	struct err e = {""};

	ck_assert_int_eq(user_name_display("  CORP\\\xc3\x89milie D ", 17, display, &e), 0);
	ck_assert_str_eq(display, "CORP\\\xc3\x89milie D");
	ck_assert_int_eq(user_name_display("a\nb", 3, display, &e), -EINVAL);
	ck_assert_int_eq(user_name_display(" ", 1, display, &e), -EINVAL);
	ck_assert_str_eq(display, "CORP\\\xc3\x89milie D");
	ck_assert_int_eq(user_name_check("a b", 3, &e), 0);
	ck_assert_int_eq(user_name_check("a\rb", 3, &e), -EINVAL);
}
END_TEST

START_TEST(unicode_spellings_meet)
{
	static const char *const pairs[][2] = {
		{"\xc3\xa9t\xc3\xa9", "E\xcc\x81TE\xcc\x81"}, /* composed, decomposed */
		{"\xd0\x98\xd0\x92\xd0\x90\xd0\x9d",
			"\xd0\xb8\xd0\xb2\xd0\xb0\xd0\xbd"}, /* Cyrillic */
		{"\xd0\xb9", "\xd0\x98\xcc\x86"},	     /* short i */
		{"stra\xc3\x9f"
		 "e",
			"STRASSE"},
		{"\xcf\x83", "\xcf\x82"},	      /* the two sigmas */
		{"\xe1\xbe\xb3", "\xce\x91\xcd\x85"}, /* iota subscript */
		{"\xe1\xbe\xbc", "\xce\xb1\xce\xb9"},
		{"\xe1\xbe\x84", "\xce\xb1\xcc\x93\xcc\x81\xcd\x85"},
		{"\xe1\xbe\x84", "\xce\xb1\xcd\x85\xcc\x93\xcc\x81"}, /* marks in another order */
		{"\xe2\x84\xaa", "k"},				      /* Kelvin sign */
		{"\xe2\x84\xab", "a\xcc\x8a"},			      /* Angstrom sign */
	};
	static const char *const different[][2] = {
		{"\xc3\xa9", "e"},
		{"\xc4\xb1", "i"}, /* dotless i is a letter of its own */
		{"\xc4\xb0", "i"},
		{"\xd0\xb0", "a"}, /* Cyrillic a is not Latin a */
		{"\xef\xbc\xa1", "a"},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		ck_assert_str_eq(key(pairs[i][0]), key(pairs[i][1]));
	for (size_t i = 0; i < sizeof(different) / sizeof(*different); i++)
		ck_assert_str_ne(key(different[i][0]), key(different[i][1]));
}
END_TEST

START_TEST(no_locale_has_a_say)
{
	static const char *const locales[] = {
		"C", "C.UTF-8", "tr_TR.UTF-8", "az_AZ.UTF-8", "lt_LT.UTF-8"};

	for (size_t i = 0; i < sizeof(locales) / sizeof(*locales); i++) {
		if (!setlocale(LC_ALL, locales[i]))
			continue; /* the others still say something */
		ck_assert_str_eq(key("IRIS@TITI"), "titi\\iris");
		ck_assert_str_eq(key("\xc4\xb0X"), "i\xcc\x87x");
	}
	setlocale(LC_ALL, "C");
}
END_TEST

/* C as UTF-8. */
static size_t encode(utf8proc_int32_t c, char ret[5])
{
	size_t n = (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)ret);

	ret[n] = '\0';
	return n;
}

/* Every code point that may be in a name, alone between two letters: its key is its own key, and
 * its decomposed and its folded spelling have the same one. */
START_TEST(every_code_point_is_stable)
{
	unsigned checked = 0;

	for (utf8proc_int32_t c = 0x80; c < 0x20000; c++) {
		char text[16] = "x", one[LIMIT_USER_KEY_SIZE], two[LIMIT_USER_KEY_SIZE];
		bool uniform =
			(c >= 0x3400 && c < 0xa000) || (c >= 0xac00 && c < 0xd7a4) || c >= 0x11000;
		utf8proc_uint8_t *apart;

		/* Of the great uniform blocks every sixteenth will do; surrogates are none. */
		if ((c >= 0xd800 && c <= 0xdfff) || (uniform && c % 16))
			continue;
		strcpy(text + 1 + encode(c, text + 1), "y");
		if (user_key_make(NULL, text, strlen(text), NULL, one, NULL) < 0)
			continue;
		checked++;
		ck_assert_int_eq(user_key_make(NULL, one, strlen(one), NULL, two, NULL), 0);
		ck_assert_msg(strcmp(one, two) == 0, "U+%04X", (unsigned)c);
		apart = utf8proc_NFD((const utf8proc_uint8_t *)text);
		ck_assert_int_eq(
			user_key_make(NULL, (char *)apart, strlen((char *)apart), NULL, two, NULL),
			0);
		ck_assert_msg(strcmp(one, two) == 0, "U+%04X decomposed", (unsigned)c);
		free(apart);
	}
	ck_assert_uint_gt(checked, 20000);
}
END_TEST

/* The same of random strings of difficult letters; fixed seed. */
START_TEST(random_names_are_stable)
{
	static const utf8proc_int32_t letters[] = {'a', 'I', '@', '\\', ' ', 0xe9, 0x301, 0x345,
		0x3b1, 0x1fb3, 0x1f84, 0x3a3, 0x3c2, 0x130, 0x131, 0xdf, 0x1e9e, 0x1100, 0x1161,
		0x11a8, 0xac00, 0x323, 0x307, 0x1e69, 0xfb01, 0x149, 0x390, 0x439, 0x13a0, 0xab70,
		0x10400, 0x1f600};
	unsigned short seed[3] = {2, 7, 1};
	unsigned made = 0;

	for (int i = 0; i < 8000; i++) {
		char one[LIMIT_USER_KEY_SIZE], two[LIMIT_USER_KEY_SIZE], letter[5];
		struct buf b = BUF_INIT(200);
		utf8proc_uint8_t *other;

		for (long n = 1 + nrand48(seed) % 8; n > 0; n--)
			buf_add(&b, letter,
				encode(letters[(size_t)nrand48(seed) %
					       (sizeof(letters) / sizeof(*letters))],
					letter));
		if (user_key_make(names, buf_str(&b), b.len, NULL, one, NULL) == 0) {
			made++;
			ck_assert_int_eq(
				user_key_make(names, one, strlen(one), NULL, two, NULL), 0);
			ck_assert_str_eq(one, two);
			other = utf8proc_NFC((const utf8proc_uint8_t *)buf_str(&b));
			ck_assert_int_eq(user_key_make(names, (char *)other, strlen((char *)other),
						 NULL, two, NULL),
				0);
			ck_assert_str_eq(one, two);
			free(other);
			other = utf8proc_NFD((const utf8proc_uint8_t *)buf_str(&b));
			ck_assert_int_eq(user_key_make(names, (char *)other, strlen((char *)other),
						 NULL, two, NULL),
				0);
			ck_assert_str_eq(one, two);
			free(other);
			ck_assert(text_utf8_valid(one, strlen(one)));
		}
		buf_deinit(&b);
	}
	ck_assert_uint_gt(made, 2000);
}
END_TEST

START_TEST(aliases_have_one_meaning)
{
	struct err e = {""};

	ck_assert_int_eq(user_names_add_alias(names, "corp", "CORP.example.com", &e), 0);
	ck_assert_int_eq(user_names_add_alias(names, "old", "corp.example.com", &e), 0);
	ck_assert_int_eq(user_names_add_alias(names, "Corp", "other", &e), -EEXIST);
	ck_assert_msg(
		strstr(e.text, "already stands for \"corp.example.com\"") != NULL, "%s", e.text);
	ck_assert_int_eq(user_names_add_alias(names, "same", "SAME", &e), 0);
	ck_assert_int_eq(user_names_add_alias(names, "corp.example.com", "old", &e), -EINVAL);
	ck_assert_int_eq(user_names_add_alias(names, "corp.example.com", "new.example", &e), 0);
	ck_assert_str_eq(key("OLD\\a"), "new.example\\a");
	ck_assert_int_eq(user_names_add_alias(names, "new.example", "old", &e), -EINVAL);
	ck_assert_str_eq(key("same\\a"), "same\\a");
}
END_TEST

START_TEST(what_cannot_be_a_domain)
{
	static const char *const bad[] = {"", " ", ".", "a\\b", "a@b", "a\nb", "\xff"};
	char big[LIMIT_USER_CHARS + 1];
	struct err e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_int_eq(user_names_add_alias(names, bad[i], "x", &e), -EINVAL);
		ck_assert_int_eq(user_names_add_alias(names, "x", bad[i], &e), -EINVAL);
		if (bad[i][0])
			ck_assert_int_eq(user_names_set_default(names, bad[i], &e), -EINVAL);
	}
	memset(big, 'd', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	ck_assert_int_lt(user_names_set_default(names, big, &e), 0);
	ck_assert_str_eq(key("x\\u"), "x\\u");
	user_names_free(NULL);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("user_key");
	TCase *t = tcase_create("user_key");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, spellings_of_one_person);
	tcase_add_test(t, the_default_domain_completes);
	tcase_add_test(t, local_users_belong_to_their_node);
	tcase_add_test(t, what_is_no_name_is_refused);
	tcase_add_test(t, lengths);
	tcase_add_test(t, a_display_name_keeps_its_spelling);
	tcase_add_test(t, unicode_spellings_meet);
	tcase_add_test(t, no_locale_has_a_say);
	tcase_add_test(t, every_code_point_is_stable);
	tcase_add_test(t, random_names_are_stable);
	tcase_add_test(t, aliases_have_one_meaning);
	tcase_add_test(t, what_cannot_be_a_domain);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
