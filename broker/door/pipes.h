/* SPDX-License-Identifier: ISC */
/*
 * Pipes for splice(2): between two uses an empty pipe goes back to a small store, so that an idle
 * connection holds none. (A user without privileges has 64 MiB of pipes; beyond that the kernel
 * makes them small.)
 */
#pragma once

#include <stdbool.h>

#define PIPES_KEPT 32
#define PIPE_BYTES (256 * 1024)

struct pipes {
	int kept[PIPES_KEPT][2]; /* read end, write end; empty, non-blocking */
	unsigned count;
};

/* -EMFILE, -ENFILE, -ENOMEM: none is to be had now. */
int pipes_take(struct pipes *p, int ret[2]);
/* Takes PIPE back, EMPTY or with something left in it (then it is closed). */
void pipes_put(struct pipes *p, int pipe[2], bool empty);
void pipes_deinit(struct pipes *p);
