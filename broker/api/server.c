/* SPDX-License-Identifier: ISC */
/*
 * Model: a listener is a socket of our own making handed to an evhttp of its own, so that each
 * connection knows by which door it came. Options that accepted sockets inherit (TCP_NODELAY:
 * without it TLS answers take 44 ms) are set on the listening socket.
 *
 * Out of descriptors the listeners are disabled for a moment, else libevent would spin; one
 * descriptor is kept spare to take the waiting connection and close it, so that its client learns
 * of it.
 */
#include "api/server.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/bind.h"
#include "api/connection.h"
#include "api/events.h"
#include "base/clock.h"
#include "base/tls.h"

#define RESUME_MS 200
#define SPARE_TIMEOUT_S 1
#define DESCRIPTORS_RESERVED 64 /* database, log, listeners, probes, and room */
#define METHODS_ALL                                                                                \
	(EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | \
		EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH)

/* ---- short of descriptors or memory ---- */

static void set_accepting(struct api *a, bool on)
{
	for (unsigned i = 0; i < a->listener_count; i++) {
		struct evhttp_bound_socket *bound = a->listeners[i].bound;
		struct evconnlistener *l = bound ? evhttp_bound_socket_get_listener(bound) : NULL;

		if (l && on)
			evconnlistener_enable(l);
		else if (l)
			evconnlistener_disable(l);
	}
}

void server_pause_accepting(struct api *a)
{
	a->counters.accept_pauses++;
	set_accepting(a, false);
	loop_timer_arm(a->resume, RESUME_MS);
}

static struct bufferevent *make_spare(struct api *a)
{
	const struct timeval tv = {.tv_sec = SPARE_TIMEOUT_S};
	struct bufferevent *bev = bufferevent_socket_new(a->base, -1, BEV_OPT_CLOSE_ON_FREE);

	if (!bev)
		return NULL;
	/* never enough to be looked at, so never answered, and gone after a second */
	bufferevent_setwatermark(bev, EV_READ, SIZE_MAX / 4, 4096);
	bufferevent_set_timeouts(bev, &tv, &tv);
	return bev;
}

struct bufferevent *server_spare_bufferevent(struct api *a)
{
	struct bufferevent *bev = a->spare_bev;

	a->spare_bev = NULL;
	server_pause_accepting(a);
	return bev;
}

static void resume(void *ctx)
{
	struct api *a = ctx;

	if (!a->spare_bev)
		a->spare_bev = make_spare(a);
	if (a->spare_fd < 0)
		a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!a->spare_bev)
		loop_timer_arm(a->resume, RESUME_MS);
	else if (!a->stopping)
		set_accepting(a, true);
}

/* libevent gives an error of accept the argument of evhttp's own callback, the evhttp: by it the
 * listener is found here. */
static struct listener *known_listeners;

static struct listener *find_listener(const struct evhttp *http)
{
	struct listener *l = known_listeners;

	while (l && l->http != http)
		l = l->next_known;
	return l;
}

static void forget_listener(struct listener *listener)
{
	struct listener **at = &known_listeners;

	while (*at && *at != listener)
		at = &(*at)->next_known;
	if (*at)
		*at = listener->next_known;
}

static void accept_failed(struct evconnlistener *l, void *http)
{
	int error = errno, fd;
	struct listener *listener = find_listener(http);
	struct api *a = listener ? listener->api : NULL;
	unsigned more;

	if (!a)
		return;

	if (log_limit_ok(&a->accept_log, 1, 60000, clock_mono_ms(), &more))
		log_warning("could not accept a connection: %s (%u more like this)",
			strerror(error), more);
	if ((error == EMFILE || error == ENFILE) && a->spare_fd >= 0) {
		close(a->spare_fd);
		fd = accept(evconnlistener_get_fd(l), NULL, NULL);
		if (fd >= 0)
			close(fd);
		a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	server_pause_accepting(a);
}

/* ---- listeners ---- */

static int start_http(struct listener *l, int fd, struct err *e)
{
	l->http = evhttp_new(l->api->base);
	if (!l->http) {
		close(fd);
		return err_errno(e, -ENOMEM, "could not make a listener");
	}
	l->next_known = known_listeners;
	known_listeners = l;
	evhttp_set_bevcb(l->http, conn_make, l);
	evhttp_set_gencb(l->http, request_arrived, l);
	evhttp_set_allowed_methods(l->http, METHODS_ALL);
	evhttp_set_max_headers_size(l->http, 2 * FRAME_HEAD_MAX); /* smuggle.c is stricter */
	evhttp_set_max_body_size(l->http, LIMIT_BODY);
	l->bound = evhttp_accept_socket_with_handle(l->http, fd);
	if (!l->bound) {
		close(fd);
		return err_errno(e, -ENOMEM, "could not make a listener");
	}
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(l->bound), accept_failed);
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
	return fd < 0 ? fd : start_http(l, fd, e);
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
	return start_http(l, fd, e);
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

static int open_all(struct api *a, struct err *e)
{
	int r = 0;

	a->resume = loop_timer_new(a->base, resume, a);
	a->spare_bev = make_spare(a);
	a->polls = event_polls_new(a);
	if (!a->resume || !a->spare_bev || !a->polls)
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

		if (l->bound)
			evhttp_del_accept_socket(l->http, l->bound);
		l->bound = NULL;
	}
	if (a->socket_made)
		unlink(a->socket_path);
	a->socket_made = false;
	event_polls_end(a->polls);
}

void api_free(struct api *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < a->listener_count; i++) {
		forget_listener(&a->listeners[i]);
		if (a->listeners[i].http)
			evhttp_free(a->listeners[i].http); /* closes its connections */
		SSL_CTX_free(a->listeners[i].tls);
	}
	if (a->socket_made)
		unlink(a->socket_path);
	free(a->socket_path);
	event_polls_free(a->polls);
	loop_timer_free(a->resume);
	if (a->spare_bev)
		bufferevent_free(a->spare_bev);
	if (a->spare_fd >= 0)
		close(a->spare_fd);
	buf_deinit(&a->head);
	buf_deinit(&a->body);
	free(a->by_fd);
	free(a);
}

int api_reload(struct api *a, const struct config *config, struct err *e)
{
	SSL_CTX *fresh[CONFIG_LISTENERS_MAX] = {NULL};
	unsigned count = a->config->listener_count;
	int r = 0;

	if (config->listener_count < count)
		count = config->listener_count;
	for (unsigned i = 0; i < count && r == 0; i++)
		if (config->listeners[i].tls && a->listeners[i].kind == LISTENER_TLS)
			r = make_tls(&config->listeners[i], &fresh[i], e);
	for (unsigned i = 0; i < count; i++) {
		if (r == 0 && fresh[i]) {
			SSL_CTX_free(a->listeners[i].tls);
			a->listeners[i].tls = fresh[i];
		} else {
			SSL_CTX_free(fresh[i]);
		}
	}
	if (r == 0)
		a->config = config;
	return r;
}

uint16_t api_port(const struct api *a, unsigned i)
{
	return i < a->listener_count ? a->listeners[i].port : 0;
}
