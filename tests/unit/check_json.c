/* SPDX-License-Identifier: ISC */
/* wire/json: what is refused and where, agreement with json-c, typed members, writing. */
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"
#include "wire/limits.h"

static const char *const good[] = {
	"{}",
	"[]",
	" [ ] ",
	"\t{ }\r\n",
	"null",
	"true",
	"false",
	"0",
	"-0",
	"-1",
	"12",
	"1.5",
	"-0.0",
	"1e5",
	"1E+5",
	"0e0",
	"1.25e-3",
	"\"\"",
	"\"a\"",
	"[1,2,3]",
	"[[[[[[[[]]]]]]]]",
	"[[[[[[[[1]]]]]]]]",
	"{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":2}}",
	"[{\"a\":1},{\"a\":1}]",
	"{\"\":1}",
	"{\"a\":1,\"A\":2,\"a \":3}",
	"9223372036854775807",
	"-9223372036854775808",
	"18446744073709551615",
	"1.7976931348623157e308",
	"1e-400",
	"0.1e309",
	"123456789012345678901234567890.5",
	"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
	"\"\\u0001\\u00e9\\u20AC\"",
	"\"\\ud83d\\ude00\"",
	"\"\xd0\xb8\xd0\xbc\xd1\x8f\"",
	"\"\xf4\x8f\xbf\xbf\"",
	"\"\x7f\"",
	"{\"a\" : [ 1 , { } , [ ] ] }",
};

START_TEST(takes_what_the_standard_allows)
{
	struct json_object *o = NULL;
	struct err e = {""};
	size_t len = strlen(good[_i]);
	char *exact = malloc(len); /* without a NUL: reading behind the end shows under valgrind */

	memcpy(exact, good[_i], len);
	ck_assert_msg(json_scan(exact, len, &e) == 0, "%s: %s", good[_i], e.text);
	ck_assert_msg(json_parse(exact, len, &o, &e) == 0, "%s: %s", good[_i], e.text);
	json_object_put(o);
	free(exact);
}
END_TEST

static const struct {
	const char *text;
	int at;
	const char *what;
} bad[] = {
	{"", 0, "the text is empty"},
	{" \n", 2, "the text is empty"},
	{"{", 1, "a key is missing"},
	{"[", 1, "a value is missing"},
	{"]", 0, "not a JSON value"},
	{"{} {}", 3, "something follows"},
	{"1 2", 2, "something follows"},
	{"{}x", 2, "something follows"},
	{"[1,]", 3, "not a JSON value"},
	{"[,1]", 1, "not a JSON value"},
	{"[1 2]", 3, "',' or ']' is missing"},
	{"[1}", 2, "',' or ']' is missing"},
	{"{\"a\":1]", 6, "',' or '}' is missing"},
	{"{\"a\":1,}", 7, "a key is missing"},
	{"{\"a\"}", 4, "a colon is missing"},
	{"{\"a\" 1}", 5, "a colon is missing"},
	{"{a:1}", 1, "a key is missing"},
	{"{'a':1}", 1, "a key is missing"},
	{"{1:1}", 1, "a key is missing"},
	{"{\"a\":}", 5, "not a JSON value"},
	{"{\"a\":", 5, "a value is missing"},
	{"'a'", 0, "not a JSON value"},
	{"NaN", 0, "not a JSON value"},
	{"{\"busy_percent\":NaN}", 16, "member \"busy_percent\": not a JSON value"},
	{"{\"busy_percent\":1e999}", 21, "member \"busy_percent\": a number is not finite"},
	{"Infinity", 0, "not a JSON value"},
	{"-Infinity", 1, "not a JSON value"},
	{"-", 1, "not a JSON value"},
	{"+1", 0, "not a JSON value"},
	{"01", 1, "something follows"},
	{"-01", 2, "something follows"},
	{"1.", 2, "digits are missing"},
	{".5", 0, "not a JSON value"},
	{"1.e5", 2, "digits are missing"},
	{"1e", 2, "digits are missing"},
	{"1e+", 3, "digits are missing"},
	{"0x10", 1, "something follows"},
	{"1e999", 5, "not finite"},
	{"-1e309", 6, "not finite"},
	{"1.8e308", 7, "not finite"},
	{"1e99999999999999999999", 22, "not finite"},
	{"18446744073709551616", 20, "beyond 64 bits"},
	{"-9223372036854775809", 20, "beyond 64 bits"},
	{"99999999999999999999999", 23, "beyond 64 bits"},
	{"tru", 0, "not a JSON value"},
	{"True", 0, "not a JSON value"},
	{"nulll", 4, "something follows"},
	{"\"a", 2, "ends inside a string"},
	{"\"a\nb\"", 2, "control character"},
	{"\"a\tb\"", 2, "control character"},
	{"\"\x1f\"", 1, "control character"},
	{"\"\\x41\"", 1, "not a valid escape"},
	{"\"\\", 1, "not a valid escape"},
	{"\"\\u12\"", 1, "not a valid escape"},
	{"\"\\u12g4\"", 1, "not a valid escape"},
	{"\"\\u0000\"", 1, "not a valid escape"},
	{"\"\\ud800\"", 1, "not a valid escape"},
	{"\"\\udc00\"", 1, "not a valid escape"},
	{"\"\\ud800\\u0041\"", 1, "not a valid escape"},
	{"\"\\ud800x\"", 1, "not a valid escape"},
	{"\"\xff\"", 1, "invalid UTF-8"},
	{"\"\xc0\xaf\"", 1, "invalid UTF-8"},
	{"\"ab\xed\xa0\x80\"", 3, "invalid UTF-8"},
	{"\"\xf5\x80\x80\x80\"", 1, "invalid UTF-8"},
	{"\"\xe2\x82\"", 1, "invalid UTF-8"},
	{"\xef\xbb\xbf{}", 0, "not a JSON value"},
	{"/* c */ 1", 0, "not a JSON value"},
	{"[1 // c\n]", 3, "is missing"},
	{"[[[[[[[[[]]]]]]]]]", 8, "nested too deeply"},
	{"{\"a\":1,\"a\":2}", 8, "duplicate key"},
	{"{\"a\":1,\"b\":{},\"a\":2}", 15, "duplicate key"},
	{"{\"a\":1,\"a\":2,\"b\":3}", 8, "member \"a\": duplicate key"},
	{"{\"a\":1,\"\\u0061\":2}", 8, "duplicate key"},
	{"{\"\\u0061bcdefghijk\":1,\"abcdefghijk\":2}", 23, "duplicate key"},
	{"{\"\\u00e9tagere-longer\":1,\"\xc3\xa9tagere-longer\":2}", 26, "duplicate key"},
	{"{\"x\":[{\"longer-than-8\":1,\"y\":2,\"longer-than-8\":3}]}", 32, "duplicate key"},
	{"{\"\":1,\"\":2}", 7, "duplicate key"},
};

START_TEST(refuses_everything_else_with_its_place)
{
	struct json_object *o = NULL;
	struct err e = {""};
	char place[64];
	size_t len = strlen(bad[_i].text);
	char *exact = malloc(len ? len : 1);

	memcpy(exact, bad[_i].text, len);
	ck_assert_msg(json_parse(exact, len, &o, &e) == -EINVAL, "accepted: %s", bad[_i].text);
	free(exact);
	ck_assert_ptr_null(o);
	snprintf(place, sizeof(place), "invalid JSON at byte %d", bad[_i].at);
	ck_assert_msg(strncmp(e.text, place, strlen(place)) == 0, "%s: %s", bad[_i].text, e.text);
	ck_assert_msg(strstr(e.text, bad[_i].what) != NULL, "%s: %s", bad[_i].text, e.text);
}
END_TEST

START_TEST(a_nul_byte_is_no_space)
{
	ck_assert_int_eq(json_scan("{}\0", 3, NULL), -EINVAL);
	ck_assert_int_eq(json_scan("[\0]", 3, NULL), -EINVAL);
	ck_assert_int_eq(json_scan("\"\\\0\"", 4, NULL), -EINVAL);
}
END_TEST

/* An array of COUNT times ITEM. */
static char *array_of(const char *item, size_t count)
{
	struct buf b = BUF_INIT(16 << 20);

	buf_addc(&b, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_addc(&b, ',');
		buf_adds(&b, item);
	}
	buf_addc(&b, ']');
	return buf_steal(&b);
}

START_TEST(values_are_counted)
{
	char *text = array_of("{}", LIMIT_JSON_VALUES - 1);
	struct err e = {""};

	ck_assert_int_eq(json_scan(text, strlen(text), &e), 0);
	free(text);
	text = array_of("{}", LIMIT_JSON_VALUES);
	ck_assert_int_eq(json_scan(text, strlen(text), &e), -EINVAL);
	ck_assert_msg(strstr(e.text, "too many values") != NULL, "%s", e.text);
	free(text);
}
END_TEST

/* Objects of every size around the change from pairs to sorting and from the inline table to the
 * heap. */
START_TEST(a_repeated_key_is_found_among_many)
{
	for (int n = 2; n < 300; n += n < 80 ? 1 : 37) {
		for (int twice = 0; twice < 2; twice++) {
			struct buf b = BUF_INIT(1 << 20);

			buf_adds(&b, "{\"outer\":1,\"o\":{");
			for (int i = 0; i < n; i++)
				buf_addf(&b, "%s\"%s%d\":{\"k\":1}", i ? "," : "",
					i % 2 ? "k" : "long-key-name-",
					twice && i == n - 1 ? (n - 1) % 2 : i);
			buf_adds(&b, "},\"last\":2}");
			/* For n = 2 the key that was to be repeated is the last itself. */
			ck_assert_msg(
				(json_scan(buf_str(&b), b.len, NULL) == 0) == (!twice || n == 2),
				"%d: %s", n, buf_str(&b));
			buf_deinit(&b);
		}
	}
}
END_TEST

/* The worst that fits into the limits: all keys of one object, alike but for their ends. */
START_TEST(many_alike_keys_are_bearable)
{
	struct buf b = BUF_INIT(8 << 20);

	buf_addc(&b, '{');
	for (int i = 0; i < LIMIT_JSON_VALUES - 1; i++)
		buf_addf(&b, "%s\"aaaaaaaaaaaaaaaaaaaa%05d\":0", i ? "," : "", i);
	buf_addc(&b, '}');
	ck_assert_int_eq(json_scan(buf_str(&b), b.len, NULL), 0);
	buf_deinit(&b);
}
END_TEST

START_TEST(a_long_number_is_refused)
{
	char text[200];

	memset(text, '1', sizeof(text));
	text[1] = '.';
	ck_assert_int_eq(json_scan(text, 128, NULL), 0);
	ck_assert_int_eq(json_scan(text, 129, NULL), -EINVAL);
}
END_TEST

/* Whatever the scan lets through, json-c builds; mutations of good texts with a fixed seed. */
START_TEST(agrees_with_json_c)
{
	static const char base[] =
		"{\"node\":\"ts-1\",\"cpu\":{\"busy\":37.25,\"n\":8},\"s\":[{\"id\":\"c1\","
		"\"u\":\"\xd0\xb8\\u00e9\\ud83d\\ude00\"},null,true,-1.5e-3]}";
	static const char alphabet[] = "{}[]\",:\\u0019eE+-.tfn \xd0\xff";
	unsigned short seed[3] = {7, 7, 7};
	unsigned accepted = 0;

	for (int i = 0; i < 60000; i++) {
		char text[sizeof(base)];
		size_t len = sizeof(base) - 1;
		struct json_object *o = NULL;
		struct err e = {""};

		memcpy(text, base, sizeof(base));
		for (long n = nrand48(seed) % 3; n >= 0; n--)
			text[(size_t)nrand48(seed) % len] =
				alphabet[(size_t)nrand48(seed) % (sizeof(alphabet) - 1)];
		if (json_scan(text, len, NULL) < 0)
			continue;
		accepted++;
		ck_assert_msg(json_parse(text, len, &o, &e) == 0, "%s: %s", e.text, text);
		json_object_put(o);
	}
	ck_assert_uint_gt(accepted, 1000);
}
END_TEST

static struct json_object *object(const char *text)
{
	struct json_object *o = NULL;
	struct err e = {""};

	ck_assert_msg(json_parse_object(text, strlen(text), &o, &e) == 0, "%s", e.text);
	return o;
}

START_TEST(only_objects_are_objects)
{
	static const char *const others[] = {"[]", "1", "null", "\"{}\"", "true"};
	struct json_object *o = NULL;
	struct err e;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ck_assert_int_eq(json_parse_object(others[i], strlen(others[i]), &o, &e), -EINVAL);
	ck_assert_ptr_null(o);
}
END_TEST

START_TEST(members_of_each_type)
{
	AUTO_JSON struct json_object *o =
		object("{\"s\":\"text\",\"b\":true,\"u\":18446744073709551615,\"n\":2.5,\"i\":7,"
		       "\"a\":[1,2],\"o\":{}}");
	struct json_object *array = NULL, *inner = NULL;
	const char *s = NULL;
	bool b = false, found = false;
	uint64_t u = 0;
	double n = 0;

	ck_assert_int_eq(json_get_string(o, "s", 4, &s, &found, NULL), 0);
	ck_assert(found);
	ck_assert_str_eq(s, "text");
	ck_assert_int_eq(json_get_bool(o, "b", &b, NULL, NULL), 0);
	ck_assert(b);
	ck_assert_int_eq(json_get_u64(o, "u", 0, UINT64_MAX, &u, NULL, NULL), 0);
	ck_assert(u == UINT64_MAX);
	ck_assert_int_eq(json_get_number(o, "n", 0, 2.5, &n, NULL, NULL), 0);
	ck_assert(n == 2.5);
	ck_assert_int_eq(json_get_number(o, "i", 7, 7, &n, NULL, NULL), 0);
	ck_assert(n == 7);
	ck_assert_int_eq(json_get_array(o, "a", 2, &array, NULL, NULL), 0);
	ck_assert_ptr_nonnull(array);
	ck_assert_int_eq(json_get_object(o, "o", &inner, NULL, NULL), 0);
	ck_assert_ptr_nonnull(inner);
}
END_TEST

START_TEST(absent_and_null_members_change_nothing)
{
	AUTO_JSON struct json_object *o = object("{\"null\":null}");
	static const char *const keys[] = {"null", "absent"};

	for (int i = 0; i < 2; i++) {
		struct json_object *array = NULL;
		const char *s = "kept";
		bool b = true, found = true;
		uint64_t u = 5;
		double n = 6;

		ck_assert_int_eq(json_get_string(o, keys[i], 9, &s, &found, NULL), 0);
		ck_assert(!found);
		ck_assert_str_eq(s, "kept");
		ck_assert_int_eq(json_get_bool(o, keys[i], &b, &found, NULL), 0);
		ck_assert(b && !found);
		ck_assert_int_eq(json_get_u64(o, keys[i], 0, 1, &u, &found, NULL), 0);
		ck_assert(u == 5 && !found);
		ck_assert_int_eq(json_get_number(o, keys[i], 0, 1, &n, &found, NULL), 0);
		ck_assert(n == 6 && !found);
		ck_assert_int_eq(json_get_array(o, keys[i], 1, &array, &found, NULL), 0);
		ck_assert(!array && !found);
		ck_assert_int_eq(json_get_object(o, keys[i], &array, &found, NULL), 0);
		ck_assert(!array && !found);
	}
}
END_TEST

START_TEST(wrong_types_and_ranges_name_the_member)
{
	AUTO_JSON struct json_object *o =
		object("{\"s\":\"text\",\"neg\":-1,\"f\":1.5,\"big\":7,\"a\":[1,2],"
		       "\"huge\":18446744073709551615,\"b\":1}");
	struct json_object *x = NULL;
	struct err e = {""};
	const char *s = NULL;
	bool b = false;
	uint64_t u = 5;
	double n = 5;

	ck_assert_int_eq(json_get_string(o, "big", 9, &s, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"big\" must be a string");
	ck_assert_int_eq(json_get_string(o, "s", 3, &s, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"s\" is longer than 3 bytes");
	ck_assert_int_eq(json_get_bool(o, "b", &b, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"b\" must be true or false");
	ck_assert_int_eq(json_get_u64(o, "neg", 0, 9, &u, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"neg\" must be within 0 and 9");
	ck_assert_int_eq(json_get_u64(o, "f", 0, 9, &u, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"f\" must be an integer");
	ck_assert_int_eq(json_get_u64(o, "s", 0, 9, &u, NULL, &e), -EINVAL);
	ck_assert_int_eq(json_get_u64(o, "big", 0, 6, &u, NULL, &e), -EINVAL);
	ck_assert_int_eq(json_get_u64(o, "big", 8, 9, &u, NULL, &e), -EINVAL);
	ck_assert_int_eq(json_get_u64(o, "huge", 0, INT64_MAX, &u, NULL, &e), -EINVAL);
	ck_assert_int_eq(json_get_number(o, "neg", 0, 100, &n, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"neg\" must be within 0 and 100");
	ck_assert_int_eq(json_get_number(o, "s", 0, 100, &n, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"s\" must be a number");
	ck_assert_int_eq(json_get_array(o, "a", 1, &x, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"a\" has more than 1 items");
	ck_assert_int_eq(json_get_array(o, "s", 1, &x, NULL, &e), -EINVAL);
	ck_assert_int_eq(json_get_object(o, "a", &x, NULL, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"a\" must be an object");
	ck_assert(s == NULL && x == NULL && !b && u == 5 && n == 5);
}
END_TEST

START_TEST(writes_members)
{
	struct buf b = BUF_INIT(1000);

	buf_addc(&b, '{');
	json_add_member_string(&b, "s", "a\"b\\c\nd\x01\x7f\xe2\x82\xac");
	json_add_member_string(&b, "null", NULL);
	json_add_member_u64(&b, "u", UINT64_MAX);
	json_add_member_bool(&b, "t", true);
	json_add_member_bool(&b, "f", false);
	json_add_key(&b, "a");
	buf_adds(&b, "[]}");
	ck_assert_str_eq(buf_str(&b),
		"{\"s\":\"a\\\"b\\\\c\\nd\\u0001\x7f\xe2\x82\xac\",\"null\":null,"
		"\"u\":18446744073709551615,\"t\":true,\"f\":false,\"a\":[]}");
	ck_assert_int_eq(json_scan(buf_str(&b), b.len, NULL), 0);
	buf_deinit(&b);
}
END_TEST

START_TEST(broken_utf8_is_written_as_a_replacement)
{
	struct buf b = BUF_INIT(1000);

	json_add_string(&b, "a\xff\xc0z\xe2\x82");
	ck_assert_str_eq(buf_str(&b), "\"a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"");
	buf_deinit(&b);
}
END_TEST

/* Any string that is well-formed comes back as it went in; fixed seed. */
START_TEST(strings_round_trip)
{
	unsigned short seed[3] = {3, 1, 4};

	for (int i = 0; i < 5000; i++) {
		struct buf in = BUF_INIT(1000), text = BUF_INIT(10000);
		struct json_object *o = NULL;
		struct err e = {""};

		for (long n = nrand48(seed) % 60; n > 0; n--) {
			static const char *const many[] = {
				"\xc2\x80", "\xd0\xb8", "\xe2\x80\xa8", "\xf0\x9f\x98\x80"};

			if (nrand48(seed) % 4)
				buf_addc(&in, (char)(1 + nrand48(seed) % 127));
			else
				buf_adds(&in, many[nrand48(seed) % 4]);
		}
		json_add_string(&text, buf_str(&in));
		ck_assert_msg(json_parse(buf_str(&text), text.len, &o, &e) == 0, "%s", e.text);
		ck_assert_str_eq(json_object_get_string(o), buf_str(&in));
		json_object_put(o);
		buf_deinit(&in);
		buf_deinit(&text);
	}
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("json");
	TCase *t = tcase_create("json");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, takes_what_the_standard_allows, 0, sizeof(good) / sizeof(*good));
	tcase_add_loop_test(
		t, refuses_everything_else_with_its_place, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(t, a_nul_byte_is_no_space);
	tcase_add_test(t, values_are_counted);
	tcase_add_test(t, a_repeated_key_is_found_among_many);
	tcase_add_test(t, many_alike_keys_are_bearable);
	tcase_add_test(t, a_long_number_is_refused);
	tcase_add_test(t, agrees_with_json_c);
	tcase_add_test(t, only_objects_are_objects);
	tcase_add_test(t, members_of_each_type);
	tcase_add_test(t, absent_and_null_members_change_nothing);
	tcase_add_test(t, wrong_types_and_ranges_name_the_member);
	tcase_add_test(t, writes_members);
	tcase_add_test(t, broken_utf8_is_written_as_a_replacement);
	tcase_add_test(t, strings_round_trip);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
