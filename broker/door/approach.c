/* SPDX-License-Identifier: ISC */
/*
 * To a node on behalf of a client: connect, hand on the client's first packet byte for byte, wait
 * for the first byte of the answer. A node that refuses, or keeps silent within its deadline,
 * becomes suspect, and the broker is asked for another one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "door/door_private.h"
#include "door/redirection.h"

struct approach {
	struct client *client;
	int fd;
	struct event *event; /* connected, then readable */
	struct loop_timer *timer;
	struct evdns_getaddrinfo_request *lookup;
	struct sockaddr_storage node;
	struct door_answer answer;
};

void approach_free(struct approach *a)
{
	if (!a)
		return;
	if (a->event)
		event_free(a->event);
	loop_timer_free(a->timer);
	if (a->fd >= 0)
		close(a->fd);
	if (a->lookup) {
		a->client = NULL; /* the callback, which comes yet, frees the rest */
		evdns_getaddrinfo_cancel(a->lookup);
	} else {
		free(a);
	}
}

static void next_node(struct client *c)
{
	struct door_question *q = &c->question;

	if (q->avoid_count >= DOOR_AVOID_MAX) {
		c->stage = STAGE_DIALOGUE;
		client_turn_away(c, ERRINFO_POOL_NOT_FREE);
		return;
	}
	text_copy(q->avoid[q->avoid_count], sizeof(q->avoid[0]), c->approach->answer.node);
	q->avoid_count++;
	approach_free(c->approach);
	c->approach = NULL;
	event_del(c->readable);
	client_ask(c);
}

static void node_refused(struct approach *a, const char *reason)
{
	struct client *c = a->client;
	const struct door_report report = {
		.what = DOOR_NODE_REFUSED,
		.node = a->answer.node,
		.reason = reason,
	};

	c->door->broker.tell(c->door->broker.ctx, &report);
	next_node(c);
}

static void out_of_time(void *ctx)
{
	struct approach *a = ctx;

	node_refused(a, a->lookup ? "its name could not be resolved in time"
				  : "no answer on its RDP port within the time allowed");
}

/* ---- connected ---- */

static void node_answers(evutil_socket_t fd, short what, void *arg)
{
	struct approach *a = arg;
	struct client *c = a->client;
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		node_refused(
			a, n == 0 ? "it closed the connection without an answer" : strerror(errno));
		return;
	}
	a->fd = -1;
	relay_begin(c, fd, &a->answer);
}

/* What the client said, perhaps with who it is before. A fresh socket takes it whole. */
static bool hand_on(const struct approach *a)
{
	const struct client *c = a->client;
	struct sockaddr_storage here = {0};
	struct buf out = BUF_INIT(PROXY_HEADER_MAX + X224_REQUEST_MAX);
	socklen_t len = sizeof(here);
	bool said;

	if (client_config(c)->proxy_to_node) {
		(void)getsockname(c->fd, (struct sockaddr *)&here, &len);
		proxy_header_add(&out, (const struct sockaddr *)&c->peer, (struct sockaddr *)&here);
	}
	buf_add(&out, c->first, c->have);
	said = !buf_error(&out) &&
	       send(a->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.len;
	buf_deinit(&out);
	return said;
}

static void connected(evutil_socket_t fd, short what, void *arg)
{
	struct approach *a = arg;
	struct event_base *base = a->client->door->base;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		node_refused(a, strerror(error));
		return;
	}
	event_free(a->event);
	a->event = NULL;
	if (!hand_on(a)) {
		node_refused(a, "it did not take the client's first packet");
		return;
	}
	a->event = event_new(base, fd, EV_READ | EV_PERSIST, node_answers, a);
	if (!a->event || event_add(a->event, NULL) < 0)
		client_fail(a->client, "no memory");
}

/* ---- connecting ---- */

/* A lack of ours is not the node's fault. */
static void connect_node(struct approach *a, const struct sockaddr *node, socklen_t len)
{
	struct client *c = a->client;
	const int on = 1;

	a->fd = socket(node->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (a->fd < 0) {
		client_fail(c, strerror(errno));
		return;
	}
	(void)setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(a->fd, node, len) < 0 && errno != EINPROGRESS) {
		node_refused(a, strerror(errno));
		return;
	}
	a->event = event_new(c->door->base, a->fd, EV_WRITE, connected, a);
	if (!a->event || event_add(a->event, NULL) < 0)
		client_fail(c, "no memory");
}

static void resolved(int result, struct evutil_addrinfo *list, void *arg)
{
	struct approach *a = arg;

	if (!a->client) { /* cancelled */
		free(a);
		if (list)
			evutil_freeaddrinfo(list);
		return;
	}
	a->lookup = NULL;
	if (result != 0 || !list)
		node_refused(a, evutil_gai_strerror(result));
	else
		connect_node(a, list->ai_addr, (socklen_t)list->ai_addrlen);
	if (list)
		evutil_freeaddrinfo(list);
}

static void look_up(struct approach *a)
{
	struct door *d = a->client->door;
	const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct evdns_getaddrinfo_request *lookup;
	char port[8];

	if (!d->dns)
		d->dns = evdns_base_new(d->base,
			EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!d->dns) {
		client_fail(a->client, "no memory");
		return;
	}
	snprintf(port, sizeof(port), "%u", a->answer.port);
	/* NULL: it was answered at once, and A may be gone. */
	lookup = evdns_getaddrinfo(d->dns, a->answer.address, port, &hints, resolved, a);
	if (lookup)
		a->lookup = lookup;
}

static bool numeric(
	const struct door_answer *answer, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, answer->address, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(answer->port);
		*ret_len = sizeof(*four);
		return true;
	}
	if (inet_pton(AF_INET6, answer->address, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(answer->port);
		*ret_len = sizeof(*six);
		return true;
	}
	return false;
}

void approach_start(struct client *c, const struct door_answer *answer)
{
	struct approach *a = calloc(1, sizeof(*a));
	struct sockaddr_storage node;
	socklen_t len;

	if (a) {
		a->client = c;
		a->fd = -1;
		a->answer = *answer;
		a->timer = loop_timer_new(c->door->base, out_of_time, a);
		c->approach = a;
	}
	if (!a || !a->timer || event_add(c->readable, NULL) < 0) {
		client_fail(c, "no memory");
		return;
	}
	loop_timer_arm(a->timer, c->door->config->door_node_ms);
	if (numeric(answer, &node, &len))
		connect_node(a, (struct sockaddr *)&node, len);
	else
		look_up(a);
}
