/* SPDX-License-Identifier: ISC */
/*
 * The answer is sent at once, whatever the client says; then its end is waited for, since a close
 * with unread input would throw the answer away. Few at once and not for long: this is for one or
 * two balancers.
 */
#include "agent/agent_check.h"

#include <errno.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bind.h"
#include "base/log.h"

#define CLIENTS_MAX 16
#define CLIENT_SECONDS 2
#define PAUSE_SECONDS 1
#define FULL_INDEX 10000

struct check_client {
	struct event *event; /* NULL: a free place */
	int fd;
};

struct agent_check {
	struct evconnlistener *listener;
	struct event *resume; /* accepting, after a lack of descriptors */
	void (*facts)(void *ctx, struct check_facts *ret);
	void *ctx;
	struct event_base *base;
	struct check_client clients[CLIENTS_MAX];
};

/* 1..100: an empty node is worth hundred times a nearly full one. */
static unsigned weight_of(uint32_t used, uint32_t full)
{
	unsigned free = used < full ? (full - used) * 100 / full : 0;

	return free > 0 ? free : 1;
}

void check_format(const struct check_facts *f, struct buf *out)
{
	if (!f->accepting)
		buf_adds(out, "ready down #nothing listens on the RDP port\n");
	else if (f->answered && f->maintenance)
		buf_adds(out, "drain up #takes no new users\n");
	else if (f->answered && f->has_load_index && f->load_index >= FULL_INDEX)
		buf_adds(out, "drain up #full\n");
	else if (f->answered && f->has_load_index)
		buf_addf(out, "ready up %u%%\n", weight_of(f->load_index, FULL_INDEX));
	else if (f->answered)
		buf_adds(out, "ready up 1% #no metrics\n");
	else
		buf_addf(out, "ready up %u%% #no dispatcher answers\n",
			f->has_busy ? weight_of(f->busy, 10000) : 50);
}

static void client_end(struct check_client *c)
{
	event_free(c->event);
	close(c->fd);
	c->event = NULL;
}

/* The client speaks, or ends, or its time is over. */
static void client_event(evutil_socket_t fd, short what, void *arg)
{
	struct check_client *c = arg;
	char scrap[256];
	ssize_t n = what & EV_TIMEOUT ? 0 : recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		client_end(c);
}

static bool say(const struct agent_check *a, int fd)
{
	struct buf out = BUF_INIT(256);
	struct check_facts facts = {0};
	bool said;

	a->facts(a->ctx, &facts);
	check_format(&facts, &out);
	said = !buf_error(&out) &&
	       send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.len &&
	       shutdown(fd, SHUT_WR) == 0;
	buf_deinit(&out);
	return said;
}

static struct check_client *free_place(struct agent_check *a)
{
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		if (!a->clients[i].event)
			return &a->clients[i];
	}
	return NULL;
}

static void accepted(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
	int len, void *ctx)
{
	const struct timeval deadline = {.tv_sec = CLIENT_SECONDS};
	struct agent_check *a = ctx;
	struct check_client *c = free_place(a);

	(void)listener;
	(void)peer;
	(void)len;
	if (!c || !say(a, fd)) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->event = event_new(a->base, fd, EV_READ | EV_PERSIST, client_event, c);
	if (!c->event)
		close(fd);
	else if (event_add(c->event, &deadline) < 0)
		client_end(c);
}

static void accept_failed(struct evconnlistener *listener, void *ctx)
{
	const struct timeval pause = {.tv_sec = PAUSE_SECONDS};
	struct agent_check *a = ctx;

	evconnlistener_disable(listener);
	event_add(a->resume, &pause);
}

static void resume(evutil_socket_t fd, short what, void *ctx)
{
	struct agent_check *a = ctx;

	(void)fd;
	(void)what;
	evconnlistener_enable(a->listener);
}

int agent_check_new(struct event_base *base, const char *address, uint16_t port,
	void (*facts)(void *ctx, struct check_facts *ret), void *ctx, struct agent_check **ret,
	struct err *e)
{
	struct agent_check *a = calloc(1, sizeof(*a));
	uint16_t bound = 0;
	int fd;

	if (!a)
		return err_errno(e, -ENOMEM, "could not set up the agent check");
	*a = (struct agent_check){.base = base, .facts = facts, .ctx = ctx};
	fd = bind_tcp(address, port, &bound, e);
	if (fd < 0) {
		agent_check_free(a);
		return err_prefix(e, fd, "agent_check");
	}
	a->resume = event_new(base, -1, 0, resume, a);
	a->listener = evconnlistener_new(
		base, accepted, a, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!a->listener)
		close(fd);
	if (!a->listener || !a->resume) {
		agent_check_free(a);
		return err_errno(e, -ENOMEM, "could not set up the agent check");
	}
	evconnlistener_set_error_cb(a->listener, accept_failed);
	log_info("balancers may check this node at %s port %u", address, bound);
	*ret = a;
	return 0;
}

void agent_check_free(struct agent_check *a)
{
	if (!a)
		return;
	if (a->listener)
		evconnlistener_free(a->listener);
	if (a->resume)
		event_free(a->resume);
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		if (a->clients[i].event)
			client_end(&a->clients[i]);
	}
	free(a);
}
