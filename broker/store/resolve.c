/* SPDX-License-Identifier: ISC */
/*
 * Two owners share a request: the loop and the thread, each with one reference; who leaves last
 * frees it. The thread writes `result` and `code` before it signals the eventfd; the loop reads
 * them after.
 */
#include "store/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/text.h"

/* Threads under way in the process, the given up included: a resolver that never answers must not
 * gather one thread for each attempt. */
#define THREADS_MAX 8
static atomic_int threads;

struct shared {
	atomic_int references;
	int fd;
	int code; /* of getaddrinfo */
	struct resolved result;
	char host[256];
};

struct resolve {
	struct shared *shared;
	struct event *event;
	resolve_done *done;
	void *ctx;
};

static void unref(struct shared *s)
{
	if (atomic_fetch_sub(&s->references, 1) > 1)
		return;
	close(s->fd);
	free(s);
}

static void look_up(struct shared *s)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list = NULL;

	s->code = getaddrinfo(s->host, NULL, &hints, &list);
	if (s->code != 0)
		return;
	for (struct addrinfo *a = list; a && s->result.count < RESOLVE_ADDRESSES; a = a->ai_next) {
		if (getnameinfo(a->ai_addr, a->ai_addrlen, s->result.address[s->result.count],
			    RESOLVE_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
			s->result.count++;
	}
	freeaddrinfo(list);
}

static void *thread_main(void *arg)
{
	struct shared *s = arg;
	const uint64_t one = 1;

	look_up(s);
	/* A full or closed eventfd cannot happen: one write in its life, and we hold a reference.
	 */
	if (write(s->fd, &one, sizeof(one)) < 0)
		s->code = EAI_SYSTEM;
	unref(s);
	atomic_fetch_sub(&threads, 1);
	return NULL;
}

static void resolve_free(struct resolve *r)
{
	if (r->event)
		event_free(r->event);
	unref(r->shared);
	free(r);
}

static void answered(evutil_socket_t fd, short what, void *arg)
{
	struct resolve *r = arg;
	struct shared *s = r->shared;
	resolve_done *done = r->done;
	void *ctx = r->ctx;
	struct resolved result = s->result;
	struct err e;

	err_set(&e, 0, "could not translate host name \"%s\" to address: %s", s->host,
		s->code ? gai_strerror(s->code) : "no address");
	resolve_free(r);
	done(ctx, &result, result.count ? "" : e.text);
}

/* A thread with every signal blocked: signals are the loop's. */
static int spawn(struct shared *s)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int resolve_start(struct event_base *base, const char *host, resolve_done *done, void *ctx,
	struct resolve **ret, struct err *e)
{
	struct resolve *r = calloc(1, sizeof(*r));
	struct shared *s = calloc(1, sizeof(*s));
	int code = -ENOMEM;

	if (!r || !s)
		goto fail;
	code = text_copy(s->host, sizeof(s->host), host);
	if (code < 0)
		goto fail;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0) {
		code = -errno;
		goto fail;
	}
	atomic_init(&s->references, 1);
	*r = (struct resolve){.shared = s, .done = done, .ctx = ctx};
	r->event = event_new(base, s->fd, EV_READ, answered, r);
	code = r->event && event_add(r->event, NULL) == 0 ? 0 : -ENOMEM;
	if (code == 0 && atomic_fetch_add(&threads, 1) >= THREADS_MAX) {
		atomic_fetch_sub(&threads, 1);
		code = -EAGAIN;
	} else if (code == 0) {
		atomic_fetch_add(&s->references, 1);
		code = spawn(s);
		if (code < 0) {
			atomic_fetch_sub(&s->references, 1);
			atomic_fetch_sub(&threads, 1);
		}
	}
	if (code < 0) {
		resolve_free(r);
		return err_errno(e, code, "could not look up host name \"%s\"", host);
	}
	*ret = r;
	return 0;
fail:
	free(r);
	free(s);
	return err_errno(e, code, "could not look up host name \"%s\"", host);
}

void resolve_cancel(struct resolve *r)
{
	if (r)
		resolve_free(r);
}
