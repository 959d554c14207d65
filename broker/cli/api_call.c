/* SPDX-License-Identifier: ISC */
/*
 * Refusals are problem+json: the detail is the reason, the code decides what to advise. Advice that
 * needs another call (nearest names) is given only if that call succeeds.
 */
#include "cli/api_call.h"

#include <string.h>

#include "cli/suggest.h"
#include "wire/json.h"

#define JSON_DEPTH 32

int api_parse(const struct response *r, struct json_object **ret, struct failure *f)
{
	struct json_tokener *t = json_tokener_new_ex(JSON_DEPTH);
	struct json_object *o = NULL;

	if (!t)
		return fail(f, CLI_FAILED, "out of memory");
	o = json_tokener_parse_ex(t, buf_str(&r->body), (int)r->body.len + 1);
	json_tokener_free(t);
	if (!o) {
		fail(f, CLI_FAILED, "the answer is not JSON (HTTP status %ld)", r->status);
		return fail_hint(f, "is it a termbroker dispatcher that listens there?");
	}
	*ret = o;
	return 0;
}

int api_items(struct json_object *answer, struct json_object **ret, struct failure *f)
{
	struct json_object *items = NULL;

	if (!json_object_is_type(answer, json_type_object) ||
		!json_object_object_get_ex(answer, "items", &items) ||
		!json_object_is_type(items, json_type_array))
		return fail(f, CLI_FAILED, "the answer is not a list of items");
	*ret = items;
	return 0;
}

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &v) ||
		!json_object_is_type(v, json_type_string))
		return "";
	return json_object_get_string(v);
}

/* ---- nearest names ---- */

/* "there is no NOUN "NAME"": what the reason says was not found. NULL if it says no such thing. */
static const char *missing_noun(const char *detail, char ret_name[LIMIT_NAME_SIZE])
{
	static const char *const nouns[] = {"provider", "pool", "node", "token"};

	for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
		char text[64];
		const char *found;
		size_t len;

		snprintf(text, sizeof(text), "there is no %s \"", nouns[i]);
		found = strstr(detail, text);
		if (!found)
			continue;
		found += strlen(text);
		len = strcspn(found, "\"");
		if (len >= LIMIT_NAME_SIZE)
			return NULL;
		memcpy(ret_name, found, len);
		ret_name[len] = '\0';
		return nouns[i];
	}
	return NULL;
}

static void suggest_from(struct suggestion *s, struct cli *c, const char *noun)
{
	AUTO_JSON struct json_object *answer = NULL;
	struct json_object *items = NULL;
	struct response response;
	struct failure ignored;
	char path[64];

	snprintf(path, sizeof(path), "/api/v1/%ss", noun);
	if (client_call(c->client, &(struct request){.method = "GET", .path = path}, &response,
		    &ignored) != 0)
		return;
	if (response.status == 200 && api_parse(&response, &answer, &ignored) == 0 &&
		api_items(answer, &items, &ignored) == 0) {
		for (size_t i = 0; i < json_object_array_length(items); i++)
			suggestion_consider(
				s, text_of(json_object_array_get_idx(items, i), "name"));
	}
	response_deinit(&response);
}

static int advise_names(struct cli *c, const char *noun, const char *name, struct failure *f)
{
	struct suggestion s;

	suggestion_start(&s, name);
	suggest_from(&s, c, noun);
	if (suggestion_found(&s))
		return fail_hint(f, "did you mean %s?", suggestion_text(&s));
	return fail_hint(f, "\"termbroker %s list\" shows what there is", noun);
}

/* ---- what to do next ---- */

static int advise_denied(struct cli *c, long status, const char *code, struct failure *f)
{
	const char *role = strcmp(code, "admin_required") == 0 ? "admin" : c->inv.command->role;

	if (!c->settings.url)
		return fail_hint(f,
			"the admin socket may do everything else; is \"%s\" the "
			"dispatcher's admin socket?",
			c->settings.socket);
	if (!c->settings.token_file)
		return fail_hint(f,
			"give a token of the role %s with --token-file FILE; an "
			"administrator makes one: termbroker token add NAME --role %s",
			role, role);
	if (status == 401)
		return fail_hint(f,
			"the token in \"%s\" is unknown, revoked or expired; an "
			"administrator makes another: termbroker token add NAME --role %s",
			c->settings.token_file, role);
	return fail_hint(f, "this needs a token of the role %s; the one in \"%s\" is not enough",
		role, c->settings.token_file);
}

static const struct {
	const char *code, *hint;
} hints[] = {
	{"all_full", "see how loaded they are: termbroker node list; add a node, or raise "
		     "--max-sessions"},
	{"all_maintenance",
		"see who set it and why: termbroker node list; termbroker node maintenance "
		"NAME enabled ends it"},
	{"no_metrics",
		"are the agents running on the nodes? termbroker node list shows when each was "
		"heard"},
	{"no_tag_match", "termbroker node list shows the tags there are"},
	{"tag_denied", "termbroker pool show tells the tags that the pool allows"},
	{"pool_denied",
		"the token may not ask for this pool; termbroker token list shows what it may"},
	{"no_nodes", "register one: termbroker node add NAME --provider P --address A"},
	{"pool_maintenance", "termbroker pool list and provider list tell the reason"},
	{"name_taken", "choose another name, or change the one that is there with \"set\""},
	{"address_taken", "termbroker node list shows which node has it"},
	{"node_has_sessions", "drain it first (maintenance NAME drain), or remove it with --force"},
	{"in_use", "remove or move what belongs to it first: termbroker node list and pool list"},
	{"database_unavailable", "the dispatcher goes on by itself meanwhile; its log tells why"},
};

static int advise(
	struct cli *c, long status, const char *code, const char *detail, struct failure *f)
{
	char name[LIMIT_NAME_SIZE];
	const char *noun = missing_noun(detail, name);

	if (noun)
		return advise_names(c, noun, name, f);
	if (strcmp(code, "name_taken") == 0 && !command_find(c->inv.noun, "set"))
		return fail_hint(f, "choose another name, or revoke that one first");
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcmp(hints[i].code, code) == 0)
			return fail_hint(f, "%s", hints[i].hint);
	if (f->code == CLI_DENIED)
		return advise_denied(c, status, code, f);
	if (f->code == CLI_NOT_FOUND && command_find(c->inv.noun, "list"))
		return fail_hint(f, "\"termbroker %s list\" shows what there is", c->inv.noun);
	if (f->code == CLI_UNREACHABLE)
		return fail_hint(f, "try again in a moment; the dispatcher's log tells why");
	return (int)f->code;
}

/* ---- reading the refusal ---- */

static enum cli_exit exit_of(long status)
{
	switch (status) {
	case 401:
	case 403:
		return CLI_DENIED;
	case 404:
	case 410:
		return CLI_NOT_FOUND;
	case 502:
	case 504:
		return CLI_UNREACHABLE;
	default:
		return CLI_FAILED;
	}
}

/* One entry of "errors": a text, or an object that names a member. */
static void add_error(struct json_object *error, struct buf *out)
{
	const char *field = text_of(error, "field"), *detail = text_of(error, "detail");

	if (json_object_is_type(error, json_type_string))
		buf_addf(out, "; %s", json_object_get_string(error));
	else if (*detail)
		buf_addf(out, "; %s%s%s", field, *field ? ": " : "", detail);
}

static int explain_refusal(struct cli *c, const struct response *response, struct failure *f)
{
	AUTO_JSON struct json_object *problem = NULL;
	struct json_object *errors = NULL;
	struct buf text = BUF_INIT(sizeof(f->text) - 1);
	enum cli_exit code = exit_of(response->status);

	if (api_parse(response, &problem, f) != 0) {
		fail(f, code, "the dispatcher refused with HTTP status %ld", response->status);
		return advise(c, response->status, "", "", f);
	}
	if (*text_of(problem, "detail"))
		buf_adds(&text, text_of(problem, "detail"));
	else if (*text_of(problem, "title"))
		buf_adds(&text, text_of(problem, "title"));
	else
		buf_addf(&text, "the dispatcher refused with HTTP status %ld", response->status);
	if (json_object_object_get_ex(problem, "errors", &errors) &&
		json_object_is_type(errors, json_type_array))
		for (size_t i = 0; i < json_object_array_length(errors); i++)
			add_error(json_object_array_get_idx(errors, i), &text);
	if (*text_of(problem, "code"))
		buf_addf(&text, " (%s)", text_of(problem, "code"));
	fail(f, code, "%s", buf_str(&text));
	buf_deinit(&text);
	return advise(c, response->status, text_of(problem, "code"), text_of(problem, "detail"), f);
}

/* ---- calls ---- */

int api_call_raw(
	struct cli *c, const struct request *request, struct response *ret, struct failure *f)
{
	struct response response;
	int r = client_call(c->client, request, &response, f);

	if (r != 0)
		return r;
	if (response.status < 200 || response.status > 299) {
		r = explain_refusal(c, &response, f);
		response_deinit(&response);
		return r;
	}
	*ret = response;
	return 0;
}

int api_call(struct cli *c, const char *method, const char *path, struct json_object *body,
	struct json_object **ret, struct failure *f)
{
	const struct request request = {.method = method, .path = path, .body = body};
	struct json_object *answer = NULL;
	struct response response;
	int r = api_call_raw(c, &request, &response, f);

	if (r != 0)
		return r;
	if (response.body.len > 0)
		r = api_parse(&response, &answer, f);
	response_deinit(&response);
	if (r != 0)
		return r;
	if (ret)
		*ret = answer;
	else
		json_object_put(answer);
	return 0;
}
