/* SPDX-License-Identifier: ISC */
/*
 * The sessions of one heartbeat against those known of the node: two lists sorted by id are walked
 * side by side. What is in both is updated in place, what is absent from a complete list ends, what
 * is new is gathered and merged in from the back. A heartbeat that changes nothing allocates
 * nothing.
 *
 * A user's key is made only when the spelling differs from the last one, since folding a name costs
 * more than all the rest; node->spellings tells whether the rules for names are still the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/fleet_private.h"

struct update {
	struct fleet *fleet;
	struct node *node;
	const struct user_names *names;
	bool complete;
	bool same_rules; /* for user names, as when the node's keys were made */
	int64_t now_ms;
	session_change_callback *callback;
	void *ctx;
	size_t bad;
	int error;
	uint32_t kept;	/* sessions kept, compacted at the front of node->sessions */
	uint32_t fresh; /* reports of new sessions, compacted at the front of fleet->order */
};

static void tell(const struct update *u, enum session_change change, const struct session *s)
{
	if (u->callback)
		u->callback(u->ctx, change, s);
}

static int make_scratch(struct fleet *f, size_t count)
{
	const struct heartbeat_session **order;
	struct session **fresh;

	if (count <= f->scratch_cap)
		return 0;
	order = reallocarray(f->order, count, sizeof(const struct heartbeat_session *));
	if (!order)
		return -ENOMEM;
	f->order = order;
	fresh = reallocarray(f->fresh, count, sizeof(struct session *));
	if (!fresh)
		return -ENOMEM;
	f->fresh = fresh;
	f->scratch_cap = count;
	return 0;
}

static int compare_reports(const void *a, const void *b)
{
	const struct heartbeat_session *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

static void sort_reports(const struct heartbeat_session **order, const struct heartbeat *h)
{
	bool sorted = true;

	for (size_t i = 0; i < h->session_count; i++) {
		order[i] = &h->sessions[i];
		if (i > 0 && strcmp(order[i - 1]->id, order[i]->id) > 0)
			sorted = false;
	}
	if (!sorted)
		qsort(order, h->session_count, sizeof(const struct heartbeat_session *),
			compare_reports);
}

/* A future beginning is clamped to the first sight. */
static int64_t clamp_since(int64_t since_ms, int64_t first_seen_ms)
{
	if (since_ms < 0)
		return 0;
	return since_ms > first_seen_ms ? first_seen_ms : since_ms;
}

/* A new session of R, in no list yet. A user without a key: counted, NULL. No memory: noted, NULL.
 */
static struct session *make_session(
	struct update *u, const struct heartbeat_session *r, int64_t first_seen_ms)
{
	char key[LIMIT_USER_KEY_SIZE], display[LIMIT_USER_SIZE];
	struct session_text text = {
		.id = r->id, .key = key, .display = display, .client = r->client};
	size_t len = strlen(r->user);
	struct session *s;

	if (user_key_make(u->names, r->user, len, u->node->spec.name, key, NULL) < 0 ||
		user_name_display(r->user, len, display, NULL) < 0) {
		u->bad++;
		return NULL;
	}
	s = session_new(&text);
	if (!s) {
		u->error = -ENOMEM;
		return NULL;
	}
	s->node = u->node;
	s->active = r->active;
	s->first_seen_ms = first_seen_ms;
	s->since_ms = clamp_since(r->since_ms, first_seen_ms);
	return s;
}

static void end_session(struct update *u, struct session *s)
{
	tell(u, SESSION_ENDED, s);
	session_index_remove(&u->fleet->sessions, s);
	free(s);
}

/* Keeps S, the session of the same id and user, and takes over what R says of it. */
static struct session *update_state(
	struct update *u, struct session *s, const struct heartbeat_session *r)
{
	int64_t since_ms = clamp_since(r->since_ms, s->first_seen_ms);

	if (s->active == r->active && s->since_ms == since_ms)
		return s;
	s->active = r->active;
	s->since_ms = since_ms;
	tell(u, SESSION_CHANGED, s);
	return s;
}

/* The same session under another key, since the rules for names changed. */
static struct session *update_key(struct update *u, struct session *s, struct session *fresh)
{
	if (session_index_add(&u->fleet->sessions, fresh) < 0) {
		u->error = -ENOMEM;
		free(fresh);
		return s;
	}
	session_index_remove(&u->fleet->sessions, s);
	free(s);
	tell(u, SESSION_CHANGED, fresh);
	return fresh;
}

/* S and R have one id, but the spelling, the client, or the rules for names differ. */
static struct session *update_text(
	struct update *u, struct session *s, const struct heartbeat_session *r)
{
	struct session *fresh = make_session(u, r, s->first_seen_ms);

	if (!fresh) {
		/* A report that had to be left out is like no report. */
		if (u->error || !u->complete)
			return s;
		end_session(u, s);
		return NULL;
	}
	if (strcmp(session_key(s), session_key(fresh)) == 0) {
		if (strcmp(session_display(s), session_display(fresh)) == 0 &&
			strcmp(session_client(s), session_client(fresh)) == 0) {
			free(fresh);
			return update_state(u, s, r);
		}
		session_index_replace(&u->fleet->sessions, s, fresh);
		free(s);
		tell(u, SESSION_CHANGED, fresh);
		return fresh;
	}
	if (!u->same_rules && strcmp(session_display(s), session_display(fresh)) == 0)
		return update_key(u, s, fresh);
	/* Another user: the node gave the id to a new session. */
	fresh->first_seen_ms = u->now_ms;
	fresh->since_ms = clamp_since(r->since_ms, u->now_ms);
	if (session_index_add(&u->fleet->sessions, fresh) < 0) {
		u->error = -ENOMEM;
		free(fresh);
		return s;
	}
	end_session(u, s);
	tell(u, SESSION_ADDED, fresh);
	return fresh;
}

static struct session *update_session(
	struct update *u, struct session *s, const struct heartbeat_session *r)
{
	if (u->same_rules && strcmp(session_display(s), r->user) == 0 &&
		strcmp(session_client(s), r->client) == 0)
		return update_state(u, s, r);
	return update_text(u, s, r);
}

static void keep(struct update *u, struct session *s)
{
	if (s)
		u->node->sessions[u->kept++] = s;
}

/* Leaves the sessions that go on at the front of the node's list, and the reports of new ones at
 * the front of ORDER. */
static void walk(struct update *u, const struct heartbeat_session **order, size_t reports)
{
	struct node *n = u->node;
	uint32_t i = 0;
	size_t j = 0;

	while (i < n->session_count || j < reports) {
		struct session *s = i < n->session_count ? n->sessions[i] : NULL;
		const struct heartbeat_session *r = j < reports ? order[j] : NULL;
		int cmp = !s ? 1 : !r ? -1 : strcmp(session_id(s), r->id);

		if (cmp < 0) {
			if (u->complete)
				end_session(u, s);
			else
				keep(u, s);
			i++;
			continue;
		}
		if (cmp == 0) {
			keep(u, update_session(u, s, r));
			i++;
		} else {
			order[u->fresh++] = r;
		}
		/* An id twice in one report: the first counts. */
		for (j++; j < reports && strcmp(order[j]->id, r->id) == 0; j++)
			;
	}
	n->session_count = u->kept;
}

/* A list that is never complete ends nothing: without a bound an agent could make it grow for ever.
 */
static void bound_fresh(struct update *u)
{
	uint32_t have = u->node->session_count;
	uint32_t room = have < LIMIT_SESSIONS ? LIMIT_SESSIONS - have : 0;

	if (u->fresh <= room)
		return;
	u->bad += u->fresh - room;
	u->fresh = room;
}

/* Makes the new sessions and merges them in, both lists being sorted, from the back. */
static void add_fresh(struct update *u)
{
	struct node *n = u->node;
	struct session **fresh = u->fleet->fresh;
	uint32_t made = 0, old = n->session_count, to;

	if (u->fresh == 0)
		return;
	bound_fresh(u);
	if (session_reserve(n, n->session_count + u->fresh) < 0) {
		u->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < u->fresh; i++) {
		struct session *s = make_session(u, u->fleet->order[i], u->now_ms);

		if (!s)
			continue;
		if (session_index_add(&u->fleet->sessions, s) < 0) {
			u->error = -ENOMEM;
			free(s);
			continue;
		}
		fresh[made++] = s;
		tell(u, SESSION_ADDED, s);
	}
	n->session_count = to = old + made;
	while (made > 0) {
		if (old > 0 &&
			strcmp(session_id(n->sessions[old - 1]), session_id(fresh[made - 1])) > 0)
			n->sessions[--to] = n->sessions[--old];
		else
			n->sessions[--to] = fresh[--made];
	}
}

int fleet_apply_sessions(struct fleet *f, struct node *n, const struct heartbeat *h,
	const struct user_names *names, int64_t now_wall_ms, session_change_callback *callback,
	void *ctx, size_t *ret_bad)
{
	struct update u = {
		.fleet = f,
		.node = n,
		.names = names,
		.complete = h->sessions_complete,
		.same_rules = n->spellings == f->spellings,
		.now_ms = now_wall_ms,
		.callback = callback,
		.ctx = ctx,
	};

	if (make_scratch(f, h->session_count) < 0)
		return -ENOMEM;
	sort_reports(f->order, h);
	walk(&u, f->order, h->session_count);
	add_fresh(&u);
	if (u.error == 0 && u.complete)
		n->spellings = f->spellings;
	n->sessions_complete = h->sessions_complete;
	node_refresh(n);
	if (ret_bad)
		*ret_bad = u.bad;
	return u.error;
}
