/* SPDX-License-Identifier: ISC */
/* A descriptor is returned only when it listens; every other way out closes it. */
#include "base/bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG 1024

static int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

static socklen_t parse_address(const char *address, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		return sizeof(*v6);
	}
	return 0;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return 0;
	return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
					: ntohs(((struct sockaddr_in *)&at)->sin_port);
}

int bind_tcp(const char *address, uint16_t port, uint16_t *ret_port, struct err *e)
{
	struct sockaddr_storage at;
	socklen_t len = parse_address(address, port, &at);
	CLEANUP(closep) int fd = -1;
	int on = 1;

	if (!len)
		return err_set(e, -EINVAL, "\"%s\" is not an IP address to listen on", address);
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(e, -errno, "could not listen on %s port %u", address, port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (at.ss_family == AF_INET6) /* "::" and "0.0.0.0" may both be configured */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0)
		return err_errno(e, -errno, "could not listen on %s port %u", address, port);
	*ret_port = bound_port(fd);
	return steal_fd(&fd);
}

/* 0 when nothing is in the way at AT. */
static int clear_the_way(const char *path, const struct sockaddr_un *at, struct err *e)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "could not use \"%s\"", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, -EEXIST, "\"%s\" is in the way and is not a socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(e, -errno, "could not use \"%s\"", path);
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno == EAGAIN)
		return err_set(e, -EADDRINUSE, "another process listens on \"%s\"", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(e, -errno, "could not remove the old socket \"%s\"", path);
	return 0;
}

static int set_owner(const char *path, const char *group, struct err *e)
{
	struct group *g;

	if (group && *group) {
		g = getgrnam(group); /* at start only */
		if (!g)
			return err_set(
				e, -ENOENT, "there is no group \"%s\" for the admin socket", group);
		if (chown(path, (uid_t)-1, g->gr_gid) < 0)
			return err_errno(
				e, -errno, "could not give \"%s\" to group \"%s\"", path, group);
	}
	if (chmod(path, 0660) < 0)
		return err_errno(e, -errno, "could not set the mode of \"%s\"", path);
	return 0;
}

int bind_unix(const char *path, const char *group, struct err *e)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	CLEANUP(closep) int fd = -1;
	mode_t mask;
	int r;

	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(e, -ENAMETOOLONG,
			"the path of the admin socket is longer than %zu bytes: \"%s\"",
			sizeof(at.sun_path) - 1, path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	r = clear_the_way(path, &at, e);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(e, -errno, "could not listen on \"%s\"", path);
	mask = umask(0177); /* nobody else until group and mode are set */
	r = bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	umask(mask);
	if (r < 0)
		return err_errno(e, r, "could not listen on \"%s\"", path);
	r = set_owner(path, group, e);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = err_errno(e, -errno, "could not listen on \"%s\"", path);
	if (r < 0) {
		unlink(path);
		return r;
	}
	return steal_fd(&fd);
}
