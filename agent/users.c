/* SPDX-License-Identifier: ISC */
/*
 * A small open table that is emptied when it is full. A name once found is kept: a uid does not
 * change its owner while sessions of it live.
 */
#include "agent/users.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lines.h"
#include "agent/scan.h"

struct entry {
	uid_t uid;
	char *name;
};

struct users {
	const struct sysroot *root;
	struct entry *entries;
	size_t count, cap;
	char fallback[32];
};

struct users *users_new(const struct sysroot *r)
{
	struct users *u = calloc(1, sizeof(*u));

	if (u)
		u->root = r;
	return u;
}

static void forget(struct users *u)
{
	for (size_t i = 0; i < u->count; i++)
		free(u->entries[i].name);
	u->count = 0;
}

void users_free(struct users *u)
{
	if (!u)
		return;
	forget(u);
	free(u->entries);
	free(u);
}

/* NAME:PASSWORD:UID:… */
static char *name_from_line(char *line, uid_t uid)
{
	char *colon = strchr(line, ':');
	const char *p = colon ? strchr(colon + 1, ':') : NULL;
	uint64_t number;

	if (!p)
		return NULL;
	p++;
	if (!scan_u64(&p, &number) || *p != ':' || number != uid)
		return NULL;
	*colon = '\0';
	return line;
}

static char *name_from_tree(const struct sysroot *r, uid_t uid)
{
	struct lines l;
	char *line, *name = NULL;

	if (lines_open(&l, r, "etc/passwd") != 0)
		return NULL;
	while (!name && (line = lines_next(&l)))
		name = name_from_line(line, uid);
	name = name ? strdup(name) : NULL;
	lines_close(&l);
	return name;
}

static char *name_from_system(uid_t uid)
{
	char scratch[16384];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(uid, &pw, scratch, sizeof(scratch), &found) != 0 || !found)
		return NULL;
	return strdup(found->pw_name);
}

static int remember(struct users *u, uid_t uid, char *name)
{
	if (u->count == USERS_MAX)
		forget(u);
	if (u->count == u->cap) {
		size_t cap = u->cap ? u->cap * 2 : 16;
		struct entry *entries = reallocarray(u->entries, cap, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		u->entries = entries;
		u->cap = cap;
	}
	u->entries[u->count++] = (struct entry){uid, name};
	return 0;
}

const char *users_name(struct users *u, uid_t uid)
{
	char *name;

	for (size_t i = 0; i < u->count; i++)
		if (u->entries[i].uid == uid)
			return u->entries[i].name;
	name = u->root->recorded ? name_from_tree(u->root, uid) : name_from_system(uid);
	if (!name) {
		snprintf(u->fallback, sizeof(u->fallback), "uid-%u", (unsigned)uid);
		return u->fallback;
	}
	if (remember(u, uid, name) != 0) {
		free(name);
		return NULL;
	}
	return name;
}
