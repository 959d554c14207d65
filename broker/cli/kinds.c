/* SPDX-License-Identifier: ISC */
/* list, show, add, set, remove and maintenance: the same for every noun, but for the columns. */
#include "cli/kinds.h"

#include <string.h>

#include "base/clock.h"
#include "cli/api_call.h"
#include "cli/body.h"
#include "cli/output.h"
#include "cli/run.h"
#include "wire/json.h"

#define PATH_MAX_BYTES 4096

static const struct field provider_fields[] = {{"PROVIDER", "name", FIELD_PLAIN, 0},
	{"MODE", "mode", FIELD_PLAIN, 0}, {"SHARING", "share_sessions", FIELD_PLAIN, 0},
	{"BALANCING", "balance_by_metrics", FIELD_PLAIN, 0},
	{"PREFER SHARING", "prefer_sharing", FIELD_PLAIN, 0},
	{"MASS SILENCE", "on_mass_silence", FIELD_PLAIN, 0},
	{"REASON", "mode_reason", FIELD_PLAIN, FIELD_WRAP | FIELD_IF_ANY},
	{NULL, NULL, FIELD_PLAIN, 0}};

static const struct field pool_fields[] = {{"POOL", "name", FIELD_PLAIN, 0},
	{"PROVIDER", "provider", FIELD_PLAIN, FIELD_WRAP}, {"MODE", "mode", FIELD_PLAIN, 0},
	{"DEFAULT TAGS", "default_tags", FIELD_PLAIN, FIELD_WRAP},
	{"FORCED TAGS", "forced_tags", FIELD_PLAIN, FIELD_WRAP},
	{"ALLOWED TAGS", "allowed_tags", FIELD_PLAIN, FIELD_WRAP},
	{"UNTAGGED", "untagged_default", FIELD_PLAIN, 0},
	{"REASON", "mode_reason", FIELD_PLAIN, FIELD_WRAP | FIELD_IF_ANY},
	{NULL, NULL, FIELD_PLAIN, 0}};

static const struct field node_fields[] = {{"NODE", "name", FIELD_PLAIN, 0},
	{"STATE", "state", FIELD_PLAIN, 0}, {"INDEX", "load_index", FIELD_PLAIN, FIELD_RIGHT},
	{"SESSIONS", "sessions", FIELD_SESSIONS, FIELD_RIGHT},
	{"", "max_sessions", FIELD_PLAIN, FIELD_ONLY_CSV},
	{"CPU", "metrics.cpu_busy_percent", FIELD_PERCENT, FIELD_RIGHT},
	{"MEM", "metrics", FIELD_USED, FIELD_RIGHT | FIELD_NO_CSV},
	{"", "metrics.memory_total_bytes", FIELD_PLAIN, FIELD_ONLY_CSV},
	{"", "metrics.memory_available_bytes", FIELD_PLAIN, FIELD_ONLY_CSV},
	{"ADDRESS", "address", FIELD_ADDRESS, FIELD_WRAP},
	{"", "port", FIELD_PLAIN, FIELD_ONLY_CSV}, {"", "fqdn", FIELD_PLAIN, FIELD_ONLY_CSV},
	{"TAGS", "tags", FIELD_PLAIN, FIELD_WRAP}, {"HEARD", "heard_at", FIELD_AGE, FIELD_RIGHT},
	{"PROVIDER", "provider", FIELD_PLAIN, FIELD_WRAP | FIELD_IF_WIDE},
	{"REASON", "mode_reason", FIELD_PLAIN, FIELD_WRAP | FIELD_IF_ANY},
	{NULL, NULL, FIELD_PLAIN, 0}};

static const struct field token_fields[] = {{"TOKEN", "name", FIELD_PLAIN, 0},
	{"ROLE", "role", FIELD_PLAIN, 0}, {"NODE", "node", FIELD_PLAIN, FIELD_IF_WIDE},
	{"POOLS", "pools", FIELD_PLAIN, FIELD_WRAP}, {"TAGS", "tags", FIELD_PLAIN, FIELD_WRAP},
	{"SEES SESSIONS", "see_sessions", FIELD_PLAIN, FIELD_IF_WIDE},
	{"EXPIRES", "expires_at", FIELD_PLAIN, FIELD_WRAP}, {"REVOKED", "revoked", FIELD_PLAIN, 0},
	{NULL, NULL, FIELD_PLAIN, 0}};

static const struct {
	const char *noun;
	const struct field *fields;
} kinds[] = {{"provider", provider_fields}, {"pool", pool_fields}, {"node", node_fields},
	{"token", token_fields}};

static const struct field *fields_of(const char *noun)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].noun, noun) == 0)
			return kinds[i].fields;
	return NULL;
}

void kind_path(const struct cli *c, const char *name, struct buf *path)
{
	buf_addf(path, "/api/v1/%ss", c->inv.command->noun);
	if (name)
		url_add_segment(path, name);
}

/* A call on the invocation's NAME, with WHAT behind it ("" or "/maintenance"). */
static int call_named(struct cli *c, const char *method, const char *what, struct json_object *body,
	struct json_object **ret, struct failure *f)
{
	struct buf path = BUF_INIT(PATH_MAX_BYTES);
	int r;

	kind_path(c, c->inv.args[0], &path);
	buf_adds(&path, what);
	r = buf_error(&path) ? fail(f, CLI_USAGE, "the name is too long")
			     : api_call(c, method, buf_str(&path), body, ret, f);
	buf_deinit(&path);
	return r;
}

int kind_new_body(struct cli *c, struct json_object **ret, struct failure *f)
{
	struct json_object *body = json_object_new_object();
	int r;

	if (!body)
		return fail(f, CLI_FAILED, "out of memory");
	r = body_add_string(body, "name", c->inv.args[0], f);
	if (r == 0)
		r = body_add_options(&c->inv, clock_wall_us(), body, f);
	if (r != 0) {
		json_object_put(body);
		return r;
	}
	*ret = body;
	return 0;
}

int kind_report(struct cli *c, struct json_object *changed, const char *word, struct failure *f)
{
	struct buf line = BUF_INIT(1024);

	if (c->format != FORMAT_TABLE)
		return changed ? output_object(c, changed, f) : 0;
	buf_addf(&line, "%s %s %s\n", c->inv.command->noun, c->inv.args[0], word);
	output_text(stdout, buf_str(&line));
	buf_deinit(&line);
	return 0;
}

int run_kind_list(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	struct buf path = BUF_INIT(PATH_MAX_BYTES);
	int r;

	kind_path(c, NULL, &path);
	r = api_call(c, "GET", buf_str(&path), NULL, &answer, f);
	buf_deinit(&path);
	return r == 0 ? output_list(c, answer, fields_of(c->inv.command->noun), f) : r;
}

int run_kind_show(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	int r = call_named(c, "GET", "", NULL, &answer, f);

	return r == 0 ? output_object(c, answer, f) : r;
}

int run_kind_add(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *body = NULL, *answer = NULL;
	struct buf path = BUF_INIT(PATH_MAX_BYTES);
	int r = kind_new_body(c, &body, f);

	kind_path(c, NULL, &path);
	if (r == 0)
		r = api_call(c, "POST", buf_str(&path), body, &answer, f);
	buf_deinit(&path);
	return r == 0 ? kind_report(c, answer, "added", f) : r;
}

/* PATCH with the members of BODY; without any, a usage error. */
static int patch(struct cli *c, struct json_object *body, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	int r;

	if (json_object_object_length(body) == 0) {
		fail(f, CLI_USAGE, "%s set: nothing to change", c->inv.command->noun);
		return fail_hint(
			f, "termbroker %s set --help lists what can be set", c->inv.command->noun);
	}
	r = call_named(c, "PATCH", "", body, &answer, f);
	return r == 0 ? kind_report(c, answer, "changed", f) : r;
}

int run_kind_set(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	int r;

	if (!body)
		return fail(f, CLI_FAILED, "out of memory");
	r = body_add_options(&c->inv, clock_wall_us(), body, f);
	return r == 0 ? patch(c, body, f) : r;
}

/* What LIST holds and WITHOUT does not, as MEMBER of BODY; nothing if that is nothing. */
static int add_difference(struct json_object *body, const char *member, struct json_object *list,
	struct json_object *without, struct failure *f)
{
	struct json_object *rest = json_object_new_array();

	for (size_t i = 0; rest && i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);
		size_t n = json_object_array_length(without), at = 0;

		while (at < n && !json_object_equal(json_object_array_get_idx(without, at), item))
			at++;
		if (at == n && json_object_array_add(rest, json_object_get(item)) < 0) {
			json_object_put(item);
			goto no_memory;
		}
	}
	if (rest && json_object_array_length(rest) == 0)
		json_object_put(rest);
	else if (!rest || json_object_object_add(body, member, rest) < 0)
		goto no_memory;
	return 0;
no_memory:
	json_object_put(rest);
	return fail(f, CLI_FAILED, "out of memory");
}

/* The step from PRESENT to TAGS, not its end: another administrator's step at the same time
 * stays. */
static int add_tags_step(struct json_object *body, struct json_object *present,
	struct json_object *tags, struct failure *f)
{
	int r;

	json_object_object_del(body, "tags"); /* what --tag says to the letter */
	r = add_difference(body, "tags_add", tags, present, f);

	return r == 0 ? add_difference(body, "tags_remove", present, tags, f) : r;
}

int run_node_set(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *body = json_object_new_object(), *node = NULL, *tags = NULL;
	struct json_object *present = NULL;
	int r = 0;

	if (!body)
		return fail(f, CLI_FAILED, "out of memory");
	if (body_tags_relative(&c->inv)) {
		r = call_named(c, "GET", "", NULL, &node, f);
		present = r == 0 ? field_find(node, "tags") : NULL;
		if (r == 0 && !json_object_is_type(present, json_type_array))
			r = fail(f, CLI_FAILED, "the answer has no list of tags");
	}
	if (r == 0)
		r = body_add_options(&c->inv, clock_wall_us(), body, f);
	if (r == 0)
		r = body_tags(&c->inv, present, &tags, f);
	if (r == 0 && present)
		r = add_tags_step(body, present, tags, f);
	else if (r == 0 && tags && json_object_object_add(body, "tags", json_object_get(tags)) < 0)
		r = fail(f, CLI_FAILED, "out of memory");
	if (r == 0 && present && json_object_object_length(body) == 0)
		return kind_report(c, node, "changed", f);
	return r == 0 ? patch(c, body, f) : r;
}

int run_kind_remove(struct cli *c, struct failure *f)
{
	const char *force = invocation_has(&c->inv, "force") ? "?force=true" : "";
	int r = call_named(c, "DELETE", force, NULL, NULL, f);

	return r == 0 ? kind_report(c, NULL, "removed", f) : r;
}

int run_token_revoke(struct cli *c, struct failure *f)
{
	int r = call_named(c, "DELETE", "", NULL, NULL, f);

	return r == 0 ? kind_report(c, NULL, "revoked", f) : r;
}

int run_kind_maintenance(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *body = json_object_new_object(), *answer = NULL;
	const char *mode = c->inv.args[1], *reason = invocation_option(&c->inv, "reason");
	int r;

	if (!body)
		return fail(f, CLI_FAILED, "out of memory");
	if ((!reason || !*reason) && strcmp(mode, "enabled") != 0) {
		fail(f, CLI_USAGE, "%s maintenance: --reason TEXT is missing",
			c->inv.command->noun);
		return fail_hint(f, "whoever finds the %s in this state will want to know why",
			c->inv.command->noun);
	}
	r = body_add_string(body, "mode", mode, f);
	if (r == 0)
		r = body_add_string(body, "reason", reason ? reason : "", f);
	if (r == 0)
		r = call_named(c, "PUT", "/maintenance", body, &answer, f);
	return r == 0 ? kind_report(c, answer, mode, f) : r;
}
