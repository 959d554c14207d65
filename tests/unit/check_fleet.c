/* SPDX-License-Identifier: ISC */
/* Providers, pools, nodes and tokens: added, changed, renamed, found, refused and removed. */
#include <errno.h>

#include "lib/made_fleet.h"
#include "lib/tap.h"

static struct fleet *fleet;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
}

static void teardown(void)
{
	fleet_free(fleet);
}

static struct token_spec token_spec(uint32_t id, const char *name, uint8_t first)
{
	struct token_spec spec;

	token_spec_init(&spec);
	spec.id = id;
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	spec.hash[0] = first;
	spec.hash[SECRET_HASH_SIZE - 1] = (uint8_t)id;
	return spec;
}

START_TEST(nothing_to_free_is_fine)
{
	fleet_free(NULL);
}
END_TEST

START_TEST(providers)
{
	struct provider *a = made_provider(fleet, 7, "a"), *again = NULL;
	struct provider_spec spec = a->spec;

	ck_assert_ptr_eq(fleet_provider(fleet, "a"), a);
	ck_assert_ptr_eq(fleet_provider_by_id(fleet, 7), a);
	ck_assert_ptr_null(fleet_provider(fleet, "A"));
	ck_assert_ptr_null(fleet_provider_by_id(fleet, 8));
	made_provider(fleet, 8, "b");
	spec.share_sessions = false;
	ck_assert_int_eq(fleet_put_provider(fleet, &spec, &again), 0);
	ck_assert_ptr_eq(again, a);
	ck_assert(!a->spec.share_sessions);
	memcpy(spec.name, "b", 2);
	ck_assert_int_eq(fleet_put_provider(fleet, &spec, NULL), -EEXIST);
	ck_assert_str_eq(a->spec.name, "a");
	memcpy(spec.name, "c", 2);
	ck_assert_int_eq(fleet_put_provider(fleet, &spec, NULL), 0);
	ck_assert_ptr_null(fleet_provider(fleet, "a"));
	ck_assert_ptr_eq(fleet_provider(fleet, "c"), a);
	spec.id = 0;
	memcpy(spec.name, "z", 2);
	ck_assert_int_eq(fleet_put_provider(fleet, &spec, NULL), -EINVAL);
	ck_assert_int_eq(fleet_remove_provider(fleet, 7), 0);
	ck_assert_int_eq(fleet_remove_provider(fleet, 7), -ENOENT);
	ck_assert_ptr_null(fleet_provider(fleet, "c"));
}
END_TEST

START_TEST(a_provider_in_use_stays)
{
	made_provider(fleet, 1, "a");
	made_pool(fleet, 1, "pool", 1);
	ck_assert_int_eq(fleet_remove_provider(fleet, 1), -EBUSY);
	made_node(fleet, 1, 1, NULL);
	ck_assert_int_eq(fleet_remove_pool(fleet, 1), 0);
	ck_assert_int_eq(fleet_remove_pool(fleet, 1), -ENOENT);
	ck_assert_int_eq(fleet_remove_provider(fleet, 1), -EBUSY);
	ck_assert_int_eq(fleet_remove_node(fleet, 1), 0);
	ck_assert_int_eq(fleet_remove_node(fleet, 1), -ENOENT);
	ck_assert_int_eq(fleet_remove_provider(fleet, 1), 0);
}
END_TEST

START_TEST(pools)
{
	struct provider *b;
	struct pool *p;
	struct pool_spec spec;

	made_provider(fleet, 1, "a");
	b = made_provider(fleet, 2, "b");
	p = made_pool(fleet, 1, "office", 1);
	made_pool(fleet, 2, "lab", 1);
	spec = p->spec;
	ck_assert_ptr_eq(fleet_pool(fleet, "office"), p);
	ck_assert_ptr_eq(fleet_pool_by_id(fleet, 1), p);
	spec.provider_id = 2;
	memcpy(spec.name, "desk", 5);
	ck_assert_int_eq(fleet_put_pool(fleet, &spec, NULL), 0);
	ck_assert_ptr_eq(p->provider, b);
	ck_assert_ptr_eq(fleet_pool(fleet, "desk"), p);
	ck_assert_ptr_null(fleet_pool(fleet, "office"));
	spec.provider_id = 9;
	ck_assert_int_eq(fleet_put_pool(fleet, &spec, NULL), -ENOENT);
	spec.provider_id = 1;
	memcpy(spec.name, "lab", 4);
	ck_assert_int_eq(fleet_put_pool(fleet, &spec, NULL), -EEXIST);
	ck_assert_ptr_eq(p->provider, b); /* on error nothing changed */
	ck_assert_str_eq(p->spec.name, "desk");
}
END_TEST

START_TEST(nodes)
{
	struct node *n, *other, *ret = NULL;
	struct node_spec spec;

	made_provider(fleet, 1, "a");
	n = made_node(fleet, 1, 1, "gpu");
	other = made_node(fleet, 2, 1, NULL);
	ck_assert_ptr_eq(fleet_node(fleet, "n1"), n);
	ck_assert_ptr_eq(fleet_node_by_id(fleet, 2), other);
	spec = n->spec;
	memcpy(spec.name, "n2", 3);
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), -EEXIST);
	spec = n->spec;
	memcpy(spec.address, other->spec.address, sizeof(spec.address));
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), -EEXIST);
	ck_assert_str_ne(n->spec.address, other->spec.address);
	spec.port = 3390; /* one address, two ports: two nodes */
	ck_assert_int_eq(fleet_put_node(fleet, &spec, &ret), 0);
	ck_assert_ptr_eq(ret, n);
	spec = other->spec;
	spec.id = 3;
	memcpy(spec.name, "n3", 3);
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), -EEXIST);
	spec.port = 3390;
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), -EEXIST);
	spec.port = 3391;
	spec.provider_id = 5;
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), -ENOENT);
	spec.provider_id = 1;
	spec.id = 0;
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), -EINVAL);
	spec.id = 3;
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), 0);
	/* a name and an address that were given up are free */
	made_change(fleet, n, name[1] = '9');
	ck_assert_ptr_null(fleet_node(fleet, "n1"));
	ck_assert_ptr_eq(fleet_node(fleet, "n9"), n);
	memcpy(spec.name, "n1", 3);
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), 0);
	ck_assert_int_eq(fleet_remove_node(fleet, 1), 0);
	ck_assert_ptr_null(fleet_node(fleet, "n9"));
	spec.port = 3390;
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), 0);
}
END_TEST

START_TEST(a_change_keeps_what_the_agent_said)
{
	struct node *n;

	made_provider(fleet, 1, "a");
	n = made_node(fleet, 1, 1, NULL);
	made_heard(n, 123);
	made_change(fleet, n, max_sessions = 5);
	made_change(fleet, n, port = 3390);
	ck_assert_int_eq(n->voice, NODE_HEARD);
	ck_assert_uint_eq(n->index, 123);
	ck_assert_uint_eq(n->provider->farm.index[n->slot], 123);
}
END_TEST

START_TEST(a_node_is_found_in_any_case)
{
	struct node *n, *shouted;

	made_provider(fleet, 1, "a");
	n = made_node(fleet, 1, 1, NULL);
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "n1"), n);
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "N1"), n);
	ck_assert_ptr_null(fleet_node(fleet, "N1"));
	ck_assert_ptr_null(fleet_node_any_case(fleet, "n10"));
	shouted = made_node(fleet, 2, 1, NULL);
	made_change(fleet, shouted, name[0] = 'N');
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "N2"), shouted);
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "n2"), shouted);
	made_change(fleet, shouted, name[1] = '1'); /* the one that is spelled so */
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "N1"), shouted);
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "n1"), n);
	ck_assert_ptr_null(fleet_node_any_case(fleet, "n2"));
	ck_assert_int_eq(fleet_remove_node(fleet, 1), 0);
	ck_assert_ptr_eq(fleet_node_any_case(fleet, "n1"), shouted);
	ck_assert_int_eq(fleet_remove_node(fleet, 2), 0);
	ck_assert_ptr_null(fleet_node_any_case(fleet, "N1"));
}
END_TEST

START_TEST(tokens)
{
	struct token_spec a = token_spec(1, "portal", 0xaa), b = token_spec(2, "script", 0xbb);
	uint8_t old[SECRET_HASH_SIZE];
	struct token *t = NULL;

	ck_assert_int_eq(fleet_put_token(fleet, &a, &t), 0);
	ck_assert_int_eq(fleet_put_token(fleet, &b, NULL), 0);
	ck_assert_ptr_eq(fleet_token(fleet, "portal"), t);
	ck_assert_ptr_eq(fleet_token_by_hash(fleet, a.hash), t);
	b.id = 3;
	ck_assert_int_eq(fleet_put_token(fleet, &b, NULL), -EEXIST);
	memcpy(b.name, "third", 6); /* still the hash of another */
	ck_assert_int_eq(fleet_put_token(fleet, &b, NULL), -EEXIST);
	memcpy(old, a.hash, sizeof(old));
	a.hash[3] = 1;
	memcpy(a.name, "door", 5);
	a.revoked = true;
	ck_assert_int_eq(fleet_put_token(fleet, &a, NULL), 0);
	ck_assert_ptr_null(fleet_token_by_hash(fleet, old));
	ck_assert_ptr_eq(fleet_token_by_hash(fleet, a.hash), t);
	ck_assert_ptr_null(fleet_token(fleet, "portal"));
	ck_assert(fleet_token(fleet, "door")->spec.revoked);
	ck_assert_int_eq(fleet_remove_token(fleet, 1), 0);
	ck_assert_int_eq(fleet_remove_token(fleet, 1), -ENOENT);
	ck_assert_ptr_null(fleet_token_by_hash(fleet, a.hash));
	a.id = 0;
	ck_assert_int_eq(fleet_put_token(fleet, &a, NULL), -EINVAL);
}
END_TEST

START_TEST(a_node_takes_its_tokens_along)
{
	struct token_spec agent = token_spec(1, "agent.n", 1), other = token_spec(2, "agent.m", 2),
			  client = token_spec(3, "portal", 3);

	made_provider(fleet, 1, "a");
	made_node(fleet, 1, 1, NULL);
	made_node(fleet, 2, 1, NULL);
	agent.role = other.role = ROLE_AGENT;
	agent.node_id = 1;
	other.node_id = 2;
	ck_assert_int_eq(fleet_put_token(fleet, &agent, NULL), 0);
	ck_assert_int_eq(fleet_put_token(fleet, &other, NULL), 0);
	ck_assert_int_eq(fleet_put_token(fleet, &client, NULL), 0);
	ck_assert_int_eq(fleet_remove_node(fleet, 1), 0);
	ck_assert_ptr_null(fleet_token(fleet, "agent.n"));
	ck_assert_ptr_null(fleet_token_by_hash(fleet, agent.hash));
	ck_assert_ptr_nonnull(fleet_token(fleet, "agent.m"));
	ck_assert_ptr_nonnull(fleet_token(fleet, "portal"));
	agent.id = 4;
	agent.node_id = 2;
	ck_assert_int_eq(fleet_put_token(fleet, &agent, NULL), 0);
}
END_TEST

START_TEST(iteration_in_the_order_of_insertion)
{
	static const uint32_t order[] = {5, 3, 9, 1};
	struct node *n = NULL;
	struct provider *p = NULL;
	struct pool *pool = NULL;
	struct token *t = NULL;

	ck_assert_ptr_null(fleet_next_node(fleet, NULL));
	for (int i = 0; i < 4; i++) {
		char name[8];
		struct token_spec spec;

		snprintf(name, sizeof(name), "x%u", order[i]);
		spec = token_spec(order[i], name, 1);
		made_provider(fleet, order[i], name);
		made_pool(fleet, order[i], name, 5);
		made_node(fleet, order[i], 5, NULL);
		ck_assert_int_eq(fleet_put_token(fleet, &spec, NULL), 0);
	}
	made_change(fleet, fleet_node_by_id(fleet, 5), name[0] = 'z');
	for (int i = 0; i < 4; i++) {
		p = fleet_next_provider(fleet, p);
		pool = fleet_next_pool(fleet, pool);
		n = fleet_next_node(fleet, n);
		t = fleet_next_token(fleet, t);
		ck_assert_uint_eq(p->spec.id, order[i]);
		ck_assert_uint_eq(pool->spec.id, order[i]);
		ck_assert_uint_eq(n->spec.id, order[i]);
		ck_assert_uint_eq(t->spec.id, order[i]);
	}
	ck_assert_ptr_null(fleet_next_provider(fleet, p));
	ck_assert_ptr_null(fleet_next_pool(fleet, pool));
	ck_assert_ptr_null(fleet_next_node(fleet, n));
	ck_assert_ptr_null(fleet_next_token(fleet, t));
}
END_TEST

START_TEST(counts)
{
	struct token_spec spec = token_spec(1, "t", 1);
	struct fleet_counts c;
	struct node *n;

	made_provider(fleet, 1, "a");
	made_provider(fleet, 2, "b");
	made_pool(fleet, 1, "p", 1);
	n = made_node(fleet, 1, 1, NULL);
	made_node(fleet, 2, 2, NULL);
	made_node(fleet, 3, 2, NULL);
	ck_assert_int_eq(fleet_put_token(fleet, &spec, NULL), 0);
	ck_assert_int_eq(fleet_load_session(fleet, n, "1", "u", NULL, NULL, true, 1, 1), 0);
	ck_assert_int_eq(fleet_load_session(fleet, n, "2", "u", NULL, NULL, true, 1, 1), 0);
	fleet_counts(fleet, &c);
	ck_assert_uint_eq(c.providers, 2);
	ck_assert_uint_eq(c.pools, 1);
	ck_assert_uint_eq(c.nodes, 3);
	ck_assert_uint_eq(c.tokens, 1);
	ck_assert_uint_eq(c.sessions, 2);
	ck_assert_uint_eq(c.users, 1);
}
END_TEST

START_TEST(ten_thousand_nodes)
{
	made_provider(fleet, 1, "a");
	for (uint32_t i = 1; i <= 10000; i++)
		made_node(fleet, i, 1, i % 3 ? NULL : "gpu");
	for (uint32_t i = 1; i <= 10000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_ptr_eq(fleet_node(fleet, name), fleet_node_by_id(fleet, i));
		if (i % 2)
			ck_assert_int_eq(fleet_remove_node(fleet, i), 0);
	}
	ck_assert_uint_eq(fleet_provider(fleet, "a")->farm.count, 5000);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("fleet");
	TCase *t = tcase_create("fleet");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, nothing_to_free_is_fine);
	tcase_add_test(t, providers);
	tcase_add_test(t, a_provider_in_use_stays);
	tcase_add_test(t, pools);
	tcase_add_test(t, nodes);
	tcase_add_test(t, a_change_keeps_what_the_agent_said);
	tcase_add_test(t, a_node_is_found_in_any_case);
	tcase_add_test(t, tokens);
	tcase_add_test(t, a_node_takes_its_tokens_along);
	tcase_add_test(t, iteration_in_the_order_of_insertion);
	tcase_add_test(t, counts);
	tcase_add_test(t, ten_thousand_nodes);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
