/* SPDX-License-Identifier: ISC */
/*
 * Sessions: one allocation each, owned by the node's list (sorted by id, each id once) and at the
 * same time in the fleet's index by user key. A session in one of the two is in both.
 */
#include "model/session.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/fleet_private.h"

const char *session_id(const struct session *s)
{
	return s->text;
}

const char *session_key(const struct session *s)
{
	return s->text + s->id_len + 1;
}

const char *session_display(const struct session *s)
{
	return s->display_len ? session_key(s) + s->key_len + 1 : session_key(s);
}

const char *session_client(const struct session *s)
{
	const char *after = session_key(s) + s->key_len + 1;

	return s->display_len ? after + s->display_len + 1 : after;
}

static char *put(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	to[len] = '\0';
	return to + len + 1;
}

struct session *session_new(const struct session_text *text)
{
	size_t id = strlen(text->id), key = strlen(text->key);
	size_t client = text->client ? strlen(text->client) : 0;
	size_t display =
		text->display && strcmp(text->display, text->key) != 0 ? strlen(text->display) : 0;
	struct session *s;
	size_t size;
	char *at;

	if (id == 0 || id >= LIMIT_SESSION_ID_SIZE || key == 0 || key >= LIMIT_USER_KEY_SIZE ||
		display >= LIMIT_USER_SIZE || client >= LIMIT_CLIENT_SIZE)
		return NULL;
	size = offsetof(struct session, text) + id + 1 + key + 1 + client + 1;
	if (display)
		size += display + 1;
	/* The compiler may write a whole struct, with the padding behind the last member. */
	s = malloc(size < sizeof(*s) ? sizeof(*s) : size);
	if (!s)
		return NULL;
	*s = (struct session){
		.id_len = (uint8_t)id,
		.key_len = (uint16_t)key,
		.display_len = (uint16_t)display,
		.client_len = (uint16_t)client,
	};
	at = put(s->text, text->id, id);
	at = put(at, text->key, key);
	if (display)
		at = put(at, text->display, display);
	put(at, client ? text->client : "", client);
	return s;
}

uint32_t session_position(const struct node *n, const char *id, bool *ret_found)
{
	uint32_t low = 0, high = n->session_count;

	*ret_found = false;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int cmp = strcmp(session_id(n->sessions[mid]), id);

		if (cmp == 0) {
			*ret_found = true;
			return mid;
		}
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int session_reserve(struct node *n, uint32_t count)
{
	struct session **grown;
	uint32_t cap;

	if (count <= n->session_cap)
		return 0;
	cap = n->session_cap + n->session_cap / 2;
	if (cap < count)
		cap = count;
	grown = reallocarray(n->sessions, cap, sizeof(struct session *));
	if (!grown)
		return -ENOMEM;
	n->sessions = grown;
	n->session_cap = cap;
	return 0;
}

void session_drop_all(struct fleet *f, struct node *n)
{
	for (uint32_t i = 0; i < n->session_count; i++) {
		session_index_remove(&f->sessions, n->sessions[i]);
		free(n->sessions[i]);
	}
	free(n->sessions);
	n->sessions = NULL;
	n->session_count = n->session_cap = 0;
}

struct session *fleet_user_sessions(const struct fleet *f, const char *user_key)
{
	return session_index_find(&f->sessions, user_key);
}

struct session *fleet_hinted_sessions(
	const struct fleet *f, const struct user_names *names, const char *hint)
{
	char key[LIMIT_USER_KEY_SIZE];
	struct session *s;

	if (user_key_make(names, hint, strlen(hint), NULL, key, NULL) < 0)
		return NULL;
	s = session_index_find(&f->sessions, key);
	if (s || strpbrk(hint, "\\@"))
		return s;
	if (user_key_make(NULL, hint, strlen(hint), NULL, key, NULL) < 0)
		return NULL;
	return session_index_hinted(&f->sessions, key);
}

struct session *fleet_find_session(const struct node *n, const char *id)
{
	bool found;
	uint32_t at = session_position(n, id, &found);

	return found ? n->sessions[at] : NULL;
}

int fleet_forget_session(struct fleet *f, struct node *n, const char *id)
{
	bool found;
	uint32_t at = session_position(n, id, &found);
	struct session *s;

	if (!found)
		return -ENOENT;
	s = n->sessions[at];
	session_index_remove(&f->sessions, s);
	memmove(n->sessions + at, n->sessions + at + 1,
		(n->session_count - at - 1) * sizeof(struct session *));
	n->session_count--;
	free(s);
	node_refresh(n);
	return 0;
}

int fleet_load_session(struct fleet *f, struct node *n, const char *id, const char *user_key,
	const char *display, const char *client, bool active, int64_t since_ms,
	int64_t first_seen_ms)
{
	struct session_text text = {id, user_key, display, client};
	struct session *s;
	uint32_t at;
	bool found;

	if (session_reserve(n, n->session_count + 1) < 0)
		return -ENOMEM;
	s = session_new(&text);
	if (!s)
		return -ENOMEM;
	s->node = n;
	s->active = active;
	s->since_ms = since_ms;
	s->first_seen_ms = first_seen_ms;
	if (session_index_add(&f->sessions, s) < 0) {
		free(s);
		return -ENOMEM;
	}
	at = session_position(n, id, &found);
	if (found) {
		session_index_remove(&f->sessions, n->sessions[at]);
		free(n->sessions[at]);
	} else {
		memmove(n->sessions + at + 1, n->sessions + at,
			(n->session_count - at) * sizeof(struct session *));
		n->session_count++;
	}
	n->sessions[at] = s;
	n->spellings = f->spellings - 1; /* who wrote the row may have had other rules for names */
	node_refresh(n);
	return 0;
}
