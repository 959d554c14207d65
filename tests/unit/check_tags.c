/* SPDX-License-Identifier: ISC */
/*
 * Tag requests, as a table that reads like the rules: six nodes, and for each request who matches.
 *
 *   n1 untagged   n2 gpu   n3 east   n4 gpu east   n5 GPU   n6 none-of-these
 */
#include <errno.h>

#include "lib/made_fleet.h"
#include "lib/tap.h"
#include "policy/tags.h"

static const char *const node_tags[] = {"", "gpu", "east", "gpu east", "GPU", "none-of-these"};
#define NODES (sizeof(node_tags) / sizeof(node_tags[0]))

static const struct {
	const char *request;
	const char *untagged_none; /* which nodes match, untagged_default = none */
	const char *untagged_any;  /* the same with any; NULL = no difference */
	bool given, required;
} rules[] = {
	/* nothing asked: untagged nodes, or all */
	{NULL, "1", "123456", false, false},
	{"", "1", "123456", false, false},
	{"   ", "1", "123456", false, false},
	{"!", "1", "123456", false, false},
	{" ! ", "1", "123456", false, false},
	{";", "1", "123456", false, false},
	{" , ;!", "1", "123456", false, false},
	/* any of these tags */
	{"gpu", "24", NULL, true, false},
	{"gpu;east", "234", NULL, true, false},
	{"gpu,east", "234", NULL, true, false},
	{" gpu ;\teast ", "234", NULL, true, false},
	{"gpu;;east;", "234", NULL, true, false},
	{"gpu;gpu;gpu", "24", NULL, true, false},
	/* case-sensitive */
	{"GPU", "5", NULL, true, false},
	{"Gpu", "", NULL, true, false},
	/* a tag that no node has */
	{"fpga", "", NULL, true, false},
	{"fpga;gpu", "24", NULL, true, false},
	/* untagged nodes, every node */
	{"none", "1", NULL, true, false},
	{"none;gpu", "124", NULL, true, false},
	{"any", "123456", NULL, true, false},
	{"any;gpu", "123456", NULL, true, false},
	{"none-of-these", "6", NULL, true, false},
	/* never this tag */
	{"-east", "1256", NULL, true, false},
	{"-east;-gpu", "156", NULL, true, false},
	{"gpu;-east", "2", NULL, true, false},
	{"any;-gpu", "1356", NULL, true, false},
	{"none;-gpu", "1", NULL, true, false},
	{"gpu;-gpu", "", NULL, true, false},
	{"-fpga", "123456", NULL, true, false},
	/* required */
	{"gpu!", "24", NULL, true, true},
	{"gpu !", "24", NULL, true, true},
	{"gpu! ", "24", NULL, true, true},
	{"gpu;east!", "234", NULL, true, true},
	{"gpu;!", "24", NULL, true, true},
	{"-east!", "1256", NULL, true, true},
	{"none!", "1", NULL, true, true},
	{"any!", "123456", NULL, true, true},
};

static const struct {
	const char *request;
	const char *says; /* part of the error */
} errors[] = {
	{"gpu!;east", "\"gpu!\": ! may only end"},
	{"!gpu", "! may only end"},
	{"!;gpu", "! may only end"},
	{"gpu!!", "! may only end"},
	{"g!pu", "! may only end"},
	{"any!;gpu", "! may only end"},
	{"-", "\"-\" is no tag"},
	{"--east", "\"--east\" is no tag"},
	{"-none", "\"-none\" is no tag"},
	{"-any", "\"-any\" is no tag"},
	{"- east", "is no tag"},
	{"g pu", "is no tag"},
	{"gpu\neast", "is no tag"},
	{"gp\xc3\xbc", "is no tag"},
	{"gpu/east", "is no tag"},
	{"'; drop table node", "is no tag"},
	/* 65 characters, and far more */
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "is no tag"},
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "longer"},
	{"a1,a2,a3,a4,a5,a6,a7,a8,a9,b1,b2,b3,b4,b5,b6,b7,b8,b9,c1,c2,c3,c4,c5,c6,c7,c8,c9,d1,d2,"
	 "d3,d4,d5,d6",
		"more than 32"},
};

static struct fleet *fleet;
static struct provider *provider;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	provider = made_provider(fleet, 1, "p");
	for (uint32_t i = 0; i < NODES; i++)
		made_node(fleet, i + 1, 1, node_tags[i]);
}

static void teardown(void)
{
	fleet_free(fleet);
}

static void matches(
	const struct tag_request *r, enum untagged_default untagged, char ret[NODES + 1])
{
	struct tag_filter filter;
	char *at = ret;

	tag_filter_compile(r, untagged, &provider->farm, &filter);
	for (uint32_t i = 0; i < NODES; i++) {
		const struct node *n = fleet_node_by_id(fleet, i + 1);

		if (tag_filter_match(&filter, &provider->farm, n->slot))
			*at++ = (char)('1' + i);
	}
	*at = '\0';
}

START_TEST(request_reads_as_the_rules_say)
{
	struct tag_request r;
	struct err e;
	char found[NODES + 1];
	const char *any = rules[_i].untagged_any;

	ck_assert_int_eq(tag_request_parse(rules[_i].request, &r, &e), 0);
	ck_assert_msg(r.given == rules[_i].given, "\"%s\": given", rules[_i].request);
	ck_assert_msg(r.required == rules[_i].required, "\"%s\": required", rules[_i].request);
	matches(&r, UNTAGGED_NONE, found);
	ck_assert_msg(strcmp(found, rules[_i].untagged_none) == 0, "\"%s\" matched %s, not %s",
		rules[_i].request, found, rules[_i].untagged_none);
	matches(&r, UNTAGGED_ANY, found);
	ck_assert_msg(strcmp(found, any ? any : rules[_i].untagged_none) == 0,
		"\"%s\" with untagged_default any matched %s", rules[_i].request, found);
}
END_TEST

START_TEST(bad_request_names_the_item)
{
	struct tag_request r = {.include_count = 7};
	struct err e = {""};

	ck_assert_int_eq(tag_request_parse(errors[_i].request, &r, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, errors[_i].says), "\"%s\": %s", errors[_i].request, e.text);
	ck_assert_uint_eq(r.include_count, 7); /* untouched */
}
END_TEST

START_TEST(as_many_items_as_there_is_room_for)
{
	struct tag_request r;
	char text[LIMIT_TAG_TEXT_SIZE] = "";

	for (int i = 0; i < 2 * TAG_REQUEST_ITEMS; i++) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%st%d;", i % 2 ? "-" : "", i);
	}
	ck_assert_int_eq(tag_request_parse(text, &r, NULL), 0);
	ck_assert_uint_eq(r.include_count, TAG_REQUEST_ITEMS);
	ck_assert_uint_eq(r.exclude_count, TAG_REQUEST_ITEMS);
}
END_TEST

START_TEST(no_request_at_all_is_like_an_empty_one)
{
	char found[NODES + 1];

	matches(NULL, UNTAGGED_NONE, found);
	ck_assert_str_eq(found, "1");
	matches(NULL, UNTAGGED_ANY, found);
	ck_assert_str_eq(found, "123456");
}
END_TEST

START_TEST(allowed_tags_bind_what_is_asked_for)
{
	struct tag_set allowed = {0};
	struct tag_request r;

	ck_assert_int_eq(tag_request_parse("gpu;east;-west", &r, NULL), 0);
	ck_assert_ptr_null(tag_request_denied(&r, &allowed)); /* an empty set allows all */
	ck_assert_int_eq(tag_set_add(&allowed, "gpu", NULL), 0);
	ck_assert_str_eq(tag_request_denied(&r, &allowed), "east");
	ck_assert_int_eq(tag_set_add(&allowed, "east", NULL), 0);
	ck_assert_ptr_null(tag_request_denied(&r, &allowed)); /* exclusions are free */
	ck_assert_int_eq(tag_request_parse("none", &r, NULL), 0);
	ck_assert_ptr_null(tag_request_denied(&r, &allowed));
	ck_assert_int_eq(tag_request_parse(NULL, &r, NULL), 0);
	ck_assert_ptr_null(tag_request_denied(&r, &allowed));
	/* Every node is more than those of the tags allowed. */
	ck_assert_int_eq(tag_request_parse("any;-gpu!", &r, NULL), 0);
	ck_assert_str_eq(tag_request_denied(&r, &allowed), "any");
	ck_assert_int_eq(tag_request_parse("-west", &r, NULL), 0);
	ck_assert_str_eq(tag_request_denied(&r, &allowed), "any");
	ck_assert_int_eq(tag_request_parse("-west", &r, NULL), 0);
	ck_assert_ptr_null(tag_request_denied(&r, &(struct tag_set){0}));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("tags");
	TCase *t = tcase_create("requests");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(
		t, request_reads_as_the_rules_say, 0, (int)(sizeof(rules) / sizeof(rules[0])));
	tcase_add_loop_test(
		t, bad_request_names_the_item, 0, (int)(sizeof(errors) / sizeof(errors[0])));
	tcase_add_test(t, as_many_items_as_there_is_room_for);
	tcase_add_test(t, no_request_at_all_is_like_an_empty_one);
	tcase_add_test(t, allowed_tags_bind_what_is_asked_for);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
