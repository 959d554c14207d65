/* SPDX-License-Identifier: ISC */
/* A client inside TLS: the dialogue up to its name, then where to go, or that there is nowhere to
 * go. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "base/text.h"
#include "door/door_private.h"
#include "door/redirection.h"
#include "door/route.h"

#define INPUT_MAX (2 * DIALOGUE_PACKET_MAX)

/* ---- the last words ---- */

/* Sends OUT, then the connection ends. */
static void leave(struct client *c, struct buf *out)
{
	c->stage = STAGE_LEAVING;
	if (buf_error(out) || bufferevent_write(c->bev, out->data, out->len) < 0)
		client_close(c);
	else
		bufferevent_enable(c->bev, EV_READ); /* to see the client's end */
	buf_deinit(out);
}

void talk_refuse(struct client *c)
{
	struct buf out = BUF_INIT(65536);

	if (c->dialogue.step != DIALOGUE_KNOWN)
		return; /* once the client is ready to hear it */
	redirection_add_licence(&out);
	redirection_add_errinfo(&out, c->refusal);
	leave(c, &out);
}

static bool numeric(const char *address)
{
	return strspn(address, "0123456789.") == strlen(address) || strchr(address, ':');
}

static void tell_redirected(const struct client *c, const struct door_answer *a)
{
	const struct door_report report = {
		.what = DOOR_REDIRECTED,
		.node = a->node,
		.pool = a->pool,
		.user = a->user,
		.client = c->address,
		.ms = clock_mono_ms() - c->accepted_ms,
	};

	c->door->broker.tell(c->door->broker.ctx, &report);
}

/* What the node must be told instead of what the client typed: "DOMAIN\user" in two. */
static void use_name(const struct client *c, struct redirection *to, char domain[LIMIT_USER_SIZE])
{
	const char *end = strchr(c->question.name, '\\');

	if (!c->renamed || c->question.who != DOOR_USER)
		return;
	to->user = end ? end + 1 : c->question.name;
	if (!end)
		return;
	memcpy(domain, c->question.name, (size_t)(end - c->question.name));
	domain[end - c->question.name] = '\0';
	to->domain = domain;
}

void talk_redirect(struct client *c, const struct door_answer *a)
{
	const bool ip = numeric(a->address);
	struct redirection to = {
		.address = ip ? a->address : NULL,
		.fqdn = a->fqdn[0] ? a->fqdn
			: ip	   ? NULL
				   : a->address,
	};
	char domain[LIMIT_USER_SIZE], reason[192];
	struct buf out = BUF_INIT(65536);

	c->stage = STAGE_LEAVING;
	if (a->ticket[0]) {
		to = (struct redirection){.token = a->ticket};
	} else if (a->port != c->listener->port) {
		snprintf(reason, sizeof(reason),
			"node %.64s listens on port %u, and a redirection leads to port %u only",
			a->node, a->port, c->listener->port);
		client_fail(c, reason);
		return;
	}
	tell_redirected(c, a);
	use_name(c, &to, domain);
	redirection_add_licence(&out);
	redirection_add(&out, &to);
	leave(c, &out);
}

/* ---- the dialogue ---- */

static void client_known(struct client *c, const struct client_info *info)
{
	const struct config_door *config = client_config(c);
	struct door_question *q = &c->question;
	struct err e = {""};

	bufferevent_disable(c->bev, EV_READ);
	if (c->refused) {
		talk_refuse(c);
		return;
	}
	if (route_has_ticket(&c->request)) {
		route_first_packet(config, &c->request, q);
	} else if (route_user(config, &c->request, info->user, info->domain, q, &c->renamed, &e) <
		   0) {
		client_fail(c, e.text);
		return;
	}
	if (q->who == DOOR_NOBODY && config->nobody == NOBODY_REFUSE) {
		const struct door_report report = {
			.what = DOOR_FAILED,
			.client = c->address,
			.step = "decision",
			.reason = "the client told no user name",
		};

		c->door->broker.tell(c->door->broker.ctx, &report);
		client_turn_away(c, ERRINFO_DENIED);
		return;
	}
	q->wants_ticket = config->redirect_to == REDIRECT_TO_RELAY;
	client_ask(c);
}

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
		client_fail(c, e.text);
	else if (r > 0)
		client_known(c, &info);
}

static void output_went(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;

	if (c->stage == STAGE_LEAVING && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		client_shut(c);
}

/* What OpenSSL says of a failed handshake. */
static void tls_failed(struct client *c)
{
	unsigned long error = bufferevent_get_openssl_error(c->bev);
	char reason[128] = "the client closed the connection";

	if (error)
		ERR_error_string_n(error, reason, sizeof(reason));
	client_fail(c, reason);
}

static void peer_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *c = arg;

	(void)bev;
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

void talk_start(struct client *c)
{
	SSL *ssl = SSL_new(c->listener->tls);

	if (ssl)
		c->bev = bufferevent_openssl_socket_new(c->door->base, c->fd, ssl,
			BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!c->bev) {
		SSL_free(ssl);
		client_fail(c, "no memory for TLS");
		return;
	}
	bufferevent_openssl_set_allow_dirty_shutdown(c->bev, 1);
	bufferevent_setcb(c->bev, input_came, output_went, peer_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, INPUT_MAX);
	c->stage = STAGE_TLS;
	loop_timer_arm(c->timer, client_time_left(c));
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}
