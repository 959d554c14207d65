/* SPDX-License-Identifier: ISC */
/*
 * Model: a listener is a socket of our own making; each connection knows by which it came. Options
 * that accepted sockets inherit (TCP_NODELAY: without it TLS answers take 44 ms) are set on the
 * listening socket.
 *
 * Out of descriptors the listeners are disabled for a moment, else libevent would spin; one
 * descriptor is kept spare to take the waiting connection and close it, so that its client learns
 * of it.
 */
#include "api/server.h"

#include <errno.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/connection.h"
#include "api/events.h"
#include "base/bind.h"
#include "base/clock.h"
#include "base/tls.h"
#include "wire/rdp_sign.h"

#define RESUME_MS 200
#define DESCRIPTORS_RESERVED 64 /* database, log, listeners, probes, and room */

/* ---- short of descriptors or memory ---- */

static void set_accepting(struct api *a, bool on)
{
	for (unsigned i = 0; i < a->listener_count; i++) {
		struct evconnlistener *socket = a->listeners[i].socket;

		if (socket && on)
			evconnlistener_enable(socket);
		else if (socket)
			evconnlistener_disable(socket);
	}
}

void server_pause_accepting(struct api *a)
{
	a->counters.accept_pauses++;
	set_accepting(a, false);
	loop_timer_arm(a->resume, RESUME_MS);
}

static void resume(void *ctx)
{
	struct api *a = ctx;

	if (a->spare_fd < 0)
		a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!a->stopping)
		set_accepting(a, true);
}

static void accept_failed(struct evconnlistener *socket, void *listener)
{
	int error = errno, fd;
	struct api *a = ((struct listener *)listener)->api;
	unsigned more;

	if (log_limit_ok(&a->accept_log, 1, 60000, clock_mono_ms(), &more))
		log_warning("could not accept a connection: %s (%u more like this)",
			strerror(error), more);
	if ((error == EMFILE || error == ENFILE) && a->spare_fd >= 0) {
		close(a->spare_fd);
		fd = accept(evconnlistener_get_fd(socket), NULL, NULL);
		if (fd >= 0)
			close(fd);
		a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	server_pause_accepting(a);
}

/* ---- listeners ---- */

static void accepted(struct evconnlistener *socket, evutil_socket_t fd, struct sockaddr *peer,
	int len, void *listener)
{
	conn_accept(listener, fd, peer);
}

/* Takes FD over. */
static int start_accepting(struct listener *l, int fd, struct err *e)
{
	l->socket = evconnlistener_new(
		l->api->base, accepted, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!l->socket) {
		close(fd);
		return err_errno(e, -ENOMEM, "could not make a listener");
	}
	evconnlistener_set_error_cb(l->socket, accept_failed);
	return 0;
}

static int make_tls(const struct config_listener *config, SSL_CTX **ret, struct err *e)
{
	int r = tls_server_new(config->certificate, config->key, ret, e);

	if (r == 0) /* an answer that the socket did not take at once is copied and tried again */
		SSL_CTX_set_mode(
			*ret, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	return r;
}

static int open_listener(struct api *a, const struct config_listener *config, struct err *e)
{
	struct listener *l = &a->listeners[a->listener_count];
	int fd, r;

	l->api = a;
	l->kind = config->tls ? LISTENER_TLS : LISTENER_PLAIN;
	if (config->tls) {
		r = make_tls(config, &l->tls, e);
		if (r < 0)
			return r;
	}
	a->listener_count++; /* from here api_free undoes it */
	fd = bind_tcp(config->address, config->port, &l->port, e);
	return fd < 0 ? fd : start_accepting(l, fd, e);
}

static int open_socket(struct api *a, struct err *e)
{
	struct listener *l = &a->listeners[a->listener_count];
	int fd;

	if (!a->config->socket_path || !*a->config->socket_path)
		return 0;
	a->socket_path = strdup(a->config->socket_path);
	if (!a->socket_path)
		return err_errno(e, -ENOMEM, "could not make the admin socket");
	fd = bind_unix(a->socket_path, a->config->socket_group, e);
	if (fd < 0)
		return fd;
	a->socket_made = true;
	l->api = a;
	l->kind = LISTENER_SOCKET;
	a->listener_count++;
	return start_accepting(l, fd, e);
}

static uint32_t descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > UINT32_MAX)
		return UINT32_MAX;
	return limit.rlim_cur > 2 * DESCRIPTORS_RESERVED
		       ? (uint32_t)limit.rlim_cur - DESCRIPTORS_RESERVED
		       : (uint32_t)limit.rlim_cur / 2;
}

/* What .rdp files are signed with. */
static int make_signer(const struct config *config, SSL_CTX **ret, struct err *e)
{
	int r;

	*ret = NULL;
	if (!config->rdp_certificate[0])
		return 0;
	r = rdp_signer_new(config->rdp_certificate, config->rdp_key, ret, e);
	return r < 0 ? err_prefix(e, r, "rdp_file") : 0;
}

static int open_all(struct api *a, struct err *e)
{
	int r = 0;

	a->resume = loop_timer_new(a->base, resume, a);
	a->polls = event_polls_new(a);
	if (!a->resume || !a->polls)
		return err_errno(e, -ENOMEM, "could not start the HTTP server");
	a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (a->spare_fd < 0)
		return err_errno(e, -errno, "could not open \"/dev/null\"");
	for (unsigned i = 0; i < a->config->listener_count && r == 0; i++)
		r = open_listener(a, &a->config->listeners[i], e);
	return r < 0 ? r : open_socket(a, e);
}

int api_new(struct event_base *base, const struct config *config, struct service *service,
	struct api **ret, struct err *e)
{
	struct api *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_errno(e, -ENOMEM, "could not start the HTTP server");
	a->base = base;
	a->config = config;
	a->service = service;
	a->spare_fd = -1;
	a->descriptor_limit = descriptor_limit();
	buf_init(&a->head, API_ANSWER_MAX + 4096);
	buf_init(&a->body, API_ANSWER_MAX);
	r = make_signer(config, &a->signer, e);
	if (r == 0)
		r = open_all(a, e);
	if (r < 0) {
		api_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

/* ---- the end ---- */

void api_stop(struct api *a)
{
	a->stopping = true;
	loop_timer_disarm(a->resume);
	for (unsigned i = 0; i < a->listener_count; i++) {
		struct listener *l = &a->listeners[i];

		if (l->socket)
			evconnlistener_free(l->socket);
		l->socket = NULL;
	}
	if (a->socket_made)
		unlink(a->socket_path);
	a->socket_made = false;
	if (a->polls)
		event_polls_end(a->polls);
}

void api_free(struct api *a)
{
	if (!a)
		return;
	event_polls_end(a->polls);
	while (a->conns)
		conn_close(a->conns);
	for (unsigned i = 0; i < a->listener_count; i++) {
		if (a->listeners[i].socket)
			evconnlistener_free(a->listeners[i].socket);
		SSL_CTX_free(a->listeners[i].tls);
	}
	if (a->socket_made)
		unlink(a->socket_path);
	free(a->socket_path);
	event_polls_free(a->polls);
	loop_timer_free(a->resume);
	if (a->spare_fd >= 0)
		close(a->spare_fd);
	SSL_CTX_free(a->signer);
	buf_deinit(&a->head);
	buf_deinit(&a->body);
	free(a);
}

int api_prepare(struct api *a, const struct config *config, struct err *e)
{
	int r = make_signer(config, &a->next_signer, e);

	for (unsigned i = 0; i < config->listener_count && i < a->listener_count && r == 0; i++)
		if (config->listeners[i].tls && a->listeners[i].kind == LISTENER_TLS)
			r = make_tls(&config->listeners[i], &a->listeners[i].next_tls, e);
	if (r < 0)
		api_leave(a);
	return r;
}

void api_take(struct api *a, const struct config *config)
{
	for (unsigned i = 0; i < a->listener_count; i++) {
		struct listener *l = &a->listeners[i];

		if (!l->next_tls)
			continue;
		SSL_CTX_free(l->tls);
		l->tls = l->next_tls;
		l->next_tls = NULL;
	}
	SSL_CTX_free(a->signer);
	a->signer = a->next_signer;
	a->next_signer = NULL;
	a->config = config;
}

void api_leave(struct api *a)
{
	for (unsigned i = 0; i < a->listener_count; i++) {
		SSL_CTX_free(a->listeners[i].next_tls);
		a->listeners[i].next_tls = NULL;
	}
	SSL_CTX_free(a->next_signer);
	a->next_signer = NULL;
}

uint16_t api_port(const struct api *a, unsigned i)
{
	return i < a->listener_count ? a->listeners[i].port : 0;
}
