/* SPDX-License-Identifier: ISC */
/*
 * Two timers and one HTTP client. `pushing` and `refreshing` say what is under way (one thing at
 * most); `due` remembers a push that came while the topology was being asked for. Everything after
 * an answer goes through next_push(), which is the only place that arms the push timer.
 */
#include "agent/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/dispatchers.h"
#include "agent/http.h"
#include "agent/shed.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/notify.h"
#include "base/secret.h"
#include "wire/heartbeat.h"
#include "wire/json.h"

#define SLOW_RETRY_MS 20000
#define BACKOFF_FIRST_MS 1000
#define BACKOFF_LAST_MS 30000
#define TROUBLE_REPEAT_MS (10 * 60 * 1000)
#define TROUBLES_MAX 16

struct push {
	struct push_source source;
	struct http *http;
	struct dispatchers dispatchers;
	struct loop_timer *push_timer, *refresh_timer;
	int64_t interval_ms, refresh_ms;
	struct buf body;
	uint64_t serial; /* of the logins in the body */
	int64_t started_ms;
	bool pushing, refreshing, due;
	unsigned rounds;	     /* of the whole list that failed in a row */
	bool spoke;		     /* once acknowledged */
	uint64_t said[TROUBLES_MAX]; /* hashes of what was logged since all was well */
	unsigned said_count;
	int64_t said_since_ms;
	bool foreign_said;
	bool maintenance;
};

int64_t push_backoff_ms(unsigned n, uint64_t random)
{
	int64_t d = BACKOFF_LAST_MS;

	if (n < 5)
		d = BACKOFF_FIRST_MS << n;
	return d / 2 + (int64_t)(random % (uint64_t)(d / 2 + 1));
}

/* FNV-1a up to the first bracket: what stands there tells the time. */
static uint64_t hash_of(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text && *text != '('; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

/* Each trouble once until all is well, and again every ten minutes while it lasts. */
static void say_trouble(struct push *p, enum log_level level, const char *what)
{
	int64_t now = clock_mono_ms();
	char text[600];
	uint64_t hash;

	snprintf(text, sizeof(text), "could not push to \"%s\": %s",
		dispatchers_current(&p->dispatchers), what);
	hash = hash_of(text);
	if (p->said_count > 0 && now - p->said_since_ms >= TROUBLE_REPEAT_MS)
		p->said_count = 0;
	for (unsigned i = 0; i < p->said_count; i++)
		if (p->said[i] == hash)
			return;
	if (p->said_count == TROUBLES_MAX)
		return;
	if (p->said_count == 0)
		p->said_since_ms = now;
	p->said[p->said_count++] = hash;
	log_line(level, "%s", text);
}

static void say_well(struct push *p)
{
	char status[CONFIG_URL_SIZE + 32];

	if (p->said_count == 0 && p->spoke)
		return;
	log_info("pushing to \"%s\"", dispatchers_current(&p->dispatchers));
	snprintf(status, sizeof(status), "STATUS=pushing to %s",
		dispatchers_current(&p->dispatchers));
	notify_state(status);
	p->said_count = 0;
	p->spoke = true;
}

static void next_push(struct push *p, int64_t delay_ms)
{
	loop_timer_arm(p->push_timer, delay_ms);
}

static void next_regular(struct push *p)
{
	int64_t used = clock_mono_ms() - p->started_ms;

	next_push(p, used < p->interval_ms ? p->interval_ms - used : 0);
}

static void arm_refresh(struct push *p)
{
	if (p->refresh_ms > 0)
		loop_timer_arm(p->refresh_timer,
			p->refresh_ms * 9 / 10 +
				(int64_t)(secret_random_u64() % (uint64_t)(p->refresh_ms / 5 + 1)));
}

static int send_to_current(struct push *p, const char *path, bool with_body)
{
	char url[CONFIG_URL_SIZE + 64];

	snprintf(url, sizeof(url), "%s%s", dispatchers_current(&p->dispatchers), path);
	return http_send(
		p->http, url, with_body ? buf_str(&p->body) : NULL, with_body ? p->body.len : 0);
}

static void push_now(struct push *p)
{
	int error;

	p->due = false;
	p->started_ms = clock_mono_ms();
	buf_reset(&p->body);
	error = p->source.build(p->source.ctx, &p->body, &p->serial);
	if (!error)
		error = buf_error(&p->body);
	if (!error)
		error = send_to_current(p, "/api/v1/heartbeat", true);
	if (error) {
		say_trouble(p, LOG_LEVEL_ERROR, strerror(-error));
		next_regular(p);
		return;
	}
	p->pushing = true;
}

static void push_due(void *ctx)
{
	struct push *p = ctx;

	if (http_busy(p->http))
		p->due = true;
	else
		push_now(p);
}

/* Asks for the topology where heartbeats are rarer than its refresh. */
static void refresh_due(void *ctx)
{
	struct push *p = ctx;

	arm_refresh(p);
	if (!http_busy(p->http) && send_to_current(p, "/api/v1/topology", false) == 0)
		p->refreshing = true;
}

static void learn(struct push *p, const struct topology *t)
{
	if (p->refresh_ms == 0) /* the configured list is all there is */
		return;
	arm_refresh(p);
	switch (dispatchers_learn(&p->dispatchers, t, secret_random_u64())) {
	case DISPATCHERS_NEW:
		log_info("cluster \"%s\" has %zu dispatchers as of version %llu, next push to "
			 "\"%s\"",
			t->cluster_id, t->count, (unsigned long long)t->version,
			dispatchers_current(&p->dispatchers));
		break;
	case DISPATCHERS_FOREIGN:
		if (!p->foreign_said)
			log_warning("\"%s\" belongs to another cluster, \"%s\"; its list of "
				    "dispatchers "
				    "is not taken",
				dispatchers_current(&p->dispatchers), t->cluster_id);
		p->foreign_said = true;
		break;
	case DISPATCHERS_EMPTY:
	case DISPATCHERS_SAME:
		break;
	}
}

static void acknowledge(struct push *p)
{
	p->rounds = 0;
	dispatchers_succeeded(&p->dispatchers);
	p->source.acknowledged(p->source.ctx, p->serial);
}

static void take_reply(struct push *p, const struct http_result *r)
{
	struct heartbeat_reply reply;
	struct err e;

	acknowledge(p);
	if (heartbeat_reply_parse(r->body, r->length, &reply, &e) != 0) {
		say_trouble(p, LOG_LEVEL_WARNING, e.text);
		return;
	}
	say_well(p);
	p->source.answered(p->source.ctx, &reply);
	if (reply.push_interval > 0 && reply.push_interval * 1000 != p->interval_ms) {
		log_info("the dispatcher asks for a push every %u s", reply.push_interval);
		p->interval_ms = (int64_t)reply.push_interval * 1000;
	}
	if (reply.maintenance != p->maintenance)
		log_info(reply.maintenance ? "the node takes no new users"
					   : "the node takes new users again");
	p->maintenance = reply.maintenance;
	if (reply.has_load_index)
		log_debug("pushed; load index %u slv", reply.load_index);
	if (reply.topology.cluster_id[0])
		learn(p, &reply.topology);
}

/* `code` and `detail` of an RFC 9457 answer, or "" where it is none. */
static void read_problem(const struct http_result *r, char code[64], char detail[256])
{
	AUTO_JSON struct json_object *o = NULL;
	const char *text = NULL;

	code[0] = detail[0] = '\0';
	if (json_parse_object(r->body, r->length, &o, NULL) != 0)
		return;
	if (json_get_string(o, "code", 4096, &text, NULL, NULL) == 0 && text)
		snprintf(code, 64, "%.63s", text);
	text = NULL;
	if (json_get_string(o, "detail", 4096, &text, NULL, NULL) == 0 && text)
		snprintf(detail, 256, "%.255s", text);
}

/* This one is no use now: the next at once, or a pause when each was tried. */
static void fail_over(struct push *p, const char *why, bool distrust, long retry_after)
{
	int64_t pause;

	say_trouble(p, distrust ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, why);
	if (dispatchers_failed(&p->dispatchers)) {
		next_push(p, 0);
		return;
	}
	pause = push_backoff_ms(p->rounds++, secret_random_u64());
	if (retry_after > 60)
		retry_after = 60;
	next_push(p, retry_after * 1000 > pause ? retry_after * 1000 : pause);
}

static void retry_slowly(struct push *p)
{
	int64_t quarter = SLOW_RETRY_MS / 4;

	next_push(p,
		SLOW_RETRY_MS - quarter + (int64_t)(secret_random_u64() % (uint64_t)(2 * quarter)));
}

static void take_refusal(struct push *p, const struct http_result *r)
{
	char code[64], detail[256], what[420];

	read_problem(r, code, detail);
	snprintf(what, sizeof(what), "it answered %ld%s%s%s%s", r->status, code[0] ? " " : "", code,
		detail[0] ? ": " : "", detail);
	if (r->status == 409 && strcmp(code, "heartbeat_replayed") == 0) {
		acknowledge(p);
		say_well(p);
		next_regular(p);
	} else if (r->status == 409 && strcmp(code, "duplicate_agent") == 0) {
		snprintf(what, sizeof(what), "another machine pushes with this node's token: %s",
			detail[0] ? detail : code);
		say_trouble(p, LOG_LEVEL_ERROR, what);
		retry_slowly(p);
	} else if (r->status == 401 || r->status == 403) {
		say_trouble(p, LOG_LEVEL_ERROR, what);
		retry_slowly(p);
	} else if (r->status >= 400 && r->status < 500 && r->status != 408 && r->status != 429) {
		say_trouble(p, LOG_LEVEL_ERROR, what);
		next_regular(p);
	} else {
		fail_over(p, what, false, r->retry_after);
	}
}

static void take_topology(struct push *p, const struct http_result *r)
{
	AUTO_JSON struct json_object *o = NULL;
	struct topology t;

	p->refreshing = false;
	if (r->answered && r->status == 200 &&
		json_parse_object(r->body, r->length, &o, NULL) == 0 &&
		topology_parse(o, &t, NULL) == 0)
		learn(p, &t);
}

static void answered(void *ctx, const struct http_result *r)
{
	struct push *p = ctx;

	if (r->connected) /* that was the rarest and largest work of all; and the first, the start
			   */
		shed();
	if (p->refreshing) {
		take_topology(p, r);
	} else {
		p->pushing = false;
		if (!r->answered) {
			fail_over(p, r->error, r->distrust, 0);
		} else if (r->status == 200) {
			take_reply(p, r);
			next_regular(p);
		} else {
			take_refusal(p, r);
		}
	}
	if (p->due)
		push_now(p);
}

int push_new(struct event_base *base, const struct config *c, const struct push_source *source,
	struct push **ret, struct err *e)
{
	struct http_options o = {.ca_file = c->ca_file, .pins = c->pins, .token = c->token};
	struct push *p = calloc(1, sizeof(*p));
	int error;

	if (!p)
		return err_errno(e, -ENOMEM, "could not set up pushing");
	p->source = *source;
	p->interval_ms = (int64_t)c->push_interval * 1000;
	p->refresh_ms = (int64_t)c->refresh_interval * 1000;
	buf_init(&p->body, LIMIT_BODY);
	dispatchers_init(&p->dispatchers, c->dispatchers, c->dispatcher_count, secret_random_u64());
	p->push_timer = loop_timer_new(base, push_due, p);
	p->refresh_timer = loop_timer_new(base, refresh_due, p);
	if (!p->push_timer || !p->refresh_timer)
		error = err_errno(e, -ENOMEM, "could not set up pushing");
	else
		error = http_new(base, &o, answered, p, &p->http, e);
	if (error) {
		push_free(p);
		return error;
	}
	*ret = p;
	return 0;
}

void push_free(struct push *p)
{
	if (!p)
		return;
	http_free(p->http);
	loop_timer_free(p->push_timer);
	loop_timer_free(p->refresh_timer);
	buf_deinit(&p->body);
	free(p);
}

void push_start(struct push *p, int64_t first_ms)
{
	int64_t phase = (int64_t)(secret_random_u64() % (uint64_t)p->interval_ms);

	next_push(p, phase > first_ms ? phase : first_ms);
	arm_refresh(p);
}
