/* SPDX-License-Identifier: ISC */
/*
 * node add and token add: what is made has a token whose text is shown this once. It goes to
 * standard output and nowhere else; the lines for the node hand it over by a here-document, never
 * as an argument.
 */
#include <string.h>

#include "cli/api_call.h"
#include "cli/kinds.h"
#include "cli/output.h"
#include "cli/run.h"
#include "wire/json.h"

#define TEXT_MAX 16384

static const char *text_at(struct json_object *o, const char *path)
{
	struct json_object *v = field_find(o, path);

	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}

static int post(struct cli *c, struct json_object **ret, struct failure *f)
{
	AUTO_JSON struct json_object *body = NULL;
	struct buf path = BUF_INIT(256);
	int r = kind_new_body(c, &body, f);

	kind_path(c, NULL, &path);
	if (r == 0)
		r = api_call(c, "POST", buf_str(&path), body, ret, f);
	buf_deinit(&path);
	if (r == 0 && !*text_at(*ret, "token")) {
		json_object_put(*ret);
		*ret = NULL;
		r = fail(f, CLI_FAILED, "the answer has no token");
	}
	return r;
}

/* The dispatchers' URLs with QUOTE around each: "a", "b". */
static void add_urls(struct json_object *answer, const char *quote, struct buf *out)
{
	struct json_object *list = field_find(answer, "dispatchers");
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < n; i++)
		buf_addf(out, "%s%s%s%s", i ? ", " : "", quote,
			text_at(json_object_array_get_idx(list, i), "url"), quote);
	if (n == 0)
		buf_addf(out, "%shttps://DISPATCHER:PORT%s", quote, quote);
}

static void add_agent_conf(struct json_object *answer, const char *node, struct buf *out)
{
	struct json_object *port = field_find(answer, "port");
	const char *pin = text_at(answer, "pin");

	buf_addf(out, "node = \"%s\"\ndispatchers = { ", node);
	add_urls(answer, "\"", out);
	buf_adds(out, " }\n");
	if (*pin)
		buf_addf(out, "pin = { \"%s\" }\n", pin);
	else
		buf_adds(out, "ca_file = \"/etc/termbroker/ca.pem\"\n");
	buf_adds(out, "token_file = \"/etc/termbroker/agent.token\"\n");
	if (port && json_object_get_int64(port) != 3389)
		buf_addf(out, "port = %lld\n", (long long)json_object_get_int64(port));
}

static void add_instructions(struct json_object *answer, const char *node, struct buf *out)
{
	buf_addf(out, "node %s added\n\nIts agent's token, shown this once:\n%s\n\n", node,
		text_at(answer, "token"));
	buf_adds(out, "Dispatchers: ");
	add_urls(answer, "", out);
	if (*text_at(answer, "pin"))
		buf_addf(out, "\nKey pin: %s\n", text_at(answer, "pin"));
	else
		buf_adds(out,
			"\nKey pin: none, since the dispatcher has no TLS listener; agents on "
			"other machines need one\n");
	buf_adds(out, "\nOn the node, with termbroker-agent installed, as root:\n\n"
		      "mkdir -p /etc/termbroker\n"
		      "(umask 077; cat > /etc/termbroker/agent.token) <<'EOF'\n");
	buf_addf(out, "%s\nEOF\n", text_at(answer, "token"));
	buf_adds(out, "cat > /etc/termbroker/agent.conf <<'EOF'\n");
	add_agent_conf(answer, node, out);
	buf_adds(out, "EOF\nsystemctl enable --now termbroker-agent\n");
}

int run_node_add(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	struct buf text = BUF_INIT(TEXT_MAX);
	int r = post(c, &answer, f);

	if (r == 0 && c->format != FORMAT_TABLE)
		r = output_object(c, answer, f);
	else if (r == 0) {
		add_instructions(answer, c->inv.args[0], &text);
		output_text(stdout, buf_str(&text));
	}
	buf_deinit(&text);
	return r;
}

int run_token_add(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	struct buf text = BUF_INIT(TEXT_MAX);
	int r = post(c, &answer, f);

	if (r == 0 && c->format != FORMAT_TABLE)
		r = output_object(c, answer, f);
	else if (r == 0) {
		buf_addf(&text, "token %s added, shown this once:\n%s\n", c->inv.args[0],
			text_at(answer, "token"));
		output_text(stdout, buf_str(&text));
	}
	buf_deinit(&text);
	return r;
}
