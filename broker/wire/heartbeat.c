/* SPDX-License-Identifier: ISC */
/*
 * A heartbeat is read in place, from a copy that it keeps: json-c's tree of it would cost more than
 * all that the dispatcher does with it. First the text is scanned, then every member that we know
 * is found, then they are judged in one order, whatever order they came in.
 *
 * One bad session entry costs itself alone: a node must not vanish because one of its users has a
 * strange name. A bad number costs the whole message: a guessed load would send users to the wrong
 * node.
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
#include "wire/json_member.h"
#include "wire/json_slice.h"
#include "wire/names.h"
#include "wire/user_key.h"

#define SAMPLES_MAX 1000000
#define SECONDS_MAX 100000000
#define CPU_COUNT_MAX 100000

/* The members of the message. */
enum {
	NODE,
	BOOT_ID,
	SEQ,
	ACCEPTING,
	WINDOW,
	CPU,
	MEMORY,
	CUSTOM_LOAD,
	COMPLETE,
	SESSIONS,
	LOGINS,
	VERSION,
	MEMBERS
};

static const struct json_member known[MEMBERS] = {
	[NODE] = JSON_MEMBER("node"),
	[BOOT_ID] = JSON_MEMBER("boot_id"),
	[SEQ] = JSON_MEMBER("seq"),
	[ACCEPTING] = JSON_MEMBER("accepting"),
	[WINDOW] = JSON_MEMBER("window"),
	[CPU] = JSON_MEMBER("cpu"),
	[MEMORY] = JSON_MEMBER("memory"),
	[CUSTOM_LOAD] = JSON_MEMBER("custom_load"),
	[COMPLETE] = JSON_MEMBER("sessions_complete"),
	[SESSIONS] = JSON_MEMBER("sessions"),
	[LOGINS] = JSON_MEMBER("logins"),
	[VERSION] = JSON_MEMBER("agent_version"),
};

/* Members that must be there. */
static int need_u64(
	const struct json_member *m, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	int r = json_member_u64(m, min, max, ret, e);

	return r < 0 ? r : json_member_need(m, e);
}

static int need_u32(
	const struct json_member *m, uint32_t min, uint32_t max, uint32_t *ret, struct err *e)
{
	uint64_t v = 0;
	int r = need_u64(m, min, max, &v, e);

	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

static int need_bool(const struct json_member *m, bool *ret, struct err *e)
{
	int r = json_member_bool(m, ret, e);

	return r < 0 ? r : json_member_need(m, e);
}

/* A name of at most SIZE - 1 bytes. */
static int need_name(
	const struct json_member *m, const char *what, char *ret, size_t size, struct err *e)
{
	const char *text = NULL;
	int r = json_member_string(m, size - 1, &text, e);

	if (r == 0)
		r = json_member_need(m, e);
	if (r < 0)
		return r;
	if (!name_valid(text))
		return err_set(e, -EINVAL, "\"%s\" is not a valid %s", m->key, what);
	text_copy(ret, size, text);
	return 0;
}

/* 0..100 as hundredths. */
static int get_percent(const struct json_member *m, uint32_t *ret, struct err *e)
{
	double v = 0;
	int r = json_member_number(m, 0, 100, &v, e);

	if (r == 0 && m->at)
		*ret = (uint32_t)lround(v * 100);
	return r;
}

static int parse_identity(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	int r = need_name(&m[NODE], "name", h->node, sizeof(h->node), e);

	if (r == 0)
		r = need_name(&m[BOOT_ID], "identifier", h->boot_id, sizeof(h->boot_id), e);
	if (r == 0)
		r = need_u64(&m[SEQ], 0, INT64_MAX, &h->seq, e);
	if (r == 0)
		r = need_bool(&m[ACCEPTING], &h->accepting, e);
	return r;
}

static int parse_window(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	struct json_member in[] = {JSON_MEMBER("samples"), JSON_MEMBER("seconds")};
	int r = json_member_object(m, e);

	if (r < 0 || !m->at)
		return r;
	json_members_read(m->at, in, 2);
	r = need_u32(&in[0], 1, SAMPLES_MAX, &h->window_samples, e);
	return r < 0 ? r : need_u32(&in[1], 0, SECONDS_MAX, &h->window_seconds, e);
}

static int parse_cpu(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	struct json_member in[] = {JSON_MEMBER("busy_percent"), JSON_MEMBER("count")};
	int r = json_member_object(m, e);

	if (r < 0 || !m->at)
		return r;
	h->has_cpu = true;
	json_members_read(m->at, in, 2);
	r = get_percent(&in[0], &h->cpu_busy, e);
	if (r == 0)
		r = json_member_need(&in[0], e);
	return r < 0 ? r : need_u32(&in[1], 1, CPU_COUNT_MAX, &h->cpu_count, e);
}

static int parse_memory(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	struct json_member in[] = {JSON_MEMBER("total_bytes"), JSON_MEMBER("available_bytes")};
	int r = json_member_object(m, e);

	if (r < 0 || !m->at)
		return r;
	h->has_memory = true;
	json_members_read(m->at, in, 2);
	r = need_u64(&in[0], 1, INT64_MAX, &h->memory_total, e);
	if (r == 0)
		r = need_u64(&in[1], 0, INT64_MAX, &h->memory_available, e);
	if (r == 0 && h->memory_available > h->memory_total)
		return err_set(e, -EINVAL, "\"available_bytes\" is more than \"total_bytes\"");
	return r;
}

static int parse_metrics(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	int r = parse_window(&m[WINDOW], h, e);

	if (r == 0)
		r = parse_cpu(&m[CPU], h, e);
	if (r == 0)
		r = parse_memory(&m[MEMORY], h, e);
	if (r == 0)
		r = get_percent(&m[CUSTOM_LOAD], &h->custom_load, e);
	h->has_custom_load = m[CUSTOM_LOAD].at != NULL;
	return r;
}

/* RESULT is what reading the array gave, if it is one. */
static int judge_sessions(
	const struct json_member *m, int result, struct heartbeat *h, struct err *e)
{
	int r = need_bool(&m[COMPLETE], &h->sessions_complete, e);

	if (r == 0)
		r = json_member_array(&m[SESSIONS], e);
	if (r < 0)
		return r;
	if (!m[SESSIONS].at)
		h->sessions_complete = false;
	if (result == -E2BIG)
		return err_set(e, result, "\"sessions\" has more than %d items", LIMIT_SESSIONS);
	return result < 0 ? err_errno(e, result, "could not read \"sessions\"") : 0;
}

static size_t count_items(char *at)
{
	size_t n = 0;

	for (at++; json_slice_next(&at); n++)
		json_slice_skip(&at);
	return n;
}

/* Those that are no user names are left out, as bad sessions are. */
static int parse_logins(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	int r = json_member_array(m, e);
	size_t n, len;
	char *p;

	if (r < 0 || !m->at)
		return r;
	n = count_items(m->at);
	if (n > LIMIT_LOGINS)
		return err_set(e, -E2BIG, "\"logins\" has more than %d items", LIMIT_LOGINS);
	if (n == 0)
		return 0;
	h->logins = calloc(n, sizeof(*h->logins));
	if (!h->logins)
		return err_errno(e, -ENOMEM, "could not read \"logins\"");
	for (p = m->at + 1; json_slice_next(&p);) {
		if (*p == '"') {
			const char *user = json_slice_string(&p, &len);

			if (user_name_check(user, len, NULL) == 0)
				h->logins[h->login_count++] = user;
		} else {
			json_slice_skip(&p);
		}
	}
	return 0;
}

static int parse_version(const struct json_member *m, struct heartbeat *h, struct err *e)
{
	const char *version = NULL;
	int r = json_member_string(m, sizeof(h->agent_version) - 1, &version, e);

	if (version)
		text_copy(h->agent_version, sizeof(h->agent_version), version);
	return r;
}

/* Finds the members, and reads the sessions where they are met. */
static int find_members(char *p, struct json_member *m, struct heartbeat *h)
{
	struct json_member *met;
	int r = 0;

	p++; /* the brace */
	while (json_member_next(&p, m, MEMBERS, &met)) {
		if (met == &m[SESSIONS] && *p == '[')
			r = heartbeat_parse_sessions(&p, h);
		else
			json_slice_skip(&p);
	}
	return r;
}

static int parse_object(struct heartbeat *h, struct err *e)
{
	char *p = h->text + strspn(h->text, " \t\r\n");
	struct json_member m[MEMBERS];
	int r, result;

	if (*p != '{')
		return err_set(e, -EINVAL, "the JSON value is not an object");
	memcpy(m, known, sizeof(m));
	result = find_members(p, m, h);
	r = parse_identity(m, h, e);
	if (r == 0)
		r = parse_metrics(m, h, e);
	if (r == 0)
		r = judge_sessions(m, result, h, e);
	if (r == 0)
		r = parse_logins(&m[LOGINS], h, e);
	if (r == 0)
		r = parse_version(&m[VERSION], h, e);
	return r;
}

int heartbeat_parse(const char *data, size_t len, struct heartbeat *ret, struct err *e)
{
	struct heartbeat h = {0};
	int r = json_scan(data, len, e);

	if (r < 0)
		return r;
	h.text = malloc(len + 1);
	if (!h.text)
		return err_errno(e, -ENOMEM, "could not read the heartbeat");
	memcpy(h.text, data, len);
	h.text[len] = '\0';
	r = parse_object(&h, e);
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
	free(h->text);
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
