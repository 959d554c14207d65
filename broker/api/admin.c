/* SPDX-License-Identifier: ISC */
/*
 * /api/v1/{providers,pools,nodes,tokens}: list, show, create, change, remove, maintenance. A change
 * overlays the present spec, so fields left out keep their value; the service stores and journals
 * it, and the answer is what the fleet has afterwards.
 */
#include "api/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/problem.h"
#include "api/query.h"
#include "base/tls.h"
#include "wire/json.h"
#include "wire/names.h"

#define PREFIX "/api/v1/"

void add_member_mode(struct buf *b, enum admin_mode mode, const char *reason)
{
	json_add_member_string(b, "mode", admin_mode_name(mode));
	json_add_member_string(b, "mode_reason", reason);
}

/* The kind that the path names; routes.c lets no other through. */
static const struct admin_kind *kind_of(const struct request *r)
{
	const struct admin_kind *const kinds[] = {
		admin_provider(), admin_pool(), admin_node(), admin_token()};
	const char *word = r->path + strlen(PREFIX);
	size_t len = strcspn(word, "/");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i]->path) == len && memcmp(kinds[i]->path, word, len) == 0)
			return kinds[i];
	return admin_node();
}

static const struct fleet *fleet_of(const struct request *r)
{
	return service_fleet(r->api->service);
}

/* The object named in the path; NULL: R was answered. */
static const void *named_object(struct request *r, const struct admin_kind *k)
{
	const void *object = k->find(fleet_of(r), r->segment[0]);

	if (!object)
		request_fail(r, 404, "not_found", "there is no %s \"%s\"", k->word, r->segment[0]);
	return object;
}

void handle_list(struct request *r)
{
	const struct admin_kind *k = kind_of(r);
	const struct fleet *f = fleet_of(r);
	struct buf *b = request_out(r);

	buf_adds(b, "{\"items\":[");
	for (const void *o = k->next(f, NULL); o; o = k->next(f, o)) {
		buf_adds(b, b->data[b->len - 1] == '[' ? "{" : ",{");
		k->format(b, f, o);
		buf_addc(b, '}');
		if (buf_error(b))
			break;
	}
	buf_adds(b, "]}");
	request_send(r, 200, CONTENT_JSON);
}

void handle_show(struct request *r)
{
	const struct admin_kind *k = kind_of(r);
	const void *object = named_object(r, k);
	struct buf *b;

	if (!object)
		return;
	b = request_out(r);
	buf_addc(b, '{');
	k->format(b, fleet_of(r), object);
	buf_addc(b, '}');
	request_send(r, 200, CONTENT_JSON);
}

/* ---- answers of changes ---- */

/* What a new node's administrator needs for its agent. */
static void add_agent_help(struct buf *b, const struct request *r)
{
	const struct topology *t = service_topology(r->api->service);
	const struct config *config = r->api->config;
	char pin[TLS_PIN_SIZE];

	json_add_key(b, "dispatchers");
	buf_addc(b, '[');
	for (size_t i = 0; i < t->count; i++) {
		buf_adds(b, i ? ",{" : "{");
		json_add_member_string(b, "name", t->dispatchers[i].name);
		json_add_member_string(b, "url", t->dispatchers[i].url);
		buf_addc(b, '}');
	}
	buf_addc(b, ']');
	for (unsigned i = 0; i < config->listener_count; i++) {
		if (!config->listeners[i].tls)
			continue;
		if (tls_pin_of_file(config->listeners[i].certificate, pin, NULL) == 0)
			json_add_member_string(b, "pin", pin);
		break;
	}
}

static void answer_object(struct request *r, unsigned status, const char *token)
{
	const struct admin_kind *k = kind_of(r);
	const void *object = k->find(fleet_of(r), r->subject);
	struct buf *b;

	if (!object) {
		request_fail(
			r, 409, "gone", "%s \"%s\" was removed meanwhile", k->word, r->subject);
		return;
	}
	b = request_out(r);
	buf_addc(b, '{');
	k->format(b, fleet_of(r), object);
	if (token) {
		json_add_member_string(b, "token", token);
		if (k->kind == STORE_NODE)
			add_agent_help(b, r);
	}
	buf_addc(b, '}');
	request_send(r, status, CONTENT_JSON);
	if (token)
		secret_wipe(r->api->body.data, r->api->body.cap);
	if (token && r->api->head.data)
		secret_wipe(r->api->head.data, r->api->head.cap);
}

static void end_change(struct request *r, const struct admin_result *result, unsigned status)
{
	if (!request_gone(r)) {
		if (result->error.status != SERVICE_OK)
			request_fail_service(r, &result->error);
		else if (status == 204)
			request_send_empty(r);
		else
			answer_object(r, status, result->token);
	}
	request_release(r);
}

static void created(void *ctx, const struct admin_result *result)
{
	end_change(ctx, result, 201);
}

static void changed(void *ctx, const struct admin_result *result)
{
	end_change(ctx, result, 200);
}

static void removed(void *ctx, const struct admin_result *result)
{
	end_change(ctx, result, 204);
}

/* ---- create and change ---- */

/* False: R was answered. */
static bool read_spec(
	struct request *r, const struct admin_kind *k, bool creating, union admin_spec *spec)
{
	AUTO_JSON struct json_object *o = NULL;
	const char *code = "request_invalid";
	struct err e;
	int rc = json_parse_object(r->body, r->body_len, &o, &e);

	if (rc == 0)
		rc = fields_read(
			k->fields, k->field_count, o, creating, spec, fleet_of(r), &code, &e);
	if (rc == 0) {
		code = "field_invalid";
		rc = name_valid(spec->common.name)
			     ? k->check(spec, &e)
			     : err_set(&e, -EINVAL,
				       "\"name\" must be 1 to 64 letters, digits, '.', '_' or '-', "
				       "and not begin with "
				       "'.' or '-'");
	}
	if (rc < 0)
		request_fail(r, rc == -ENOMEM ? 503 : 400, rc == -ENOMEM ? "no_memory" : code, "%s",
			e.text);
	return rc == 0;
}

void handle_create(struct request *r)
{
	const struct admin_kind *k = kind_of(r);
	union admin_spec spec;

	memset(&spec, 0, sizeof(spec));
	k->init(&spec);
	if (!read_spec(r, k, true, &spec))
		return;
	snprintf(r->subject, sizeof(r->subject), "%s", spec.common.name);
	request_hold(r);
	k->put(r->api->service, &r->caller, &spec, "", created, r);
}

void handle_change(struct request *r)
{
	const struct admin_kind *k = kind_of(r);
	const void *object = named_object(r, k);
	struct buf changes = BUF_INIT(400);
	union admin_spec before, spec;

	if (!object)
		return;
	memset(&before, 0, sizeof(before));
	k->spec_of(object, &before);
	memcpy(&spec, &before, sizeof(spec));
	if (!read_spec(r, k, false, &spec))
		return;
	snprintf(r->subject, sizeof(r->subject), "%s", spec.common.name);
	fields_changed(k->fields, k->field_count, &before, &spec, &changes);
	if (changes.len == 0) {
		answer_object(r, 200, NULL);
	} else {
		request_hold(r);
		k->put(r->api->service, &r->caller, &spec, buf_str(&changes), changed, r);
	}
	buf_deinit(&changes);
}

void handle_remove(struct request *r)
{
	const struct admin_kind *k = kind_of(r);
	bool force = false;
	struct err e;

	if (query_bool(r->query, "force", &force, &e) < 0) {
		request_fail(r, 400, "query_invalid", "%s", e.text);
		return;
	}
	if (!named_object(r, k))
		return;
	request_hold(r);
	service_remove(r->api->service, &r->caller, k->kind, r->segment[0], force, removed, r);
}

/* ---- maintenance ---- */

struct mode_change {
	char mode[16];
	char reason[LIMIT_REASON_SIZE];
};

void handle_maintenance(struct request *r)
{
	static const struct field fields[] = {
		FIELD_REQUIRED(struct mode_change, mode, field_string),
		FIELD(struct mode_change, reason, field_string),
	};
	const struct admin_kind *k = kind_of(r);
	AUTO_JSON struct json_object *o = NULL;
	struct mode_change change = {0};
	const char *code = "request_invalid";
	enum admin_mode mode = ADMIN_ENABLED;
	struct err e;
	int rc = json_parse_object(r->body, r->body_len, &o, &e);

	if (rc == 0)
		rc = fields_read(fields, 2, o, true, &change, NULL, &code, &e);
	if (rc == 0 && admin_mode_parse(change.mode, &mode) < 0) {
		code = "field_invalid";
		rc = err_set(&e, -EINVAL, "\"mode\" must be enabled, drain or disabled");
	}
	if (rc < 0) {
		request_fail(r, 400, code, "%s", e.text);
		return;
	}
	if (!named_object(r, k))
		return;
	snprintf(r->subject, sizeof(r->subject), "%.64s", r->segment[0]);
	request_hold(r);
	service_set_maintenance(r->api->service, &r->caller, k->kind, r->segment[0], mode,
		change.reason, changed, r);
}
