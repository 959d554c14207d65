/* SPDX-License-Identifier: ISC */
/*
 * One RDP client, from its first byte until it is redirected (talk.c), relayed (relay.c) or turned
 * away.
 *
 * Model: the first packet, and a balancer's header before it, are read from the socket byte for
 * byte, no more than they have, so that what follows begins on a clean stream. While the broker
 * decides, nothing is read. What was said last is flushed, then the sending side is shut and the
 * client's own end is waited for, since a close with unread input would throw it away.
 *
 * Invariants: while open, a client is in the list of all, and either READABLE (first packet, relay,
 * or the last words without TLS) or BEV is set; client_close and relay_begin alone end that. One
 * deadline for the first packet and one for all until the end, whatever comes meanwhile. The struct
 * outlives client_close only while the broker has it (ASKING).
 */
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "door/door_private.h"
#include "door/redirection.h"
#include "door/route.h"

#define LINGER_MS 3000

/* ---- life ---- */

static void client_free(struct client *c)
{
	loop_timer_free(c->timer);
	free(c);
}

static void unlink_client(struct client *c)
{
	*c->prev_next = c->next;
	if (c->next)
		c->next->prev_next = c->prev_next;
	c->door->client_count--;
	if (c->counted)
		addresses_drop(&c->door->addresses, c->counted);
	if (c->relay_counted)
		addresses_drop(&c->door->relay_addresses, c->relay_counted);
}

void client_close(struct client *c)
{
	if (c->closed)
		return;
	c->closed = true;
	unlink_client(c);
	if (c->timer)
		loop_timer_disarm(c->timer);
	approach_free(c->approach);
	if (c->readable)
		event_free(c->readable);
	if (c->bev)
		bufferevent_free(c->bev); /* and the descriptor */
	else if (c->fd >= 0)
		close(c->fd);
	c->approach = NULL;
	c->readable = NULL;
	c->bev = NULL;
	ERR_clear_error();
	if (c->stage != STAGE_ASKING)
		client_free(c);
}

static const char *step_name(const struct client *c)
{
	switch (c->stage) {
	case STAGE_PROXY:
		return "proxy";
	case STAGE_FIRST:
		return "request";
	case STAGE_TLS:
		return "tls";
	case STAGE_DIALOGUE:
		return dialogue_step_name(c->dialogue.step);
	case STAGE_ASKING:
		return "decision";
	case STAGE_NODE:
		return "node";
	default:
		return "redirection";
	}
}

static void tell_failed(const struct client *c, const char *reason)
{
	const struct door_report report = {
		.what = DOOR_FAILED,
		.client = c->address,
		.step = step_name(c),
		.reason = reason,
	};

	c->door->broker.tell(c->door->broker.ctx, &report);
}

void client_fail(struct client *c, const char *reason)
{
	tell_failed(c, reason);
	client_close(c);
}

const struct config_door *client_config(const struct client *c)
{
	return &c->door->config->doors[c->listener->index];
}

int64_t client_time_left(const struct client *c)
{
	int64_t left = c->accepted_ms + c->door->config->door_handshake_ms - clock_mono_ms();

	return left > 0 ? left : 0;
}

/* ---- the end ---- */

void client_shut(struct client *c)
{
	if (c->shut)
		return;
	c->shut = true;
	if (c->bev) {
		SSL_shutdown(bufferevent_openssl_get_ssl(c->bev));
		ERR_clear_error();
	}
	shutdown(c->fd, SHUT_WR);
	loop_timer_arm(c->timer, LINGER_MS);
}

static void out_of_time(void *ctx)
{
	struct client *c = ctx;

	if (c->stage == STAGE_LEAVING)
		client_close(c);
	else
		client_fail(c, "not complete within the time allowed");
}

static bool offers_tls(const struct client *c)
{
	return c->request.negotiates && (c->request.protocols & X224_TLS);
}

/* Nothing else was sent on this socket before: what does not fit now never will. */
static bool say(const struct client *c, const struct buf *out)
{
	return !buf_error(out) &&
	       send(c->fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out->len;
}

/* Agrees on TLS and begins with it. */
static void confirm_tls(struct client *c)
{
	struct buf out = BUF_INIT(64);
	bool said;

	redirection_add_confirm(&out, X224_TLS);
	said = say(c, &out);
	buf_deinit(&out);
	if (!said) {
		client_fail(c, "the answer could not be sent");
		return;
	}
	event_free(c->readable);
	c->readable = NULL;
	talk_start(c);
}

void client_turn_away(struct client *c, uint32_t errinfo)
{
	c->refused = true;
	c->refusal = errinfo;
	if (c->bev)
		talk_refuse(c);
	else if (c->listener->tls && offers_tls(c))
		confirm_tls(c); /* words exist inside TLS only */
	else
		client_close(c);
}

/* ---- decision ---- */

static void answered(void *ctx, const struct door_answer *a)
{
	const struct door_report report = {.what = DOOR_TURNED_AWAY};
	struct client *c = ctx;

	if (c->closed) {
		client_free(c);
		return;
	}
	if (a->verdict != DOOR_PLACED) {
		c->door->broker.tell(c->door->broker.ctx, &report);
		c->stage = STAGE_DIALOGUE;
		client_turn_away(
			c, a->verdict == DOOR_REFUSED ? ERRINFO_POOL_NOT_FREE : ERRINFO_DENIED);
	} else if (c->relayed) {
		c->stage = STAGE_NODE;
		approach_start(c, a);
	} else {
		talk_redirect(c, a);
	}
}

void client_ask(struct client *c)
{
	const struct door_broker *broker = &c->door->broker;

	c->stage = STAGE_ASKING;
	broker->ask(broker->ctx, &c->question, answered, c);
}

/* ---- the first packet ---- */

static bool relay_over_cap(struct client *c)
{
	const struct config *config = c->door->config;
	char key[LIMIT_ADDRESS_SIZE];
	uint32_t count = 0;

	addresses_key((struct sockaddr *)&c->peer, key);
	c->relay_counted = addresses_take(&c->door->relay_addresses, key, &count);
	return !c->relay_counted || count > config->door_relayed_per_address ||
	       c->door->relay_count >= config->door_relayed;
}

static void relay_client(struct client *c)
{
	c->relayed = true;
	loop_timer_arm(c->timer, client_time_left(c));
	event_del(c->readable);
	route_first_packet(client_config(c), &c->request, &c->question);
	if (relay_over_cap(c)) {
		tell_failed(c, "too many relayed clients at once");
		client_turn_away(c, ERRINFO_DENIED);
	} else if (c->question.who == DOOR_NOBODY && !c->question.endpoint[0] &&
		   client_config(c)->nobody == NOBODY_REFUSE) {
		tell_failed(c, "the client told no user name");
		client_turn_away(c, ERRINFO_DENIED);
	} else {
		client_ask(c);
	}
}

static void refuse_security(struct client *c)
{
	struct buf out = BUF_INIT(64);

	redirection_add_failure(&out, FAILURE_SSL_REQUIRED);
	(void)say(c, &out);
	buf_deinit(&out);
	tell_failed(c, c->request.negotiates ? "the client does not offer TLS"
					     : "the client knows RDP's own security only");
	c->stage = STAGE_LEAVING;
	client_shut(c);
}

static void request_came(struct client *c)
{
	const struct config_door *config = client_config(c);

	text_copy(c->question.client, sizeof(c->question.client), c->address);
	if (config->mode == DOOR_MODE_RELAY ||
		(config->redirect_to == REDIRECT_TO_RELAY && route_has_ticket(&c->request)))
		relay_client(c);
	else if (offers_tls(c))
		confirm_tls(c);
	else
		refuse_security(c);
}

/* Throws away what a client says that was refused. */
static void drain(struct client *c)
{
	uint8_t scrap[4096];
	ssize_t n = recv(c->fd, scrap, sizeof(scrap), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		client_close(c);
}

/* While a node is connected: whether the client still waits. What it says early stays where it is.
 */
static void look(struct client *c)
{
	uint8_t byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	if (n > 0)
		event_del(c->readable);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		client_fail(c, "the client closed the connection");
}

/* Reads at most WANT bytes in all. False: nothing came, or C is closed. */
static bool read_more(struct client *c, size_t want)
{
	ssize_t n = recv(c->fd, c->first + c->have, want - c->have, MSG_DONTWAIT);

	if (n > 0) {
		c->have += (size_t)n;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	/* One that only looks whether somebody listens is no failure. */
	if (c->have > 0)
		client_fail(c, "the client closed the connection");
	else
		client_close(c);
	return false;
}

/* ---- admission ---- */

static bool over_cap(struct client *c)
{
	const struct config *config = c->door->config;
	char key[LIMIT_ADDRESS_SIZE];
	uint32_t count = 0;

	if (c->counted)
		addresses_drop(&c->door->addresses, c->counted);
	addresses_text((struct sockaddr *)&c->peer, c->address);
	addresses_key((struct sockaddr *)&c->peer, key);
	c->counted = addresses_take(&c->door->addresses, key, &count);
	return !c->counted || count > config->door_connections_per_address ||
	       c->door->client_count > config->door_connections;
}

static void proxy_came(struct client *c)
{
	struct err e = {""};
	int r = proxy_header_parse(c->first, c->have, &c->peer, &e);

	c->have = 0;
	if (r == -EINVAL) {
		client_fail(c, e.text);
		return;
	}
	c->stage = STAGE_FIRST;
	if (over_cap(c))
		client_fail(c, "too many clients at once");
}

/* Reads the balancer's header. False: not whole, or C is closed. */
static bool read_proxy(struct client *c)
{
	struct err e = {""};
	int want;

	while ((want = proxy_header_want(c->first, c->have, &e)) > 0) {
		if (!read_more(c, (size_t)want))
			return false;
	}
	if (want < 0) {
		client_fail(c, e.text);
		return false;
	}
	return true;
}

/* How far may be read without reading behind the packet: its header tells. */
static size_t first_size(const struct client *c)
{
	return c->have < 4 ? 4 : (size_t)(c->first[2] << 8 | c->first[3]);
}

static void read_first(struct client *c)
{
	struct err e = {""};
	int r;

	while (read_more(c, first_size(c))) {
		r = x224_parse(c->first, c->have, &c->request, &e);
		if (r == -EAGAIN)
			continue;
		if (r < 0)
			client_fail(c, e.text);
		else
			request_came(c);
		return;
	}
}

static void first_readable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	(void)fd;
	(void)what;
	switch (c->stage) {
	case STAGE_LEAVING:
		drain(c);
		break;
	case STAGE_NODE:
		look(c);
		break;
	case STAGE_PROXY:
		if (read_proxy(c))
			proxy_came(c); /* the rest is told by the next turn of the loop */
		break;
	default:
		read_first(c);
	}
}

static void link_client(struct client *c)
{
	struct door *d = c->door;

	c->next = d->clients;
	c->prev_next = &d->clients;
	if (c->next)
		c->next->prev_next = &c->next;
	d->clients = c;
	d->client_count++;
}

static void copy_peer(struct client *c, const struct sockaddr *peer)
{
	size_t size = peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						  : sizeof(struct sockaddr_in);

	memcpy(&c->peer, peer, size);
}

void client_accept(struct door_listener *l, int fd, const struct sockaddr *peer)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	c->door = l->door;
	c->listener = l;
	c->fd = fd;
	c->accepted_ms = clock_mono_ms();
	copy_peer(c, peer);
	link_client(c);
	c->stage = config_door_is_proxy(client_config(c), peer) ? STAGE_PROXY : STAGE_FIRST;
	c->timer = loop_timer_new(c->door->base, out_of_time, c);
	c->readable = event_new(c->door->base, fd, EV_READ | EV_PERSIST, first_readable, c);
	if (!c->timer || !c->readable || event_add(c->readable, NULL) < 0)
		client_fail(c, "no memory");
	else if (over_cap(c) && c->stage == STAGE_FIRST) /* a balancer is no single client */
		client_fail(c, "too many clients at once");
	else
		loop_timer_arm(c->timer, c->door->config->door_first_packet_ms);
}
