/* SPDX-License-Identifier: ISC */
/*
 * Where the system is read from: the live "/", or a recorded tree (--root DIR).
 *
 * Every collector names its files relative to the root ("proc/stat"). A recorded tree stands still,
 * so a file that moves in life may have frames beside it: proc/stat, proc/stat.1, proc/stat.2 …
 * A reading takes the frame whose turn it is; after the last one the first follows again. A file
 * without frames is read as it is, so that a tree may be edited while an agent runs on it.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SYSROOT_FRAMES_MAX 1000

struct sysroot {
	int fd;
	bool recorded;	/* a tree, not the live system */
	unsigned frame; /* counts readings of the whole tree */
};

/* PATH NULL, "" or "/" is the live system. 0 or a negative errno with words. */
int sysroot_open(struct sysroot *r, const char *path, struct err *e);
void sysroot_close(struct sysroot *r);

/* Moves a recorded tree to its next frame; nothing on a live system. */
void sysroot_advance(struct sysroot *r);

/* An open descriptor of FILE (the frame whose turn it is), close-on-exec, or a negative errno. */
int sysroot_open_file(const struct sysroot *r, const char *file);
/* Puts the whole FILE into B (emptied first, bounded by b->max). 0, -EOVERFLOW, -ENOMEM, -errno. */
int sysroot_read(const struct sysroot *r, const char *file, struct buf *b);
/* The directory, for the caller to closedir; NULL with errno set. */
DIR *sysroot_open_dir(const struct sysroot *r, const char *dir);
bool sysroot_exists(const struct sysroot *r, const char *file);
