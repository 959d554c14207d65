/* SPDX-License-Identifier: ISC */
/* connect and explain: which node for this user? */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/api_call.h"
#include "cli/body.h"
#include "cli/output.h"
#include "cli/run.h"
#include "wire/json.h"

static const struct {
	const char *code, *words;
} reasons[] = {
	{"session", "the user's session is there"},
	{"reservation", "it was promised to the user a moment ago"},
	{"least_loaded", "it is the least loaded"},
	{"round_robin", "its turn has come"},
	{"administrator", "it was asked for by name"},
	{"pool_unknown", "there is no such pool"},
	{"pool_maintenance", "the pool or its provider is in maintenance"},
	{"no_nodes", "the provider has no nodes"},
	{"no_tag_match", "no node matches the tags"},
	{"all_maintenance", "all nodes are in maintenance"},
	{"no_metrics", "no node is heard from"},
	{"all_full", "all nodes are full"},
	{"tag_denied", "a tag is not allowed"},
	{"node_unknown", "the pool has no such node"},
};

static const char *words_of(const char *reason)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reasons[i].code, reason) == 0)
			return reasons[i].words;
	return reason;
}

static const char *text_at(struct json_object *o, const char *path)
{
	struct json_object *v = field_find(o, path);

	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}

static int make_body(struct cli *c, struct json_object **ret, struct failure *f)
{
	struct json_object *body = json_object_new_object();
	int r;

	if (!body)
		return fail(f, CLI_FAILED, "out of memory");
	r = body_add_string(body, "pool", c->inv.args[0], f);
	if (r == 0)
		r = body_add_string(body, "user", c->inv.args[1], f);
	if (r == 0)
		r = body_add_options(&c->inv, clock_wall_us(), body, f);
	if (r != 0) {
		json_object_put(body);
		return r;
	}
	*ret = body;
	return 0;
}

/* ---- connect ---- */

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int save(const char *path, const struct buf *text, struct failure *f)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
	int r;

	if (fd < 0)
		return fail(f, CLI_FAILED, "could not write \"%s\": %s", path, strerror(errno));
	r = write_all(fd, buf_str(text), text->len);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r == 0 ? 0 : fail(f, CLI_FAILED, "could not write \"%s\": %s", path, strerror(-r));
}

static int connect_rdp(struct cli *c, struct json_object *body, const char *file, struct failure *f)
{
	const struct request request = {.method = "POST",
		.path = "/api/v1/connections",
		.body = body,
		.accept = "application/x-rdp"};
	struct buf line = BUF_INIT(8192);
	struct response response;
	int r = api_call_raw(c, &request, &response, f);

	if (r != 0)
		return r;
	if (strcmp(file, "-") == 0) {
		fwrite(buf_str(&response.body), 1, response.body.len, stdout);
	} else {
		r = save(file, &response.body, f);
		if (r == 0 && c->format == FORMAT_TABLE) {
			buf_addf(&line, "%s written: open it with a client as %s\n", file,
				c->inv.args[1]);
			output_text(stdout, buf_str(&line));
		}
	}
	buf_deinit(&line);
	response_deinit(&response);
	return r;
}

static void print_answer(const char *user, struct json_object *answer)
{
	static const struct field address = {"", "address", FIELD_ADDRESS, 0};
	struct buf line = BUF_INIT(8192);

	buf_addf(&line, "%s goes to %s (", user, text_at(answer, "node"));
	if (*text_at(answer, "fqdn"))
		buf_addf(&line, "%s, ", text_at(answer, "fqdn"));
	field_text(answer, &address, false, 0, &line);
	buf_addf(&line, "): %s", words_of(text_at(answer, "reason")));
	if (field_find(answer, "load_index"))
		buf_addf(&line, ", load index %s",
			json_object_get_string(field_find(answer, "load_index")));
	buf_addc(&line, '\n');
	output_text(stdout, buf_str(&line));
	buf_deinit(&line);
}

int run_connect(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *body = NULL, *answer = NULL;
	const char *file = invocation_option(&c->inv, "rdp");
	int r = make_body(c, &body, f);

	if (r == 0 && file)
		return connect_rdp(c, body, file, f);
	if (r == 0)
		r = api_call(c, "POST", "/api/v1/connections", body, &answer, f);
	if (r != 0)
		return r;
	if (c->format != FORMAT_TABLE)
		return output_object(c, answer, f);
	print_answer(c->inv.args[1], answer);
	return 0;
}

/* ---- explain ---- */

static const struct field explain_fields[] = {{"NODE", "node", FIELD_PLAIN, 0},
	{"VERDICT", "verdict", FIELD_PLAIN, 0}, {"STATE", "state", FIELD_PLAIN, FIELD_IF_WIDE},
	{"INDEX", "load_index", FIELD_PLAIN, FIELD_RIGHT},
	{"CPU", "rules.cpu", FIELD_PLAIN, FIELD_RIGHT},
	{"MEM", "rules.memory", FIELD_PLAIN, FIELD_RIGHT},
	{"SESS", "rules.sessions", FIELD_PLAIN, FIELD_RIGHT},
	{"SCRIPT", "rules.load_script", FIELD_PLAIN, FIELD_RIGHT | FIELD_IF_ANY},
	{"SESSIONS", "sessions", FIELD_SESSIONS, FIELD_RIGHT},
	{"", "max_sessions", FIELD_PLAIN, FIELD_ONLY_CSV},
	{"TAGS", "tags", FIELD_PLAIN, FIELD_WRAP}, {"WHY", "reason", FIELD_PLAIN, FIELD_WRAP},
	{NULL, NULL, FIELD_PLAIN, 0}};

static void print_decision(const char *user, struct json_object *answer)
{
	const char *node = text_at(answer, "decision.node");
	const char *reason = words_of(text_at(answer, "decision.reason"));
	struct buf line = BUF_INIT(8192);

	if (*node)
		buf_addf(&line, "%s would go to %s: %s\n\n", user, node, reason);
	else
		buf_addf(&line, "%s would get no node: %s\n\n", user, reason);
	output_text(stdout, buf_str(&line));
	buf_deinit(&line);
}

int run_explain(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *body = NULL, *answer = NULL, *list = NULL;
	struct json_object *nodes;
	int r = make_body(c, &body, f);

	if (r == 0)
		r = api_call(c, "POST", "/api/v1/explain", body, &answer, f);
	if (r != 0)
		return r;
	if (c->format == FORMAT_JSON)
		return output_json(answer, f);
	nodes = field_find(answer, "nodes");
	list = json_object_new_object();
	if (!list || !json_object_is_type(nodes, json_type_array) ||
		json_object_object_add(list, "items", json_object_get(nodes)) < 0)
		return fail(f, CLI_FAILED, "the answer has no list of nodes");
	if (c->format == FORMAT_TABLE)
		print_decision(c->inv.args[1], answer);
	return output_list(c, list, explain_fields, f);
}
