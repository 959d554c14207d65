/* SPDX-License-Identifier: ISC */
/*
 * POST /api/v1/connections: which node is for this user. The answer is JSON, or with
 * `Accept: application/x-rdp` the file that a client opens. Refusals are problems whose code is the
 * reason and which tell in `counts` what stood in the way.
 */
#include <errno.h>
#include <stdio.h>

#include "api/counts.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "wire/json.h"
#include "wire/rdp_file.h"

#define CONTENT_RDP "application/x-rdp"

void counts_format(struct buf *b, const struct choice_counts *c)
{
	json_add_key(b, "counts");
	buf_addc(b, '{');
	json_add_member_u64(b, "nodes", c->nodes);
	json_add_member_u64(b, "tag_mismatch", c->tag_mismatch);
	json_add_member_u64(b, "maintenance", c->maintenance);
	json_add_member_u64(b, "silent", c->silent);
	json_add_member_u64(b, "not_accepting", c->not_accepting);
	json_add_member_u64(b, "full", c->full);
	json_add_member_u64(b, "candidates", c->candidates);
	buf_addc(b, '}');
}

static void refuse(struct request *r, const struct connect_result *result)
{
	const struct service_error *error = &result->error;
	struct buf *b = request_out(r);
	unsigned status = service_http_status(error);
	char seconds[16];

	if (!result->choice || !choice_is_refusal(result->choice->reason)) {
		request_fail_service(r, error);
		return;
	}
	if (error->retry_after_s > 0) {
		snprintf(seconds, sizeof(seconds), "%u", (unsigned)error->retry_after_s);
		request_add_header(r, "Retry-After", seconds);
	}
	problem_open(b, status, error->code, error->detail);
	counts_format(b, &result->choice->counts);
	buf_addc(b, '}');
	request_send(r, status, CONTENT_PROBLEM);
}

/* What the file leads to instead of the node, and by which token. 0, or the request was answered.
 * The token of r->caller may be gone: while a probe was waited for, somebody may have removed it.
 */
static int add_route(struct request *r, const struct connect_result *result, struct rdp_file *file,
	char token[ROUTE_TOKEN_SIZE])
{
	const struct config *config = service_config(r->api->service);
	struct err e;
	int rc = 0;

	if (config->rdp_route == RDP_TO_NODE)
		return 0;
	if (config->rdp_route == RDP_BY_TOKEN)
		rc = service_route_mint(r->api->service, result->caller, result->pool, result->user,
			result->tags, token, &e);
	else if (route_address_format(result->answer.address, result->answer.port, token) < 0)
		rc = err_set(&e, -EINVAL, "node \"%s\" has no IPv4 address for an msts token",
			result->answer.node);
	if (rc < 0) {
		request_fail(r, rc == -EMSGSIZE ? 400 : 500, "rdp_file_impossible",
			"no .rdp file can be made: %s", e.text);
		return rc;
	}
	file->address = config->rdp_address;
	file->fqdn = NULL;
	file->port = config->rdp_port;
	file->route = token;
	file->use_redirection_server_name = true;
	return 0;
}

static void answer_rdp(struct request *r, const struct connect_result *result)
{
	char token[ROUTE_TOKEN_SIZE];
	struct rdp_file file = {
		.address = result->answer.address,
		.fqdn = result->answer.fqdn,
		.port = result->answer.port,
		.user = result->user,
		.prompt_for_credentials = true,
		.authentication_level = 2,
		.signer = r->api->signer,
		.extra = result->pool->spec.rdp_extra,
	};
	char name[LIMIT_NAME_SIZE + 40];
	struct err e;

	if (add_route(r, result, &file, token) < 0)
		return;
	if (rdp_file_format(&file, request_out(r), &e) < 0) {
		request_fail(r, 500, "rdp_file_impossible", "no .rdp file can be made: %s", e.text);
		return;
	}
	snprintf(name, sizeof(name), "attachment; filename=\"%s.rdp\"", result->pool->spec.name);
	request_add_header(r, "Content-Disposition", name);
	request_send(r, 200, CONTENT_RDP);
}

static void connected(void *ctx, const struct connect_result *result)
{
	struct request *r = ctx;

	if (request_gone(r)) {
		/* the choice stands; nobody waits for it */
	} else if (result->error.status != SERVICE_OK) {
		refuse(r, result);
	} else if (request_accepts(r, CONTENT_RDP)) {
		answer_rdp(r, result);
	} else {
		connection_answer_format(&result->answer, request_out(r));
		request_send(r, 200, CONTENT_JSON);
	}
	request_release(r);
}

void handle_connect(struct request *r)
{
	struct connection_request request;
	struct err e;
	int rc = connection_request_parse(r->body, r->body_len, &request, &e);

	if (rc < 0) {
		request_fail(r, rc == -ENOMEM ? 503 : 400,
			rc == -ENOMEM ? "no_memory" : "request_invalid", "%s", e.text);
		return;
	}
	/* The door that the file leads to would ask anew, and not know of it. */
	if (request.node[0] && r->caller.role == ROLE_ADMIN && request_accepts(r, CONTENT_RDP) &&
		service_config(r->api->service)->rdp_route == RDP_BY_TOKEN) {
		request_fail(r, 400, "rdp_file_impossible",
			"no .rdp file can be made: a route token leads to no node by name");
		return;
	}
	request_hold(r);
	service_connect(r->api->service, &r->caller, &request, connected, r);
}
