/* SPDX-License-Identifier: ISC */
/* The sessions that the agents report. */
#include "cli/api_call.h"
#include "cli/output.h"
#include "cli/run.h"
#include "wire/json.h"

#define PATH_MAX_BYTES 4096

static const struct field session_fields[] = {{"SESSION", "id", FIELD_PLAIN, 0},
	{"USER", "user", FIELD_PLAIN, FIELD_WRAP},
	{"NODE", "node", FIELD_PLAIN, FIELD_WRAP | FIELD_IF_WIDE}, /* SESSION begins with it */
	{"STATE", "state", FIELD_PLAIN, 0}, {"AGE", "since", FIELD_AGE, FIELD_RIGHT},
	{"", "first_seen", FIELD_PLAIN, FIELD_ONLY_CSV}, {"CLIENT", "client", FIELD_PLAIN, 0},
	{NULL, NULL, FIELD_PLAIN, 0}};

int run_session_list(struct cli *c, struct failure *f)
{
	static const char *const filters[] = {"node", "user", "pool", "state"};
	AUTO_JSON struct json_object *answer = NULL;
	struct buf path = BUF_INIT(PATH_MAX_BYTES);
	int r;

	buf_adds(&path, "/api/v1/sessions");
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		const char *value = invocation_option(&c->inv, filters[i]);

		if (value)
			url_add_query(&path, filters[i], value);
	}
	r = buf_error(&path) ? fail(f, CLI_USAGE, "the values are too long")
			     : api_call(c, "GET", buf_str(&path), NULL, &answer, f);
	buf_deinit(&path);
	return r == 0 ? output_list(c, answer, session_fields, f) : r;
}

int run_session_forget(struct cli *c, struct failure *f)
{
	struct buf path = BUF_INIT(PATH_MAX_BYTES), line = BUF_INIT(PATH_MAX_BYTES);
	int r;

	buf_adds(&path, "/api/v1/sessions");
	url_add_segment(&path, c->inv.args[0]);
	r = buf_error(&path) ? fail(f, CLI_USAGE, "the id is too long")
			     : api_call(c, "DELETE", buf_str(&path), NULL, NULL, f);
	if (r == 0 && c->format == FORMAT_TABLE) {
		buf_addf(&line, "session %s forgotten\n", c->inv.args[0]);
		output_text(stdout, buf_str(&line));
	}
	buf_deinit(&path);
	buf_deinit(&line);
	return r;
}
