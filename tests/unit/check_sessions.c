/* SPDX-License-Identifier: ISC */
/*
 * Sessions: the index by user against a naive list, the difference between heartbeats and what is
 * told of it, and what a session costs in memory.
 */
#include <errno.h>
#include <malloc.h>

#include "lib/made_fleet.h"
#include "lib/tap.h"
#include "model/fleet_private.h"

#define NOW INT64_C(1700000000000)

static struct fleet *fleet;
static struct node *n;
static char told[4096]; /* "+id=user ~id -id " */
static size_t bad;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	made_provider(fleet, 1, "p");
	n = made_node(fleet, 1, 1, NULL);
}

static void teardown(void)
{
	fleet_free(fleet);
}

static void tell(void *ctx, enum session_change change, const struct session *s)
{
	size_t len = strlen(told);

	ck_assert_ptr_eq(ctx, fleet);
	ck_assert_ptr_eq(s->node, n);
	if (change == SESSION_ADDED)
		snprintf(told + len, sizeof(told) - len, "+%s=%s ", session_id(s), session_key(s));
	else
		snprintf(told + len, sizeof(told) - len, "%c%s ",
			change == SESSION_ENDED ? '-' : '~', session_id(s));
}

/* What holds after every change: sorted, each in the chain of its user, the counts right. */
static void check_lists(void)
{
	struct fleet_counts counts;
	size_t total = 0;

	fleet_counts(fleet, &counts);
	for (struct node *at = fleet_next_node(fleet, NULL); at; at = fleet_next_node(fleet, at)) {
		total += at->session_count;
		for (uint32_t i = 0; i < at->session_count; i++) {
			const struct session *s = at->sessions[i], *in_chain;

			ck_assert_ptr_eq(s->node, at);
			if (i > 0)
				ck_assert_int_lt(
					strcmp(session_id(at->sessions[i - 1]), session_id(s)), 0);
			in_chain = fleet_user_sessions(fleet, session_key(s));
			while (in_chain && in_chain != s)
				in_chain = in_chain->user_next;
			ck_assert_ptr_eq(in_chain, s);
		}
	}
	ck_assert_uint_eq(counts.sessions, total);
}

static const char *report_at(
	struct heartbeat_session *sessions, size_t count, bool complete, int64_t now)
{
	struct heartbeat h = {
		.sessions_complete = complete, .sessions = sessions, .session_count = count};

	told[0] = '\0';
	ck_assert_int_eq(fleet_apply_sessions(fleet, n, &h, NULL, now, tell, fleet, &bad), 0);
	ck_assert(n->sessions_complete == complete);
	check_lists();
	return told;
}

#define report(complete, ...)                                       \
	report_at((struct heartbeat_session[]){__VA_ARGS__},        \
		sizeof((struct heartbeat_session[]){__VA_ARGS__}) / \
			sizeof(struct heartbeat_session),           \
		complete, NOW)

START_TEST(one_session_lives_and_ends)
{
	const struct session *s;

	ck_assert_str_eq(report(true, {"c1", "Alice", "10.0.0.1", true, NOW - 5000}), "+c1=alice ");
	s = fleet_user_sessions(fleet, "alice");
	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_eq(fleet_find_session(n, "c1"), s);
	ck_assert_str_eq(session_display(s), "Alice");
	ck_assert_str_eq(session_client(s), "10.0.0.1");
	ck_assert(s->active);
	ck_assert_int_eq(s->since_ms, NOW - 5000);
	ck_assert_int_eq(s->first_seen_ms, NOW);
	/* the same again: nothing to tell */
	ck_assert_str_eq(report(true, {"c1", "Alice", "10.0.0.1", true, NOW - 5000}), "");
	ck_assert_str_eq(report(true, {"c1", "Alice", "10.0.0.1", false, NOW - 5000}), "~c1 ");
	ck_assert(!fleet_user_sessions(fleet, "alice")->active);
	ck_assert_str_eq(report_at(NULL, 0, true, NOW), "-c1 ");
	ck_assert_ptr_null(fleet_user_sessions(fleet, "alice"));
	ck_assert_uint_eq(n->session_count, 0);
}
END_TEST

START_TEST(differences_of_two_lists)
{
	ck_assert_str_eq(report(true, {"d", "dave", "", true, 1}, {"b", "bob", "", true, 1}),
		"+b=bob +d=dave ");
	ck_assert_str_eq(report(true, {"e", "eve", "", true, 1}, {"a", "alice", "", true, 1},
				 {"d", "dave", "", false, 1}, {"c", "carol", "", true, 1}),
		"-b ~d +a=alice +c=carol +e=eve ");
	ck_assert_uint_eq(n->session_count, 4);
	ck_assert_str_eq(session_id(n->sessions[0]), "a");
	ck_assert_str_eq(session_id(n->sessions[3]), "e");
}
END_TEST

START_TEST(an_incomplete_list_ends_nothing)
{
	report(true, {"a", "alice", "", true, 1}, {"b", "bob", "", true, 1});
	ck_assert_str_eq(report(false, {"c", "carol", "", true, 1}), "+c=carol ");
	ck_assert_str_eq(report(false, {"a", "alice", "", false, 1}), "~a ");
	ck_assert_uint_eq(n->session_count, 3);
	ck_assert_str_eq(report(true, {"c", "carol", "", true, 1}), "-a -b ");
}
END_TEST

START_TEST(incomplete_lists_do_not_add_up_for_ever)
{
	static struct heartbeat_session list[LIMIT_SESSIONS];
	static char ids[LIMIT_SESSIONS][16];

	for (int turn = 0; turn < 3; turn++) {
		struct heartbeat h = {.sessions = list, .session_count = 4000};

		for (size_t i = 0; i < h.session_count; i++) {
			snprintf(ids[i], sizeof(ids[i]), "%d-%05zu", turn, i);
			list[i] = (struct heartbeat_session){ids[i], "alice", "", true, 1};
		}
		ck_assert_int_eq(
			fleet_apply_sessions(fleet, n, &h, NULL, NOW, NULL, NULL, &bad), 0);
		ck_assert_uint_eq(n->session_count, turn == 0 ? 4000 : LIMIT_SESSIONS);
		ck_assert_uint_eq(bad, turn == 0 ? 0 : turn == 1 ? 3000 : 4000);
	}
	ck_assert_ptr_nonnull(fleet_find_session(n, "1-00999"));
	ck_assert_ptr_null(fleet_find_session(n, "1-01000"));
}
END_TEST

START_TEST(a_future_beginning_is_clamped_to_first_sight)
{
	report_at(
		(struct heartbeat_session[]){{"a", "alice", "", true, NOW + 99999}}, 1, true, NOW);
	ck_assert_int_eq(fleet_find_session(n, "a")->since_ms, NOW);
	ck_assert_str_eq(
		report_at((struct heartbeat_session[]){{"a", "alice", "", true, NOW + 88888}}, 1,
			true, NOW + 15000),
		""); /* however it wanders in the future */
	ck_assert_int_eq(fleet_find_session(n, "a")->since_ms, NOW);
	ck_assert_int_eq(fleet_find_session(n, "a")->first_seen_ms, NOW);
	ck_assert_str_eq(report(true, {"a", "alice", "", true, NOW - 7}), "~a ");
	report(true, {"a", "alice", "", true, -5});
	ck_assert_int_eq(fleet_find_session(n, "a")->since_ms, 0);
}
END_TEST

START_TEST(a_name_that_makes_no_key_is_left_out_and_counted)
{
	ck_assert_str_eq(report(true, {"a", "ali\nce", "", true, 1}, {"b", "bob", "", true, 1},
				 {"c", "", "", true, 1}, {"d", "  ", "", true, 1}),
		"+b=bob ");
	ck_assert_uint_eq(bad, 3);
	/* one that was good: left out is absent */
	ck_assert_str_eq(report(false, {"b", "b\x01", "", true, 1}), "");
	ck_assert_uint_eq(bad, 1);
	ck_assert_uint_eq(n->session_count, 1);
	ck_assert_str_eq(report(true, {"b", "b\x01", "", true, 1}), "-b ");
	ck_assert_uint_eq(bad, 1);
}
END_TEST

START_TEST(an_id_given_to_another_user_is_another_session)
{
	report_at((struct heartbeat_session[]){{"a", "alice", "", true, 1}}, 1, true, NOW);
	ck_assert_str_eq(report_at((struct heartbeat_session[]){{"a", "bob", "", true, 1}}, 1, true,
				 NOW + 1000),
		"-a +a=bob ");
	ck_assert_ptr_null(fleet_user_sessions(fleet, "alice"));
	ck_assert_int_eq(fleet_find_session(n, "a")->first_seen_ms, NOW + 1000);
}
END_TEST

START_TEST(another_spelling_or_client_is_the_same_session)
{
	report_at((struct heartbeat_session[]){{"a", "alice", "10.0.0.1", true, 1}}, 1, true, NOW);
	ck_assert_str_eq(
		report_at((struct heartbeat_session[]){{"a", "ALICE", "10.0.0.1", true, 1}}, 1,
			true, NOW + 1000),
		"~a ");
	ck_assert_str_eq(session_display(fleet_find_session(n, "a")), "ALICE");
	ck_assert_str_eq(
		report_at((struct heartbeat_session[]){{"a", "ALICE", "10.0.0.2", false, 1}}, 1,
			true, NOW + 2000),
		"~a ");
	ck_assert_str_eq(session_client(fleet_find_session(n, "a")), "10.0.0.2");
	ck_assert_int_eq(fleet_find_session(n, "a")->first_seen_ms, NOW);
	/* space around a name is no difference */
	ck_assert_str_eq(report(true, {"a", " ALICE ", "10.0.0.2", false, 1}), "");
}
END_TEST

START_TEST(an_id_twice_in_one_report_counts_once)
{
	ck_assert_str_eq(
		report(true, {"a", "alice", "", true, 1}, {"a", "bob", "", true, 1}), "+a=alice ");
	ck_assert_uint_eq(n->session_count, 1);
}
END_TEST

START_TEST(new_rules_for_names_make_the_keys_anew)
{
	struct heartbeat_session alice = {"a", "alice", "", true, 1};
	struct heartbeat h = {.sessions_complete = true, .sessions = &alice, .session_count = 1};
	struct user_names *names = user_names_new();

	ck_assert_ptr_nonnull(names);
	report_at(&alice, 1, true, NOW);
	ck_assert_int_eq(user_names_set_default(names, "corp", NULL), 0);
	fleet_user_names_changed(fleet);
	told[0] = '\0';
	ck_assert_int_eq(
		fleet_apply_sessions(fleet, n, &h, names, NOW + 1000, tell, fleet, &bad), 0);
	ck_assert_str_eq(told, "~a "); /* nobody logged out */
	check_lists();
	ck_assert_ptr_nonnull(fleet_user_sessions(fleet, "corp\\alice"));
	ck_assert_ptr_null(fleet_user_sessions(fleet, "alice"));
	ck_assert_int_eq(fleet_find_session(n, "a")->first_seen_ms, NOW);
	told[0] = '\0';
	ck_assert_int_eq(fleet_apply_sessions(fleet, n, &h, names, NOW, tell, fleet, &bad), 0);
	ck_assert_str_eq(told, "");
	user_names_free(names);
}
END_TEST

START_TEST(local_users_follow_the_nodes_name)
{
	struct heartbeat_session root = {"a", ".\\root", "", true, 1};

	ck_assert_str_eq(report_at(&root, 1, true, NOW), "+a=\\n1\\root ");
	made_change(fleet, n, name[0] = 'm');
	ck_assert_str_eq(report_at(&root, 1, true, NOW), "~a ");
	ck_assert_ptr_nonnull(fleet_user_sessions(fleet, "\\m1\\root"));
	ck_assert_str_eq(report_at(&root, 1, true, NOW), "");
}
END_TEST

START_TEST(no_callback_and_no_counter_are_fine)
{
	struct heartbeat_session s[] = {{"a", "alice", "", true, 1}, {"b", "\n", "", true, 1}};
	struct heartbeat h = {.sessions = s, .session_count = 2, .sessions_complete = true};

	ck_assert_int_eq(fleet_apply_sessions(fleet, n, &h, NULL, NOW, NULL, NULL, NULL), 0);
	ck_assert_uint_eq(n->session_count, 1);
}
END_TEST

START_TEST(rows_of_the_database)
{
	ck_assert_int_eq(fleet_load_session(fleet, n, "b", "bob", "BOB", "c", true, 5, 6), 0);
	ck_assert_int_eq(fleet_load_session(fleet, n, "a", "bob", "", NULL, false, 7, 8), 0);
	check_lists();
	ck_assert_str_eq(session_display(fleet_find_session(n, "b")), "BOB");
	ck_assert_str_eq(session_client(fleet_find_session(n, "b")), "c");
	ck_assert_str_eq(session_display(fleet_find_session(n, "a")), "bob");
	ck_assert_str_eq(session_client(fleet_find_session(n, "a")), "");
	ck_assert_int_eq(fleet_find_session(n, "a")->first_seen_ms, 8);
	/* again: replaced */
	ck_assert_int_eq(fleet_load_session(fleet, n, "b", "carol", NULL, "d", true, 5, 6), 0);
	check_lists();
	ck_assert_uint_eq(n->session_count, 2);
	ck_assert_str_eq(session_key(fleet_find_session(n, "b")), "carol");
	ck_assert_int_eq(fleet_forget_session(fleet, n, "b"), 0);
	ck_assert_int_eq(fleet_forget_session(fleet, n, "b"), -ENOENT);
	ck_assert_ptr_null(fleet_find_session(n, "b"));
	check_lists();
	/* a row cannot be broken, but must not break us */
	ck_assert_int_lt(fleet_load_session(fleet, n, "", "x", NULL, NULL, true, 1, 1), 0);
	ck_assert_int_lt(fleet_load_session(fleet, n, "x", "", NULL, NULL, true, 1, 1), 0);
	check_lists();
}
END_TEST

START_TEST(the_longest_texts_fit)
{
	char id[LIMIT_SESSION_ID_SIZE], user[LIMIT_USER_SIZE], client[LIMIT_CLIENT_SIZE];
	struct heartbeat_session s = {id, user, client, true, 1};

	memset(id, 'i', sizeof(id));
	memset(user, 'U', sizeof(user));
	memset(client, 'c', sizeof(client));
	id[sizeof(id) - 1] = client[sizeof(client) - 1] = '\0';
	user[LIMIT_USER_CHARS] = '\0';
	report_at(&s, 1, true, NOW);
	ck_assert_uint_eq(bad, 0);
	ck_assert_uint_eq(n->session_count, 1);
	ck_assert_str_eq(session_id(n->sessions[0]), id);
	ck_assert_str_eq(session_client(n->sessions[0]), client);
	ck_assert_str_eq(session_display(n->sessions[0]), user);
	ck_assert_str_eq(report_at(&s, 1, true, NOW), "");
}
END_TEST

START_TEST(sessions_move_and_go_with_their_node)
{
	struct fleet_counts counts;

	made_provider(fleet, 2, "q");
	report(true, {"a", "alice", "", true, 1}, {"b", "bob", "", true, 1});
	made_change(fleet, n, provider_id = 2);
	check_lists();
	ck_assert_ptr_eq(fleet_user_sessions(fleet, "bob")->node, n);
	ck_assert_int_eq(fleet_remove_node(fleet, 1), 0);
	fleet_counts(fleet, &counts);
	ck_assert_uint_eq(counts.sessions, 0);
	ck_assert_uint_eq(counts.users, 0);
	ck_assert_ptr_null(fleet_user_sessions(fleet, "alice"));
}
END_TEST

/* Random heartbeats over few users and ids; the naive list is a table of what each id should hold.
 */
START_TEST(random_heartbeats_against_a_naive_table)
{
	enum { IDS = 40, USERS = 12, STEPS = 400 };
	char ids[IDS][8], users[USERS][8];
	int owner[3][IDS]; /* -1 = none */
	uint64_t seed = 2024 + (uint64_t)_i;

	memset(owner, 0xff, sizeof(owner));
	made_node(fleet, 2, 1, NULL);
	made_node(fleet, 3, 1, NULL);
	for (int i = 0; i < IDS; i++)
		snprintf(ids[i], sizeof(ids[i]), "c%d", i);
	for (int i = 0; i < USERS; i++)
		snprintf(users[i], sizeof(users[i]), "user%d", i);
	for (int step = 0; step < STEPS; step++) {
		struct heartbeat_session s[IDS];
		size_t count = 0, chained = 0;
		int at = (int)(made_random(&seed) % 3);
		bool complete = made_random(&seed) % 4 > 0;
		uint32_t keep = (uint32_t)(made_random(&seed) % 100);

		n = fleet_node_by_id(fleet, (uint32_t)at + 1);
		for (int i = IDS - 1; i >= 0; i--) {
			bool listed = made_random(&seed) % 100 < keep;
			int user = owner[at][i];

			if (!listed) {
				owner[at][i] = complete ? -1 : user;
				continue;
			}
			if (user < 0 || made_random(&seed) % 20 == 0)
				user = (int)(made_random(&seed) % USERS);
			owner[at][i] = user;
			s[count++] = (struct heartbeat_session){
				ids[i], users[user], "", made_random(&seed) % 2, 1};
		}
		report_at(s, count, complete, NOW + step);
		for (int i = 0; i < IDS; i++) {
			const struct session *found = fleet_find_session(n, ids[i]);

			ck_assert((found != NULL) == (owner[at][i] >= 0));
			if (found)
				ck_assert_str_eq(session_key(found), users[owner[at][i]]);
		}
		for (int i = 0; i < USERS; i++) {
			for (const struct session *c = fleet_user_sessions(fleet, users[i]); c;
				c = c->user_next) {
				ck_assert_str_eq(session_key(c), users[i]);
				chained++;
			}
		}
		for (int node = 0; node < 3; node++) {
			for (int i = 0; i < IDS; i++)
				chained -= owner[node][i] >= 0;
		}
		ck_assert_uint_eq(chained, 0);
	}
}
END_TEST

/* Many users come and go: every one is found, and nobody who went. */
START_TEST(the_index_grows_and_forgets)
{
	enum { USERS = 20000 };
	char key[32], id[16];
	struct fleet_counts counts;

	for (int i = 0; i < USERS; i++) {
		snprintf(key, sizeof(key), "corp\\user.%07d", i);
		snprintf(id, sizeof(id), "%06d", i);
		ck_assert_int_eq(fleet_load_session(fleet, n, id, key, NULL, "", true, 1, i), 0);
	}
	fleet_counts(fleet, &counts);
	ck_assert_uint_eq(counts.users, USERS);
	for (int i = 0; i < USERS; i += 2) {
		snprintf(id, sizeof(id), "%06d", i);
		ck_assert_int_eq(fleet_forget_session(fleet, n, id), 0);
	}
	for (int i = 0; i < USERS; i++) {
		const struct session *s;

		snprintf(key, sizeof(key), "corp\\user.%07d", i);
		s = fleet_user_sessions(fleet, key);
		ck_assert((s != NULL) == (i % 2 == 1));
		if (s)
			ck_assert_int_eq(s->first_seen_ms, i);
	}
	ck_assert_ptr_null(fleet_user_sessions(fleet, "corp\\user.9999999"));
}
END_TEST

/* Counted: each block as the allocator rounds it, with its header word, and every list and index.
 */
START_TEST(a_session_costs_at_most_160_bytes)
{
	enum { NODES = 100, EACH = 50 };
	size_t bytes = 0, total = NODES * EACH;

	for (uint32_t i = 1; i <= NODES; i++) {
		struct node *at = i == 1 ? n : made_node(fleet, i, 1, NULL);
		struct heartbeat_session s[EACH];
		char text[EACH][3][32];
		struct heartbeat h = {
			.sessions_complete = true, .sessions = s, .session_count = EACH};

		for (uint32_t j = 0; j < EACH; j++) {
			snprintf(text[j][0], 32, "xrdp-%u", j);
			snprintf(text[j][1], 32, "CORP\\user.%07u", i * EACH + j);
			snprintf(text[j][2], 32, "192.168.%u.%u", i, j);
			s[j] = (struct heartbeat_session){
				text[j][0], text[j][1], text[j][2], true, 1};
			ck_assert_uint_eq(strlen(s[j].user), 17);
		}
		ck_assert_int_eq(
			fleet_apply_sessions(fleet, at, &h, NULL, NOW, NULL, NULL, NULL), 0);
		bytes += malloc_usable_size(at->sessions) + sizeof(size_t);
		for (uint32_t j = 0; j < EACH; j++)
			bytes += malloc_usable_size(at->sessions[j]) + sizeof(size_t);
	}
	ck_assert_uint_eq(fleet->sessions.users, total);
	bytes += malloc_usable_size(fleet->sessions.slot) + sizeof(size_t);
	ck_assert_msg(bytes <= 160 * total, "%zu bytes a session", bytes / total);
	ck_assert_uint_gt(bytes, 64 * total); /* that something was counted */
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("sessions");
	TCase *t = tcase_create("sessions");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, one_session_lives_and_ends);
	tcase_add_test(t, differences_of_two_lists);
	tcase_add_test(t, an_incomplete_list_ends_nothing);
	tcase_add_test(t, incomplete_lists_do_not_add_up_for_ever);
	tcase_add_test(t, a_future_beginning_is_clamped_to_first_sight);
	tcase_add_test(t, a_name_that_makes_no_key_is_left_out_and_counted);
	tcase_add_test(t, an_id_given_to_another_user_is_another_session);
	tcase_add_test(t, another_spelling_or_client_is_the_same_session);
	tcase_add_test(t, an_id_twice_in_one_report_counts_once);
	tcase_add_test(t, new_rules_for_names_make_the_keys_anew);
	tcase_add_test(t, local_users_follow_the_nodes_name);
	tcase_add_test(t, no_callback_and_no_counter_are_fine);
	tcase_add_test(t, rows_of_the_database);
	tcase_add_test(t, the_longest_texts_fit);
	tcase_add_test(t, sessions_move_and_go_with_their_node);
	tcase_add_loop_test(t, random_heartbeats_against_a_naive_table, 0, 5);
	tcase_add_test(t, the_index_grows_and_forgets);
	tcase_add_test(t, a_session_costs_at_most_160_bytes);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
