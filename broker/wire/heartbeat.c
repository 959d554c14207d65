/* SPDX-License-Identifier: ISC */
/*
 * json-c reads the message but for its sessions, which are read in place; the strings of both
 * belong to the json-c tree that the heartbeat owns. One bad session entry costs itself alone: a
 * node must not vanish because one of its users has a strange name. A bad number costs the whole
 * message: a guessed load would send users to the wrong node.
 */
#include "wire/heartbeat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "wire/heartbeat_sessions.h"
#include "wire/json.h"
#include "wire/json_scan.h"
#include "wire/names.h"
#include "wire/user_key.h"

#define SAMPLES_MAX 1000000
#define SECONDS_MAX 100000000
#define CPU_COUNT_MAX 100000

/* A member that must be there: turns "not found" into an error. */
static int need(int r, const bool *found, const char *key, struct err *e)
{
	if (r == 0 && !*found)
		return err_set(e, -EINVAL, "\"%s\" is missing", key);
	return r;
}

static int get_u32(struct json_object *o, const char *key, uint32_t min, uint32_t max,
	uint32_t *ret, struct err *e)
{
	uint64_t v = 0;
	bool found = false;
	int r = need(json_get_u64(o, key, min, max, &v, &found, e), &found, key, e);

	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

/* 0..100 as hundredths. */
static int get_percent(
	struct json_object *o, const char *key, uint32_t *ret, bool *ret_found, struct err *e)
{
	double v = 0;
	int r = json_get_number(o, key, 0, 100, &v, ret_found, e);

	if (r == 0 && *ret_found)
		*ret = (uint32_t)lround(v * 100);
	return r;
}

static int parse_identity(struct json_object *o, struct heartbeat *h, struct err *e)
{
	const char *node = NULL, *boot_id = NULL;
	bool found = false;
	int r = json_get_string(o, "node", sizeof(h->node) - 1, &node, &found, e);

	r = need(r, &found, "node", e);
	if (r < 0)
		return r;
	if (!name_valid(node))
		return err_set(e, -EINVAL, "\"node\" is not a valid name");
	r = json_get_string(o, "boot_id", sizeof(h->boot_id) - 1, &boot_id, &found, e);
	r = need(r, &found, "boot_id", e);
	if (r < 0)
		return r;
	if (!name_valid(boot_id))
		return err_set(e, -EINVAL, "\"boot_id\" is not a valid identifier");
	text_copy(h->node, sizeof(h->node), node);
	text_copy(h->boot_id, sizeof(h->boot_id), boot_id);
	r = json_get_u64(o, "seq", 0, INT64_MAX, &h->seq, &found, e);
	r = need(r, &found, "seq", e);
	if (r == 0)
		r = need(json_get_bool(o, "accepting", &h->accepting, &found, e), &found,
			"accepting", e);
	return r;
}

static int parse_window(struct json_object *o, struct heartbeat *h, struct err *e)
{
	struct json_object *window = NULL;
	bool found = false;
	int r = json_get_object(o, "window", &window, &found, e);

	if (r == 0 && found)
		r = get_u32(window, "samples", 1, SAMPLES_MAX, &h->window_samples, e);
	if (r == 0 && found)
		r = get_u32(window, "seconds", 0, SECONDS_MAX, &h->window_seconds, e);
	return r;
}

static int parse_cpu(struct json_object *o, struct heartbeat *h, struct err *e)
{
	struct json_object *cpu = NULL;
	bool found = false;
	int r = json_get_object(o, "cpu", &cpu, &h->has_cpu, e);

	if (r < 0 || !h->has_cpu)
		return r;
	r = get_percent(cpu, "busy_percent", &h->cpu_busy, &found, e);
	r = need(r, &found, "busy_percent", e);
	if (r == 0)
		r = get_u32(cpu, "count", 1, CPU_COUNT_MAX, &h->cpu_count, e);
	return r;
}

static int parse_memory(struct json_object *o, struct heartbeat *h, struct err *e)
{
	struct json_object *memory = NULL;
	bool found = false;
	int r = json_get_object(o, "memory", &memory, &h->has_memory, e);

	if (r < 0 || !h->has_memory)
		return r;
	r = json_get_u64(memory, "total_bytes", 1, INT64_MAX, &h->memory_total, &found, e);
	r = need(r, &found, "total_bytes", e);
	if (r < 0)
		return r;
	r = json_get_u64(memory, "available_bytes", 0, INT64_MAX, &h->memory_available, &found, e);
	r = need(r, &found, "available_bytes", e);
	if (r == 0 && h->memory_available > h->memory_total)
		return err_set(e, -EINVAL, "\"available_bytes\" is more than \"total_bytes\"");
	return r;
}

static int parse_metrics(struct json_object *o, struct heartbeat *h, struct err *e)
{
	int r = parse_window(o, h, e);

	if (r == 0)
		r = parse_cpu(o, h, e);
	if (r == 0)
		r = parse_memory(o, h, e);
	if (r == 0)
		r = get_percent(o, "custom_load", &h->custom_load, &h->has_custom_load, e);
	return r;
}

/* Those that are no user names are left out, as bad sessions are. */
static int parse_logins(struct json_object *o, struct heartbeat *h, struct err *e)
{
	struct json_object *list = NULL;
	bool found = false;
	size_t n;
	int r = json_get_array(o, "logins", SIZE_MAX, &list, &found, e);

	if (r < 0 || !found)
		return r;
	n = json_object_array_length(list);
	if (n > LIMIT_LOGINS)
		return err_set(e, -E2BIG, "\"logins\" has more than %d items", LIMIT_LOGINS);
	if (n == 0)
		return 0;
	h->logins = calloc(n, sizeof(*h->logins));
	if (!h->logins)
		return err_errno(e, -ENOMEM, "could not read \"logins\"");
	for (size_t i = 0; i < n; i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (json_object_is_type(item, json_type_string) &&
			user_name_check(json_object_get_string(item),
				(size_t)json_object_get_string_len(item), NULL) == 0)
			h->logins[h->login_count++] = json_object_get_string(item);
	}
	return 0;
}

static void free_strings(struct json_object *o, void *strings)
{
	free(strings);
}

/* HOLE is where the array lies in DATA, if it is an array. */
static int parse_sessions(struct json_object *o, const char *data, const struct json_hole *hole,
	struct heartbeat *h, struct err *e)
{
	struct json_object *list = NULL;
	char *strings = NULL;
	bool found = false;
	int r;

	if (hole->len) {
		r = heartbeat_parse_sessions(data + hole->at, hole->len, h, &strings, e);
		json_object_set_userdata(o, strings, free_strings);
		return r;
	}
	r = json_get_array(o, "sessions", SIZE_MAX, &list, &found, e);
	if (r == 0 && !found)
		h->sessions_complete = false;
	return r;
}

static int parse_complete(struct json_object *o, struct heartbeat *h, struct err *e)
{
	bool found = false;
	int r = json_get_bool(o, "sessions_complete", &h->sessions_complete, &found, e);

	return need(r, &found, "sessions_complete", e);
}

static int parse_rest(struct json_object *o, struct heartbeat *h, struct err *e)
{
	const char *version = NULL;
	int r = parse_logins(o, h, e);

	if (r == 0)
		r = json_get_string(
			o, "agent_version", sizeof(h->agent_version) - 1, &version, NULL, e);
	if (r == 0 && version)
		text_copy(h->agent_version, sizeof(h->agent_version), version);
	return r;
}

int heartbeat_parse(const char *data, size_t len, struct heartbeat *ret, struct err *e)
{
	struct heartbeat h = {0};
	struct json_hole hole = {0};
	int r = json_scan_hole(data, len, "sessions", &hole, e);

	if (r == 0)
		r = json_build(data, len, &hole, &h.owner, e);
	if (r == 0 && !json_object_is_type(h.owner, json_type_object))
		r = err_set(e, -EINVAL, "the JSON value is not an object");
	if (r == 0)
		r = parse_identity(h.owner, &h, e);
	if (r == 0)
		r = parse_metrics(h.owner, &h, e);
	if (r == 0)
		r = parse_complete(h.owner, &h, e);
	if (r == 0)
		r = parse_sessions(h.owner, data, &hole, &h, e);
	if (r == 0)
		r = parse_rest(h.owner, &h, e);
	if (r < 0) {
		heartbeat_deinit(&h);
		return r;
	}
	*ret = h;
	return 0;
}

void heartbeat_deinit(struct heartbeat *h)
{
	free(h->sessions);
	free(h->logins);
	if (h->owner)
		json_object_put(h->owner);
	*h = (struct heartbeat){0};
}

static void add_percent(struct buf *out, const char *key, uint32_t hundredths)
{
	json_add_key(out, key);
	buf_addu(out, hundredths / 100);
	if (hundredths % 100) {
		buf_addc(out, '.');
		buf_addc(out, (char)('0' + hundredths / 10 % 10));
		if (hundredths % 10)
			buf_addc(out, (char)('0' + hundredths % 10));
	}
}

static void format_metrics(const struct heartbeat *h, struct buf *out)
{
	if (h->window_samples) {
		json_add_key(out, "window");
		buf_addc(out, '{');
		json_add_member_u64(out, "samples", h->window_samples);
		json_add_member_u64(out, "seconds", h->window_seconds);
		buf_addc(out, '}');
	}
	if (h->has_cpu) {
		json_add_key(out, "cpu");
		buf_addc(out, '{');
		add_percent(out, "busy_percent", h->cpu_busy);
		json_add_member_u64(out, "count", h->cpu_count);
		buf_addc(out, '}');
	}
	if (h->has_memory) {
		json_add_key(out, "memory");
		buf_addc(out, '{');
		json_add_member_u64(out, "total_bytes", h->memory_total);
		json_add_member_u64(out, "available_bytes", h->memory_available);
		buf_addc(out, '}');
	}
	if (h->has_custom_load)
		add_percent(out, "custom_load", h->custom_load);
}

static void format_session(const struct heartbeat_session *s, struct buf *out)
{
	buf_addc(out, '{');
	json_add_member_string(out, "id", s->id);
	json_add_member_string(out, "user", s->user);
	json_add_member_string(out, "state", s->active ? "active" : "disconnected");
	if (s->since_ms > 0)
		json_add_member_u64(out, "since", (uint64_t)s->since_ms);
	if (s->client && *s->client)
		json_add_member_string(out, "client", s->client);
	buf_addc(out, '}');
}

void heartbeat_format(const struct heartbeat *h, struct buf *out)
{
	buf_addc(out, '{');
	json_add_member_string(out, "node", h->node);
	json_add_member_string(out, "boot_id", h->boot_id);
	json_add_member_u64(out, "seq", h->seq);
	json_add_member_bool(out, "accepting", h->accepting);
	format_metrics(h, out);
	json_add_member_bool(out, "sessions_complete", h->sessions_complete);
	json_add_key(out, "sessions");
	buf_addc(out, '[');
	for (size_t i = 0; i < h->session_count; i++) {
		if (i)
			buf_addc(out, ',');
		format_session(&h->sessions[i], out);
	}
	buf_addc(out, ']');
	json_add_key(out, "logins");
	buf_addc(out, '[');
	for (size_t i = 0; i < h->login_count; i++) {
		if (i)
			buf_addc(out, ',');
		json_add_string(out, h->logins[i]);
	}
	buf_addc(out, ']');
	if (h->agent_version[0])
		json_add_member_string(out, "agent_version", h->agent_version);
	buf_addc(out, '}');
}
