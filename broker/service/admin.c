/* SPDX-License-Identifier: ISC */
/*
 * Administrative changes. Each is checked against the fleet, written to the database in one
 * transaction with its event, and only then applied to the fleet and answered: what an
 * administrator was told is stored. While the database is away they are refused. The journal's
 * level keeps no change out of the event table: who changed what must not depend on how talkative
 * it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "service/state.h"

#define RETRY_AFTER_S 5 /* while the database is away */

enum admin_act { ADMIN_PUT, ADMIN_REMOVE, ADMIN_FORGET };

struct admin_call {
	struct admin_call *next; /* in s->changes, while the store has it */
	struct service *service;
	service_admin_done *done;
	void *ctx;
	enum admin_act act;
	enum store_kind kind;
	uint32_t id; /* what is changed or removed; 0 when created; the node of a session */
	union {
		struct provider_spec provider;
		struct pool_spec pool;
		struct node_spec node;
		struct token_spec token;
	} spec;
	struct token_spec agent_token; /* of a new node */
	char secret[SECRET_TOKEN_SIZE];

	struct event event; /* borrows the members below */
	char name[LIMIT_NAME_SIZE], session[LIMIT_SESSION_ID_SIZE], user[LIMIT_USER_SIZE];
	char actor[sizeof(((struct caller *)0)->actor)];
	char changes[512];
};

static const char *const kind_names[] = {
	[STORE_PROVIDER] = "provider",
	[STORE_POOL] = "pool",
	[STORE_NODE] = "node",
	[STORE_TOKEN] = "token",
};

/* ---- the end of a call ---- */

static void call_free(struct admin_call *call)
{
	secret_wipe(call->secret, sizeof(call->secret));
	free(call);
}

static void finish(struct admin_call *call, const struct service_error *error)
{
	struct admin_result r = {.error = *error};

	if (error->status == SERVICE_OK && call->secret[0])
		r.token = call->secret;
	call->done(call->ctx, &r);
	call_free(call);
}

/* Ends a call before it reached the store. */
static void refuse(
	struct admin_call *call, enum service_status status, const char *code, const char *text)
{
	struct service_error error;

	service_error_set(&error, status, code, "%s", text);
	if (status == SERVICE_UNAVAILABLE)
		error.retry_after_s = RETRY_AFTER_S;
	finish(call, &error);
}

static void error_of_store(
	const struct admin_call *call, int result, const char *why, struct service_error *ret)
{
	const char *kind = call->act == ADMIN_FORGET ? "session" : kind_names[call->kind];

	switch (result) {
	case -EEXIST:
		service_error_set(ret, SERVICE_CONFLICT, "name_taken", "%s", why);
		break;
	case -EADDRINUSE:
		service_error_set(ret, SERVICE_CONFLICT, "address_taken", "%s", why);
		break;
	case -ENOENT:
		service_error_set(
			ret, SERVICE_NOT_FOUND, "not_found", "there is no such %s any more", kind);
		break;
	case -EBUSY:
		service_error_set(ret, SERVICE_CONFLICT, "in_use", "%s", why);
		break;
	case -EINVAL:
		service_error_set(ret, SERVICE_INVALID, "invalid", "%s", why);
		break;
	case -ENOTCONN:
	case -ETIMEDOUT:
		service_error_set(ret, SERVICE_UNAVAILABLE, "database_unavailable",
			"the database cannot be reached: nothing can be changed now (%s)", why);
		ret->retry_after_s = RETRY_AFTER_S;
		break;
	default:
		service_error_set(ret, SERVICE_FAILED, "database_error",
			"could not write to the database: %s", why);
	}
}

/* ---- into the fleet, after the commit ---- */

void admin_forget_node(struct service *s, struct node *n)
{
	store_drop_node(s->store, n);
	probes_forget(s->probes, n->spec.id);
	heartbeat_forget_node(s, n->spec.id);
}

void admin_reindex_node(struct service *s, struct node *n)
{
	uint32_t index = 0;
	bool has_index;

	if (n->voice == NODE_NEVER_HEARD)
		return;
	has_index = load_index_compute(
		&n->provider->spec, &n->spec, &n->metrics, n->session_count, &index, NULL);
	if (has_index == n->has_index && (!has_index || index == n->index))
		return;
	heartbeat_emit_bits(s, n, node_set_index(n, has_index, index));
	store_touch_node(s->store, n);
}

void admin_reindex_provider(struct service *s, struct provider *p)
{
	for (uint32_t i = 0; i < p->farm.count; i++)
		admin_reindex_node(s, p->farm.nodes[i]);
}

/* A node has got a new token. Whoever was pushed aside by a copy of its machine gets in with it. */
static void let_machine_back(struct service *s, uint32_t node_id)
{
	struct node *n = fleet_node_by_id(s->fleet, node_id);

	if (!n)
		return;
	node_forget_boots(n);
	store_touch_node(s->store, n);
}

static int apply_put(struct admin_call *call)
{
	struct service *s = call->service;
	struct provider *provider = NULL;
	struct node *node = NULL;
	int r;

	switch (call->kind) {
	case STORE_PROVIDER:
		r = fleet_put_provider(s->fleet, &call->spec.provider, &provider);
		break;
	case STORE_POOL:
		r = fleet_put_pool(s->fleet, &call->spec.pool, NULL);
		break;
	case STORE_NODE:
		probes_forget(s->probes, call->spec.node.id);
		r = fleet_put_node(s->fleet, &call->spec.node, &node);
		if (r == 0 && call->agent_token.id)
			r = fleet_put_token(s->fleet, &call->agent_token, NULL);
		break;
	default:
		r = fleet_put_token(s->fleet, &call->spec.token, NULL);
		if (r == 0 && !call->id)
			let_machine_back(s, call->spec.token.node_id);
	}
	if (provider)
		admin_reindex_provider(s, provider);
	if (node)
		admin_reindex_node(s, node);
	return r;
}

static int apply_remove(struct admin_call *call)
{
	struct service *s = call->service;
	struct node *n;

	switch (call->kind) {
	case STORE_PROVIDER:
		return fleet_remove_provider(s->fleet, call->id);
	case STORE_POOL:
		return fleet_remove_pool(s->fleet, call->id);
	case STORE_TOKEN:
		return fleet_remove_token(s->fleet, call->id);
	default:
		n = fleet_node_by_id(s->fleet, call->id);
		if (n)
			admin_forget_node(s, n);
		return fleet_remove_node(s->fleet, call->id);
	}
}

static int apply(struct admin_call *call)
{
	struct node *n;

	switch (call->act) {
	case ADMIN_PUT:
		return apply_put(call);
	case ADMIN_REMOVE:
		return apply_remove(call);
	default:
		n = fleet_node_by_id(call->service->fleet, call->id);
		return n ? fleet_forget_session(call->service->fleet, n, call->session) : 0;
	}
}

static void set_id(struct admin_call *call, uint32_t id)
{
	if (call->act != ADMIN_PUT || call->id)
		return;
	if (call->kind == STORE_PROVIDER)
		call->spec.provider.id = id;
	else if (call->kind == STORE_POOL)
		call->spec.pool.id = id;
	else if (call->kind == STORE_NODE)
		call->spec.node.id = id;
	else
		call->spec.token.id = id;
}

static void change_ends(struct admin_call *call)
{
	struct admin_call **at = &call->service->changes;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
}

static void on_stored(void *ctx, int result, uint32_t id, const char *why)
{
	struct admin_call *call = ctx;
	struct service_error error = {.status = SERVICE_OK};
	int r;

	change_ends(call);
	if (result < 0) {
		/* What the database has no more must not stay here, where nothing else would end
		 * it. */
		if (result == -ENOENT && call->act != ADMIN_PUT)
			(void)apply(call);
		error_of_store(call, result, why ? why : "", &error);
		finish(call, &error);
		return;
	}
	set_id(call, id);
	emit_local(call->service, &call->event);
	r = apply(call);
	if (r < 0 && r != -ENOENT) {
		log_error("could not apply a stored change of %s \"%s\": %s",
			kind_names[call->kind], call->name, strerror(-r));
		service_error_set(&error, SERVICE_FAILED, "not_applied",
			"the change was stored, but this dispatcher could not apply it: %s",
			strerror(-r));
	}
	finish(call, &error);
}

/* ---- the beginning of a call ---- */

/* NULL: no memory, DONE was called. */
static struct admin_call *call_new(struct service *s, const struct caller *caller,
	enum admin_act act, enum store_kind kind, service_admin_done *done, void *ctx)
{
	struct admin_result r = {.error = {.status = SERVICE_OK}};
	struct admin_call *call = calloc(1, sizeof(*call));

	if (!call) {
		service_error_set(&r.error, SERVICE_UNAVAILABLE, "no_memory",
			"the dispatcher is out of memory");
		done(ctx, &r);
		return NULL;
	}
	call->service = s;
	call->done = done;
	call->ctx = ctx;
	call->act = act;
	call->kind = kind;
	memcpy(call->actor, caller->actor, sizeof(call->actor));
	return call;
}

/* A change replaces the whole row by what was read before: two at once would undo one another. */
static bool being_changed(const struct admin_call *call)
{
	const struct admin_call *c = call->service->changes;

	while (c && (c->kind != call->kind || c->id != call->id || call->id == 0))
		c = c->next;
	return c != NULL;
}

/* Whether the call may go to the store, of which it is then a change under way. False after having
 * refused: the database is away or not read yet, or the same thing is being changed. */
static bool writable(struct admin_call *call)
{
	struct service *s = call->service;

	if (!s->loaded || s->stopping || !store_is_up(s->store)) {
		refuse(call, SERVICE_UNAVAILABLE, s->stopping ? "stopping" : "database_unavailable",
			s->stopping ? "the dispatcher is stopping"
				    : "the database cannot be reached: nothing can be changed now");
		return false;
	}
	if (being_changed(call)) {
		refuse(call, SERVICE_CONFLICT, "being_changed",
			"another change of the same object is just being written; ask again");
		return false;
	}
	call->next = s->changes;
	s->changes = call;
	return true;
}

static void event_for(
	struct admin_call *call, enum event_id id, const char *name, uint32_t provider_id)
{
	text_copy(call->name, sizeof(call->name), name);
	event_start(&call->event, id, clock_wall_us());
	call->event.provider_id = provider_id;
	event_param(&call->event, "kind", kind_names[call->kind]);
	event_param(&call->event, "name", call->name);
	event_param(&call->event, "actor", call->actor);
}

static void event_for_put(
	struct admin_call *call, const char *name, uint32_t provider_id, const char *changes)
{
	event_for(call, call->id ? EVENT_ADMIN_CHANGED : EVENT_ADMIN_CREATED, name, provider_id);
	if (!call->id)
		return;
	snprintf(call->changes, sizeof(call->changes), "%s", changes ? changes : "");
	event_param(&call->event, "changes", call->changes);
}

/* ---- put ---- */

static bool tags_parse(struct admin_call *call, const char *member, const char *tags)
{
	struct tag_request request;
	struct err e = {""};

	if (!tags[0] || tag_request_parse(tags, &request, &e) == 0)
		return true;
	err_prefix(&e, -EINVAL, "%s", member);
	refuse(call, SERVICE_INVALID, "invalid", e.text);
	return false;
}

static bool spec_ok(struct admin_call *call, int checked, const struct err *e)
{
	if (checked == 0)
		return true;
	refuse(call, SERVICE_INVALID, "invalid", e->text);
	return false;
}

static void put_provider(struct admin_call *call, const struct provider_spec *spec)
{
	struct err e = {""};

	if (spec_ok(call, provider_spec_check(spec, &e), &e) && writable(call))
		store_put_provider(call->service->store, spec, &call->event, on_stored, call);
}

void service_put_provider(struct service *s, const struct caller *caller,
	const struct provider_spec *spec, const char *changes, service_admin_done *done, void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_PUT, STORE_PROVIDER, done, ctx);

	if (!call)
		return;
	call->id = spec->id;
	call->spec.provider = *spec;
	event_for_put(call, spec->name, spec->id, changes);
	put_provider(call, &call->spec.provider);
}

static void put_pool(struct admin_call *call, const struct pool_spec *spec)
{
	struct err e = {""};

	if (spec_ok(call, pool_spec_check(spec, &e), &e) &&
		tags_parse(call, "default_tags", spec->default_tags) &&
		tags_parse(call, "forced_tags", spec->forced_tags) && writable(call))
		store_put_pool(call->service->store, spec, &call->event, on_stored, call);
}

void service_put_pool(struct service *s, const struct caller *caller, const struct pool_spec *spec,
	const char *changes, service_admin_done *done, void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_PUT, STORE_POOL, done, ctx);

	if (!call)
		return;
	call->id = spec->id;
	call->spec.pool = *spec;
	event_for_put(call, spec->name, spec->provider_id, changes);
	if (call->id) {
		call->event.pool_id = call->id;
		call->event.pool = call->name;
	}
	put_pool(call, &call->spec.pool);
}

/* "agent.NAME"; a name too long for that is cut and told apart by its hash. That of a node that was
 * renamed since is taken: then the token's own hash tells them apart. */
static void agent_token_name(const struct fleet *f, const char *node, const uint8_t *token_hash,
	char ret[LIMIT_NAME_SIZE])
{
	uint8_t hash[SECRET_HASH_SIZE];
	char hex[SECRET_HEX_SIZE];

	if (strlen(node) + sizeof("agent.") <= LIMIT_NAME_SIZE) {
		snprintf(ret, LIMIT_NAME_SIZE, "agent.%s", node);
	} else {
		secret_hash(node, strlen(node), hash);
		secret_hex(hash, hex);
		snprintf(ret, LIMIT_NAME_SIZE, "agent.%.40s.%.12s", node, hex);
	}
	if (fleet_token(f, ret)) {
		secret_hex(token_hash, hex);
		snprintf(ret, LIMIT_NAME_SIZE, "agent.%.40s.%.12s", node, hex);
	}
}

static void new_secret(struct admin_call *call, struct token_spec *token)
{
	secret_token_new(call->secret);
	secret_hash(call->secret, strlen(call->secret), token->hash);
}

/* At most so many tags come to the provider by changes that the store has. */
static uint32_t tags_under_way(const struct service *s, uint32_t provider_id)
{
	uint32_t tags = 0;

	for (const struct admin_call *c = s->changes; c; c = c->next)
		if (c->act == ADMIN_PUT && c->kind == STORE_NODE &&
			c->spec.node.provider_id == provider_id)
			tags += c->spec.node.tags.count;
	return tags;
}

/* The provider has room for the tags. What is stored and does not fit could not be loaded, either.
 */
static bool tags_fit(struct admin_call *call, const struct node_spec *spec)
{
	const struct service *s = call->service;
	char text[96];

	if (!fleet_tags_fit(s->fleet, spec, 0)) {
		snprintf(text, sizeof(text),
			"tags: the provider's nodes would have more than %d distinct tags",
			FARM_TAGS_MAX);
		refuse(call, SERVICE_CONFLICT, "too_many_tags", text);
		return false;
	}
	if (spec->tags.count == 0 ||
		fleet_tags_fit(s->fleet, spec, tags_under_way(s, spec->provider_id)))
		return true;
	refuse(call, SERVICE_CONFLICT, "being_changed",
		"changes that are just being written may use up the provider's tags; ask again");
	return false;
}

static void put_node(struct admin_call *call, const struct node_spec *spec)
{
	struct token_spec *token = NULL;
	struct err e = {""};

	if (!spec_ok(call, node_spec_check(spec, &e), &e) || !tags_fit(call, spec) ||
		!writable(call))
		return;
	if (!spec->id) {
		token = &call->agent_token;
		token_spec_init(token);
		token->role = ROLE_AGENT;
		new_secret(call, token);
		agent_token_name(call->service->fleet, spec->name, token->hash, token->name);
	}
	store_put_node(call->service->store, spec, token, &call->event, on_stored, call);
}

void service_put_node(struct service *s, const struct caller *caller, const struct node_spec *spec,
	const char *changes, service_admin_done *done, void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_PUT, STORE_NODE, done, ctx);

	if (!call)
		return;
	call->id = spec->id;
	call->spec.node = *spec;
	event_for_put(call, spec->name, spec->provider_id, changes);
	put_node(call, &call->spec.node);
}

void service_put_token(struct service *s, const struct caller *caller,
	const struct token_spec *spec, const char *changes, service_admin_done *done, void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_PUT, STORE_TOKEN, done, ctx);
	struct err e = {""};

	if (!call)
		return;
	call->id = spec->id;
	call->spec.token = *spec;
	if (!spec->id)
		new_secret(call, &call->spec.token);
	event_for_put(call, spec->name, 0, changes);
	if (spec_ok(call, token_spec_check(&call->spec.token, &e), &e) && writable(call))
		store_put_token(s->store, &call->spec.token, &call->event, on_stored, call);
}

/* ---- remove ---- */

static bool removable_node(struct admin_call *call, const struct node *n, bool force)
{
	char text[256];

	if (force || n->session_count == 0)
		return true;
	snprintf(text, sizeof(text),
		"node \"%s\" has %u session%s; drain it first, or remove it with --force",
		n->spec.name, n->session_count, n->session_count == 1 ? "" : "s");
	refuse(call, SERVICE_CONFLICT, "node_has_sessions", text);
	return false;
}

/* Fills call->id and *ret_provider. False after having refused. */
static bool find_item(struct admin_call *call, const char *name, uint32_t *ret_provider)
{
	const struct fleet *f = call->service->fleet;
	const struct provider *provider;
	const struct pool *pool;
	const struct node *node;
	const struct token *token;
	char text[128];

	*ret_provider = 0;
	if (call->kind == STORE_PROVIDER && (provider = fleet_provider(f, name))) {
		call->id = *ret_provider = provider->spec.id;
		call->spec.provider = provider->spec;
	} else if (call->kind == STORE_POOL && (pool = fleet_pool(f, name))) {
		call->id = pool->spec.id;
		call->spec.pool = pool->spec;
		*ret_provider = pool->spec.provider_id;
	} else if (call->kind == STORE_NODE && (node = fleet_node(f, name))) {
		call->id = node->spec.id;
		call->spec.node = node->spec;
		*ret_provider = node->spec.provider_id;
	} else if (call->kind == STORE_TOKEN && (token = fleet_token(f, name))) {
		call->id = token->spec.id;
		call->spec.token = token->spec;
	} else {
		snprintf(text, sizeof(text), "there is no %s \"%.64s\"", kind_names[call->kind],
			name);
		refuse(call, SERVICE_NOT_FOUND, "not_found", text);
		return false;
	}
	return true;
}

void service_remove(struct service *s, const struct caller *caller, enum store_kind kind,
	const char *name, bool force, service_admin_done *done, void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_REMOVE, kind, done, ctx);
	uint32_t provider_id;

	if (!call || !find_item(call, name, &provider_id))
		return;
	if (kind == STORE_NODE &&
		!removable_node(call, fleet_node_by_id(s->fleet, call->id), force))
		return;
	/* the row of a removed provider cannot be referred to by its own event */
	event_for(call, EVENT_ADMIN_REMOVED, name, kind == STORE_PROVIDER ? 0 : provider_id);
	if (writable(call))
		store_remove(s->store, kind, call->id, &call->event, on_stored, call);
}

/* ---- maintenance ---- */

static int set_mode(struct admin_call *call, enum admin_mode mode, const char *reason)
{
	char *to = call->kind == STORE_PROVIDER ? call->spec.provider.mode_reason
		   : call->kind == STORE_POOL	? call->spec.pool.mode_reason
						: call->spec.node.mode_reason;

	if (call->kind == STORE_PROVIDER)
		call->spec.provider.mode = mode;
	else if (call->kind == STORE_POOL)
		call->spec.pool.mode = mode;
	else
		call->spec.node.mode = mode;
	return text_copy(to, LIMIT_REASON_SIZE, reason);
}

void service_set_maintenance(struct service *s, const struct caller *caller, enum store_kind kind,
	const char *name, enum admin_mode mode, const char *reason, service_admin_done *done,
	void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_PUT, kind, done, ctx);
	uint32_t provider_id;

	if (!call || !find_item(call, name, &provider_id))
		return;
	if (mode != ADMIN_ENABLED && !reason[0]) {
		refuse(call, SERVICE_INVALID, "reason_required",
			"reason: say why, for those who come after");
		return;
	}
	if (set_mode(call, mode, reason) < 0) {
		refuse(call, SERVICE_INVALID, "invalid", "reason: at most 256 bytes");
		return;
	}
	text_copy(call->name, sizeof(call->name), name);
	text_copy(call->changes, sizeof(call->changes), reason);
	event_start(&call->event, EVENT_MAINTENANCE, clock_wall_us());
	call->event.provider_id = provider_id;
	call->event.node_id = kind == STORE_NODE ? call->id : 0;
	if (kind == STORE_POOL) {
		call->event.pool_id = call->id;
		call->event.pool = call->name;
	}
	event_param(&call->event, "kind", kind_names[kind]);
	event_param(&call->event, "name", call->name);
	event_param(&call->event, "mode", admin_mode_name(mode));
	event_param(&call->event, "reason", call->changes);
	event_param(&call->event, "actor", call->actor);
	if (kind == STORE_PROVIDER)
		put_provider(call, &call->spec.provider);
	else if (kind == STORE_POOL)
		put_pool(call, &call->spec.pool);
	else
		put_node(call, &call->spec.node);
}

/* ---- sessions ---- */

void service_forget_session(struct service *s, const struct caller *caller, const char *node,
	const char *id, service_admin_done *done, void *ctx)
{
	struct admin_call *call = call_new(s, caller, ADMIN_FORGET, STORE_NODE, done, ctx);
	const struct node *n = fleet_node(s->fleet, node);
	const struct session *session = n ? fleet_find_session(n, id) : NULL;

	if (!call)
		return;
	if (!session) {
		refuse(call, SERVICE_NOT_FOUND, "not_found", "there is no such session");
		return;
	}
	if (n->voice == NODE_HEARD) {
		refuse(call, SERVICE_CONFLICT, "node_alive",
			"the node is alive and reports this session; end it on the node");
		return;
	}
	call->id = n->spec.id;
	text_copy(call->name, sizeof(call->name), n->spec.name);
	text_copy(call->session, sizeof(call->session), id);
	text_copy(call->user, sizeof(call->user), session_display(session));
	event_start(&call->event, EVENT_SESSION_FORGOTTEN, clock_wall_us());
	call->event.provider_id = n->spec.provider_id;
	call->event.node_id = n->spec.id;
	event_param(&call->event, "user", call->user);
	event_param(&call->event, "node", call->name);
	event_param(&call->event, "session", call->session);
	event_param(&call->event, "actor", call->actor);
	if (writable(call))
		store_forget_session(
			s->store, call->id, call->session, &call->event, on_stored, call);
}
