/* SPDX-License-Identifier: ISC */
/* Datagrams to the local syslog daemon, never blocking (libc's syslog(3) does). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/err.h"

struct syslog_socket {
	int fd; /* -1 = not connected */
	struct sockaddr_un address;
};

/* Takes the path of the socket; connecting waits for the first message. -ENAMETOOLONG. */
int syslog_socket_init(struct syslog_socket *s, const char *path, struct err *e);
void syslog_socket_deinit(struct syslog_socket *s);
/* Sends "<PRI>TIME IDENT[PID]: TEXT", cut at 8 KiB. 0, or -errno: nobody listens, or it is behind.
 */
int syslog_socket_send(struct syslog_socket *s, int severity, int64_t wall_us, const char *ident,
	const char *text, size_t len);
