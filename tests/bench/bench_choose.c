/* SPDX-License-Identifier: ISC */
/*
 * How long one decision takes, and what a session costs in memory. Prints a table; nothing here
 * passes or fails, except that a wrong setup ends the program. The time of a decision includes
 * looking the user up, and is the median of rounds, so that a busy machine shows less. The look-up
 * alone is a line of its own: it is all that depends on the number of users, by the few lines of
 * memory that are not in a cache when the table is large, and nothing of it grows with the nodes.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/fleet.h"
#include "policy/choose.h"

#define ROUNDS 41
#define NOW_MS 1000000
#define SESSIONS 200000u

struct world {
	struct fleet *fleet;
	struct pool *pool;
	uint32_t nodes;
};

struct scenario {
	const char *title;
	const char *tags, *forced;
	bool balance, equal;
	bool lookup_only; /* no decision: what is left without it */
};

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench_choose: %s failed: %s\n", what, strerror(-rc));
	exit(1);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t heap_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void say_heartbeat(struct node *n, uint32_t index, uint64_t seq)
{
	struct heartbeat h = {.seq = seq, .accepting = true};
	struct node_metrics metrics = {.has_cpu = true};

	memcpy(h.boot_id, "boot", 5);
	(void)node_apply_heartbeat(n, &h, &metrics, true, index, "192.0.2.1", NOW_MS - 5000, 1);
}

/* A quarter of the nodes each: untagged; gpu; east; gpu and east; and one tag of its own for some.
 */
static void put_node(struct world *w, uint32_t i, uint64_t *seed)
{
	struct node_spec spec;
	struct node *n;
	char own[16];

	node_spec_init(&spec);
	spec.id = i + 1;
	spec.provider_id = 1;
	spec.max_sessions = 1000;
	snprintf(spec.name, sizeof(spec.name), "node%05u", i);
	snprintf(spec.address, sizeof(spec.address), "10.0.%u.%u", i / 250, i % 250 + 1);
	if (i % 4 & 1)
		must(tag_set_add(&spec.tags, "gpu", NULL), "tag");
	if (i % 4 & 2)
		must(tag_set_add(&spec.tags, "east", NULL), "tag");
	if (i % 4 == 3) {
		snprintf(own, sizeof(own), "rack%u", i % 200);
		must(tag_set_add(&spec.tags, own, NULL), "tag");
	}
	must(fleet_put_node(w->fleet, &spec, &n), "node");
	say_heartbeat(n, 1 + (uint32_t)(next_random(seed) % 9999), 1);
	say_heartbeat(n, 1 + (uint32_t)(next_random(seed) % 9999), 2);
}

static void build(struct world *w, uint32_t nodes)
{
	struct provider_spec provider;
	struct pool_spec pool;
	uint64_t seed = 88172645463325252u;

	w->nodes = nodes;
	w->fleet = fleet_new();
	if (!w->fleet)
		must(-12, "fleet");
	provider_spec_init(&provider);
	provider.id = 1;
	memcpy(provider.name, "p", 2);
	must(fleet_put_provider(w->fleet, &provider, NULL), "provider");
	pool_spec_init(&pool);
	pool.id = pool.provider_id = 1;
	memcpy(pool.name, "pool", 5);
	must(fleet_put_pool(w->fleet, &pool, &w->pool), "pool");
	for (uint32_t i = 0; i < nodes; i++)
		put_node(w, i, &seed);
}

static void user_key(uint32_t i, char ret[32])
{
	snprintf(ret, 32, "corp\\user.%07u", i); /* 17 characters */
}

static void add_sessions(struct world *w)
{
	char key[32], id[16], client[24];
	size_t before = heap_used();

	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct node *n = fleet_node_by_id(w->fleet, i % w->nodes + 1);

		user_key(i, key);
		snprintf(id, sizeof(id), "c%u", i / w->nodes);
		snprintf(client, sizeof(client), "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255,
			i & 255);
		must(fleet_load_session(w->fleet, n, id, key, NULL, client, true, 1000, 2000),
			"session");
	}
	printf("memory: %.1f bytes a session (%u sessions on %u nodes, 17-character names, client "
	       "addresses, all indexes)\n",
		(double)(heap_used() - before) / SESSIONS, SESSIONS, w->nodes);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Reads flags and indices once and decides nothing: the floor of a scan. */
static void read_once(const struct farm *f, uint64_t *sink)
{
	uint16_t sum = 0;

	for (uint32_t j = 0; j < f->count; j++)
		sum = (uint16_t)(sum + (f->flags[j] ^ f->index[j]));
	*sink += sum;
	__asm__ volatile("" ::: "memory");
}

struct figures {
	double decision, floor; /* median microseconds */
};

static void decide_once(
	struct world *w, struct choose_input *in, uint32_t user, bool lookup_only, uint64_t *sink)
{
	struct choice c;
	char key[32];

	user_key(user, key);
	in->sessions = fleet_user_sessions(w->fleet, key);
	if (lookup_only) {
		*sink += in->sessions ? in->sessions->key_len : 1;
		return;
	}
	choose(in, &c);
	*sink += c.node ? c.node->spec.id : 0;
}

/* The floor is measured in turns with the decision: a machine that changes its pace changes both.
 */
static struct figures measure(
	struct world *w, struct choose_input *in, bool user_known, bool lookup_only, uint64_t *sink)
{
	const struct farm *farm = &w->pool->provider->farm;
	uint32_t decisions = w->nodes > 5000 ? 100 : 1000;
	double took[ROUNDS], floor[ROUNDS];
	uint64_t seed = 7;

	for (int r = 0; r < ROUNDS; r++) {
		double start = now_us();

		for (uint32_t i = 0; i < decisions; i++) {
			in->random = next_random(&seed);
			decide_once(w, in,
				user_known ? (uint32_t)(in->random % SESSIONS) : SESSIONS + i,
				lookup_only, sink);
		}
		took[r] = (now_us() - start) / decisions;
		start = now_us();
		for (uint32_t i = 0; i < decisions; i++)
			read_once(farm, sink);
		floor[r] = (now_us() - start) / decisions;
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare_doubles);
	qsort(floor, ROUNDS, sizeof(floor[0]), compare_doubles);
	return (struct figures){took[ROUNDS / 2], floor[ROUNDS / 2]};
}

static void equalise(struct world *w, bool equal)
{
	uint64_t seed = 99;

	for (struct node *n = fleet_next_node(w->fleet, NULL); n; n = fleet_next_node(w->fleet, n))
		node_set_index(n, true, equal ? 1000 : 1 + (uint32_t)(next_random(&seed) % 9999));
}

static void run(struct world *w, const struct scenario *s, bool user_known, uint64_t *sink)
{
	struct tag_request tags, forced;
	struct figures f;
	struct choose_input in = {
		.pool = w->pool,
		.tags = &tags,
		.forced = &forced,
		.now_ms = NOW_MS,
		.stale_after_ms = 45000,
	};

	must(tag_request_parse(s->tags, &tags, NULL), "tags");
	must(tag_request_parse(s->forced, &forced, NULL), "forced tags");
	w->pool->provider->spec.balance_by_metrics = s->balance;
	equalise(w, s->equal);
	f = measure(w, &in, user_known, s->lookup_only, sink);
	printf("%7u  %8zu  %-44s %8.2f %8.1f\n", w->nodes,
		user_known ? (size_t)SESSIONS : (size_t)0, s->title, f.decision,
		f.decision / f.floor);
}

int main(void)
{
	static const struct scenario scenarios[] = {
		{.title = "the user's name and look-up alone",
			.balance = true,
			.lookup_only = true},
		{.title = "no tags", .balance = true},
		{.title = "no tags, every node equal", .balance = true, .equal = true},
		{.title = "any node, all equal", .tags = "any", .balance = true, .equal = true},
		{.title = "one tag", .tags = "gpu", .balance = true},
		{.title = "two tags, one excluded", .tags = "gpu;rack7;-rack3", .balance = true},
		{.title = "two tags, one excluded, one forced",
			.tags = "gpu;rack7;-rack3",
			.forced = "east",
			.balance = true},
		{.title = "optional tag that falls back", .tags = "fpga", .balance = true},
		{.title = "refusal: required tag that no node has",
			.tags = "fpga!",
			.balance = true},
		{.title = "round robin"},
	};
	static const uint32_t sizes[] = {1000, 10000};
	uint64_t sink = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct world w;

		build(&w, sizes[i]);
		printf("  nodes     users  decision%36s %9s %8s\n", "", "µs", "× floor");
		for (size_t j = 0; j < sizeof(scenarios) / sizeof(scenarios[0]); j++)
			run(&w, &scenarios[j], false, &sink);
		add_sessions(&w);
		w.pool->provider->spec.share_sessions = false;
		for (size_t j = 0; j < sizeof(scenarios) / sizeof(scenarios[0]); j++)
			run(&w, &scenarios[j], true, &sink);
		w.pool->provider->spec.share_sessions = true;
		run(&w, &(struct scenario){.title = "back to the live session", .balance = true},
			true, &sink);
		fleet_free(w.fleet);
	}
	return sink == 0;
}
