/* SPDX-License-Identifier: ISC */
/* wire/heartbeat: what a heartbeat must be, what a bad session costs, replies and topologies. */
#include "wire/heartbeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tap.h"
#include "wire/json.h"

#define HEAD                                                                                       \
	"\"node\":\"ts-1\",\"boot_id\":\"b0\",\"seq\":7,\"accepting\":true,\"sessions_complete\":" \
	"true"

static int parse(const char *text, struct heartbeat *ret, struct err *e)
{
	return heartbeat_parse(text, strlen(text), ret, e);
}

static struct heartbeat parsed(const char *text)
{
	struct heartbeat h = {0};
	struct err e = {""};

	ck_assert_msg(parse(text, &h, &e) == 0, "%s: %s", text, e.text);
	return h;
}

START_TEST(a_whole_heartbeat)
{
	struct heartbeat h =
		parsed("{\"node\":\"ts-1\",\"boot_id\":\"5f0c1f3a-7d2e-4a57-9a3e-8b1d0c6b7e21\","
		       "\"seq\":123456,"
		       "\"accepting\":true,\"window\":{\"samples\":12,\"seconds\":60},\"cpu\":{"
		       "\"busy_percent\":37.255,"
		       "\"count\":8},\"memory\":{\"total_bytes\":33554432000,\"available_bytes\":"
		       "12345678848},"
		       "\"sessions_complete\":true,\"sessions\":[{\"id\":\"c1\",\"user\":"
		       "\"CORP\\\\alice\","
		       "\"state\":\"active\",\"since\":1796080797123,\"client\":\"10.0.0.7\"},"
		       "{\"state\":\"disconnected\",\"user\":\"\\u0438\xd0\xb2\",\"id\":\"c2\","
		       "\"future\":{\"x\":[\"]}\"]}}],"
		       "\"logins\":[\"bob\"],\"custom_load\":12.5,\"agent_version\":\"0.1.0\","
		       "\"unknown\":{\"cpu\":[]}}");

	ck_assert_str_eq(h.node, "ts-1");
	ck_assert_str_eq(h.boot_id, "5f0c1f3a-7d2e-4a57-9a3e-8b1d0c6b7e21");
	ck_assert(h.seq == 123456 && h.accepting && h.sessions_complete);
	ck_assert(h.window_samples == 12 && h.window_seconds == 60);
	ck_assert(h.has_cpu && h.cpu_busy == 3726 && h.cpu_count == 8);
	ck_assert(
		h.has_memory && h.memory_total == 33554432000 && h.memory_available == 12345678848);
	ck_assert(h.has_custom_load && h.custom_load == 1250);
	ck_assert_str_eq(h.agent_version, "0.1.0");
	ck_assert_uint_eq(h.session_count, 2);
	ck_assert_uint_eq(h.sessions_dropped, 0);
	ck_assert_str_eq(h.sessions[0].id, "c1");
	ck_assert_str_eq(h.sessions[0].user, "CORP\\alice");
	ck_assert_str_eq(h.sessions[0].client, "10.0.0.7");
	ck_assert(h.sessions[0].active && h.sessions[0].since_ms == 1796080797123);
	ck_assert_str_eq(h.sessions[1].id, "c2");
	ck_assert_str_eq(h.sessions[1].user, "\xd0\xb8\xd0\xb2");
	ck_assert_str_eq(h.sessions[1].client, "");
	ck_assert(!h.sessions[1].active && h.sessions[1].since_ms == 0);
	ck_assert_uint_eq(h.login_count, 1);
	ck_assert_str_eq(h.logins[0], "bob");
	heartbeat_deinit(&h);
	heartbeat_deinit(&h);
}
END_TEST

START_TEST(no_metric_is_valid_and_nothing_is_zero)
{
	struct heartbeat h = parsed(
		"{" HEAD ",\"sessions\":[],\"cpu\":null,\"memory\":null,\"custom_load\":null}");

	ck_assert(!h.has_cpu && !h.has_memory && !h.has_custom_load);
	ck_assert(h.sessions_complete && h.session_count == 0 && h.login_count == 0);
	heartbeat_deinit(&h);
}
END_TEST

START_TEST(no_list_is_no_complete_list)
{
	struct heartbeat h = parsed("{" HEAD "}");

	ck_assert(!h.sessions_complete);
	heartbeat_deinit(&h);
	h = parsed("{" HEAD ",\"sessions\":null}");
	ck_assert(!h.sessions_complete);
	heartbeat_deinit(&h);
}
END_TEST

START_TEST(edges_of_every_number)
{
	struct heartbeat h = parsed(
		"{" HEAD ",\"cpu\":{\"busy_percent\":100,\"count\":100000},\"custom_load\":0,"
		"\"memory\":{\"total_bytes\":1,\"available_bytes\":1},"
		"\"window\":{\"samples\":1,\"seconds\":0},\"sessions\":[ ]}");

	ck_assert(h.cpu_busy == 10000 && h.cpu_count == 100000);
	ck_assert(h.has_custom_load && h.custom_load == 0);
	ck_assert(h.memory_total == 1 && h.memory_available == 1);
	heartbeat_deinit(&h);
	h = parsed("{" HEAD ",\"cpu\":{\"busy_percent\":-0.0,\"count\":1},\"custom_load\":99.994}");
	ck_assert(h.cpu_busy == 0 && h.custom_load == 9999);
	heartbeat_deinit(&h);
}
END_TEST

static const struct {
	const char *text, *what;
} bad[] = {
	{"", "the text is empty"},
	{"[]", "not an object"},
	{"null", "not an object"},
	{"{\"boot_id\":\"b\",\"seq\":1,\"accepting\":true,\"sessions_complete\":true}",
		"\"node\" is missing"},
	{"{\"node\":\"../x\",\"boot_id\":\"b\",\"seq\":1,\"accepting\":true}",
		"\"node\" is not a valid name"},
	{"{\"node\":1,\"boot_id\":\"b\",\"seq\":1,\"accepting\":true}",
		"\"node\" must be a string"},
	{"{\"node\":\"n\",\"seq\":1,\"accepting\":true}", "\"boot_id\" is missing"},
	{"{\"node\":\"n\",\"boot_id\":\"\",\"seq\":1}", "\"boot_id\" is not a valid"},
	{"{\"node\":\"n\",\"boot_id\":\"a b\",\"seq\":1}", "\"boot_id\" is not a valid"},
	{"{\"node\":\"n\",\"boot_id\":\"1234567890123456789012345678901234567\"}",
		"\"boot_id\" is longer"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"accepting\":true}", "\"seq\" is missing"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":-1}", "\"seq\" must be within"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":1.5}", "\"seq\" must be an integer"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":9223372036854775808}",
		"\"seq\" must be within"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":\"1\"}", "\"seq\" must be an integer"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":1}", "\"accepting\" is missing"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":1,\"accepting\":1}",
		"\"accepting\" must be true or false"},
	{"{\"node\":\"n\",\"boot_id\":\"b\",\"seq\":1,\"accepting\":true}",
		"\"sessions_complete\" is missing"},
	{"{" HEAD ",\"cpu\":5}", "\"cpu\" must be an object"},
	{"{" HEAD ",\"cpu\":{}}", "\"busy_percent\" is missing"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":5}}", "\"count\" is missing"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":NaN,\"count\":1}}",
		"member \"busy_percent\": not a JSON value"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":Infinity,\"count\":1}}", "member \"busy_percent\""},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":1e999,\"count\":1}}",
		"member \"busy_percent\": a number is not finite"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":-0.1,\"count\":1}}",
		"\"busy_percent\" must be within 0 and 100"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":100.01,\"count\":1}}",
		"\"busy_percent\" must be within 0 and 100"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":\"5\",\"count\":1}}",
		"\"busy_percent\" must be a number"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":5,\"count\":0}}",
		"\"count\" must be within 1 and 100000"},
	{"{" HEAD ",\"cpu\":{\"busy_percent\":5,\"count\":100001}}",
		"\"count\" must be within 1 and 100000"},
	{"{" HEAD ",\"memory\":{\"total_bytes\":0,\"available_bytes\":0}}",
		"\"total_bytes\" must be within 1"},
	{"{" HEAD ",\"memory\":{\"total_bytes\":5,\"available_bytes\":6}}",
		"\"available_bytes\" is more than \"total_bytes\""},
	{"{" HEAD ",\"memory\":{\"total_bytes\":5,\"available_bytes\":-1}}",
		"\"available_bytes\" must be within"},
	{"{" HEAD ",\"memory\":{\"total_bytes\":5}}", "\"available_bytes\" is missing"},
	{"{" HEAD ",\"memory\":{\"available_bytes\":5}}", "\"total_bytes\" is missing"},
	{"{" HEAD ",\"custom_load\":101}", "\"custom_load\" must be within 0 and 100"},
	{"{" HEAD ",\"custom_load\":-1}", "\"custom_load\" must be within 0 and 100"},
	{"{" HEAD ",\"custom_load\":true}", "\"custom_load\" must be a number"},
	{"{" HEAD ",\"window\":{\"samples\":0,\"seconds\":1}}", "\"samples\" must be within 1"},
	{"{" HEAD ",\"window\":{\"samples\":1}}", "\"seconds\" is missing"},
	{"{" HEAD ",\"sessions\":{}}", "\"sessions\" must be an array"},
	{"{" HEAD ",\"sessions\":\"none\"}", "\"sessions\" must be an array"},
	{"{" HEAD ",\"sessions\":[{\"id\":\"a\",\"id\":\"b\"}]}", "duplicate key"},
	{"{" HEAD ",\"sessions\":[[[[[[[[[]]]]]]]]]}", "nested too deeply"},
	{"{" HEAD ",\"sessions\":[{\"user\":\"\xff\"}]}", "invalid UTF-8"},
	{"{" HEAD ",\"sessions\":[", "a value is missing"},
	{"{" HEAD ",\"sessions\":[]", "',' or '}' is missing"},
	{"{" HEAD ",\"sessions\":[]}[]", "something follows"},
	{"{" HEAD ",\"sessions\":[],\"sessions\":[]}", "duplicate key"},
	{"{" HEAD ",\"logins\":1}", "\"logins\" must be an array"},
	{"{" HEAD ",\"agent_version\":\"123456789012345678901234567890123\"}",
		"\"agent_version\" is longer"},
};

START_TEST(each_bad_heartbeat_is_told_why)
{
	struct heartbeat h = {.seq = 42};
	struct err e = {""};

	ck_assert_msg(parse(bad[_i].text, &h, &e) == -EINVAL, "accepted: %s", bad[_i].text);
	ck_assert_msg(strstr(e.text, bad[_i].what) != NULL, "%s: %s", bad[_i].text, e.text);
	ck_assert(h.seq == 42 && h.text == NULL);
}
END_TEST

START_TEST(a_bad_session_costs_itself_alone)
{
	static const char *const entries[] = {"1", "null", "\"x\"", "[]", "[{\"id\":\"x\"}]", "{}",
		"{\"user\":\"u\",\"state\":\"active\"}", "{\"id\":\"x\",\"state\":\"active\"}",
		"{\"id\":\"x\",\"user\":\"u\"}",
		"{\"id\":\"\",\"user\":\"u\",\"state\":\"active\"}",
		"{\"id\":\"a b\",\"user\":\"u\",\"state\":\"active\"}",
		"{\"id\":\"\\u00e9\",\"user\":\"u\",\"state\":\"active\"}",
		"{\"id\":7,\"user\":\"u\",\"state\":\"active\"}",
		"{\"id\":null,\"user\":\"u\",\"state\":\"active\"}",
		("{\"id\":\"12345678901234567890123456789012345678901234567890123456789012345\","
		 "\"user\":\"u\","
		 "\"state\":\"active\"}"),
		"{\"id\":\"x\",\"user\":\"\",\"state\":\"active\"}",
		"{\"id\":\"x\",\"user\":\"a\\nb\",\"state\":\"active\"}",
		"{\"id\":\"x\",\"user\":\"a\\u202eb\",\"state\":\"active\"}",
		"{\"id\":\"x\",\"user\":{\"id\":\"x\"},\"state\":\"active\"}",
		"{\"id\":\"x\",\"user\":\"u\",\"state\":\"Active\"}",
		"{\"id\":\"x\",\"user\":\"u\",\"state\":true}",
		"{\"id\":\"c1\",\"user\":\"again\",\"state\":\"active\"}"};
	size_t n = sizeof(entries) / sizeof(*entries);
	struct buf b = BUF_INIT(100000);
	struct heartbeat h;

	buf_adds(&b,
		"{" HEAD ",\"sessions\":[{\"id\":\"c1\",\"user\":\"one\",\"state\":\"active\"}");
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, " , %s", entries[i]);
	buf_adds(&b, ",{\"id\":\"c2\",\"user\":\"two\",\"state\":\"disconnected\"} ] }");
	h = parsed(buf_str(&b));
	ck_assert_uint_eq(h.session_count, 2);
	ck_assert_uint_eq(h.sessions_dropped, n);
	ck_assert_str_eq(h.sessions[0].user, "one");
	ck_assert_str_eq(h.sessions[1].user, "two");
	ck_assert(h.sessions_complete);
	heartbeat_deinit(&h);
	buf_deinit(&b);
}
END_TEST

START_TEST(an_odd_since_or_client_is_unknown)
{
	static const char *const since[] = {"-5", "1.5", "1e3", "99999999999999999999e1", "\"1\"",
		"null", "{}", "18446744073709551615"};
	struct heartbeat h;
	char text[600];

	for (size_t i = 0; i < sizeof(since) / sizeof(*since); i++) {
		snprintf(text, sizeof(text),
			"{" HEAD ",\"sessions\":[{\"since\":%s,\"client\":\"a\\nb\",\"id\":\"c1\","
			"\"user\":\"u\",\"state\":\"active\"}]}",
			since[i]);
		h = parsed(text);
		ck_assert_uint_eq(h.session_count, 1);
		ck_assert_msg(h.sessions[0].since_ms == 0, "%s", since[i]);
		ck_assert_str_eq(h.sessions[0].client, "");
		heartbeat_deinit(&h);
	}
	/* The far future is for the receiver to clamp. */
	h = parsed("{" HEAD
		   ",\"sessions\":[{\"since\":9223372036854775807 , \"id\":\"c1\",\"user\":\"u\","
		   "\"state\":\"active\",\"client\":17}]}");
	ck_assert(h.sessions[0].since_ms == INT64_MAX);
	ck_assert_str_eq(h.sessions[0].client, "");
	heartbeat_deinit(&h);
}
END_TEST

/* A heartbeat with COUNT sessions; the id of session i is i % DISTINCT. */
static char *with_sessions(size_t count, size_t distinct, const char *extra)
{
	struct buf b = BUF_INIT(64 << 20);

	buf_adds(&b, "{" HEAD ",\"sessions\":[");
	for (size_t i = 0; i < count; i++)
		buf_addf(&b, "%s{\"id\":\"session-%zu\",\"user\":\"u%zu\",\"state\":\"active\"}",
			i ? "," : "", i % distinct, i);
	buf_addf(&b, "]%s}", extra);
	return buf_steal(&b);
}

START_TEST(sessions_are_limited)
{
	char *text = with_sessions(LIMIT_SESSIONS, LIMIT_SESSIONS, "");
	struct heartbeat h = parsed(text);
	struct err e = {""};

	ck_assert_uint_eq(h.session_count, LIMIT_SESSIONS);
	ck_assert_str_eq(h.sessions[LIMIT_SESSIONS - 1].user, "u4999");
	heartbeat_deinit(&h);
	free(text);
	text = with_sessions(LIMIT_SESSIONS + 1, LIMIT_SESSIONS + 1, "");
	ck_assert_int_eq(parse(text, &h, &e), -E2BIG);
	ck_assert_str_eq(e.text, "\"sessions\" has more than 5000 items");
	free(text);
	/* A million are too many values before they are too many sessions. */
	text = with_sessions(1000000, 1000000, "");
	ck_assert_int_eq(parse(text, &h, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, "too many values") != NULL, "%s", e.text);
	free(text);
}
END_TEST

/* Around the change from pairs to sorting. */
START_TEST(the_first_of_equal_ids_stays)
{
	static const size_t counts[] = {2, 3, 63, 64, 65, 66, 200, 1000};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		size_t distinct = counts[i] / 2 + 1;
		char *text = with_sessions(counts[i], distinct, "");
		struct heartbeat h = parsed(text);

		ck_assert_uint_eq(h.session_count, distinct);
		ck_assert_uint_eq(h.sessions_dropped, counts[i] - distinct);
		for (size_t k = 0; k < distinct; k++) {
			char user[32];

			snprintf(user, sizeof(user), "u%zu", k);
			ck_assert_str_eq(h.sessions[k].user, user);
		}
		heartbeat_deinit(&h);
		free(text);
	}
}
END_TEST

START_TEST(logins_that_are_no_names_are_left_out)
{
	struct heartbeat h =
		parsed("{" HEAD ",\"logins\":[\"a\",1,null,\"\",\"b\\nc\",\"CORP\\\\d\",{}]}");
	struct buf b = BUF_INIT(1 << 20);
	struct err e = {""};

	ck_assert_uint_eq(h.login_count, 2);
	ck_assert_str_eq(h.logins[0], "a");
	ck_assert_str_eq(h.logins[1], "CORP\\d");
	heartbeat_deinit(&h);
	buf_adds(&b, "{" HEAD ",\"logins\":[\"a\"");
	for (int i = 0; i < LIMIT_LOGINS; i++)
		buf_adds(&b, ",\"a\"");
	buf_adds(&b, "]}");
	ck_assert_int_eq(parse(buf_str(&b), &h, &e), -E2BIG);
	ck_assert_str_eq(e.text, "\"logins\" has more than 5000 items");
	buf_deinit(&b);
}
END_TEST

START_TEST(other_arrays_are_not_taken_for_sessions)
{
	struct heartbeat h = parsed(
		"{\"x\":{\"sessions\":[1]},\"y\":[{\"sessions\":[2]}]," HEAD
		",\"sessions\":[],\"z\":[{\"a\":[]}],\"cpu\":{\"busy_percent\":1,\"count\":2}}");

	ck_assert(h.sessions_complete && h.session_count == 0 && h.sessions_dropped == 0);
	ck_assert(h.has_cpu && h.cpu_count == 2);
	heartbeat_deinit(&h);
	/* An escaped spelling of the key means the same. */
	h = parsed("{" HEAD ",\"session\\u0073\":[{\"\\u0069d\":\"c\\u0031\",\"user\":\"u\","
		   "\"state\":\"active\"}]}");
	ck_assert_uint_eq(h.session_count, 1);
	ck_assert_str_eq(h.sessions[0].id, "c1");
	heartbeat_deinit(&h);
}
END_TEST

static uint64_t below(unsigned short seed[3], uint64_t limit)
{
	return ((uint64_t)nrand48(seed) << 31 | (uint64_t)nrand48(seed)) % limit;
}

struct built {
	struct heartbeat h;
	struct heartbeat_session sessions[100];
	const char *logins[20];
	char text[220][40];
};

/* A random heartbeat, as an agent would build it. */
static void build(unsigned short seed[3], struct built *b)
{
	static const char *const odd[] = {
		"\xd0\xb8\xd0\xb2", "a\"b", "C\\d", "x y", "\xf0\x9f\x98\x80"};
	struct heartbeat *h = &b->h;

	memset(b, 0, sizeof(*b));
	snprintf(h->node, sizeof(h->node), "node-%u", (unsigned)below(seed, 1000));
	snprintf(h->boot_id, sizeof(h->boot_id), "boot-%u", (unsigned)below(seed, 1000));
	h->seq = below(seed, INT64_MAX);
	h->accepting = below(seed, 2);
	h->sessions_complete = below(seed, 2);
	h->window_samples = (uint32_t)below(seed, 13);
	h->window_seconds = h->window_samples ? (uint32_t)below(seed, 600) : 0;
	h->has_cpu = below(seed, 2);
	h->cpu_busy = h->has_cpu ? (uint32_t)below(seed, 10001) : 0;
	h->cpu_count = h->has_cpu ? 1 + (uint32_t)below(seed, 100000) : 0;
	h->has_memory = below(seed, 2);
	h->memory_total = h->has_memory ? 1 + below(seed, INT64_MAX) : 0;
	h->memory_available = h->has_memory ? below(seed, h->memory_total + 1) : 0;
	h->has_custom_load = below(seed, 2);
	h->custom_load = h->has_custom_load ? (uint32_t)below(seed, 10001) : 0;
	h->sessions = b->sessions;
	h->session_count = below(seed, 101);
	for (size_t i = 0; i < h->session_count; i++) {
		snprintf(b->text[2 * i], sizeof(b->text[0]), "id-%zu", i);
		snprintf(b->text[2 * i + 1], sizeof(b->text[0]), "%s%u", odd[below(seed, 5)],
			(unsigned)below(seed, 1000));
		b->sessions[i] = (struct heartbeat_session){b->text[2 * i], b->text[2 * i + 1],
			below(seed, 2) ? "10.0.0.1" : "", below(seed, 2),
			(int64_t)below(seed, INT64_MAX)};
	}
	h->logins = b->logins;
	h->login_count = below(seed, 21);
	for (size_t i = 0; i < h->login_count; i++)
		b->logins[i] = odd[below(seed, 5)];
	snprintf(h->agent_version, sizeof(h->agent_version), "0.%u", (unsigned)below(seed, 10));
}

static void assert_same(const struct heartbeat *a, const struct heartbeat *b)
{
	ck_assert_str_eq(a->node, b->node);
	ck_assert_str_eq(a->boot_id, b->boot_id);
	ck_assert_str_eq(a->agent_version, b->agent_version);
	ck_assert(a->seq == b->seq && a->accepting == b->accepting);
	ck_assert(a->window_samples == b->window_samples && a->window_seconds == b->window_seconds);
	ck_assert(a->has_cpu == b->has_cpu && a->cpu_busy == b->cpu_busy &&
		  a->cpu_count == b->cpu_count);
	ck_assert(a->has_memory == b->has_memory && a->memory_total == b->memory_total);
	ck_assert(a->memory_available == b->memory_available);
	ck_assert(a->has_custom_load == b->has_custom_load && a->custom_load == b->custom_load);
	ck_assert(a->sessions_complete == b->sessions_complete);
	ck_assert_uint_eq(a->session_count, b->session_count);
	ck_assert_uint_eq(b->sessions_dropped, 0);
	for (size_t i = 0; i < a->session_count; i++) {
		ck_assert_str_eq(a->sessions[i].id, b->sessions[i].id);
		ck_assert_str_eq(a->sessions[i].user, b->sessions[i].user);
		ck_assert_str_eq(a->sessions[i].client, b->sessions[i].client);
		ck_assert(a->sessions[i].active == b->sessions[i].active);
		ck_assert(a->sessions[i].since_ms == b->sessions[i].since_ms);
	}
	ck_assert_uint_eq(a->login_count, b->login_count);
	for (size_t i = 0; i < a->login_count; i++)
		ck_assert_str_eq(a->logins[i], b->logins[i]);
}

/* What is written is read back; fixed seed. */
START_TEST(heartbeats_round_trip)
{
	unsigned short seed[3] = {4, 5, 6};
	static struct built b;

	for (int i = 0; i < 500; i++) {
		struct buf text = BUF_INIT(1 << 20);
		struct heartbeat back;
		struct err e = {""};

		build(seed, &b);
		heartbeat_format(&b.h, &text);
		ck_assert_int_eq(buf_error(&text), 0);
		ck_assert_msg(heartbeat_parse(buf_str(&text), text.len, &back, &e) == 0, "%s: %s",
			e.text, buf_str(&text));
		assert_same(&b.h, &back);
		heartbeat_deinit(&back);
		buf_deinit(&text);
	}
}
END_TEST

static int parse_reply(const char *text, struct heartbeat_reply *ret, struct err *e)
{
	return heartbeat_reply_parse(text, strlen(text), ret, e);
}

START_TEST(replies_round_trip)
{
	unsigned short seed[3] = {8, 8, 1};

	for (int i = 0; i < 500; i++) {
		struct heartbeat_reply r = {.maintenance = below(seed, 2),
			.push_interval = 1 + (uint32_t)below(seed, 3600)};
		struct heartbeat_reply back;
		struct buf b = BUF_INIT(1 << 20);
		struct err e = {""};

		r.has_load_index = below(seed, 2);
		r.load_index = r.has_load_index ? (uint32_t)below(seed, LOAD_INDEX_MAX + 1) : 0;
		if (below(seed, 4)) {
			strcpy(r.topology.cluster_id, "3f1c");
			r.topology.version = below(seed, INT64_MAX);
			r.topology.count = below(seed, LIMIT_DISPATCHERS + 1);
		}
		for (size_t k = 0; k < r.topology.count; k++) {
			snprintf(r.topology.dispatchers[k].name, LIMIT_NAME_SIZE, "d%zu", k);
			snprintf(r.topology.dispatchers[k].url, LIMIT_ADDRESS_SIZE,
				"https://[2001:db8::%zu]:8443", k);
		}
		heartbeat_reply_format(&r, &b);
		ck_assert_msg(
			parse_reply(buf_str(&b), &back, &e) == 0, "%s: %s", e.text, buf_str(&b));
		ck_assert(
			back.has_load_index == r.has_load_index && back.load_index == r.load_index);
		ck_assert(
			back.maintenance == r.maintenance && back.push_interval == r.push_interval);
		ck_assert_str_eq(back.topology.cluster_id, r.topology.cluster_id);
		ck_assert(back.topology.version == r.topology.version);
		ck_assert_uint_eq(back.topology.count, r.topology.count);
		for (size_t k = 0; k < r.topology.count; k++) {
			ck_assert_str_eq(
				back.topology.dispatchers[k].name, r.topology.dispatchers[k].name);
			ck_assert_str_eq(
				back.topology.dispatchers[k].url, r.topology.dispatchers[k].url);
		}
		buf_deinit(&b);
	}
}
END_TEST

#define TOPOLOGY "{\"maintenance\":false,\"push_interval\":15,\"topology\":"
static const struct {
	const char *text, *what;
} bad_replies[] = {
	{"", "the text is empty"},
	{"[]", "not an object"},
	{"<html>", "not a JSON value"},
	{"{}", "\"maintenance\" is missing"},
	{"{\"maintenance\":false}", "\"push_interval\" is missing"},
	{"{\"maintenance\":0,\"push_interval\":15}", "\"maintenance\" must be true or false"},
	{"{\"maintenance\":false,\"push_interval\":0}",
		"\"push_interval\" must be within 1 and 3600"},
	{"{\"maintenance\":false,\"push_interval\":3601}",
		"\"push_interval\" must be within 1 and 3600"},
	{"{\"maintenance\":false,\"push_interval\":-1}",
		"\"push_interval\" must be within 1 and 3600"},
	{"{\"maintenance\":false,\"push_interval\":15,\"load_index\":10001}",
		"\"load_index\" must be within"},
	{TOPOLOGY "[]}", "\"topology\" must be an object"},
	{TOPOLOGY "{}}", "\"cluster_id\" is missing"},
	{TOPOLOGY "{\"cluster_id\":\"\",\"version\":1}}", "\"cluster_id\" is missing"},
	{TOPOLOGY "{\"cluster_id\":\"c\"}}", "\"version\" is missing"},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":-1}}", "\"version\" must be within"},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":1}}",
		"\"dispatchers\" must be an array"},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[1]}}", "must hold objects"},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[{\"url\":\"https://a\"}]}}",
		"\"name\""},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[{\"name\":\"a\"}]}}",
		"\"url\""},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[{\"name\":\"a\",\"url\":"
		  "\"file:///x\"}]}}",
		"\"url\""},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[{\"name\":\"a\",\"url\":"
		  "\"https://\"}]}}",
		"\"url\""},
	{TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[{\"name\":\"a\","
		  "\"url\":\"https://a b\"}]}}",
		"\"url\""},
};

START_TEST(each_bad_reply_is_told_why)
{
	struct heartbeat_reply r = {.push_interval = 42};
	struct err e = {""};

	ck_assert_msg(parse_reply(bad_replies[_i].text, &r, &e) == -EINVAL, "accepted: %s",
		bad_replies[_i].text);
	ck_assert_msg(strstr(e.text, bad_replies[_i].what) != NULL, "%s: %s", bad_replies[_i].text,
		e.text);
	ck_assert_uint_eq(r.push_interval, 42);
}
END_TEST

START_TEST(a_topology_has_a_limit)
{
	struct buf b = BUF_INIT(100000);
	struct heartbeat_reply r;
	struct err e = {""};

	buf_adds(&b, TOPOLOGY "{\"cluster_id\":\"c\",\"version\":1,\"dispatchers\":[");
	for (int i = 0; i <= LIMIT_DISPATCHERS; i++)
		buf_addf(&b, "%s{\"name\":\"d%d\",\"url\":\"https://d%d\"}", i ? "," : "", i, i);
	buf_adds(&b, "]}}");
	ck_assert_int_eq(parse_reply(buf_str(&b), &r, &e), -EINVAL);
	ck_assert_str_eq(e.text, "\"dispatchers\" has more than 64 items");
	buf_deinit(&b);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("heartbeat");
	TCase *t = tcase_create("heartbeat"), *reply = tcase_create("reply");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_whole_heartbeat);
	tcase_add_test(t, no_metric_is_valid_and_nothing_is_zero);
	tcase_add_test(t, no_list_is_no_complete_list);
	tcase_add_test(t, edges_of_every_number);
	tcase_add_loop_test(t, each_bad_heartbeat_is_told_why, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(t, a_bad_session_costs_itself_alone);
	tcase_add_test(t, an_odd_since_or_client_is_unknown);
	tcase_add_test(t, sessions_are_limited);
	tcase_add_test(t, the_first_of_equal_ids_stays);
	tcase_add_test(t, logins_that_are_no_names_are_left_out);
	tcase_add_test(t, other_arrays_are_not_taken_for_sessions);
	tcase_add_test(t, heartbeats_round_trip);
	suite_add_tcase(s, t);
	tcase_add_test(reply, replies_round_trip);
	tcase_add_loop_test(
		reply, each_bad_reply_is_told_why, 0, sizeof(bad_replies) / sizeof(*bad_replies));
	tcase_add_test(reply, a_topology_has_a_limit);
	suite_add_tcase(s, reply);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
