/* SPDX-License-Identifier: ISC */
/*
 * One dump request of NETLINK_SOCK_DIAG per address family, for state LISTEN and our port alone. A
 * socket per question: it is asked every few seconds, and nothing can be left over in it.
 */
#include "agent/listening_diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/cleanup.h"

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

static int ask(int fd, uint8_t family, uint16_t port)
{
	struct question q = {
		.header =
			{
				.nlmsg_len = sizeof(q),
				.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
				.nlmsg_seq = family,
			},
		.body =
			{
				.sdiag_family = family,
				.sdiag_protocol = IPPROTO_TCP,
				.idiag_states = 1u << TCP_LISTEN,
				.id.idiag_sport = htons(port),
			},
	};

	return send(fd, &q, sizeof(q), 0) < 0 ? -errno : 0;
}

/* Looks through one datagram. 1: the dump is over, 0: more to come, negative: an error. */
static int take(const struct nlmsghdr *m, size_t left, uint16_t port, bool *found)
{
	for (; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		const struct inet_diag_msg *socket_info = NLMSG_DATA(m);

		if (m->nlmsg_type == NLMSG_DONE)
			return 1;
		if (m->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *e = NLMSG_DATA(m);

			if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error >= 0)
				return -EPROTO;
			return e->error;
		}
		if (m->nlmsg_len >= NLMSG_LENGTH(sizeof(*socket_info)) &&
			socket_info->id.idiag_sport == htons(port))
			*found = true;
	}
	return 0;
}

static int answer(int fd, uint16_t port, bool *found)
{
	union {
		struct nlmsghdr header;
		char data[16384];
	} b;

	for (;;) {
		ssize_t n = recv(fd, &b, sizeof(b), 0);
		int over;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		over = take(&b.header, (size_t)n, port, found);
		if (over)
			return over < 0 ? over : 0;
	}
}

int listening_diag(uint16_t port, bool *ret)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	CLEANUP(closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct timeval limit = {
		.tv_sec = 1}; /* the kernel answers at once, or something is wrong */
	bool found = false;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0)
		return -errno;
	for (size_t i = 0; i < sizeof(families) && !found; i++) {
		int error = ask(fd, families[i], port);

		if (!error)
			error = answer(fd, port, &found);
		if (error)
			return error;
	}
	*ret = found;
	return 0;
}
