/* SPDX-License-Identifier: ISC */
/*
 * Merging. logind's list is the base where it exists: its ids and users are the surest. An xrdp
 * display belongs to the logind session of the same user with the same display, else to that user's
 * xrdp session without one that began nearest to it; what is connected only xrdp knows, so its
 * state wins. A utmp entry belongs to a session of the same user with the same display or leader.
 * What belongs to nothing is a session of its own.
 */
#include "agent/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sessions_logind.h"
#include "agent/sessions_utmp.h"
#include "agent/sessions_xrdp.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "wire/user_key.h"

static void session_deinit(struct session *s)
{
	free(s->user);
	free(s->client);
}

void session_list_deinit(struct session_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		session_deinit(&l->items[i]);
	free(l->items);
	*l = (struct session_list){0};
}

char *session_client_dup(const char *client, size_t n)
{
	if (!client || n == 0 || n >= LIMIT_CLIENT_SIZE || !text_utf8_valid(client, n))
		return NULL;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)client[i] < 0x20 || client[i] == 0x7f)
			return NULL;
	return strndup(client, n);
}

static int make_room(struct session_list *l)
{
	size_t cap = l->cap ? l->cap * 2 : 16;
	struct session *items;

	if (l->count < l->cap)
		return 0;
	items = reallocarray(l->items, cap, sizeof(*items));
	if (!items)
		return -ENOMEM;
	l->items = items;
	l->cap = cap;
	return 0;
}

int session_list_add(struct session_list *l, const struct session *s, const char *user, size_t len,
	const char *client)
{
	char name[LIMIT_USER_SIZE];
	struct session *added;

	if (!s->id[0] || user_name_display(user, len, name, NULL) != 0) {
		l->dropped++;
		return 0;
	}
	if (l->count >= LIMIT_SESSIONS) {
		l->dropped++;
		l->complete = false;
		return 0;
	}
	if (make_room(l) != 0)
		return -ENOMEM;
	added = &l->items[l->count];
	*added = *s;
	added->client = client ? session_client_dup(client, strlen(client)) : NULL;
	added->user = strdup(name);
	if (!added->user) {
		free(added->client);
		return -ENOMEM;
	}
	l->count++;
	return 0;
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static struct session *find_for_xrdp(struct session_list *base, const struct session *x)
{
	struct session *best = NULL;

	for (size_t i = 0; i < base->count; i++) {
		struct session *s = &base->items[i];

		if (s->matched || (s->uid != x->uid && strcmp(s->user, x->user) != 0))
			continue;
		if (s->display == x->display)
			return s;
		if (s->display != SESSION_NO_DISPLAY || !s->from_xrdp)
			continue;
		if (!best ||
			distance(s->since_ms, x->since_ms) < distance(best->since_ms, x->since_ms))
			best = s;
	}
	return best;
}

static struct session *find_for_utmp(struct session_list *base, const struct session *u)
{
	for (size_t i = 0; i < base->count; i++) {
		struct session *s = &base->items[i];

		if (strcmp(s->user, u->user) != 0)
			continue;
		if ((u->display != SESSION_NO_DISPLAY && s->display == u->display) ||
			(u->pid > 0 && s->pid == u->pid))
			return s;
	}
	return NULL;
}

typedef struct session *find_function(struct session_list *base, const struct session *s);

/* Moves what belongs to nothing in BASE to its end; frees the rest. */
static void merge(struct session_list *base, struct session_list *more, find_function *find)
{
	size_t known = base->count;

	base->complete = base->complete && more->complete;
	base->dropped += more->dropped;
	for (size_t i = 0; i < more->count; i++) {
		struct session *s = &more->items[i];
		struct session_list view = {.items = base->items, .count = known};
		struct session *of = find(&view, s);

		if (of) {
			of->matched = true;
			if (s->from_xrdp)
				of->active = s->active;
			if (of->display == SESSION_NO_DISPLAY)
				of->display = s->display;
			if (!of->client)
				of->client = s->client;
			else
				free(s->client);
			free(s->user);
		} else if (base->count < LIMIT_SESSIONS && make_room(base) == 0) {
			base->items[base->count++] = *s;
		} else {
			base->complete = false;
			base->dropped++;
			session_deinit(s);
		}
	}
	more->count = 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct session *x = a, *y = b;

	return strcmp(x->id, y->id);
}

int sessions_collect(const struct sysroot *r, struct users *users, const struct sessions_options *o,
	struct session_list *ret, struct err *e)
{
	CLEANUP(session_list_deinit) struct session_list xrdp = {.complete = true};
	CLEANUP(session_list_deinit) struct session_list utmp = {.complete = true};
	int first, error;

	*ret = (struct session_list){.complete = true};
	first = sessions_logind(r, o, ret, e);
	error = sessions_xrdp(r, users, &xrdp, first ? NULL : e);
	first = first ? first : error;
	error = sessions_utmp(r, o, &utmp, first ? NULL : e);
	first = first ? first : error;

	merge(ret, &xrdp, find_for_xrdp);
	merge(ret, &utmp, find_for_utmp);
	if (ret->count > 1) /* the order that the dispatcher keeps them in */
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_ids);
	if (first)
		ret->complete = false;
	return first;
}
