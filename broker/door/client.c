/* SPDX-License-Identifier: ISC */
/*
 * One RDP client, from its first byte to the redirection.
 *
 * Model: the first packet is read from the socket byte for byte, no more than it has, so that TLS
 * begins on a clean stream; then a bufferevent speaks TLS and the dialogue runs over it. While the
 * service decides, nothing is read. What was said last is flushed, then the sending side is shut
 * and the client's own end is waited for, since a close with unread input would throw it away.
 *
 * Invariants: while open, a client is in the list of all, and either READABLE (first packet, or the
 * last words without TLS) or BEV is set; client_close alone ends that. One deadline for the first
 * packet and one for the whole handshake, whatever comes meanwhile. The struct outlives
 * client_close only while the service has it (ASKING).
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/text.h"
#include "door/door_private.h"
#include "door/redirection.h"
#include "wire/user_key.h"

#define LINGER_MS 3000
#define INPUT_MAX (2 * DIALOGUE_PACKET_MAX)

enum stage { STAGE_FIRST, STAGE_TLS, STAGE_DIALOGUE, STAGE_ASKING, STAGE_LEAVING };

struct client {
	struct client *next, **prev_next;
	struct door *door;
	struct door_listener *listener;
	struct address_count *counted;
	char address[LIMIT_ADDRESS_SIZE];
	enum stage stage;
	bool closed; /* but the service still has it */
	bool shut;   /* nothing more is said */
	int fd;
	struct event *readable;
	struct bufferevent *bev; /* owns FD */
	struct loop_timer *timer;
	size_t have;
	uint8_t first[X224_REQUEST_MAX];
	struct x224_request request;
	struct dialogue dialogue;
};

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
}

void client_close(struct client *c)
{
	if (c->closed)
		return;
	c->closed = true;
	unlink_client(c);
	if (c->timer)
		loop_timer_disarm(c->timer);
	if (c->readable)
		event_free(c->readable);
	if (c->bev)
		bufferevent_free(c->bev); /* and the descriptor */
	else if (c->fd >= 0)
		close(c->fd);
	c->readable = NULL;
	c->bev = NULL;
	ERR_clear_error();
	if (c->stage != STAGE_ASKING)
		client_free(c);
}

static const char *step_name(const struct client *c)
{
	switch (c->stage) {
	case STAGE_FIRST:
		return "request";
	case STAGE_TLS:
		return "tls";
	case STAGE_DIALOGUE:
		return dialogue_step_name(c->dialogue.step);
	case STAGE_ASKING:
		return "decision";
	default:
		return "redirection";
	}
}

static void fail(struct client *c, const char *reason)
{
	service_door_failed(c->door->service, c->address, step_name(c), reason);
	client_close(c);
}

/* ---- the end ---- */

/* All was said: the client's end is waited for. */
static void shut(struct client *c)
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
		fail(c, "not complete within the time allowed");
}

/* ---- decision ---- */

/* DOMAIN\user, unless the user name has a domain of its own. */
static void full_name(const struct client_info *info, char *ret, size_t size)
{
	bool alone = !info->domain[0] || strpbrk(info->user, "\\@");

	snprintf(ret, size, "%s%s%s", alone ? "" : info->domain, alone ? "" : "\\", info->user);
}

static bool numeric(const char *address)
{
	return strspn(address, "0123456789.") == strlen(address) || strchr(address, ':');
}

static void redirect(struct client *c, const struct connection_answer *answer)
{
	struct buf out = BUF_INIT(65536);
	const bool ip = numeric(answer->address);
	struct redirection to = {
		.address = ip ? answer->address : NULL,
		.fqdn = answer->fqdn && answer->fqdn[0] ? answer->fqdn
			: ip				? NULL
							: answer->address,
	};

	redirection_add_licence(&out);
	redirection_add(&out, &to);
	c->stage = STAGE_LEAVING;
	if (buf_error(&out) || bufferevent_write(c->bev, out.data, out.len) < 0)
		client_close(c);
	else
		bufferevent_enable(c->bev, EV_READ); /* to see the client's end */
	buf_deinit(&out);
}

static void decided(void *ctx, const struct connect_result *r)
{
	struct client *c = ctx;
	struct caller caller = {.role = ROLE_CLIENT};
	char reason[192];

	c->stage = STAGE_DIALOGUE;
	if (c->closed) {
		client_free(c);
		return;
	}
	if (r->error.status == SERVICE_OK && r->answer.port != c->listener->port) {
		snprintf(reason, sizeof(reason),
			"node %.64s listens on port %u, and a redirection leads to port %u only",
			r->answer.node, r->answer.port, c->listener->port);
		c->stage = STAGE_LEAVING;
		fail(c, reason);
		return;
	}
	text_copy(caller.address, sizeof(caller.address), c->address);
	service_door_redirected(c->door->service, &caller, r);
	if (r->error.status == SERVICE_OK)
		redirect(c, &r->answer);
	else
		client_close(c);
}

static void ask(struct client *c, const struct client_info *info)
{
	const struct config_door *door = &c->door->config->doors[c->listener->index];
	struct connection_request request = {0};
	struct caller caller = {.role = ROLE_CLIENT, .actor = "door"};
	char name[2 * LIMIT_USER_SIZE];
	struct err e = {""};

	bufferevent_disable(c->bev, EV_READ);
	full_name(info, name, sizeof(name));
	request.nobody = info->user[0] == '\0';
	if (request.nobody && door->nobody == NOBODY_REFUSE) {
		fail(c, "the client told no user name");
		return;
	}
	if (request.nobody)
		text_copy(request.user, sizeof(request.user), "unknown");
	else if (user_name_display(name, strlen(name), request.user, &e) < 0) {
		fail(c, e.text);
		return;
	}
	text_copy(request.pool, sizeof(request.pool), door->pool);
	text_copy(request.client, sizeof(request.client), c->address);
	text_copy(caller.address, sizeof(caller.address), c->address);
	c->stage = STAGE_ASKING;
	service_connect(c->door->service, &caller, &request, decided, c);
}

/* ---- inside TLS ---- */

static void input_came(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(input), used = 0;
	struct buf out = BUF_INIT(65536);
	struct client_info info;
	struct err e = {""};
	unsigned char *data;
	int r;

	if (c->stage != STAGE_DIALOGUE) {
		evbuffer_drain(input, len);
		return;
	}
	data = evbuffer_pullup(input, -1);
	if (!data)
		return;
	r = dialogue_feed(&c->dialogue, data, len, &used, &out, &info, &e);
	secret_wipe(data, used); /* a password may have been in it */
	evbuffer_drain(input, used);
	if (r >= 0 && out.len > 0 && bufferevent_write(bev, out.data, out.len) < 0)
		r = err_set(&e, -ENOMEM, "no memory for the answer");
	buf_deinit(&out);
	if (r < 0)
		fail(c, e.text);
	else if (r > 0)
		ask(c, &info);
}

static void output_went(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;

	if (c->stage == STAGE_LEAVING && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		shut(c);
}

/* What OpenSSL says of a failed handshake. */
static void tls_failed(struct client *c)
{
	unsigned long error = bufferevent_get_openssl_error(c->bev);
	char reason[128] = "the client closed the connection";

	if (error)
		ERR_error_string_n(error, reason, sizeof(reason));
	fail(c, reason);
}

static void peer_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *c = arg;

	if (what & BEV_EVENT_CONNECTED) {
		c->stage = STAGE_DIALOGUE;
		dialogue_init(&c->dialogue, c->request.protocols);
		return;
	}
	if (c->stage == STAGE_LEAVING || c->stage == STAGE_ASKING)
		client_close(c);
	else
		tls_failed(c);
}

static void start_tls(struct client *c)
{
	SSL *ssl = SSL_new(c->listener->tls);

	if (ssl)
		c->bev = bufferevent_openssl_socket_new(c->door->base, c->fd, ssl,
			BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!c->bev) {
		SSL_free(ssl);
		fail(c, "no memory for TLS");
		return;
	}
	bufferevent_openssl_set_allow_dirty_shutdown(c->bev, 1);
	bufferevent_setcb(c->bev, input_came, output_went, peer_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, INPUT_MAX);
	c->stage = STAGE_TLS;
	loop_timer_arm(c->timer, c->door->config->door_handshake_ms);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

/* ---- the first packet ---- */

/* Nothing else was sent on this socket before: what does not fit now never will. */
static bool say(const struct client *c, const struct buf *out)
{
	return !buf_error(out) &&
	       send(c->fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out->len;
}

static void request_came(struct client *c)
{
	struct buf out = BUF_INIT(64);
	bool tls = c->request.negotiates && (c->request.protocols & X224_TLS), said;

	if (tls)
		redirection_add_confirm(&out, X224_TLS);
	else
		redirection_add_failure(&out, FAILURE_SSL_REQUIRED);
	said = say(c, &out);
	buf_deinit(&out);
	if (!said) {
		fail(c, "the answer could not be sent");
		return;
	}
	if (tls) {
		event_free(c->readable);
		c->readable = NULL;
		start_tls(c);
		return;
	}
	service_door_failed(c->door->service, c->address, step_name(c),
		c->request.negotiates ? "the client does not offer TLS"
				      : "the client knows RDP's own security only");
	c->stage = STAGE_LEAVING;
	shut(c);
}

/* Throws away what a client says that was refused. */
static void drain(struct client *c)
{
	uint8_t scrap[4096];
	ssize_t n = recv(c->fd, scrap, sizeof(scrap), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		client_close(c);
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
		fail(c, "the client closed the connection");
	else
		client_close(c);
	return false;
}

/* How far may be read without reading behind the packet: its header tells. */
static size_t first_size(const struct client *c)
{
	return c->have < 4 ? 4 : (size_t)(c->first[2] << 8 | c->first[3]);
}

static void first_readable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	struct err e = {""};
	int r;

	(void)fd;
	(void)what;
	if (c->stage == STAGE_LEAVING) {
		drain(c);
		return;
	}
	while (read_more(c, first_size(c))) {
		r = x224_parse(c->first, c->have, &c->request, &e);
		if (r == -EAGAIN)
			continue;
		if (r < 0)
			fail(c, e.text);
		else
			request_came(c);
		return;
	}
}

/* ---- admission ---- */

static bool over_cap(struct client *c, const struct sockaddr *peer)
{
	const struct config *config = c->door->config;
	char key[LIMIT_ADDRESS_SIZE];
	uint32_t count = 0;

	addresses_key(peer, key);
	c->counted = addresses_take(&c->door->addresses, key, &count);
	return !c->counted || count > config->door_connections_per_address ||
	       c->door->client_count > config->door_connections;
}

void client_accept(struct door_listener *l, int fd, const struct sockaddr *peer)
{
	struct client *c = calloc(1, sizeof(*c));
	struct door *d = l->door;

	if (!c) {
		close(fd);
		return;
	}
	c->door = d;
	c->listener = l;
	c->fd = fd;
	addresses_text(peer, c->address);
	c->next = d->clients;
	c->prev_next = &d->clients;
	if (c->next)
		c->next->prev_next = &c->next;
	d->clients = c;
	d->client_count++;
	c->timer = loop_timer_new(d->base, out_of_time, c);
	c->readable = event_new(d->base, fd, EV_READ | EV_PERSIST, first_readable, c);
	if (!c->timer || !c->readable || event_add(c->readable, NULL) < 0)
		fail(c, "no memory");
	else if (over_cap(c, peer))
		fail(c, "too many clients at once");
	else
		loop_timer_arm(c->timer, d->config->door_first_packet_ms);
}
