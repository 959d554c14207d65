/* SPDX-License-Identifier: ISC */
/*
 * Gathers the snapshot for one decision: user key, effective tags, live sessions, probes of silent
 * nodes. What the caller's token or the pool forbids is refused here, before policy is asked.
 */
#include "service/decision.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"

/* `NODE\user` names a local account of that node; like every name in any case, space around it
 * aside. */
static const char *local_node_of(const struct service *s, const char *user)
{
	const char *end = strchr(user, '\\');
	char name[LIMIT_NAME_SIZE];
	const struct node *n;

	if (!end)
		return NULL;
	user += strspn(user, " ");
	while (end > user && end[-1] == ' ')
		end--;
	if (end <= user || (size_t)(end - user) >= sizeof(name))
		return NULL;
	memcpy(name, user, (size_t)(end - user));
	name[end - user] = '\0';
	n = fleet_node_any_case(s->fleet, name);
	return n ? n->spec.name : NULL;
}

static bool token_allows_pool(const struct caller *caller, uint32_t pool_id)
{
	const struct token_spec *t = caller->token;

	if (!t || t->role != ROLE_CLIENT || t->pool_count == 0)
		return true;
	for (uint32_t i = 0; i < t->pool_count; i++)
		if (t->pool_ids[i] == pool_id)
			return true;
	return false;
}

static int parse_tags(const struct caller *caller, const struct connection_request *request,
	const struct pool_spec *pool, struct decision *d, struct service_error *error)
{
	struct err e = {""};
	const char *denied;

	if (tag_request_parse(request->has_tags ? request->tags : NULL, &d->tags, &e) < 0) {
		service_error_set(error, SERVICE_INVALID, "tags_invalid", "%s", e.text);
		return -1;
	}
	denied = tag_request_denied(&d->tags, &pool->allowed_tags);
	if (!denied && caller->token && caller->token->role == ROLE_CLIENT)
		denied = tag_request_denied(&d->tags, &caller->token->tags);
	if (denied) {
		service_error_set(error, SERVICE_DENIED, "tag_denied",
			"tag \"%s\" may not be asked for in pool \"%s\"", denied, pool->name);
		return -1;
	}
	if (!d->tags.given && pool->default_tags[0] &&
		tag_request_parse(pool->default_tags, &d->tags, &e) < 0)
		goto bad_pool;
	if (tag_request_parse(pool->forced_tags[0] ? pool->forced_tags : NULL, &d->forced, &e) < 0)
		goto bad_pool;
	return 0;
bad_pool:
	service_error_set(error, SERVICE_FAILED, "pool_tags_invalid", "tags of pool \"%s\": %s",
		pool->name, e.text);
	return -1;
}

static enum decision_step ask_probes(struct service *s, struct decision *d)
{
	const struct node *silent[DECISION_PROBES_MAX];
	uint32_t count = choose_needs_probe(&d->input, silent, DECISION_PROBES_MAX);
	bool wait = false;

	for (uint32_t i = 0; i < count; i++) {
		enum probe_state state = probes_ask(s->probes, silent[i], d->input.now_ms);

		d->probes[i] = (struct choose_probe){silent[i], state == PROBE_ANSWERS};
		wait = wait || state == PROBE_WAIT;
	}
	d->input.probe_count = count;
	return wait ? DECISION_WAIT : DECISION_READY;
}

static int find_user(const struct service *s, const struct wish *w, struct decision *d,
	struct service_error *error)
{
	const char *user = w->request->user;
	struct err e = {""};

	if (w->who == WISH_USER) {
		if (user_key_make(s->config->user_names, user, strlen(user), local_node_of(s, user),
			    d->key, &e) < 0) {
			service_error_set(
				error, SERVICE_INVALID, "user_invalid", "user: %s", e.text);
			return -1;
		}
		d->input.sessions = fleet_user_sessions(s->fleet, d->key);
	} else if (w->who == WISH_HINT) {
		d->input.sessions = fleet_hinted_sessions(s->fleet, s->config->user_names, user);
	}
	return 0;
}

static void find_nodes(const struct service *s, const struct wish *w, struct decision *d)
{
	if (w->endpoint[0])
		d->input.routed = fleet_node_by_endpoint(s->fleet, w->endpoint, w->endpoint_port);
	for (uint32_t i = 0; i < w->avoid_count; i++) {
		const struct node *n = fleet_node_by_id(s->fleet, w->avoid[i]);

		if (n)
			d->avoid[d->input.avoid_count++] = n;
	}
}

static int prepare(struct service *s, const struct caller *caller, const struct wish *w,
	struct decision *d, struct service_error *error)
{
	const struct connection_request *request = w->request;
	const struct pool *pool = fleet_pool(s->fleet, request->pool);

	d->input = (struct choose_input){
		.pool = pool,
		.tags = &d->tags,
		.forced = &d->forced,
		.avoid = d->avoid,
		.probes = d->probes,
		.now_ms = clock_mono_ms(),
		.stale_after_ms = s->config->stale_after_ms,
		.random = secret_random_u64(),
	};
	d->input.grace = d->input.now_ms < s->grace_until_ms;
	d->key[0] = '\0';
	if (find_user(s, w, d, error) < 0)
		return -1;
	if (!pool)
		return 0;
	find_nodes(s, w, d);
	if (!token_allows_pool(caller, pool->spec.id)) {
		service_error_set(error, SERVICE_DENIED, "pool_denied",
			"this token may not ask for pool \"%s\"", pool->spec.name);
		return -1;
	}
	if (request->node[0]) {
		if (caller->role != ROLE_ADMIN) {
			service_error_set(error, SERVICE_DENIED, "admin_required",
				"node: only an administrator may name the node");
			return -1;
		}
		d->input.node_name = request->node;
		d->input.named = fleet_node(s->fleet, request->node);
	}
	return parse_tags(caller, request, &pool->spec, d, error);
}

enum decision_step decision_make(struct service *s, const struct caller *caller,
	const struct wish *w, struct decision *d, struct service_error *error)
{
	error->status = SERVICE_OK;
	if (!s->loaded || s->stopping) {
		service_error_set(error, SERVICE_UNAVAILABLE, s->stopping ? "stopping" : "starting",
			s->stopping ? "the dispatcher is stopping"
				    : "the dispatcher has not yet read its database");
		error->retry_after_s = 2;
		return DECISION_ERROR;
	}
	if (prepare(s, caller, w, d, error) < 0)
		return DECISION_ERROR;
	if (d->input.sessions && ask_probes(s, d) == DECISION_WAIT)
		return DECISION_WAIT;
	choose(&d->input, &d->choice);
	return DECISION_READY;
}

static void refusal_counted(const struct decision *d, const struct connection_request *request,
	struct service_error *ret)
{
	const struct choice_counts *c = &d->choice.counts;
	const char *provider = d->input.pool->provider->spec.name;

	switch (d->choice.reason) {
	case CHOICE_NO_NODES:
		service_error_set(ret, SERVICE_REFUSED, "no_nodes",
			"provider \"%s\" has no node; add one with `termbroker node add`",
			provider);
		break;
	case CHOICE_NO_TAG_MATCH:
		service_error_set(ret, SERVICE_REFUSED, "no_tag_match",
			"none of the %" PRIu32 " nodes of provider \"%s\" matches %s%s%s", c->nodes,
			provider, request->has_tags ? "the tags \"" : "a request without tags",
			request->has_tags ? request->tags : "", request->has_tags ? "\"" : "");
		break;
	case CHOICE_ALL_MAINTENANCE:
		service_error_set(ret, SERVICE_REFUSED, "all_maintenance",
			"all %" PRIu32
			" matching nodes are in maintenance; see `termbroker node list`",
			c->maintenance);
		break;
	case CHOICE_NO_METRICS:
		service_error_set(ret, SERVICE_REFUSED, "no_metrics",
			"no matching node can be judged: %" PRIu32
			" silent or without metrics, %" PRIu32
			" with no RDP server listening; are the agents running?",
			c->silent, c->not_accepting);
		break;
	default:
		service_error_set(ret, SERVICE_REFUSED, "all_full",
			"all %" PRIu32
			" matching nodes are full (load index 10000 or max_sessions)",
			c->full);
		break;
	}
}

/* Names what is in maintenance, with its own reason; the stricter of the two. */
static void refusal_maintenance(const struct pool *pool, struct service_error *ret)
{
	const struct provider_spec *provider = &pool->provider->spec;
	bool by_provider = provider->mode > pool->spec.mode;
	const char *reason = by_provider ? provider->mode_reason : pool->spec.mode_reason;

	service_error_set(ret, SERVICE_REFUSED, "pool_maintenance",
		"%s \"%s\" is in maintenance%s%s", by_provider ? "provider" : "pool",
		by_provider ? provider->name : pool->spec.name, reason[0] ? ": " : "", reason);
}

void decision_refusal(const struct decision *d, const struct connection_request *request,
	struct service_error *ret)
{
	switch (d->choice.reason) {
	case CHOICE_POOL_UNKNOWN:
		service_error_set(ret, SERVICE_NOT_FOUND, "pool_unknown", "there is no pool \"%s\"",
			request->pool);
		break;
	case CHOICE_POOL_MAINTENANCE:
		refusal_maintenance(d->input.pool, ret);
		break;
	case CHOICE_NODE_UNKNOWN:
		service_error_set(ret, SERVICE_NOT_FOUND, "node_unknown",
			"there is no node \"%s\" in the provider of pool \"%s\"", request->node,
			request->pool);
		break;
	default:
		refusal_counted(d, request, ret);
	}
	ret->retry_after_s = d->choice.retry_after_s;
}
