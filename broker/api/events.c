/* SPDX-License-Identifier: ISC */
/*
 * GET /api/v1/events. Model: a poll reads the table; with rows, or when its wait is over, it is
 * answered, else it waits in the list until the journal grows (looked at again after a short pause,
 * so that a busy journal is not read after each commit) or its time comes. While a poll waits
 * nothing reads its connection, so an event of its own watches the descriptor: a client that went
 * away ends it.
 *
 * Invariant: a poll is in the list from its beginning to poll_end, which alone frees it, and not
 * while a read is under way (READING): then ENDING makes the read's end do it.
 */
#include "api/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/connection.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/query.h"
#include "base/clock.h"
#include "wire/json.h"

#define POLLS_MAX 256
#define WAIT_MAX_S 60
#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000
#define PAUSE_MS 100
#define TEXT_MAX (8u * 1024 * 1024)

struct poll {
	struct poll *next, **prev_next;
	struct request *r;
	struct event_query query;
	enum event_language language;
	int64_t until_ms; /* monotonic: answered by then */
	bool reading, ending;
	struct buf items;
	uint64_t last_id;
	struct loop_timer *timer;
	struct event *watch; /* libevent's, not the journal's */
};

struct event_polls {
	struct api *api;
	struct poll *first;
	unsigned count;
	struct loop_timer *pause;
	bool pausing;
};

static void look(struct poll *p);

/* ---- the end of a poll ---- */

static void poll_free(struct poll *p)
{
	struct event_polls *all = p->r->api->polls;

	*p->prev_next = p->next;
	if (p->next)
		p->next->prev_next = p->prev_next;
	all->count--;
	if (p->watch)
		event_free(p->watch);
	loop_timer_free(p->timer);
	buf_deinit(&p->items);
	request_release(p->r);
	free(p);
}

/* Before the answer, which makes the connection read again. */
static void stop_watching(struct poll *p)
{
	if (p->watch)
		event_free(p->watch);
	p->watch = NULL;
}

static void answer(struct poll *p, int result, const char *why)
{
	struct request *r = p->r;
	struct buf *b;

	stop_watching(p);
	if (request_gone(r))
		return;
	if (result < 0 || buf_error(&p->items)) {
		request_add_header(r, "Retry-After", "5");
		request_fail(r, 503, result < 0 ? "database_unavailable" : "no_memory",
			"events cannot be read now: %s", result < 0 ? why : "too large");
		return;
	}
	b = request_out(r);
	buf_adds(b, "{\"items\":[");
	buf_add(b, buf_str(&p->items), p->items.len);
	buf_addc(b, ']');
	json_add_member_u64(b, "next", p->last_id);
	buf_addc(b, '}');
	request_send(r, 200, CONTENT_JSON);
}

static void poll_end(struct poll *p, int result, const char *why)
{
	answer(p, result, why);
	if (p->reading)
		p->ending = true;
	else
		poll_free(p);
}

/* ---- reading ---- */

static void add_row(void *ctx, const struct event_row *row)
{
	struct poll *p = ctx;
	struct buf *b = &p->items;
	struct buf text = BUF_INIT(16384);
	char time[CLOCK_RFC3339_SIZE];

	p->last_id = row->id;
	if (event_render_stored(row->name, row->params_json, p->language, &text) < 0)
		buf_reset(&text);
	buf_adds(b, b->len ? ",{" : "{");
	json_add_member_u64(b, "id", row->id);
	json_add_member_string(b, "time", clock_rfc3339(row->time_us, time));
	json_add_member_string(b, "level", row->level);
	json_add_member_string(b, "event", row->name);
	json_add_member_string(b, "dispatcher", row->dispatcher);
	json_add_member_string(b, "provider", row->provider);
	json_add_member_string(b, "pool", row->pool);
	json_add_member_string(b, "node", row->node);
	json_add_member_string(b, "text", buf_str(&text));
	json_add_key(b, "params");
	buf_adds(b, row->params_json && *row->params_json ? row->params_json : "{}");
	buf_addc(b, '}');
	buf_deinit(&text);
}

static void read_done(void *ctx, int result, uint32_t id, const char *why)
{
	struct poll *p = ctx;

	p->reading = false;
	if (p->ending || request_gone(p->r)) {
		poll_free(p);
		return;
	}
	if (result < 0 || p->items.len > 0 || clock_mono_ms() >= p->until_ms)
		poll_end(p, result, why);
}

static void look(struct poll *p)
{
	if (p->reading)
		return; /* what came meanwhile: the next commit or the timer looks again */
	p->reading = true;
	store_read_events(service_store(p->r->api->service), &p->query, add_row, read_done, p);
}

static void time_over(void *ctx)
{
	struct poll *p = ctx;

	if (p->reading)
		p->until_ms = 0; /* its end answers */
	else
		poll_end(p, 0, "");
}

/* ---- waiting ---- */

static void peer_moved(evutil_socket_t fd, short what, void *arg)
{
	struct poll *p = arg;
	ssize_t n;
	char c;

	n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 && !(what & EV_CLOSED))
		return; /* the next request, sent ahead */
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !(what & EV_CLOSED))
		return;
	stop_watching(p);
	conn_close(p->r->conn); /* our request's reference keeps its memory */
	poll_end(p, 0, "");
}

/* Without it the poll lasts its time: at most a minute. The bufferevent must not wait for the same
 * descriptor. */
static void watch_peer(struct poll *p)
{
	struct conn *c = p->r->conn;

	bufferevent_disable(c->bev, EV_READ);
	p->watch = event_new(
		p->r->api->base, c->fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, peer_moved, p);
	if (p->watch && event_add(p->watch, NULL) < 0)
		stop_watching(p);
}

static void look_again(void *ctx)
{
	struct event_polls *all = ctx;
	struct poll *p, *next;

	all->pausing = false;
	for (p = all->first; p; p = next) {
		next = p->next;
		look(p);
	}
}

static void events_came(void *ctx)
{
	struct event_polls *all = ctx;

	if (all->pausing || !all->first)
		return;
	all->pausing = true;
	loop_timer_arm(all->pause, PAUSE_MS);
}

struct event_polls *event_polls_new(struct api *a)
{
	struct event_polls *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->api = a;
	all->pause = loop_timer_new(a->base, look_again, all);
	if (!all->pause) {
		free(all);
		return NULL;
	}
	service_on_events(a->service, events_came, all);
	return all;
}

void event_polls_end(struct event_polls *all)
{
	struct poll *p, *next;

	if (!all)
		return;
	for (p = all->first; p; p = next) {
		next = p->next;
		if (!p->ending)
			poll_end(p, 0, "");
	}
}

void event_polls_free(struct event_polls *all)
{
	if (!all)
		return;
	while (all->first) {
		stop_watching(all->first);
		poll_free(all->first);
	}
	loop_timer_free(all->pause);
	free(all);
}

/* ---- the call ---- */

static int read_query(struct request *r, struct poll *p, uint64_t *wait_s, struct err *e)
{
	char pool[LIMIT_NAME_SIZE], level[16], language[8];
	uint64_t limit = LIMIT_DEFAULT;
	const struct pool *object;
	int rc = query_u64(r->query, "after", 0, INT64_MAX, &p->query.after, e);

	if (rc == 0)
		rc = query_u64(r->query, "limit", 1, LIMIT_MOST, &limit, e);
	if (rc == 0)
		rc = query_u64(r->query, "wait", 0, WAIT_MAX_S, wait_s, e);
	if (rc == 0)
		rc = query_bool(r->query, "newest", &p->query.newest, e);
	if (rc == 0)
		rc = query_string(r->query, "pool", pool, sizeof(pool), e);
	if (rc == 0)
		rc = query_string(r->query, "level", level, sizeof(level), e);
	if (rc == 0)
		rc = query_string(r->query, "lang", language, sizeof(language), e);
	if (rc < 0)
		return rc;
	p->query.limit = (uint32_t)limit;
	p->query.level = EVENT_DEBUG;
	p->language = LANGUAGE_EN;
	if (level[0] && event_level_parse(level, &p->query.level) < 0)
		return err_set(e, -EINVAL, "level must be debug, info, warning or error");
	if (language[0] && event_language_parse(language, &p->language) < 0)
		return err_set(e, -EINVAL, "lang must be en or ru");
	if (!pool[0])
		return 0;
	object = fleet_pool(service_fleet(r->api->service), pool);
	if (!object)
		return err_set(e, -ENOENT, "there is no pool \"%s\"", pool);
	p->query.pool_id = object->spec.id;
	p->query.provider_id = object->provider->spec.id;
	return 0;
}

static struct poll *poll_new(struct request *r)
{
	struct event_polls *all = r->api->polls;
	struct poll *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->r = r;
	buf_init(&p->items, TEXT_MAX);
	p->next = all->first;
	p->prev_next = &all->first;
	if (p->next)
		p->next->prev_next = &p->next;
	all->first = p;
	all->count++;
	request_hold(r);
	return p;
}

/* False: no memory. */
static bool prepare_wait(struct poll *p, uint64_t wait_s)
{
	p->until_ms = clock_mono_ms() + (int64_t)wait_s * 1000;
	if (wait_s == 0)
		return true;
	p->timer = loop_timer_new(p->r->api->base, time_over, p);
	if (!p->timer)
		return false;
	watch_peer(p);
	loop_timer_arm(p->timer, (int64_t)wait_s * 1000);
	return true;
}

void handle_events(struct request *r)
{
	struct poll *p = r->api->polls->count < POLLS_MAX ? poll_new(r) : NULL;
	uint64_t wait_s = 0;
	struct err e;
	int rc;

	if (!p) {
		request_add_header(r, "Retry-After", "5");
		request_fail(
			r, 503, "too_many_polls", "%d clients wait for events already", POLLS_MAX);
		return;
	}
	rc = read_query(r, p, &wait_s, &e);
	if (rc < 0) {
		request_fail(r, rc == -ENOENT ? 404 : 400,
			rc == -ENOENT ? "not_found" : "query_invalid", "%s", e.text);
		poll_free(p);
		return;
	}
	p->last_id = p->query.after;
	if (!prepare_wait(p, wait_s)) {
		stop_watching(p);
		request_fail(r, 503, "no_memory", "the dispatcher is out of memory");
		poll_free(p);
		return;
	}
	look(p);
}
