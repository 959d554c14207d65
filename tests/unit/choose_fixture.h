/* SPDX-License-Identifier: ISC */
/* One pool of one provider, and a question about it: what the tests of choose() begin with. */
#pragma once

#include "lib/made_fleet.h"
#include "policy/choose.h"

__attribute__((unused)) static struct fleet *fleet;
__attribute__((unused)) static struct provider *provider;
__attribute__((unused)) static struct pool *pool;
__attribute__((unused)) static struct choose_input in;
__attribute__((unused)) static struct tag_request asked, forced;
__attribute__((unused)) static struct choose_probe probes[4];
__attribute__((unused)) static struct choice c;

__attribute__((unused)) static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	provider = made_provider(fleet, 1, "p");
	pool = made_pool(fleet, 1, "pool", 1);
	memset(&asked, 0, sizeof(asked));
	memset(&forced, 0, sizeof(forced));
	in = (struct choose_input){
		.pool = pool,
		.tags = &asked,
		.forced = &forced,
		.probes = probes,
		.now_ms = MADE_NOW_MS,
		.stale_after_ms = MADE_STALE_MS,
		.random = 12345,
	};
}

__attribute__((unused)) static void teardown(void)
{
	fleet_free(fleet);
}

__attribute__((unused)) static struct node *node(uint32_t id, const char *tags, uint32_t index)
{
	struct node *n = made_node(fleet, id, 1, tags);

	made_heard(n, index);
	return n;
}

__attribute__((unused)) static struct session *session(
	struct node *n, const char *id, bool active, int64_t first_seen)
{
	ck_assert_int_eq(
		fleet_load_session(fleet, n, id, "alice", NULL, "", active, 1, first_seen), 0);
	in.sessions = fleet_user_sessions(fleet, "alice");
	return fleet_find_session(n, id);
}

__attribute__((unused)) static void ask(const char *tags)
{
	ck_assert_int_eq(tag_request_parse(tags, &asked, NULL), 0);
}

__attribute__((unused)) static void force(const char *tags)
{
	ck_assert_int_eq(tag_request_parse(tags, &forced, NULL), 0);
}

__attribute__((unused)) static void silence(struct node *n)
{
	ck_assert(node_check_silence(n, 100, MADE_NOW_MS));
}

__attribute__((unused)) static const char *reason(void)
{
	choose(&in, &c);
	ck_assert((c.node == NULL) == choice_is_refusal(c.reason));
	return choice_reason_name(c.reason);
}

#define goes_to(n, why)                          \
	do {                                     \
		ck_assert_str_eq(reason(), why); \
		ck_assert_ptr_eq(c.node, n);     \
	} while (0)

#define refused(why)                             \
	do {                                     \
		ck_assert_str_eq(reason(), why); \
		ck_assert_ptr_null(c.node);      \
	} while (0)

__attribute__((unused)) static struct node_stored stored(uint32_t index)
{
	return (struct node_stored){
		.voice = NODE_HEARD,
		.boot_id = "b0",
		.seq = 5,
		.accepting = true,
		.has_index = true,
		.index = index,
	};
}
