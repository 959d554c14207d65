/* SPDX-License-Identifier: ISC */
/* From a client's words to a question: which pool, who, which endpoint. */
#include "door/route.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/tap.h"

#define TSV "tsv://MS Terminal Services Plugin.1."

static char office[] = "office", lab[] = "lab", gpu[] = "gpu", acme[] = "acme", corp[] = "corp";
static char acme_domain[] = "ACME", corp_domain[] = "corp.example";
static const struct config_door door = {
	.pool = office,
	.pools = {lab, gpu},
	.pool_count = 2,
	.domains = {{acme_domain, acme}, {corp_domain, corp}},
	.domain_count = 2,
};

static struct x224_request request(enum x224_kind kind, const char *text)
{
	struct x224_request r = {.kind = kind};

	snprintf(r.text, sizeof(r.text), "%s", text);
	return r;
}

static const struct {
	enum x224_kind kind;
	const char *text;
	const char *pool;
	enum door_who who;
	const char *name, *endpoint;
	unsigned port;
} first[] = {
	{X224_NOTHING, "", "office", DOOR_NOBODY, "", "", 0},
	{X224_USER, "", "office", DOOR_NOBODY, "", "", 0},
	{X224_USER, "alice", "office", DOOR_HINT, "alice", "", 0},
	{X224_USER, "lab#alice", "lab", DOOR_HINT, "alice", "", 0},
	{X224_USER, "GPU#alice", "gpu", DOOR_HINT, "alice", "", 0},
	{X224_USER, "office#alice", "office", DOOR_HINT, "alice", "", 0},
	{X224_USER, "other#alice", "office", DOOR_HINT, "other#alice", "", 0},
	{X224_USER, "acme\\alice", "acme", DOOR_HINT, "acme\\alice", "", 0},
	{X224_USER, "alice@Corp.Example", "corp", DOOR_HINT, "alice@Corp.Example", "", 0},
	{X224_USER, "alice@corp.example.net", "office", DOOR_HINT, "alice@corp.example.net", "", 0},
	{X224_USER, "lab#ACME\\alice", "lab", DOOR_HINT, "ACME\\alice", "", 0},
	{X224_USER, "a\xff", "office", DOOR_NOBODY, "", "", 0},
	{X224_ROUTE, TSV "lab", "lab", DOOR_NOBODY, "", "", 0},
	{X224_ROUTE, TSV "secret", "office", DOOR_NOBODY, "", "", 0},
	{X224_ROUTE, "Cookie: msts=50331775.15629.0000", "office", DOOR_NOBODY, "", "127.0.0.3",
		3389},
	{X224_ROUTE, "Cookie: msts=abc", "office", DOOR_NOBODY, "", "", 0},
	{X224_ROUTE, "tb1.abc", "office", DOOR_TICKET, "tb1.abc", "", 0},
	{X224_ROUTE, "tb2.abc", "office", DOOR_NOBODY, "", "", 0},
};

START_TEST(the_first_packet)
{
	struct x224_request r = request(first[_i].kind, first[_i].text);
	struct door_question q = {0};

	route_first_packet(&door, &r, &q);
	ck_assert_str_eq(q.pool, first[_i].pool);
	ck_assert_int_eq(q.who, first[_i].who);
	ck_assert_str_eq(q.name, first[_i].name);
	ck_assert_str_eq(q.endpoint, first[_i].endpoint);
	ck_assert_uint_eq(q.endpoint_port, first[_i].port);
	ck_assert(route_has_ticket(&r) == (first[_i].who == DOOR_TICKET));
}
END_TEST

static const struct {
	const char *route, *user, *domain;
	const char *pool, *name; /* name NULL: it is none */
	bool renamed;
} users[] = {
	{"", "alice", "", "office", "alice", false},
	{"", "alice", "CORP", "office", "CORP\\alice", false},
	{"", "alice", "acme", "acme", "acme\\alice", false},
	{"", "alice@corp.example", "ELSE", "corp", "alice@corp.example", false},
	{"", "ACME\\alice", "ELSE", "acme", "ACME\\alice", false},
	{"", "lab#alice", "CORP", "lab", "CORP\\alice", true},
	{"", "lab#alice", "ACME", "lab", "ACME\\alice", true},
	{"", "else#alice", "", "office", "else#alice", false},
	{TSV "gpu", "alice", "ACME", "gpu", "ACME\\alice", false},
	{"", "", "", "office", "", false},
	{"", "", "ACME", "acme", "", false},
	{"", "a\nb", "", "office", NULL, false},
};

START_TEST(the_whole_name)
{
	struct x224_request r =
		request(users[_i].route[0] ? X224_ROUTE : X224_NOTHING, users[_i].route);
	struct door_question q = {0};
	bool renamed = false;
	struct err e = {""};
	int rc = route_user(&door, &r, users[_i].user, users[_i].domain, &q, &renamed, &e);

	if (!users[_i].name) {
		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_str_ne(e.text, "");
		return;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_str_eq(q.pool, users[_i].pool);
	ck_assert_str_eq(q.name, users[_i].name);
	ck_assert_int_eq(q.who, users[_i].name[0] ? DOOR_USER : DOOR_NOBODY);
	ck_assert(renamed == users[_i].renamed);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("route");
	TCase *t = tcase_create("route");

	tcase_add_loop_test(t, the_first_packet, 0, (int)(sizeof(first) / sizeof(first[0])));
	tcase_add_loop_test(t, the_whole_name, 0, (int)(sizeof(users) / sizeof(users[0])));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
