/* SPDX-License-Identifier: ISC */
/* wire/connection: what a client may ask, what each bad request is told, what it gets. */
#include "wire/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"
#include "wire/json.h"

static int parse(const char *text, struct connection_request *ret, struct err *e)
{
	return connection_request_parse(text, strlen(text), ret, e);
}

START_TEST(a_whole_request)
{
	struct connection_request r;
	struct err e = {""};

	ck_assert_msg(
		parse("{\"pool\":\"office\",\"user\":\" CORP\\\\Alice \",\"tags\":\"gpu;-east!\","
		      "\"client\":\"10.0.0.7\",\"node\":\"ts-1\",\"unknown\":[1,{}]}",
			&r, &e) == 0,
		"%s", e.text);
	ck_assert_str_eq(r.pool, "office");
	ck_assert_str_eq(r.user, "CORP\\Alice");
	ck_assert(r.has_tags);
	ck_assert_str_eq(r.tags, "gpu;-east!");
	ck_assert_str_eq(r.client, "10.0.0.7");
	ck_assert_str_eq(r.node, "ts-1");
}
END_TEST

START_TEST(the_least_request)
{
	struct connection_request r;

	memset(&r, 'x', sizeof(r));
	ck_assert_int_eq(
		parse("{\"pool\":\"p\",\"user\":\"u\",\"tags\":null,\"node\":null}", &r, NULL), 0);
	ck_assert(!r.has_tags);
	ck_assert_str_eq(r.tags, "");
	ck_assert_str_eq(r.client, "");
	ck_assert_str_eq(r.node, "");
	ck_assert_int_eq(parse("{\"pool\":\"p\",\"user\":\"u\",\"tags\":\"\"}", &r, NULL), 0);
	ck_assert(r.has_tags);
}
END_TEST

static const struct {
	const char *text, *what;
} bad[] = {
	{"", "the text is empty"},
	{"[]", "not an object"},
	{"{}", "\"pool\" is missing"},
	{"{\"user\":\"u\"}", "\"pool\" is missing"},
	{"{\"pool\":null,\"user\":\"u\"}", "\"pool\" is missing"},
	{"{\"pool\":7,\"user\":\"u\"}", "\"pool\" must be a string"},
	{"{\"pool\":\"\",\"user\":\"u\"}", "\"pool\" must be 1 to 64"},
	{"{\"pool\":\"../etc\",\"user\":\"u\"}", "\"pool\" must be 1 to 64"},
	{"{\"pool\":\"p';DROP TABLE node;--\",\"user\":\"u\"}", "\"pool\" must be 1 to 64"},
	{"{\"pool\":\"a\\nb\",\"user\":\"u\"}", "\"pool\" must be 1 to 64"},
	{"{\"pool\":\"p\"}", "\"user\" is missing"},
	{"{\"pool\":\"p\",\"user\":[]}", "\"user\" must be a string"},
	{"{\"pool\":\"p\",\"user\":\"\"}", "\"user\": the user name is empty"},
	{"{\"pool\":\"p\",\"user\":\"  \"}", "\"user\": the user name is empty"},
	{"{\"pool\":\"p\",\"user\":\"a\\nb\"}",
		"\"user\": the user name holds a control or invisible"},
	{"{\"pool\":\"p\",\"user\":\"a\\u202eb\"}", "(U+202E)"},
	{"{\"pool\":\"p\",\"user\":\"a\\u0000b\"}", "not a valid escape"},
	{"{\"pool\":\"p\",\"user\":\"\xff\"}", "member \"user\": invalid UTF-8"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"tags\":[\"gpu\"]}", "\"tags\" must be a string"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"tags\":\"a\\tb\"}",
		"\"tags\" holds a control character"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"client\":\"a\\r\\nb\"}",
		"\"client\" holds a control character"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"node\":\"-x\"}", "\"node\" must be 1 to 64"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"node\":\"\"}", "\"node\" must be 1 to 64"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"user\":\"v\"}", "duplicate key"},
	{"{\"pool\":\"p\",\"user\":\"u\",\"x\":[[[[[[[[1]]]]]]]]}", "nested too deeply"},
};

START_TEST(each_bad_request_is_told_why)
{
	struct connection_request r = {.pool = "kept"};
	struct err e = {""};

	ck_assert_msg(parse(bad[_i].text, &r, &e) == -EINVAL, "accepted: %s", bad[_i].text);
	ck_assert_msg(strstr(e.text, bad[_i].what) != NULL, "%s: %s", bad[_i].text, e.text);
	ck_assert_str_eq(r.pool, "kept");
}
END_TEST

static void one_long_member(const char *member, size_t len, int expected, const char *what)
{
	char *text = malloc(len + 200), *value = malloc(len + 1);
	struct connection_request r;
	struct err e = {""};

	memset(value, 'n', len);
	value[len] = '\0';
	sprintf(text, "{\"%s\":\"%s\"%s%s}", member, value,
		strcmp(member, "pool") ? ",\"pool\":\"p\"" : "",
		strcmp(member, "user") ? ",\"user\":\"u\"" : "");
	ck_assert_msg(parse(text, &r, &e) == expected, "%s %zu: %s", member, len, e.text);
	ck_assert_msg(strstr(e.text, what) != NULL, "%s", e.text);
	free(text);
	free(value);
}

START_TEST(lengths)
{
	one_long_member("pool", 64, 0, "");
	one_long_member("pool", 65, -EINVAL, "\"pool\" is longer than 64 bytes");
	one_long_member("user", 256, 0, "");
	one_long_member(
		"user", 300, -EINVAL, "\"user\": the user name is longer than 256 characters");
	one_long_member("user", 900000, -EINVAL, "longer than 256 characters");
	one_long_member("tags", 1024, 0, "");
	one_long_member("tags", 1025, -EINVAL, "\"tags\" is longer than 1024 bytes");
	one_long_member("client", 256, 0, "");
	one_long_member("client", 257, -EINVAL, "\"client\" is longer than 256 bytes");
	one_long_member("node", 65, -EINVAL, "\"node\" is longer than 64 bytes");
}
END_TEST

/* LEN 1..MAX characters of ALPHABET. */
static void random_text(unsigned short seed[3], const char *alphabet, size_t max, char *ret)
{
	size_t n = 1 + (size_t)nrand48(seed) % max, letters = strlen(alphabet);

	for (size_t i = 0; i < n; i++)
		ret[i] = alphabet[(size_t)nrand48(seed) % letters];
	ret[n] = '\0';
}

/* What is written is read back; fixed seed. */
START_TEST(requests_round_trip)
{
	static const char name[] = "abcXYZ019_", any[] = "ab\"\\ /{}[];,-!'%x";
	unsigned short seed[3] = {9, 9, 9};

	for (int i = 0; i < 3000; i++) {
		struct connection_request r = {0}, back;
		struct buf b = BUF_INIT(20000);
		struct err e = {""};

		random_text(seed, name, 64, r.pool);
		r.user[0] = 'u'; /* a name neither begins nor ends with space */
		random_text(seed, any, 200, r.user + 1);
		strcat(r.user, "\xd0\xb8");
		r.has_tags = nrand48(seed) % 2;
		if (r.has_tags)
			random_text(seed, any, 1024, r.tags);
		if (nrand48(seed) % 2)
			random_text(seed, any, 256, r.client);
		if (nrand48(seed) % 2)
			random_text(seed, name, 64, r.node);
		connection_request_format(&r, &b);
		ck_assert_msg(parse(buf_str(&b), &back, &e) == 0, "%s: %s", buf_str(&b), e.text);
		ck_assert_str_eq(back.pool, r.pool);
		ck_assert_str_eq(back.user, r.user);
		ck_assert(back.has_tags == r.has_tags);
		ck_assert_str_eq(back.tags, r.tags);
		ck_assert_str_eq(back.client, r.client);
		ck_assert_str_eq(back.node, r.node);
		buf_deinit(&b);
	}
}
END_TEST

START_TEST(answers)
{
	static const char *const tags[] = {"gpu", "east"};
	struct connection_answer a = {.node = "ts-1",
		.address = "10.0.0.1",
		.fqdn = "ts-1.example.com",
		.port = 3389,
		.reason = "session",
		.has_load_index = true,
		.load_index = 10000,
		.tags = tags,
		.tag_count = 2,
		.session_id = "c7",
		.session_active = true};
	struct buf b = BUF_INIT(1000);

	connection_answer_format(&a, &b);
	ck_assert_str_eq(buf_str(&b),
		"{\"node\":\"ts-1\",\"address\":\"10.0.0.1\",\"fqdn\":\"ts-1.example.com\","
		"\"port\":3389,\"reason\":\"session\",\"load_index\":10000,"
		"\"tags\":[\"gpu\",\"east\"],\"session\":{\"id\":\"c7\",\"state\":\"active\"}}");
	ck_assert_int_eq(json_scan(buf_str(&b), b.len, NULL), 0);
	buf_reset(&b);
	a = (struct connection_answer){
		.node = "a", .address = "::1", .fqdn = "", .port = 1, .reason = "round_robin"};
	connection_answer_format(&a, &b);
	ck_assert_str_eq(buf_str(&b), "{\"node\":\"a\",\"address\":\"::1\",\"port\":1,\"reason\":"
				      "\"round_robin\",\"tags\":[]}");
	buf_deinit(&b);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("connection");
	TCase *t = tcase_create("connection");

	tcase_add_test(t, a_whole_request);
	tcase_add_test(t, the_least_request);
	tcase_add_loop_test(t, each_bad_request_is_told_why, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(t, lengths);
	tcase_add_test(t, requests_round_trip);
	tcase_add_test(t, answers);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
