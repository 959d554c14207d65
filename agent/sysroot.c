/* SPDX-License-Identifier: ISC */
/*
 * One directory descriptor and openat below it: a collector cannot tell a recorded tree from the
 * machine. Frames exist in recorded trees only; on the live system no second name is ever tried.
 */
#include "agent/sysroot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int sysroot_open(struct sysroot *r, const char *path, struct err *e)
{
	bool live = !path || !path[0] || strcmp(path, "/") == 0;
	int fd = open(live ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, -errno, "could not open root directory \"%s\"", path);
	*r = (struct sysroot){.fd = fd, .recorded = !live};
	return 0;
}

void sysroot_close(struct sysroot *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void sysroot_advance(struct sysroot *r)
{
	if (r->recorded)
		r->frame++;
}

static bool frame_name(char name[PATH_MAX], const char *file, unsigned frame)
{
	int n = snprintf(name, PATH_MAX, "%s.%u", file, frame);

	return n > 0 && n < PATH_MAX;
}

/* How many frames FILE has, itself included. */
static unsigned count_frames(const struct sysroot *r, const char *file)
{
	char name[PATH_MAX];
	unsigned n = 1;

	while (n < SYSROOT_FRAMES_MAX && frame_name(name, file, n) &&
		faccessat(r->fd, name, F_OK, 0) == 0)
		n++;
	return n;
}

int sysroot_open_file(const struct sysroot *r, const char *file)
{
	char name[PATH_MAX];
	unsigned frame = 0;
	int fd;

	if (r->recorded && r->frame > 0)
		frame = r->frame % count_frames(r, file);
	if (frame > 0 && frame_name(name, file, frame))
		file = name;
	/* Non-blocking, so that a FIFO in a tree cannot hang the agent. */
	fd = openat(r->fd, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int sysroot_read(const struct sysroot *r, const char *file, struct buf *b)
{
	CLEANUP(closep) int fd = sysroot_open_file(r, file);
	char chunk[4096];

	buf_reset(b);
	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n == 0)
			return buf_error(b);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf_add(b, chunk, (size_t)n);
		if (buf_error(b))
			return buf_error(b);
	}
}

DIR *sysroot_open_dir(const struct sysroot *r, const char *dir)
{
	int fd = openat(r->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d;

	if (fd < 0)
		return NULL;
	d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

bool sysroot_exists(const struct sysroot *r, const char *file)
{
	return faccessat(r->fd, file, F_OK, 0) == 0;
}
