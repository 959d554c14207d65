/* SPDX-License-Identifier: ISC */
/*
 * A line that went out in part (the disk filled up within it) cannot be taken back, since others
 * may append to the same file; it is ended by a line feed before the next one. The same is done to
 * what a killed process left behind, which is why the file is opened for reading too.
 */
#include "journal/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FLAGS (O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* The mode is set only on a file that we made: an administrator's own choice stays. */
static int open_or_create(const char *path)
{
	int fd;

	for (int tries = 0; tries < 2; tries++) {
		fd = open(path, OPEN_FLAGS);
		if (fd >= 0 || errno != ENOENT)
			return fd >= 0 ? fd : -errno;
		fd = open(path, OPEN_FLAGS | O_CREAT | O_EXCL, 0640);
		if (fd >= 0) {
			if (fchmod(fd, 0640) < 0) {
				int r = -errno;

				close(fd);
				return r;
			}
			return fd;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static bool ends_within_line(int fd)
{
	struct stat st;
	char last;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	       pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

int line_file_open(const char *path, struct line_file *ret, struct err *e)
{
	int fd = open_or_create(path);

	if (fd < 0)
		return err_errno(e, fd, "could not open log file \"%s\"", path);
	*ret = (struct line_file){.fd = fd, .torn = ends_within_line(fd)};
	return 0;
}

void line_file_close(struct line_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	*f = LINE_FILE_NONE;
}

/* One write after the other until all is out. A write that takes nothing counts as a full disk. */
static int write_all(int fd, const char *p, size_t len, bool *torn)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		*torn = p[n - 1] != '\n';
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int line_file_write(struct line_file *f, const char *line, size_t len)
{
	int r = 0;

	if (f->torn)
		r = write_all(f->fd, "\n", 1, &f->torn);
	if (r == 0)
		r = write_all(f->fd, line, len, &f->torn);
	return r;
}
