/* SPDX-License-Identifier: ISC */
/* The packed arrays: slots stay in step with their nodes, and tags get, share and give back their
 * bits. */
#include <errno.h>

#include "lib/made_fleet.h"
#include "lib/tap.h"

static struct fleet *fleet;
static struct farm *farm;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	farm = &made_provider(fleet, 1, "p")->farm;
}

static void teardown(void)
{
	fleet_free(fleet);
}

static bool has_bit(const struct node *n, const char *tag)
{
	const struct farm *f = &n->provider->farm;
	int bit = farm_find_tag(f, tag);

	if (bit < 0)
		return false;
	ck_assert_int_lt(bit, (int)(f->tag_words * FARM_TAG_BITS));
	return farm_tag_word(f, n->slot, (uint32_t)bit / FARM_TAG_BITS) >> bit % FARM_TAG_BITS & 1;
}

/* Every slot tells what its node tells; every tag counts its users; nothing is left behind the end.
 */
static void check_farm(const struct farm *f)
{
	uint32_t users[FARM_TAGS_MAX] = {0};

	for (uint32_t i = 0; i < f->count; i++) {
		const struct node *n = f->nodes[i];
		uint32_t bits = 0;

		ck_assert_uint_eq(n->slot, i);
		ck_assert_ptr_eq(&n->provider->farm, f);
		ck_assert(!(f->flags[i] & FARM_TAGGED) == (n->spec.tags.count == 0));
		ck_assert(!(f->flags[i] & FARM_DRAIN) == (n->spec.mode != ADMIN_DRAIN));
		ck_assert_uint_eq(f->index[i], n->has_index ? n->index : LOAD_INDEX_MAX);
		for (uint32_t w = 0; w < f->tag_words; w++)
			bits += (uint32_t)__builtin_popcount(farm_tag_word(f, i, w));
		ck_assert_uint_eq(bits, n->spec.tags.count);
		for (uint32_t t = 0; t < n->spec.tags.count; t++) {
			ck_assert(has_bit(n, n->spec.tags.tag[t]));
			users[farm_find_tag(f, n->spec.tags.tag[t])]++;
		}
	}
	for (uint32_t i = f->count; i < f->cap; i++) {
		for (uint32_t w = 0; w < f->tag_words; w++)
			ck_assert_uint_eq(farm_tag_word(f, i, w), 0);
	}
	for (uint32_t i = 0; i < f->tag_count; i++)
		ck_assert_uint_eq(f->tag_users[i], users[i]);
}

START_TEST(an_empty_farm)
{
	ck_assert_uint_eq(farm->count, 0);
	ck_assert_int_eq(farm_find_tag(farm, "gpu"), -ENOENT);
}
END_TEST

START_TEST(the_last_node_fills_the_gap)
{
	struct node *n[5];

	for (uint32_t i = 0; i < 5; i++) {
		n[i] = made_node(fleet, i + 1, 1, i == 4 ? "gpu" : NULL);
		made_heard(n[i], i * 100);
		node_assigned(n[i]);
	}
	ck_assert_int_eq(fleet_remove_node(fleet, 2), 0);
	check_farm(farm);
	ck_assert_ptr_eq(farm->nodes[1], n[4]);
	ck_assert_uint_eq(farm->index[1], 400);
	ck_assert_uint_eq(farm->assigned[1], 5);
	ck_assert(has_bit(n[4], "gpu"));
	ck_assert_int_eq(fleet_remove_node(fleet, 4), 0); /* the last itself */
	check_farm(farm);
	ck_assert_uint_eq(farm->count, 3);
}
END_TEST

START_TEST(tags_are_shared_and_given_back)
{
	struct node *a = made_node(fleet, 1, 1, "gpu east"), *b = made_node(fleet, 2, 1, "gpu");
	struct tag_set none = {0};
	int gpu = farm_find_tag(farm, "gpu"), east = farm_find_tag(farm, "east");

	ck_assert_int_ge(gpu, 0);
	ck_assert_int_ge(east, 0);
	ck_assert_int_ne(gpu, east);
	ck_assert_int_eq(farm_find_tag(farm, "GPU"), -ENOENT);
	made_change(fleet, a, tags = none);
	check_farm(farm);
	ck_assert_int_eq(farm_find_tag(farm, "gpu"), gpu);
	ck_assert_int_eq(farm_find_tag(farm, "east"), -ENOENT); /* nobody has it any more */
	ck_assert_int_eq(fleet_remove_node(fleet, b->spec.id), 0);
	ck_assert_int_eq(farm_find_tag(farm, "gpu"), -ENOENT);
	b = made_node(fleet, 3, 1, "west south north");
	check_farm(farm);
	ck_assert_uint_eq(
		farm->tag_count, 3); /* two of the three names took the places of gone ones */
	ck_assert(has_bit(b, "west") && has_bit(b, "south") && has_bit(b, "north"));
	ck_assert(!has_bit(a, "west"));
}
END_TEST

START_TEST(as_many_tags_as_there_are_bits)
{
	struct node_spec more, spec;
	struct node *n = NULL;

	for (uint32_t i = 0; i < FARM_TAGS_MAX / 32; i++) {
		spec = made_node_spec(i + 1, 1);
		for (uint32_t t = 0; t < 32; t++) {
			char tag[16];

			snprintf(tag, sizeof(tag), "t%u", i * 32 + t);
			ck_assert_int_eq(tag_set_add(&spec.tags, tag, NULL), 0);
		}
		ck_assert_int_eq(fleet_put_node(fleet, &spec, &n), 0);
	}
	check_farm(farm);
	more = made_node_spec(1000, 1);
	ck_assert_int_eq(tag_set_add(&more.tags, "onemore", NULL), 0);
	ck_assert_int_eq(fleet_put_node(fleet, &more, NULL), -E2BIG);
	ck_assert_ptr_null(fleet_node_by_id(fleet, 1000));
	check_farm(farm);
	/* in the place of one that goes with the same change there is room */
	memcpy(spec.tags.tag[5], "onemore", 8);
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), 0);
	check_farm(farm);
	ck_assert(has_bit(n, "onemore"));
	memcpy(spec.tags.tag[5], "t0", 3);
	ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), 0);
	ck_assert_int_eq(fleet_put_node(fleet, &more, NULL), 0);
	check_farm(farm);
}
END_TEST

START_TEST(a_node_that_moves_takes_its_tags_along)
{
	struct provider *q = made_provider(fleet, 2, "q");
	struct node *a = made_node(fleet, 1, 1, "gpu east"), *b = made_node(fleet, 2, 1, "east");

	made_heard(a, 700);
	made_change(fleet, a, provider_id = 2);
	ck_assert_ptr_eq(a->provider, q);
	check_farm(farm);
	check_farm(&q->farm);
	ck_assert_uint_eq(farm->count, 1);
	ck_assert_ptr_eq(farm->nodes[0], b);
	ck_assert_int_eq(farm_find_tag(farm, "gpu"), -ENOENT);
	ck_assert(has_bit(a, "gpu"));
	ck_assert_uint_eq(q->farm.index[a->slot], 700);
}
END_TEST

START_TEST(random_changes_keep_all_in_step)
{
	static const char *const tags[] = {"a", "b", "c", "d", "e", "f", "g"};
	uint64_t seed = 77;

	made_provider(fleet, 2, "q");
	for (int step = 0; step < 3000; step++) {
		uint32_t id = 1 + (uint32_t)(made_random(&seed) % 90);
		struct node_spec spec = made_node_spec(id, 1 + (uint32_t)(made_random(&seed) % 2));

		if (made_random(&seed) % 3 == 0) {
			(void)fleet_remove_node(fleet, id);
			continue;
		}
		for (int i = 0; i < 7; i++) {
			char own[24];

			if (made_random(&seed) % 3 == 0)
				ck_assert_int_eq(tag_set_add(&spec.tags, tags[i], NULL), 0);
			snprintf(own, sizeof(own), "%s%u", tags[i], id);
			if (made_random(&seed) % 8 == 0)
				ck_assert_int_eq(tag_set_add(&spec.tags, own, NULL), 0);
		}
		spec.mode = made_random(&seed) % 2 ? ADMIN_DRAIN : ADMIN_ENABLED;
		ck_assert_int_eq(fleet_put_node(fleet, &spec, NULL), 0);
		if (step % 10 == 0) {
			check_farm(farm);
			check_farm(&fleet_provider_by_id(fleet, 2)->farm);
		}
	}
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("farm");
	TCase *t = tcase_create("farm");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_empty_farm);
	tcase_add_test(t, the_last_node_fills_the_gap);
	tcase_add_test(t, tags_are_shared_and_given_back);
	tcase_add_test(t, as_many_tags_as_there_are_bits);
	tcase_add_test(t, a_node_that_moves_takes_its_tags_along);
	tcase_add_test(t, random_changes_keep_all_in_step);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
