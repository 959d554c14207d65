/* SPDX-License-Identifier: ISC */
/* POST /api/v1/explain: the decision, and each node of the provider with its numbers and the
 * verdict on it. */
#include <errno.h>

#include "api/counts.h"
#include "api/fields.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "wire/json.h"

static const char *verdict_words(enum node_verdict v)
{
	static const char *const words[] = {
		[VERDICT_CANDIDATE] = "may take this user",
		[VERDICT_TAG_MISMATCH] = "its tags do not match",
		[VERDICT_MAINTENANCE] = "in maintenance",
		[VERDICT_SILENT] = "its agent is silent",
		[VERDICT_STALE] = "its agent reports no metrics",
		[VERDICT_NOT_ACCEPTING] = "nothing listens on its RDP port",
		[VERDICT_INDEX_FULL] = "its load index is 10000",
		[VERDICT_CAPACITY_FULL] = "it has max_sessions sessions",
	};

	return words[v];
}

static void add_rule(struct buf *b, const char *key, const struct load_rule_value *rule)
{
	json_add_key(b, key);
	if (rule->on && rule->present)
		buf_addu(b, rule->slv);
	else
		buf_adds(b, "null");
}

static void add_load(struct buf *b, const struct node *n)
{
	struct load_detail detail = {0};
	uint32_t index;

	json_add_key(b, "load_index");
	if (n->has_index)
		buf_addu(b, n->index);
	else
		buf_adds(b, "null");
	load_index_compute(
		&n->provider->spec, &n->spec, &n->metrics, n->session_count, &index, &detail);
	json_add_key(b, "rules");
	buf_addc(b, '{');
	add_rule(b, "cpu", &detail.cpu);
	add_rule(b, "memory", &detail.memory);
	add_rule(b, "sessions", &detail.sessions);
	add_rule(b, "load_script", &detail.load_script);
	buf_addc(b, '}');
}

static void add_node(struct buf *b, const struct explain_result *result, const struct node *n)
{
	enum node_verdict v = choose_verdict(result->input, n);

	json_add_member_string(b, "node", n->spec.name);
	json_add_member_string(b, "verdict", node_verdict_name(v));
	json_add_member_string(
		b, "reason", n == result->choice->node ? "chosen" : verdict_words(v));
	add_load(b, n);
	json_add_member_u64(b, "sessions", n->session_count);
	json_add_member_u64(b, "max_sessions", n->spec.max_sessions);
	json_add_member_string(b, "state", node_state_name(service_node_state(n)));
	add_member_tags(b, "tags", &n->spec.tags);
	json_add_member_bool(b, "tag_match", v != VERDICT_TAG_MISMATCH);
}

static void add_decision(struct buf *b, const struct choice *c)
{
	json_add_key(b, "decision");
	buf_addc(b, '{');
	json_add_member_string(b, "reason", choice_reason_name(c->reason));
	json_add_member_string(b, "node", c->node ? c->node->spec.name : NULL);
	json_add_member_bool(b, "refused", choice_is_refusal(c->reason));
	json_add_member_bool(b, "tags_fell_back", c->tags_fell_back);
	counts_format(b, &c->counts);
	json_add_member_u64(b, "retry_after", c->retry_after_s);
	buf_addc(b, '}');
}

static void explained(void *ctx, const struct explain_result *result)
{
	struct request *r = ctx;
	const struct farm *farm = result->pool ? &result->pool->provider->farm : NULL;
	struct buf *b;

	if (request_gone(r)) {
		request_release(r);
		return;
	}
	if (result->error.status != SERVICE_OK || !result->choice) {
		request_fail_service(r, &result->error);
		request_release(r);
		return;
	}
	b = request_out(r);
	buf_addc(b, '{');
	json_add_member_string(b, "user", result->user_key);
	json_add_member_string(b, "pool", result->pool ? result->pool->spec.name : NULL);
	add_decision(b, result->choice);
	json_add_key(b, "nodes");
	buf_addc(b, '[');
	for (uint32_t i = 0; farm && i < farm->count && !buf_error(b); i++) {
		buf_adds(b, i ? ",{" : "{");
		add_node(b, result, farm->nodes[i]);
		buf_addc(b, '}');
	}
	buf_adds(b, "]}");
	request_send(r, 200, CONTENT_JSON);
	request_release(r);
}

void handle_explain(struct request *r)
{
	struct connection_request request;
	struct err e;
	int rc = connection_request_parse(r->body, r->body_len, &request, &e);

	if (rc < 0) {
		request_fail(r, rc == -ENOMEM ? 503 : 400,
			rc == -ENOMEM ? "no_memory" : "request_invalid", "%s", e.text);
		return;
	}
	if (!fleet_pool(service_fleet(r->api->service), request.pool)) {
		request_fail(r, 404, "pool_unknown", "there is no pool \"%s\"", request.pool);
		return;
	}
	request_hold(r);
	service_explain(r->api->service, &r->caller, &request, explained, r);
}
