/* SPDX-License-Identifier: ISC */
/*
 * A table of results by node id. An entry lives from the first question until probes_forget; it is
 * either under way (bev set) or has a result with the time it came.
 */
#include "model/hash.h"

#include "service/probe.h"

#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/node.h"

#define PROBES_MAX 64
#define PROBE_TIMEOUT_S 1
#define PROBE_KEEP_MS 10000

struct probe {
	uint32_t node_id;
	struct probes *owner;
	struct bufferevent *bev; /* NULL = not under way */
	struct event *deadline;
	bool answers;
	int64_t at_ms;
	UT_hash_handle hh;
};

struct probes {
	struct event_base *base;
	struct evdns_base *dns; /* for nodes given by host name; made at the first need */
	struct probe *table;
	unsigned under_way;
	struct event *forgotten; /* one that was under way */
	void (*finished)(void *ctx);
	void *ctx;
};

static void on_forgotten(evutil_socket_t fd, short what, void *ctx)
{
	struct probes *p = ctx;

	(void)fd;
	(void)what;
	p->finished(p->ctx);
}

struct probes *probes_new(struct event_base *base, void (*finished)(void *ctx), void *ctx)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct probes){.base = base, .finished = finished, .ctx = ctx};
	p->forgotten = event_new(base, -1, 0, on_forgotten, p);
	if (!p->forgotten) {
		free(p);
		return NULL;
	}
	return p;
}

static void probe_end(struct probe *e)
{
	if (!e->bev)
		return;
	bufferevent_free(e->bev);
	event_free(e->deadline);
	e->bev = NULL;
	e->deadline = NULL;
	e->owner->under_way--;
}

static void probe_drop(struct probe *e)
{
	probe_end(e);
	HASH_DEL(e->owner->table, e);
	free(e);
}

void probes_free(struct probes *p)
{
	struct probe *e, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->table, e, next)
	probe_drop(e);
	if (p->dns)
		evdns_base_free(p->dns, 0);
	event_free(p->forgotten);
	free(p);
}

void probes_forget(struct probes *p, uint32_t node_id)
{
	struct probe *e;

	HASH_FIND(hh, p->table, &node_id, sizeof(node_id), e);
	if (!e)
		return;
	/* Who waits for it would wait for ever: told from the loop, when the node has changed. */
	if (e->bev)
		event_active(p->forgotten, EV_TIMEOUT, 0);
	probe_drop(e);
}

static void probe_result(struct probe *e, bool answers)
{
	struct probes *owner = e->owner;

	probe_end(e);
	e->answers = answers;
	e->at_ms = clock_mono_ms();
	owner->finished(owner->ctx);
}

static void on_connect(struct bufferevent *bev, short what, void *ctx)
{
	(void)bev;
	probe_result(ctx, (what & BEV_EVENT_CONNECTED) != 0);
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	probe_result(ctx, false);
}

/* 0 or -1 with nothing left open. */
static int probe_start(struct probe *e, const struct node *n)
{
	struct probes *p = e->owner;
	struct timeval deadline = {.tv_sec = PROBE_TIMEOUT_S};

	if (!p->dns)
		p->dns = evdns_base_new(p->base,
			EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	e->deadline = event_new(p->base, -1, 0, on_deadline, e);
	e->bev = bufferevent_socket_new(
		p->base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!e->deadline || !e->bev || event_add(e->deadline, &deadline))
		goto fail;
	bufferevent_setcb(e->bev, NULL, NULL, on_connect, e);
	if (bufferevent_socket_connect_hostname(
		    e->bev, p->dns, AF_UNSPEC, n->spec.address, n->spec.port))
		goto fail;
	p->under_way++;
	return 0;
fail:
	if (e->deadline)
		event_free(e->deadline);
	if (e->bev)
		bufferevent_free(e->bev);
	e->deadline = NULL;
	e->bev = NULL;
	return -1;
}

static struct probe *probe_entry(struct probes *p, uint32_t node_id)
{
	struct probe *e;

	HASH_FIND(hh, p->table, &node_id, sizeof(node_id), e);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->node_id = node_id;
	e->owner = p;
	e->at_ms = -PROBE_KEEP_MS;
	HASH_ADD(hh, p->table, node_id, sizeof(node_id), e);
	if (!e->hh.tbl) { /* no memory */
		free(e);
		return NULL;
	}
	return e;
}

enum probe_state probes_ask(struct probes *p, const struct node *n, int64_t now_ms)
{
	struct probe *e = probe_entry(p, n->spec.id);

	if (!e)
		return PROBE_DEAD;
	if (e->bev)
		return PROBE_WAIT;
	if (now_ms - e->at_ms < PROBE_KEEP_MS)
		return e->answers ? PROBE_ANSWERS : PROBE_DEAD;
	if (p->under_way >= PROBES_MAX || probe_start(e, n) < 0)
		return PROBE_DEAD;
	return PROBE_WAIT;
}
