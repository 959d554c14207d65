/* SPDX-License-Identifier: ISC */
/* The floor for redirections: accepts TLS with a full handshake and closes. bench_tls_floor
 * CERTIFICATE KEY prints its port. Same event base, same TLS settings as the dispatcher. */
#include <arpa/inet.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bind.h"
#include "base/loop.h"
#include "base/tls.h"

struct floor {
	struct event_base *base;
	SSL_CTX *tls;
};

static void happened(struct bufferevent *bev, short what, void *ctx)
{
	if (what & BEV_EVENT_CONNECTED)
		SSL_shutdown(bufferevent_openssl_get_ssl(bev));
	bufferevent_free(bev);
}

static void accepted(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
	int len, void *ctx)
{
	struct floor *f = ctx;
	struct bufferevent *bev = bufferevent_openssl_socket_new(
		f->base, fd, SSL_new(f->tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);

	if (!bev)
		exit(1);
	bufferevent_setcb(bev, NULL, NULL, happened, NULL);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

int main(int argc, char **argv)
{
	struct floor f = {.base = loop_new()};
	struct evconnlistener *listener;
	struct err e = {""};
	uint16_t port;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	if (argc != 3 || !f.base || tls_server_new(argv[1], argv[2], &f.tls, &e) < 0 ||
		(fd = bind_tcp("127.0.0.1", 0, &port, &e)) < 0) {
		fprintf(stderr, "bench_tls_floor: %s\n", e.text);
		return 1;
	}
	listener = evconnlistener_new(f.base, accepted, &f, LEV_OPT_CLOSE_ON_FREE, 0, fd);
	if (!listener)
		return 1;
	printf("%u\n", port);
	fflush(stdout);
	return event_base_dispatch(f.base) < 0;
}
