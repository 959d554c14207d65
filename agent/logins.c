/* SPDX-License-Identifier: ISC */
/*
 * Two tables. `known` is replaced by what was seen; the walk of both in the order of ids finds the
 * new ones. An id that is used again (a container started anew counts from 1) has another mark or
 * user and is a login. Logins leave `waiting` only when acknowledged: at least once, never lost.
 */
#include "agent/logins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void free_known(struct known_session *k, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(k[i].id);
		free(k[i].user);
	}
	free(k);
}

void logins_deinit(struct logins *l)
{
	free_known(l->known, l->known_count);
	for (size_t i = 0; i < l->waiting_count; i++)
		free(l->waiting[i].user);
	free(l->waiting);
	*l = (struct logins){0};
}

void logins_forget_known(struct logins *l)
{
	free_known(l->known, l->known_count);
	l->known = NULL;
	l->known_count = l->known_cap = 0;
}

static int grow(void **items, size_t *cap, size_t count, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (count < *cap)
		return 0;
	p = reallocarray(*items, want, size);
	if (!p)
		return -ENOMEM;
	*items = p;
	*cap = want;
	return 0;
}

static int add_waiting(struct logins *l, uint64_t serial, const char *user)
{
	char *copy;

	if (l->waiting_count == LOGINS_MAX) {
		free(l->waiting[0].user);
		memmove(l->waiting, l->waiting + 1, (LOGINS_MAX - 1) * sizeof(*l->waiting));
		l->waiting_count--;
		l->lost++;
	}
	if (grow((void **)&l->waiting, &l->waiting_cap, l->waiting_count, sizeof(*l->waiting)) != 0)
		return -ENOMEM;
	copy = strdup(user);
	if (!copy)
		return -ENOMEM;
	l->waiting[l->waiting_count++] = (struct login){serial, copy};
	l->last_serial = serial;
	return 0;
}

static int add_known(
	struct known_session **items, size_t *count, size_t *cap, const struct known_session *k)
{
	struct known_session copy = {strdup(k->id), strdup(k->user), k->mark};

	if (!copy.id || !copy.user || grow((void **)items, cap, *count, sizeof(**items)) != 0) {
		free(copy.id);
		free(copy.user);
		return -ENOMEM;
	}
	(*items)[(*count)++] = copy;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct session *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* Pointers into SEEN sorted by id; NULL when there is no memory. */
static const struct session **sorted(const struct session_list *seen)
{
	const struct session **order = calloc(seen->count + 1, sizeof(struct session *));

	if (!order)
		return NULL;
	for (size_t i = 0; i < seen->count; i++)
		order[i] = &seen->items[i];
	qsort(order, seen->count, sizeof(struct session *), compare_ids);
	return order;
}

/* One step's outcome of the walk. */
struct walk {
	struct known_session *items;
	size_t count, cap;
	const char **fresh; /* users who logged in, borrowed */
	size_t fresh_count;
	bool changed;
};

static int walk_new(struct walk *w, const struct session *s, bool login)
{
	struct known_session k = {(char *)s->id, s->user, s->mark};

	w->changed = true;
	if (login)
		w->fresh[w->fresh_count++] = s->user;
	return add_known(&w->items, &w->count, &w->cap, &k);
}

static int walk_both(
	struct logins *l, const struct session **order, size_t n, bool complete, struct walk *w)
{
	size_t i = 0, j = 0;
	int error = 0;

	while (!error && (i < n || j < l->known_count)) {
		const struct known_session *k = j < l->known_count ? &l->known[j] : NULL;
		int cmp = i == n ? 1 : k ? strcmp(order[i]->id, k->id) : -1;

		if (!k || cmp < 0) {
			error = walk_new(w, order[i++], l->have_baseline);
		} else if (cmp > 0) {
			/* What an incomplete list does not show may live; but not without bound. */
			if (complete || w->count >= LOGINS_KNOWN_MAX)
				w->changed = true;
			else
				error = add_known(&w->items, &w->count, &w->cap, k);
			j++;
		} else {
			if (k->mark == order[i]->mark && strcmp(k->user, order[i]->user) == 0)
				error = add_known(&w->items, &w->count, &w->cap, k);
			else
				error = walk_new(w, order[i], true);
			i++;
			j++;
		}
	}
	return error;
}

static bool same_as_known(const struct logins *l, const struct session **order, size_t n)
{
	if (n != l->known_count)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(order[i]->id, l->known[i].id) != 0 ||
			order[i]->mark != l->known[i].mark ||
			strcmp(order[i]->user, l->known[i].user) != 0)
			return false;
	return true;
}

static int update(struct logins *l, const struct session **order, size_t n, bool complete,
	struct logins_change *ret)
{
	CLEANUP(freep) const char **fresh = calloc(n + 1, sizeof(char *));
	struct walk w = {.fresh = fresh};
	size_t waiting_before = l->waiting_count;
	int error = fresh ? walk_both(l, order, n, complete, &w) : -ENOMEM;

	for (size_t i = 0; !error && i < w.fresh_count; i++)
		error = add_waiting(l, l->last_serial + 1, w.fresh[i]);
	if (error) {
		free_known(w.items, w.count);
		while (l->waiting_count > waiting_before)
			free(l->waiting[--l->waiting_count].user);
		return error;
	}
	logins_forget_known(l);
	l->known = w.items;
	l->known_count = w.count;
	l->known_cap = w.cap;
	ret->known_changed = w.changed;
	ret->new_waiting = w.fresh_count < l->waiting_count ? w.fresh_count : l->waiting_count;
	return 0;
}

int logins_update(struct logins *l, const struct session_list *seen, struct logins_change *ret)
{
	CLEANUP(freep) const struct session **order = sorted(seen);
	struct logins_change change = {0};
	int error;

	if (!order)
		return -ENOMEM;
	if (!same_as_known(l, order, seen->count)) {
		error = update(l, order, seen->count, seen->complete, &change);
		if (error)
			return error;
	}
	if (seen->complete && !l->have_baseline) {
		l->have_baseline = true;
		change.known_changed = true;
	}
	*ret = change;
	return 0;
}

bool logins_acknowledge(struct logins *l, uint64_t serial)
{
	size_t n = 0;

	while (n < l->waiting_count && l->waiting[n].serial <= serial)
		free(l->waiting[n++].user);
	if (n == 0)
		return false;
	l->waiting_count -= n;
	memmove(l->waiting, l->waiting + n, l->waiting_count * sizeof(*l->waiting));
	return true;
}

int logins_restore_known(struct logins *l, const char *id, const char *user, uint64_t mark)
{
	struct known_session k = {(char *)id, (char *)user, mark};

	if (!id || !user || !id[0] || l->known_count >= LOGINS_KNOWN_MAX ||
		(l->known_count > 0 && strcmp(l->known[l->known_count - 1].id, id) >= 0))
		return -EINVAL;
	return add_known(&l->known, &l->known_count, &l->known_cap, &k);
}

int logins_restore_waiting(struct logins *l, uint64_t serial, const char *user)
{
	if (!user || serial <= l->last_serial || l->waiting_count >= LOGINS_MAX)
		return -EINVAL;
	return add_waiting(l, serial, user);
}
