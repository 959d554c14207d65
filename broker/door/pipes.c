/* SPDX-License-Identifier: ISC */
#include "door/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int pipes_take(struct pipes *p, int ret[2])
{
	if (p->count > 0) {
		memcpy(ret, p->kept[--p->count], sizeof(p->kept[0]));
		return 0;
	}
	if (pipe2(ret, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(ret[0], F_SETPIPE_SZ, PIPE_BYTES); /* a smaller one works, too */
	return 0;
}

void pipes_put(struct pipes *p, int pipe[2], bool empty)
{
	if (empty && p->count < PIPES_KEPT) {
		memcpy(p->kept[p->count++], pipe, sizeof(p->kept[0]));
	} else {
		close(pipe[0]);
		close(pipe[1]);
	}
	pipe[0] = pipe[1] = -1;
}

void pipes_deinit(struct pipes *p)
{
	while (p->count > 0) {
		p->count--;
		close(p->kept[p->count][0]);
		close(p->kept[p->count][1]);
	}
}
