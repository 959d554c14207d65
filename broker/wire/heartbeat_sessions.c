/* SPDX-License-Identifier: ISC */
/*
 * The hottest part of a heartbeat: one walk over the array, nothing is looked at twice. An agent
 * lists sessions in the order of their ids, which shows that none comes twice; where it does not,
 * repeated ids are found pair by pair while there are few, by sorting when there are many.
 */
#include "wire/heartbeat_sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/json_slice.h"
#include "wire/user_key.h"

#define PAIRWISE_MAX 64

/* An id for comparison: its first eight bytes before the rest. */
struct id {
	uint64_t head;
	const char *text;
	size_t index;
};

static bool id_valid(const char *s, size_t len)
{
	if (len < 1 || len >= LIMIT_SESSION_ID_SIZE)
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return true;
}

/* The client is only shown: what cannot be shown is unknown. */
static const char *client_text(const char *s, size_t len)
{
	if (len >= LIMIT_CLIENT_SIZE)
		return "";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return "";
	return s;
}

/* A session while its members come in. */
struct draft {
	struct heartbeat_session session;
	bool has_state, bad;
};

static bool is(const char *key, const char *name, size_t len)
{
	return memcmp(key, name, len) == 0;
}

static void take_state(struct draft *d, const char *s, size_t len)
{
	d->has_state = true;
	d->session.active = len == 6 && is(s, "active", len);
	if (!d->session.active && (len != 12 || !is(s, "disconnected", len)))
		d->bad = true;
}

/* A member whose value is a string. Others are not asked for. */
static void take_string(struct draft *d, const char *key, size_t key_len, const char *s, size_t len)
{
	switch (key_len) {
	case 2:
		if (is(key, "id", 2)) {
			d->bad = d->bad || !id_valid(s, len);
			d->session.id = s;
		}
		break;
	case 4:
		if (is(key, "user", 4)) {
			d->bad = d->bad || user_name_check(s, len, NULL) < 0;
			d->session.user = s;
		}
		break;
	case 5:
		if (is(key, "state", 5))
			take_state(d, s, len);
		break;
	case 6:
		if (is(key, "client", 6))
			d->session.client = client_text(s, len);
		break;
	default:
		break;
	}
}

/* What is no integer, negative or beyond 64 bits is unknown. */
static int64_t since(const char *p)
{
	uint64_t value;
	bool negative;

	if (!json_slice_integer(p, &value, &negative) || negative || value > INT64_MAX)
		return 0;
	return (int64_t)value;
}

/* *P is behind the brace of a session. The cursor always ends behind it, whatever it holds. */
static bool parse_session(char **p, struct heartbeat_session *ret)
{
	struct draft d = {.session.client = ""};
	size_t len, value_len;

	while (json_slice_next(p)) {
		const char *key = json_slice_key(p, &len);

		if (**p == '"') {
			const char *value = json_slice_string(p, &value_len);

			take_string(&d, key, len, value, value_len);
			continue;
		}
		if (len == 5 && is(key, "since", 5) && (**p == '-' || (**p >= '0' && **p <= '9')))
			d.session.since_ms = since(*p);
		json_slice_skip(p);
	}
	*ret = d.session;
	return !d.bad && d.session.id && d.session.user && d.has_state;
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

/* Room for one more session. */
static int grow(struct heartbeat *h, size_t *cap)
{
	size_t more = *cap ? *cap * 4 : 32;
	struct heartbeat_session *sessions = reallocarray(h->sessions, more, sizeof(*sessions));

	if (!sessions)
		return -ENOMEM;
	h->sessions = sessions;
	*cap = more;
	return 0;
}

/* One item of the array. */
static int read_item(char **p, struct heartbeat *h, size_t *cap, bool *sorted)
{
	struct heartbeat_session *s;

	if (h->session_count + h->sessions_dropped == LIMIT_SESSIONS)
		return -E2BIG;
	if (h->session_count == *cap && grow(h, cap) < 0)
		return -ENOMEM;
	s = &h->sessions[h->session_count];
	if (**p != '{') {
		json_slice_skip(p);
		h->sessions_dropped++;
		return 0;
	}
	(*p)++;
	if (!parse_session(p, s)) {
		h->sessions_dropped++;
		return 0;
	}
	if (h->session_count > 0 && strcmp(s[-1].id, s->id) >= 0)
		*sorted = false;
	h->session_count++;
	return 0;
}

int heartbeat_parse_sessions(char **p, struct heartbeat *h)
{
	bool sorted = true;
	size_t cap = 0;
	int r = 0;

	(*p)++; /* the bracket */
	while (json_slice_next(p)) {
		if (r == 0)
			r = read_item(p, h, &cap, &sorted);
		if (r < 0)
			json_slice_skip(p);
	}
	return r < 0 || sorted ? r : drop_repeated(h);
}
