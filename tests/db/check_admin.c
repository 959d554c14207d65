/* SPDX-License-Identifier: ISC */
/* Administrative changes: each with its event, and what their refusals say. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "tap.h"
#include "world.h"

static struct pg pg;
static struct world w;
static char database[32];

static void start(void)
{
	pg_start(&pg, NULL);
	world_database(&pg, "template");
}

static void stop(void)
{
	pg_stop(&pg);
}

static void open_world(void)
{
	char sql[128];

	snprintf(database, sizeof(database), "t%d", (int)getpid());
	snprintf(sql, sizeof(sql), "CREATE DATABASE %s TEMPLATE template OWNER termbroker_owner",
		database);
	pg_sql(&pg, "postgres", "postgres", sql);
	world_up(&w, &pg, database, 5000);
}

static void close_world(void)
{
	world_close(&w);
}

static const char *sql(const char *text)
{
	return pg_sql(&pg, "postgres", database, text);
}

static void reload(void)
{
	char again[PG_CONNINFO_SIZE];

	world_close(&w);
	world_open(&w, pg_conninfo(&pg, "termbrokerd", database, again), 5000);
	world_await(&w, &w.ends, 1, 10000);
}

static void expect(struct got *g, int result, const char *why)
{
	world_answer(&w, g);
	ck_assert_msg(g->result == result, "%d: %s", g->result, g->why);
	ck_assert_msg(why ? strstr(g->why, why) != NULL : g->why[0] == '\0', "%s", g->why);
	*g = (struct got){0};
}

/* ---- round trips ---- */

START_TEST(provider_comes_back_whole)
{
	struct provider_spec spec, *back;
	struct got g = {0};

	provider_spec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "east");
	spec.prefer_sharing = false;
	spec.on_mass_silence = MASS_SILENCE_KEEP;
	spec.cpu = (struct load_rule){.on = false, .zero = 100, .full = 9000};
	spec.load_script_rule = false;
	spec.mode = ADMIN_DRAIN;
	snprintf(spec.mode_reason, sizeof(spec.mode_reason), "it's \"new\" \\ {NULL,1} $1; --");
	store_put_provider(w.store, &spec, NULL, got_done, &g);
	ck_assert_uint_eq(g.calls, 0);
	ck_assert_int_eq(world_answer(&w, &g), 0);
	ck_assert_uint_gt(g.id, 0);
	spec.id = g.id;
	reload();
	back = &fleet_provider(w.fleet, "east")->spec;
	ck_assert_uint_eq(back->id, spec.id);
	ck_assert(!back->prefer_sharing && back->share_sessions && back->balance_by_metrics);
	ck_assert_int_eq(back->on_mass_silence, MASS_SILENCE_KEEP);
	ck_assert(!back->cpu.on && back->cpu.zero == 100 && back->cpu.full == 9000);
	ck_assert(back->memory.on && back->memory.zero == spec.memory.zero &&
		  back->memory.full == spec.memory.full);
	ck_assert(back->sessions_rule && !back->load_script_rule);
	ck_assert_int_eq(back->mode, ADMIN_DRAIN);
	ck_assert_str_eq(back->mode_reason, spec.mode_reason);
}
END_TEST

START_TEST(pool_node_and_token_come_back_whole)
{
	struct provider *p = world_provider(&w, "east");
	struct pool *pool = world_pool(&w, "office", p), *lab = world_pool(&w, "lab", p);
	struct node *n = world_node(&w, "ts1", "192.0.2.1", p);
	struct pool_spec pool_spec = pool->spec;
	struct node_spec node_spec = n->spec;
	struct token_spec token = {
		.role = ROLE_CLIENT, .see_sessions = true, .expires_us = 1900000000000001};
	const struct token_spec *back;
	struct got g = {0};

	snprintf(pool_spec.default_tags, sizeof(pool_spec.default_tags), "gpu;-east!");
	snprintf(pool_spec.rdp_extra, sizeof(pool_spec.rdp_extra),
		"audiomode:i:0\nuse multimon:i:1");
	tag_set_add(&pool_spec.allowed_tags, "NULL", NULL);
	tag_set_add(&pool_spec.allowed_tags, "b.c", NULL);
	pool_spec.untagged_default = UNTAGGED_ANY;
	pool_spec.mode = ADMIN_DISABLED;
	store_put_pool(w.store, &pool_spec, NULL, got_done, &g);
	expect(&g, 0, NULL);
	snprintf(node_spec.fqdn, sizeof(node_spec.fqdn), "ts1.example.com");
	tag_set_add(&node_spec.tags, "gpu", NULL);
	node_spec.max_sessions = 40;
	node_spec.load_multiplier = 15000;
	node_spec.port = 65535;
	store_put_node(w.store, &node_spec, NULL, NULL, got_done, &g);
	expect(&g, 0, NULL);
	snprintf(token.name, sizeof(token.name), "portal");
	secret_random(token.hash, sizeof(token.hash));
	token.pool_count = 2;
	token.pool_ids[0] = lab->spec.id;
	token.pool_ids[1] = pool->spec.id;
	tag_set_add(&token.tags, "gpu", NULL);
	store_put_token(w.store, &token, NULL, got_done, &g);
	expect(&g, 0, NULL);
	reload();
	ck_assert_str_eq(fleet_pool(w.fleet, "office")->spec.default_tags, "gpu;-east!");
	ck_assert_str_eq(fleet_pool(w.fleet, "office")->spec.rdp_extra, pool_spec.rdp_extra);
	ck_assert(tag_set_has(&fleet_pool(w.fleet, "office")->spec.allowed_tags, "NULL"));
	ck_assert_uint_eq(fleet_pool(w.fleet, "office")->spec.allowed_tags.count, 2);
	ck_assert_int_eq(fleet_pool(w.fleet, "office")->spec.mode, ADMIN_DISABLED);
	n = fleet_node(w.fleet, "ts1");
	ck_assert_mem_eq(&n->spec, &node_spec, sizeof(node_spec));
	ck_assert_uint_eq(fleet_token(w.fleet, "agent-ts1")->spec.node_id, n->spec.id);
	back = &fleet_token_by_hash(w.fleet, token.hash)->spec;
	ck_assert_str_eq(back->name, "portal");
	ck_assert_uint_eq(back->pool_count, 2);
	ck_assert(back->see_sessions && !back->revoked);
	ck_assert_int_eq(back->expires_us, token.expires_us);
	ck_assert(tag_set_has(&back->tags, "gpu"));
}
END_TEST

START_TEST(token_changes_its_pools)
{
	struct provider *p = world_provider(&w, "east");
	struct pool *pool = world_pool(&w, "office", p), *lab = world_pool(&w, "lab", p);
	struct token_spec token = {
		.role = ROLE_CLIENT, .pool_count = 1, .pool_ids = {pool->spec.id}};
	struct got g = {0};

	snprintf(token.name, sizeof(token.name), "portal");
	store_put_token(w.store, &token, NULL, got_done, &g);
	ck_assert_int_eq(world_answer(&w, &g), 0);
	token.id = g.id;
	g = (struct got){0};
	token.pool_ids[0] = lab->spec.id;
	token.revoked = true;
	store_put_token(w.store, &token, NULL, got_done, &g);
	expect(&g, 0, NULL);
	ck_assert_str_eq(
		sql("SELECT string_agg(name, ',') FROM token_pool JOIN pool ON id = pool_id"),
		"lab");
	ck_assert_str_eq(sql("SELECT revoked FROM token WHERE name = 'portal'"), "t");
	/* A pool whose removal would widen a token's reach stays. */
	store_remove(w.store, STORE_POOL, lab->spec.id, NULL, got_done, &g);
	expect(&g, -EBUSY, "a token is limited to this pool");
}
END_TEST

/* ---- refusals ---- */

START_TEST(names_and_addresses_are_unique)
{
	struct provider *p = world_provider(&w, "east");
	struct node *n = world_node(&w, "ts1", "ts1.example.com", p);
	struct provider_spec provider = p->spec;
	struct node_spec node = n->spec;
	struct got g = {0};

	provider.id = 0;
	store_put_provider(w.store, &provider, NULL, got_done, &g);
	expect(&g, -EEXIST, "a provider named \"east\" exists already");
	node.id = 0;
	store_put_node(w.store, &node, NULL, NULL, got_done, &g);
	expect(&g, -EEXIST, "a node named \"ts1\" exists already");
	snprintf(node.name, sizeof(node.name), "ts2");
	snprintf(node.address, sizeof(node.address), "TS1.example.com");
	store_put_node(w.store, &node, NULL, NULL, got_done, &g);
	expect(&g, -EADDRINUSE, "another node has address TS1.example.com port 3389");
	node.port = 3390;
	store_put_node(w.store, &node, NULL, NULL, got_done, &g);
	expect(&g, 0, NULL);
}
END_TEST

/* Both or none: a token whose name is taken leaves no node. */
START_TEST(node_and_token_are_one)
{
	struct provider *p = world_provider(&w, "east");
	struct token_spec token = {.role = ROLE_AGENT, .name = "agent-ts1"};
	struct node_spec spec;
	struct got g = {0};

	world_node(&w, "ts1", "192.0.2.1", p);
	node_spec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "ts2");
	snprintf(spec.address, sizeof(spec.address), "192.0.2.2");
	spec.provider_id = p->spec.id;
	store_put_node(w.store, &spec, &token, NULL, got_done, &g);
	expect(&g, -EEXIST, "a token named \"agent-ts1\" exists already");
	ck_assert_str_eq(sql("SELECT count(*) FROM node"), "1");
	ck_assert_uint_eq(token.id, 0);
}
END_TEST

START_TEST(references_hold)
{
	struct provider *p = world_provider(&w, "east");
	struct pool *pool = world_pool(&w, "office", p);
	struct node *n = world_node(&w, "ts1", "192.0.2.1", p);
	struct pool_spec spec = pool->spec;
	struct node_spec node = n->spec;
	struct event ev;
	struct got g = {0};

	event_start(&ev, EVENT_ADMIN_REMOVED, 1);
	store_remove(w.store, STORE_PROVIDER, p->spec.id, &ev, got_done, &g);
	expect(&g, -EBUSY, "still");
	spec.provider_id = 4711;
	store_put_pool(w.store, &spec, &ev, got_done, &g);
	expect(&g, -ENOENT, "there is no such provider");
	node.id = 4711;
	snprintf(node.name, sizeof(node.name), "ts9");
	node.port = 9;
	store_put_node(w.store, &node, NULL, &ev, got_done, &g);
	expect(&g, -ENOENT, "there is no such node");
	store_remove(w.store, STORE_TOKEN, 4711, &ev, got_done, &g);
	expect(&g, -ENOENT, "there is no such token");
	store_forget_session(w.store, n->spec.id, "none", &ev, got_done, &g);
	expect(&g, -ENOENT, "there is no such session");
	/* What did not happen is not told. */
	ck_assert_str_eq(sql("SELECT count(*) FROM event"), "0");
}
END_TEST

START_TEST(constraints_hold)
{
	struct provider *p = world_provider(&w, "east");
	struct provider_spec provider = p->spec;
	struct node_spec node;
	struct got g = {0};

	provider.cpu.zero = provider.cpu.full;
	store_put_provider(w.store, &provider, NULL, got_done, &g);
	expect(&g, -EINVAL, "provider_cpu_points");
	provider = p->spec;
	snprintf(provider.name, sizeof(provider.name), "a b");
	store_put_provider(w.store, &provider, NULL, got_done, &g);
	expect(&g, -EINVAL, "object_name_syntax");
	snprintf(provider.name, sizeof(provider.name), "\xff\xfe");
	store_put_provider(w.store, &provider, NULL, got_done, &g);
	expect(&g, -EINVAL, "UTF8");
	node_spec_init(&node);
	snprintf(node.name, sizeof(node.name), "x'; DROP TABLE node; --");
	snprintf(node.address, sizeof(node.address), "192.0.2.1");
	node.provider_id = p->spec.id;
	store_put_node(w.store, &node, NULL, NULL, got_done, &g);
	expect(&g, -EINVAL, "object_name_syntax");
	/* The pipeline goes on after each. */
	world_node(&w, "ts1", "192.0.2.1", p);
}
END_TEST

/* ---- events ---- */

START_TEST(change_and_event_are_one)
{
	struct provider *p = world_provider(&w, "east");
	struct node_spec spec;
	struct event ev;
	struct got g = {0};

	node_spec_init(&spec);
	snprintf(spec.name, sizeof(spec.name), "ts1");
	snprintf(spec.address, sizeof(spec.address), "192.0.2.1");
	spec.provider_id = p->spec.id;
	event_start(&ev, EVENT_ADMIN_CREATED, INT64_C(1700000000123456));
	event_param(&ev, "kind", "node");
	event_param(&ev, "name", "ts1");
	event_param(&ev, "actor", "line\nbreak \"quoted\"");
	store_put_node(w.store, &spec, NULL, &ev, got_done, &g);
	ck_assert_int_eq(world_answer(&w, &g), 0);
	spec.id = g.id;
	g = (struct got){0};
	ck_assert_str_eq(sql("SELECT node || provider || dispatcher || level || (params->>'actor') "
			     "FROM event"),
		"ts1eastd1INFOline\nbreak \"quoted\"");
	ck_assert_str_eq(sql("SELECT extract(epoch FROM at) FROM event"), "1700000000.123456");
	/* The journal keeps the name of what is gone. */
	event_start(&ev, EVENT_ADMIN_REMOVED, 1);
	ev.node_id = spec.id;
	store_remove(w.store, STORE_NODE, spec.id, &ev, got_done, &g);
	expect(&g, 0, NULL);
	ck_assert_str_eq(
		sql("SELECT node || provider FROM event ORDER BY id DESC LIMIT 1"), "ts1east");
	ck_assert_str_eq(sql("SELECT count(*) FROM node"), "0");
}
END_TEST

START_TEST(node_takes_all_along)
{
	struct provider *p = world_provider(&w, "east");
	struct node *n = world_node(&w, "ts1", "192.0.2.1", p);
	struct got g = {0};

	store_touch_node(w.store, n);
	store_write_session(w.store, SESSION_ADDED, world_session(&w, n, "1", "alice"));
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_str_eq(sql("SELECT count(*) FROM session JOIN node_load USING (node_id)"), "1");
	store_remove(w.store, STORE_NODE, n->spec.id, NULL, got_done, &g);
	expect(&g, 0, NULL);
	ck_assert_str_eq(
		sql("SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM node_load) +"
		    " (SELECT count(*) FROM token)"),
		"0");
	store_drop_node(w.store, n);
}
END_TEST

START_TEST(session_is_forgotten)
{
	struct provider *p = world_provider(&w, "east");
	struct node *n = world_node(&w, "ts1", "192.0.2.1", p);
	struct event ev;
	struct got g = {0};

	store_write_session(w.store, SESSION_ADDED, world_session(&w, n, "7:a b", "alice"));
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	event_start(&ev, EVENT_SESSION_FORGOTTEN, 1);
	ev.node_id = n->spec.id;
	store_forget_session(w.store, n->spec.id, "7:a b", &ev, got_done, &g);
	expect(&g, 0, NULL);
	ck_assert_str_eq(sql("SELECT count(*) FROM session"), "0");
	ck_assert_str_eq(sql("SELECT name || node FROM event"), "session-forgottents1");
}
END_TEST

/* ---- reading the journal ---- */

struct rows {
	struct got got;
	unsigned count;
	uint64_t first, last;
	char text[1024];
};

static void take(void *ctx, const struct event_row *row)
{
	struct rows *r = ctx;

	if (r->count++ == 0)
		r->first = row->id;
	ck_assert_uint_gt(row->id, r->last);
	r->last = row->id;
	snprintf(r->text, sizeof(r->text), "%s %s %s %s %s %s %lld", row->level, row->name,
		row->provider, row->pool, row->node, row->params_json, (long long)row->time_us);
}

static void finish(void *ctx, int result, uint32_t id, const char *why)
{
	struct rows *r = ctx;

	got_done(&r->got, result, id, why);
}

static unsigned read_events(struct event_query q, struct rows *r)
{
	*r = (struct rows){0};
	store_read_events(w.store, &q, take, finish, r);
	world_await(&w, &r->got.calls, 1, 5000);
	ck_assert_msg(r->got.result == 0, "%s", r->got.why);
	return r->count;
}

static void told(void *ctx)
{
	++*(unsigned *)ctx;
}

START_TEST(journal_is_read_by_pool_level_and_id)
{
	struct provider *p = world_provider(&w, "east"), *q = world_provider(&w, "west");
	struct pool *office = world_pool(&w, "office", p), *lab = world_pool(&w, "lab", p);
	struct node *n = world_node(&w, "ts1", "192.0.2.1", p);
	struct event_query query = {.limit = 1000};
	unsigned commits = 0;
	struct event ev;
	struct rows r;

	store_on_events(w.store, told, &commits);
	for (int i = 0; i < 10; i++) {
		world_event(&ev, n, "alice"); /* of the provider */
		store_write_event(w.store, &ev);
		ev.pool_id = office->spec.id;
		ev.pool = "office";
		store_write_event(w.store, &ev);
		ev.pool_id = lab->spec.id;
		store_write_event(w.store, &ev);
		event_start(&ev, EVENT_NODE_SILENT, 5);
		ev.provider_id = q->spec.id;
		store_write_event(w.store, &ev);
	}
	ck_assert_int_eq(world_flush(&w, 5000), 0);
	ck_assert_uint_ge(commits, 1);
	ck_assert_uint_eq(read_events(query, &r), 40);
	query.level = EVENT_WARNING;
	ck_assert_uint_eq(read_events(query, &r), 10);
	ck_assert_ptr_nonnull(strstr(r.text, "WARNING node-silent west"));
	query = (struct event_query){
		.limit = 1000, .pool_id = office->spec.id, .provider_id = p->spec.id};
	ck_assert_uint_eq(read_events(query, &r), 20);
	query.limit = 5;
	ck_assert_uint_eq(read_events(query, &r), 5);
	query.after = r.last;
	ck_assert_uint_eq(read_events(query, &r), 5);
	query.newest = true;
	query.after = 0;
	ck_assert_uint_eq(read_events(query, &r), 5);
	ck_assert_uint_ge(r.first, 30);
	ck_assert_str_eq(r.text, "INFO user-login east office ts1 "
				 "{\"user\":\"alice\",\"node\":\"ts1\"} 1700000000123456");
	query.after = r.last;
	query.newest = false;
	ck_assert_uint_eq(read_events(query, &r), 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("admin");
	TCase *t = tcase_create("admin");

	tcase_set_timeout(t, 60);
	tcase_add_unchecked_fixture(t, start, stop);
	tcase_add_checked_fixture(t, open_world, close_world);
	tcase_add_test(t, provider_comes_back_whole);
	tcase_add_test(t, pool_node_and_token_come_back_whole);
	tcase_add_test(t, token_changes_its_pools);
	tcase_add_test(t, names_and_addresses_are_unique);
	tcase_add_test(t, node_and_token_are_one);
	tcase_add_test(t, references_hold);
	tcase_add_test(t, constraints_hold);
	tcase_add_test(t, change_and_event_are_one);
	tcase_add_test(t, node_takes_all_along);
	tcase_add_test(t, session_is_forgotten);
	tcase_add_test(t, journal_is_read_by_pool_level_and_id);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
