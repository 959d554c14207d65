/* SPDX-License-Identifier: ISC */
/*
 * The hottest part of a heartbeat: members are met in the order in which they were sent instead of being looked
 * up, and repeated ids are found pair by pair while there are few, by sorting when there are many.
 */
#include "wire/heartbeat_sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/json.h"
#include "wire/user_key.h"

#define PAIRWISE_MAX 64

/* An id for comparison: its first eight bytes before the rest. */
struct id {
	uint64_t head;
	const char *text;
	size_t index;
};

static bool id_valid(struct json_object *v)
{
	const char *s;
	int n;

	if (!json_object_is_type(v, json_type_string))
		return false;
	s = json_object_get_string(v);
	n = json_object_get_string_len(v);
	if (n < 1 || n >= LIMIT_SESSION_ID_SIZE)
		return false;
	for (int i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return true;
}

static bool user_valid(struct json_object *v)
{
	return json_object_is_type(v, json_type_string) &&
	       user_name_check(json_object_get_string(v), (size_t)json_object_get_string_len(v),
		       NULL) == 0;
}

/* The client is only shown: what cannot be shown is unknown. */
static const char *client_text(struct json_object *v)
{
	const char *s;

	if (!json_object_is_type(v, json_type_string) ||
		json_object_get_string_len(v) >= LIMIT_CLIENT_SIZE)
		return "";
	s = json_object_get_string(v);
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return "";
	return s;
}

static bool state_valid(struct json_object *v, bool *ret_active)
{
	const char *s = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";

	*ret_active = strcmp(s, "active") == 0;
	return *ret_active || strcmp(s, "disconnected") == 0;
}

static int64_t since_value(struct json_object *v)
{
	int64_t since = json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;

	return since > 0 ? since : 0;
}

static bool parse_session(struct json_object *o, struct heartbeat_session *ret)
{
	bool has_state = false;

	*ret = (struct heartbeat_session){.client = ""};
	if (!json_object_is_type(o, json_type_object))
		return false;
	json_object_object_foreach(o, key, v)
	{
		if (strcmp(key, "id") == 0) {
			if (!id_valid(v))
				return false;
			ret->id = json_object_get_string(v);
		} else if (strcmp(key, "user") == 0) {
			if (!user_valid(v))
				return false;
			ret->user = json_object_get_string(v);
		} else if (strcmp(key, "state") == 0) {
			if (!state_valid(v, &ret->active))
				return false;
			has_state = true;
		} else if (strcmp(key, "since") == 0) {
			ret->since_ms = since_value(v);
		} else if (strcmp(key, "client") == 0) {
			ret->client = client_text(v);
		}
	}
	return ret->id && ret->user && has_state;
}

static struct id make_id(const struct heartbeat *h, size_t index)
{
	struct id id = {.text = h->sessions[index].id, .index = index};
	size_t len = strlen(id.text);

	memcpy(&id.head, id.text, len < sizeof(id.head) ? len : sizeof(id.head));
	return id;
}

/* By id, the first of equals first. */
static int compare_ids(const void *x, const void *y)
{
	const struct id *a = x, *b = y;
	int r;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	r = strcmp(a->text, b->text);
	if (r != 0)
		return r;
	return a->index < b->index ? -1 : 1;
}

static bool same_id(const struct id *a, const struct id *b)
{
	return a->head == b->head && strcmp(a->text, b->text) == 0;
}

static void mark_pairwise(struct heartbeat *h)
{
	struct id ids[PAIRWISE_MAX];

	for (size_t i = 0; i < h->session_count; i++) {
		ids[i] = make_id(h, i);
		for (size_t j = 0; j < i; j++)
			if (same_id(&ids[i], &ids[j]))
				h->sessions[i].id = NULL;
	}
}

static int mark_sorted(struct heartbeat *h)
{
	CLEANUP(freep) struct id *ids = calloc(h->session_count, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < h->session_count; i++)
		ids[i] = make_id(h, i);
	qsort(ids, h->session_count, sizeof(*ids), compare_ids);
	for (size_t i = 1; i < h->session_count; i++)
		if (same_id(&ids[i - 1], &ids[i]))
			h->sessions[ids[i].index].id = NULL;
	return 0;
}

/* Leaves only the first session of each id. */
static int drop_repeated(struct heartbeat *h)
{
	size_t kept = 0;
	int r = 0;

	if (h->session_count <= PAIRWISE_MAX)
		mark_pairwise(h);
	else
		r = mark_sorted(h);
	for (size_t i = 0; r == 0 && i < h->session_count; i++)
		if (h->sessions[i].id)
			h->sessions[kept++] = h->sessions[i];
	if (r == 0) {
		h->sessions_dropped += h->session_count - kept;
		h->session_count = kept;
	}
	return r;
}

int heartbeat_parse_sessions(struct json_object *o, struct heartbeat *h, struct err *e)
{
	struct json_object *list = NULL;
	bool found;
	size_t n;
	int r = json_get_array(o, "sessions", SIZE_MAX, &list, &found, e);

	if (r < 0)
		return r;
	if (!found) {
		h->sessions_complete = false;
		return 0;
	}
	n = json_object_array_length(list);
	if (n > LIMIT_SESSIONS)
		return err_set(e, -E2BIG, "\"sessions\" has more than %d items", LIMIT_SESSIONS);
	if (n == 0)
		return 0;
	h->sessions = malloc(n * sizeof(*h->sessions));
	if (!h->sessions)
		return err_errno(e, -ENOMEM, "could not read \"sessions\"");
	for (size_t i = 0; i < n; i++) {
		if (parse_session(json_object_array_get_idx(list, i), &h->sessions[h->session_count]))
			h->session_count++;
		else
			h->sessions_dropped++;
	}
	r = drop_repeated(h);
	return r < 0 ? err_errno(e, r, "could not read \"sessions\"") : 0;
}
