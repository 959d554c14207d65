/* SPDX-License-Identifier: ISC */
/*
 * GET /api/v1/sessions: from memory, filtered by node, user, pool (its provider) and state, at most
 * LIMIT; `truncated` says that there were more. DELETE …/NODE:ID forgets one that its node will not
 * report any more.
 */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/problem.h"
#include "api/query.h"
#include "base/clock.h"
#include "wire/json.h"

#define LIMIT_DEFAULT 10000
#define LIMIT_MOST 100000

struct filter {
	const struct node *node;	 /* NULL = all */
	const struct provider *provider; /* NULL = all */
	bool by_user, by_state, active;
	char user_key[LIMIT_USER_KEY_SIZE];
	uint64_t limit, found;
	bool truncated;
};

static void add_time(struct buf *b, const char *key, int64_t ms)
{
	char text[CLOCK_RFC3339_SIZE];

	json_add_member_string(b, key, ms ? clock_rfc3339(ms * 1000, text) : NULL);
}

static void add_session(struct buf *b, const struct session *s)
{
	const char *name = s->node->spec.name;
	char id[LIMIT_NAME_SIZE + LIMIT_SESSION_ID_SIZE];

	snprintf(id, sizeof(id), "%s:%s", name, session_id(s));
	buf_adds(b, b->data[b->len - 1] == '[' ? "{" : ",{");
	json_add_member_string(b, "id", id);
	json_add_member_string(b, "node", name);
	json_add_member_string(b, "user", session_display(s));
	json_add_member_string(b, "state", s->active ? "active" : "disconnected");
	add_time(b, "since", s->since_ms);
	add_time(b, "first_seen", s->first_seen_ms);
	json_add_member_string(b, "client", session_client(s));
	buf_addc(b, '}');
}

static void consider(struct buf *b, struct filter *f, const struct session *s)
{
	if ((f->node && s->node != f->node) || (f->provider && s->node->provider != f->provider) ||
		(f->by_state && s->active != f->active))
		return;
	if (f->found >= f->limit) {
		f->truncated = true;
		return;
	}
	f->found++;
	add_session(b, s);
}

static void consider_node(struct buf *b, struct filter *f, const struct node *n)
{
	for (uint32_t i = 0; i < n->session_count && !f->truncated; i++)
		consider(b, f, n->sessions[i]);
}

static void collect(struct buf *b, struct filter *f, const struct fleet *fleet)
{
	if (f->by_user) {
		for (const struct session *s = fleet_user_sessions(fleet, f->user_key); s;
			s = s->user_next)
			consider(b, f, s);
	} else if (f->node) {
		consider_node(b, f, f->node);
	} else {
		for (const struct node *n = fleet_next_node(fleet, NULL); n && !f->truncated;
			n = fleet_next_node(fleet, n))
			consider_node(b, f, n);
	}
}

/* False: R was answered. */
static bool read_names(struct request *r, struct filter *f)
{
	const struct fleet *fleet = service_fleet(r->api->service);
	char node[LIMIT_NAME_SIZE], pool[LIMIT_NAME_SIZE];
	const struct pool *p;
	struct err e;

	if (query_string(r->query, "node", node, sizeof(node), &e) < 0 ||
		query_string(r->query, "pool", pool, sizeof(pool), &e) < 0) {
		request_fail(r, 400, "query_invalid", "%s", e.text);
		return false;
	}
	f->node = node[0] ? fleet_node(fleet, node) : NULL;
	p = pool[0] ? fleet_pool(fleet, pool) : NULL;
	f->provider = p ? p->provider : NULL;
	if ((node[0] && !f->node) || (pool[0] && !p)) {
		request_fail(r, 404, "not_found", "there is no %s \"%s\"",
			node[0] && !f->node ? "node" : "pool", node[0] && !f->node ? node : pool);
		return false;
	}
	return true;
}

static int read_rest(struct request *r, struct filter *f, struct err *e)
{
	char user[LIMIT_USER_SIZE], state[16];
	int rc = query_string(r->query, "user", user, sizeof(user), e);

	if (rc == 0)
		rc = query_string(r->query, "state", state, sizeof(state), e);
	if (rc == 0)
		rc = query_u64(r->query, "limit", 1, LIMIT_MOST, &f->limit, e);
	if (rc < 0)
		return rc;
	f->by_state = state[0] != '\0';
	f->active = strcmp(state, "active") == 0;
	if (f->by_state && !f->active && strcmp(state, "disconnected") != 0)
		return err_set(e, -1, "state must be active or disconnected");
	f->by_user = user[0] != '\0';
	return f->by_user ? user_key_make(r->api->config->user_names, user, strlen(user), NULL,
				    f->user_key, e)
			  : 0;
}

void handle_sessions(struct request *r)
{
	struct filter f = {.limit = LIMIT_DEFAULT};
	struct buf *b;
	struct err e;

	if (!read_names(r, &f))
		return;
	if (read_rest(r, &f, &e) < 0) {
		request_fail(r, 400, "query_invalid", "%s", e.text);
		return;
	}
	b = request_out(r);
	buf_adds(b, "{\"items\":[");
	if (!buf_error(b))
		collect(b, &f, service_fleet(r->api->service));
	buf_addc(b, ']');
	json_add_member_bool(b, "truncated", f.truncated);
	buf_addc(b, '}');
	request_send(r, 200, CONTENT_JSON);
}

static void forgotten(void *ctx, const struct admin_result *result)
{
	struct request *r = ctx;

	if (!request_gone(r)) {
		if (result->error.status != SERVICE_OK)
			request_fail_service(r, &result->error);
		else
			request_send_empty(r);
	}
	request_release(r);
}

void handle_session_forget(struct request *r)
{
	char node[LIMIT_NAME_SIZE];
	const char *colon = strchr(r->segment[0], ':');
	size_t len = colon ? (size_t)(colon - r->segment[0]) : sizeof(node);

	if (len >= sizeof(node) || !colon[1]) {
		request_fail(r, 404, "not_found", "a session is NODE:ID, as the list shows it");
		return;
	}
	memcpy(node, r->segment[0], len);
	node[len] = '\0';
	request_hold(r);
	service_forget_session(r->api->service, &r->caller, node, colon + 1, forgotten, r);
}
