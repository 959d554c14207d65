/* SPDX-License-Identifier: ISC */
/* Trees for the agent's tests: the recorded ones, and private ones made of a few files. */
#pragma once

#include <check.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sysroot.h"

static inline int tree_remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

/* A new empty folder; tree_end removes it. */
static inline char *tree_new(void)
{
	char *dir = strdup("/tmp/tb-agent-XXXXXX");

	ck_assert_ptr_nonnull(dir);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	return dir;
}

static inline void tree_end(char *dir)
{
	nftw(dir, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

/* DIR/PATH for the caller to free. */
static inline char *tree_path(const char *dir, const char *path)
{
	size_t size = strlen(dir) + strlen(path) + 2;
	char *full = malloc(size);

	ck_assert_ptr_nonnull(full);
	snprintf(full, size, "%s/%s", dir, path);
	return full;
}

/* Writes LEN bytes to DIR/PATH and makes the folders that lead there. */
static inline void tree_put_data(const char *dir, const char *path, const void *data, size_t len)
{
	char *full = tree_path(dir, path);
	FILE *f;

	for (char *p = strchr(full + strlen(dir) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
	free(full);
}

static inline void tree_put(const char *dir, const char *path, const char *text)
{
	tree_put_data(dir, path, text, strlen(text));
}

static inline void tree_remove(const char *dir, const char *path)
{
	char *full = tree_path(dir, path);

	ck_assert_int_eq(unlink(full), 0);
	free(full);
}

static inline void tree_open(struct sysroot *r, const char *dir)
{
	struct err e;

	ck_assert_msg(sysroot_open(r, dir, &e) == 0, "%s", dir);
}

#ifdef TREES_DIR
/* One of tests/cases/trees. */
static inline void tree_recorded(struct sysroot *r, const char *name)
{
	char *dir = tree_path(TREES_DIR, name);

	tree_open(r, dir);
	free(dir);
}
#endif
