/* SPDX-License-Identifier: ISC */
/*
 * Listeners. Out of descriptors they rest for a moment, else libevent would spin; clients wait in
 * the kernel's queue meanwhile.
 */
#include <errno.h>
#include <event2/dns.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bind.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/tls.h"
#include "door/door_private.h"

#define RESUME_MS 200

static void set_accepting(struct door *d, bool on)
{
	for (unsigned i = 0; i < d->listener_count; i++) {
		struct evconnlistener *socket = d->listeners[i].socket;

		if (socket && on)
			evconnlistener_enable(socket);
		else if (socket)
			evconnlistener_disable(socket);
	}
}

static void resume(void *ctx)
{
	struct door *d = ctx;

	if (!d->stopping)
		set_accepting(d, true);
}

static void accept_failed(struct evconnlistener *socket, void *listener)
{
	int error = errno;
	struct door *d = ((struct door_listener *)listener)->door;
	unsigned more;

	(void)socket;
	if (log_limit_ok(&d->accept_log, 1, 60000, clock_mono_ms(), &more))
		log_warning("could not accept an RDP client: %s (%u more like this)",
			strerror(error), more);
	set_accepting(d, false);
	loop_timer_arm(d->resume, RESUME_MS);
}

static void accepted(struct evconnlistener *socket, evutil_socket_t fd, struct sockaddr *peer,
	int len, void *listener)
{
	(void)socket;
	(void)len;
	client_accept(listener, fd, peer);
}

/* Plaintext that OpenSSL lets go of is wiped: it may be a password. */
static int make_tls(const struct config_door *config, SSL_CTX **ret, struct err *e)
{
	int r;

	*ret = NULL;
	if (!config->certificate[0])
		return 0;
	r = tls_server_new(config->certificate, config->key, ret, e);
	if (r < 0)
		return err_prefix(e, r, "door \"%s\"", config->address);
	SSL_CTX_set_options(*ret, SSL_OP_CLEANSE_PLAINTEXT);
	return 0;
}

static int open_door(struct door *d, unsigned index, struct err *e)
{
	const struct config_door *config = &d->config->doors[index];
	struct door_listener *l = &d->listeners[index];
	int fd, r = make_tls(config, &l->tls, e);

	if (r < 0)
		return r;
	l->door = d;
	l->index = index;
	d->listener_count++; /* from here door_free undoes it */
	fd = bind_tcp(config->address, config->port, &l->port, e);
	if (fd < 0)
		return fd;
	l->socket = evconnlistener_new(
		d->base, accepted, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!l->socket) {
		close(fd);
		return err_errno(e, -ENOMEM, "could not open a door");
	}
	evconnlistener_set_error_cb(l->socket, accept_failed);
	log_info("RDP clients are %s from %s port %u into pool \"%s\"",
		config->mode == DOOR_MODE_RELAY ? "relayed" : "redirected", config->address,
		l->port, config->pool);
	return 0;
}

/* Nobody is relayed any more, or the time is over. */
static void drain_over(void *ctx)
{
	struct door *d = ctx;
	void (*drained)(void *) = d->drained;

	d->drained = NULL;
	if (drained)
		drained(d->drained_ctx);
}

int door_new(struct event_base *base, const struct config *config, const struct door_broker *broker,
	struct door **ret, struct err *e)
{
	struct door *d = calloc(1, sizeof(*d));
	int r = 0;

	if (!d)
		return err_errno(e, -ENOMEM, "could not open the door");
	d->base = base;
	d->config = config;
	d->broker = *broker;
	d->resume = loop_timer_new(base, resume, d);
	d->drain = loop_timer_new(base, drain_over, d);
	d->feed = loop_timer_new(base, relay_feed, d);
	if (!d->resume || !d->drain || !d->feed)
		r = err_errno(e, -ENOMEM, "could not open the door");
	for (unsigned i = 0; i < config->door_count && r == 0; i++)
		r = open_door(d, i, e);
	if (r < 0) {
		door_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void door_stop(struct door *d)
{
	d->stopping = true;
	loop_timer_disarm(d->resume);
	for (unsigned i = 0; i < d->listener_count; i++) {
		struct door_listener *l = &d->listeners[i];

		if (l->socket)
			evconnlistener_free(l->socket);
		l->socket = NULL;
	}
}

void door_drain(struct door *d, void (*drained)(void *ctx), void *ctx)
{
	door_stop(d);
	d->drained = drained;
	d->drained_ctx = ctx;
	if (d->relay_count > 0)
		log_info("waiting for %u relayed clients, %d s at most", d->relay_count,
			(int)(d->config->door_drain_ms / 1000));
	loop_timer_arm(d->drain, d->relay_count > 0 ? d->config->door_drain_ms : 0);
}

void door_cut(struct door *d)
{
	d->drained = NULL;
	while (d->relays)
		relay_end(d->relays, "the broker stopped");
}

unsigned door_relayed(const struct door *d)
{
	return d->relay_count;
}

static void told_nobody(void *ctx, const struct door_report *r)
{
	(void)ctx;
	(void)r;
}

void door_free(struct door *d)
{
	if (!d)
		return;
	d->broker.tell = told_nobody; /* it may have ended before */
	door_cut(d);
	while (d->clients)
		client_close(d->clients);
	for (unsigned i = 0; i < d->listener_count; i++) {
		if (d->listeners[i].socket)
			evconnlistener_free(d->listeners[i].socket);
		SSL_CTX_free(d->listeners[i].tls);
	}
	loop_timer_free(d->resume);
	loop_timer_free(d->drain);
	loop_timer_free(d->feed);
	if (d->dns)
		evdns_base_free(d->dns, 0);
	pipes_deinit(&d->pipes);
	free(d);
}

int door_prepare(struct door *d, const struct config *config, struct err *e)
{
	int r = 0;

	for (unsigned i = 0; i < d->listener_count && r == 0; i++)
		r = make_tls(&config->doors[i], &d->listeners[i].next_tls, e);
	if (r < 0)
		door_leave(d);
	return r;
}

void door_take(struct door *d, const struct config *config)
{
	for (unsigned i = 0; i < d->listener_count; i++) {
		struct door_listener *l = &d->listeners[i];

		SSL_CTX_free(l->tls);
		l->tls = l->next_tls;
		l->next_tls = NULL;
	}
	d->config = config;
}

void door_leave(struct door *d)
{
	for (unsigned i = 0; i < d->listener_count; i++) {
		SSL_CTX_free(d->listeners[i].next_tls);
		d->listeners[i].next_tls = NULL;
	}
}

uint16_t door_port(const struct door *d, unsigned i)
{
	return i < d->listener_count ? d->listeners[i].port : 0;
}
