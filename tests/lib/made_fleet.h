/* SPDX-License-Identifier: ISC */
/* Small fleets for the tests of model/ and policy/: each call makes one thing or fails the test. */
#pragma once

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/fleet.h"

#define MADE_NOW_MS INT64_C(1000000)
#define MADE_STALE_MS INT64_C(45000)

static inline struct provider *made_provider(struct fleet *f, uint32_t id, const char *name)
{
	struct provider_spec spec;
	struct provider *p = NULL;

	provider_spec_init(&spec);
	spec.id = id;
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	ck_assert_int_eq(fleet_put_provider(f, &spec, &p), 0);
	return p;
}

static inline struct pool *made_pool(
	struct fleet *f, uint32_t id, const char *name, uint32_t provider_id)
{
	struct pool_spec spec;
	struct pool *p = NULL;

	pool_spec_init(&spec);
	spec.id = id;
	spec.provider_id = provider_id;
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	ck_assert_int_eq(fleet_put_pool(f, &spec, &p), 0);
	return p;
}

/* A node "nID" at 10.0.x.y:3389. */
static inline struct node_spec made_node_spec(uint32_t id, uint32_t provider_id)
{
	struct node_spec spec;

	node_spec_init(&spec);
	spec.id = id;
	spec.provider_id = provider_id;
	snprintf(spec.name, sizeof(spec.name), "n%u", id);
	snprintf(spec.address, sizeof(spec.address), "10.%u.%u.%u", id / 62500, id / 250 % 250,
		id % 250 + 1);
	return spec;
}

/* With the tags of TAGS, separated by spaces; NULL none. */
static inline struct node *made_node(
	struct fleet *f, uint32_t id, uint32_t provider_id, const char *tags)
{
	struct node_spec spec = made_node_spec(id, provider_id);
	struct node *n = NULL;
	char text[512];
	char *rest = text, *tag;

	snprintf(text, sizeof(text), "%s", tags ? tags : "");
	while ((tag = strsep(&rest, " "))) {
		if (*tag)
			ck_assert_int_eq(tag_set_add(&spec.tags, tag, NULL), 0);
	}
	ck_assert_int_eq(fleet_put_node(f, &spec, &n), 0);
	return n;
}

/* One heartbeat with an index (NONE = without a metric) at NOW_MS, of boot "b1". */
#define MADE_NO_INDEX UINT32_MAX
static inline unsigned made_beat(struct node *n, uint32_t index, bool accepting, int64_t now_ms)
{
	struct heartbeat h = {.boot_id = "b1", .seq = n->seq + 1, .accepting = accepting};
	struct node_metrics metrics = {.has_cpu = index != MADE_NO_INDEX};
	bool has = index != MADE_NO_INDEX;

	return node_apply_heartbeat(
		n, &h, &metrics, has, has ? index : 0, "192.0.2.1", now_ms, now_ms * 1000);
}

/* Two in a row: the node is heard. */
static inline void made_heard(struct node *n, uint32_t index)
{
	(void)made_beat(n, index, true, MADE_NOW_MS - 1000);
	(void)made_beat(n, index, true, MADE_NOW_MS - 500);
	ck_assert_int_eq(n->voice, NODE_HEARD);
}

/* Changes one thing of a node's spec: made_change(f, n, mode = ADMIN_DRAIN). */
#define made_change(f, n, what)                                            \
	do {                                                               \
		struct node_spec made_spec_ = (n)->spec;                   \
		made_spec_.what;                                           \
		ck_assert_int_eq(fleet_put_node(f, &made_spec_, NULL), 0); \
	} while (0)

/* A small generator with a fixed seed, for properties. */
static inline uint64_t made_random(uint64_t *state)
{
	uint64_t x = (*state += UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}
