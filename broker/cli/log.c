/* SPDX-License-Identifier: ISC */
/*
 * The journal, oldest line first. Following is a long poll from the last number on; a dispatcher
 * that goes away meanwhile is asked again until it is back, and says so on standard error once.
 */
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "cli/api_call.h"
#include "cli/csv.h"
#include "cli/output.h"
#include "cli/run.h"
#include "wire/json.h"

#define WAIT_S 25
#define RETRY_S 2
#define DEFAULT_LINES "20"
#define LINE_MAX_BYTES 65536

static const char *const columns[] = {
	"id", "time", "level", "event", "provider", "pool", "node", "text"};

static const char *text_at(struct json_object *o, const char *path)
{
	struct json_object *v = field_find(o, path);

	return v ? json_object_get_string(v) : "";
}

static const char *language(const struct cli *c)
{
	const char *asked = invocation_option(&c->inv, "lang");
	const char *locale = setlocale(LC_MESSAGES, NULL);

	if (asked)
		return asked;
	return locale && strncmp(locale, "ru", 2) == 0 ? "ru" : "en";
}

static void add_filters(const struct cli *c, struct buf *path)
{
	const char *pool = invocation_option(&c->inv, "pool");
	const char *level = invocation_option(&c->inv, "level");

	url_add_query(path, "lang", language(c));
	if (pool)
		url_add_query(path, "pool", pool);
	if (level)
		url_add_query(path, "level", level);
}

/* "TIME LEVEL POOL TEXT": the pool, else the node, else "-". */
static void print_line(struct json_object *item)
{
	const char *pool = text_at(item, "pool"), *node = text_at(item, "node");
	struct buf line = BUF_INIT(LINE_MAX_BYTES);

	buf_addf(&line, "%s %-7s %s ", text_at(item, "time"), text_at(item, "level"),
		*pool	? pool
		: *node ? node
			: "-");
	buf_adds(&line, text_at(item, "text"));
	for (size_t i = 0; i < line.len; i++)
		if (line.data[i] == '\n')
			line.data[i] = ' ';
	buf_addc(&line, '\n');
	output_text(stdout, buf_str(&line));
	buf_deinit(&line);
}

static void print_record(struct json_object *item)
{
	struct buf record = BUF_INIT(LINE_MAX_BYTES);

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		csv_field(&record, i == 0, item ? text_at(item, columns[i]) : columns[i]);
	csv_end(&record);
	fwrite(buf_str(&record), 1, record.len, stdout);
	buf_deinit(&record);
}

static int print_items(struct cli *c, struct json_object *answer, struct failure *f)
{
	struct json_object *items = NULL;
	int r = api_items(answer, &items, f);

	for (size_t i = 0; r == 0 && i < json_object_array_length(items); i++) {
		struct json_object *item = json_object_array_get_idx(items, i);

		if (c->format == FORMAT_CSV)
			print_record(item);
		else if (c->format == FORMAT_JSON)
			puts(json_object_to_json_string_ext(item, JSON_C_TO_STRING_NOSLASHESCAPE));
		else
			print_line(item);
	}
	return r == 0 ? output_finish(f) : r;
}

static int newest(struct cli *c, struct json_object **ret, struct failure *f)
{
	const char *lines = invocation_option(&c->inv, "lines");
	struct buf path = BUF_INIT(4096);
	int r;

	buf_adds(&path, "/api/v1/events");
	url_add_query(&path, "newest", "true");
	url_add_query(&path, "limit", lines && strcmp(lines, "0") != 0 ? lines : DEFAULT_LINES);
	add_filters(c, &path);
	r = buf_error(&path) ? fail(f, CLI_USAGE, "the values are too long")
			     : api_call(c, "GET", buf_str(&path), NULL, ret, f);
	buf_deinit(&path);
	return r;
}

static int wait_for_more(
	struct cli *c, const char *after, struct json_object **ret, struct failure *f)
{
	struct request request = {.method = "GET", .timeout_s = WAIT_S + 15};
	struct buf path = BUF_INIT(4096);
	struct response response;
	char wait[16];
	int r;

	snprintf(wait, sizeof(wait), "%d", WAIT_S);
	buf_adds(&path, "/api/v1/events");
	url_add_query(&path, "after", after);
	url_add_query(&path, "wait", wait);
	url_add_query(&path, "limit", "1000");
	add_filters(c, &path);
	request.path = buf_str(&path);
	r = api_call_raw(c, &request, &response, f);
	buf_deinit(&path);
	if (r != 0)
		return r;
	r = api_parse(&response, ret, f);
	response_deinit(&response);
	return r;
}

static int follow(struct cli *c, const char *start, struct failure *f)
{
	char after[32];
	bool away = false;

	snprintf(after, sizeof(after), "%s", start);
	for (;;) {
		AUTO_JSON struct json_object *answer = NULL;
		int r = wait_for_more(c, after, &answer, f);

		if (r != 0 && r != CLI_UNREACHABLE && r != CLI_FAILED)
			return r;
		if (r != 0) {
			if (!away)
				fprintf(stderr, "termbroker: %s; trying again\n", f->text);
			away = true;
			sleep(RETRY_S);
			continue;
		}
		away = false;
		r = print_items(c, answer, f);
		if (r != 0)
			return r;
		if (*text_at(answer, "next"))
			snprintf(after, sizeof(after), "%s", text_at(answer, "next"));
	}
}

int run_log(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	const char *lines = invocation_option(&c->inv, "lines");
	bool none = lines && strcmp(lines, "0") == 0;
	int r = newest(c, &answer, f);

	if (r != 0)
		return r;
	if (c->format == FORMAT_JSON && !invocation_has(&c->inv, "follow"))
		return output_json(answer, f);
	if (c->format == FORMAT_CSV)
		print_record(NULL);
	if (!none)
		r = print_items(c, answer, f);
	if (r == 0 && invocation_has(&c->inv, "follow"))
		r = follow(c, *text_at(answer, "next") ? text_at(answer, "next") : "0", f);
	return r;
}
