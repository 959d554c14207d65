/* SPDX-License-Identifier: ISC */
/*
 * A heartbeat or reply that is accepted keeps its promises, and comes back the same after it was
 * written. Sessions that are read in place must be those that json-c reads.
 */
#include "lib/fuzz.h"

#include <string.h>

#include "wire/heartbeat.h"
#include "wire/json.h"
#include "wire/names.h"

static void check_numbers(const struct heartbeat *h)
{
	FUZZ_CHECK(name_valid(h->node) && h->boot_id[0]);
	FUZZ_CHECK(h->cpu_busy <= 10000 && h->custom_load <= 10000);
	FUZZ_CHECK(!h->has_cpu || (h->cpu_count >= 1 && h->cpu_count <= 100000));
	FUZZ_CHECK(
		!h->has_memory || (h->memory_total > 0 && h->memory_available <= h->memory_total));
	FUZZ_CHECK(h->session_count + h->sessions_dropped <= LIMIT_SESSIONS);
	FUZZ_CHECK(h->login_count <= LIMIT_LOGINS);
}

static const char *string_of(struct json_object *o, const char *key)
{
	return json_object_get_string(json_object_object_get(o, key));
}

/* Each session is, in order, one of the entries that json-c finds. */
static void check_sessions(const struct heartbeat *h, const char *text, size_t size)
{
	struct json_object *o = NULL, *list;
	size_t found = 0;

	FUZZ_CHECK(json_parse(text, size, &o, NULL) == 0);
	list = json_object_object_get(o, "sessions");
	for (size_t i = 0; list && i < json_object_array_length(list) && found < h->session_count;
		i++) {
		struct json_object *item = json_object_array_get_idx(list, i);
		const struct heartbeat_session *s = &h->sessions[found];

		if (!json_object_is_type(item, json_type_object) || !string_of(item, "id") ||
			!string_of(item, "user") || !string_of(item, "state"))
			continue;
		found += strcmp(s->id, string_of(item, "id")) == 0 &&
			 strcmp(s->user, string_of(item, "user")) == 0 &&
			 s->active == (strcmp(string_of(item, "state"), "active") == 0);
	}
	FUZZ_CHECK(found == h->session_count);
	FUZZ_CHECK(
		!list || json_object_array_length(list) == h->session_count + h->sessions_dropped);
	json_object_put(o);
}

static void check_same(const struct heartbeat *a, const struct heartbeat *b)
{
	FUZZ_CHECK(strcmp(a->node, b->node) == 0 && strcmp(a->boot_id, b->boot_id) == 0);
	FUZZ_CHECK(a->seq == b->seq && a->accepting == b->accepting);
	FUZZ_CHECK(a->has_cpu == b->has_cpu && a->cpu_busy == b->cpu_busy &&
		   a->cpu_count == b->cpu_count);
	FUZZ_CHECK(
		a->memory_total == b->memory_total && a->memory_available == b->memory_available);
	FUZZ_CHECK(a->has_custom_load == b->has_custom_load && a->custom_load == b->custom_load);
	FUZZ_CHECK(a->sessions_complete == b->sessions_complete);
	FUZZ_CHECK(a->session_count == b->session_count && b->sessions_dropped == 0);
	for (size_t i = 0; i < a->session_count; i++)
		FUZZ_CHECK(strcmp(a->sessions[i].user, b->sessions[i].user) == 0 &&
			   strcmp(a->sessions[i].client, b->sessions[i].client) == 0 &&
			   a->sessions[i].since_ms == b->sessions[i].since_ms);
	FUZZ_CHECK(a->login_count == b->login_count);
}

static void try_heartbeat(const char *text, size_t size)
{
	struct buf written = BUF_INIT(16 << 20);
	struct heartbeat h, again;
	struct err e = {""};

	if (heartbeat_parse(text, size, &h, &e) < 0) {
		FUZZ_CHECK(e.text[0]);
		return;
	}
	check_numbers(&h);
	check_sessions(&h, text, size);
	heartbeat_format(&h, &written);
	FUZZ_CHECK(buf_error(&written) == 0);
	FUZZ_CHECK(heartbeat_parse(buf_str(&written), written.len, &again, &e) == 0);
	check_same(&h, &again);
	heartbeat_deinit(&again);
	heartbeat_deinit(&h);
	buf_deinit(&written);
}

static void try_reply(const char *text, size_t size)
{
	static struct heartbeat_reply r, again;
	struct buf written = BUF_INIT(1 << 20);
	struct err e = {""};

	if (heartbeat_reply_parse(text, size, &r, &e) < 0) {
		FUZZ_CHECK(e.text[0]);
		return;
	}
	FUZZ_CHECK(
		r.load_index <= LOAD_INDEX_MAX && r.push_interval >= 1 && r.push_interval <= 3600);
	FUZZ_CHECK(r.topology.count <= LIMIT_DISPATCHERS);
	heartbeat_reply_format(&r, &written);
	FUZZ_CHECK(heartbeat_reply_parse(buf_str(&written), written.len, &again, &e) == 0);
	FUZZ_CHECK(memcmp(&r.topology, &again.topology, sizeof(r.topology)) == 0);
	buf_deinit(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_heartbeat((const char *)data, size);
	try_reply((const char *)data, size);
	return 0;
}
