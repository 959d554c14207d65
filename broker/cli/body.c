/* SPDX-License-Identifier: ISC */
/* An option's type decides the JSON type of its member; values were checked when they were parsed.
 */
#include "cli/body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/when.h"

static int put(
	struct json_object *body, const char *member, struct json_object *value, struct failure *f)
{
	if (!value || json_object_object_add(body, member, value) < 0) {
		json_object_put(value);
		return fail(f, CLI_FAILED, "out of memory");
	}
	return 0;
}

int body_add_string(
	struct json_object *body, const char *member, const char *value, struct failure *f)
{
	return put(body, member, json_object_new_string(value), f);
}

static int append(struct json_object *list, const char *value, struct failure *f)
{
	struct json_object *item = json_object_new_string(value);

	if (!item || json_object_array_add(list, item) < 0) {
		json_object_put(item);
		return fail(f, CLI_FAILED, "out of memory");
	}
	return 0;
}

static int add_to_list(
	struct json_object *body, const char *member, const char *value, struct failure *f)
{
	struct json_object *list = NULL;

	if (!json_object_object_get_ex(body, member, &list)) {
		list = json_object_new_array();
		if (put(body, member, list, f) != 0)
			return f->code;
	}
	return *value ? append(list, value, f) : 0;
}

static int add_to_lines(
	struct json_object *body, const char *member, const char *value, struct failure *f)
{
	struct buf text = BUF_INIT(65536);
	struct json_object *present = NULL;
	int r;

	if (json_object_object_get_ex(body, member, &present))
		buf_addf(&text, "%s\n", json_object_get_string(present));
	buf_adds(&text, value);
	r = body_add_string(body, member, buf_str(&text), f);
	buf_deinit(&text);
	return r;
}

static int add_when(struct json_object *body, const char *member, const char *value, int64_t now_us,
	struct failure *f)
{
	char text[CLOCK_RFC3339_SIZE];
	int64_t when = 0;

	if (when_parse(value, now_us, &when) < 0)
		return fail(f, CLI_USAGE, "\"%s\" is no time", value);
	if (when != 0 && when <= now_us)
		return fail(f, CLI_USAGE, "\"%s\" is over already", value);
	return when == 0 ? 0 : body_add_string(body, member, clock_rfc3339(when, text), f);
}

/* {"on":false}, or {"on":true,"zero":10,"full":90}, in "rules". */
static int add_rule(
	struct json_object *body, const char *member, const char *value, struct failure *f)
{
	struct json_object *rules = NULL, *rule = json_object_new_object();
	const char *dash = strchr(value, '-');
	char zero[32] = "";
	int r = 0;

	if (!json_object_object_get_ex(body, "rules", &rules)) {
		rules = json_object_new_object();
		r = put(body, "rules", rules, f);
	}
	if (r != 0 || !rule) {
		json_object_put(rule);
		return fail(f, CLI_FAILED, "out of memory");
	}
	r = put(rules, member, rule, f);
	if (r == 0)
		r = put(rule, "on", json_object_new_boolean(strcmp(value, "off") != 0), f);
	if (r != 0 || !dash)
		return r;
	snprintf(zero, sizeof(zero), "%.*s", (int)(dash - value), value);
	r = put(rule, "zero", json_object_new_double_s(strtod(zero, NULL), zero), f);
	if (r == 0)
		r = put(rule, "full", json_object_new_double_s(strtod(dash + 1, NULL), dash + 1),
			f);
	return r;
}

static int add_option(struct json_object *body, const struct option_def *def, const char *value,
	int64_t now_us, struct failure *f)
{
	switch (def->type) {
	case OPTION_FLAG:
		return put(body, def->member, json_object_new_boolean(1), f);
	case OPTION_ON_OFF:
		return put(body, def->member, json_object_new_boolean(strcmp(value, "on") == 0), f);
	case OPTION_UINT:
		return put(body, def->member, json_object_new_int64(strtoll(value, NULL, 10)), f);
	case OPTION_NUMBER:
		return put(
			body, def->member, json_object_new_double_s(strtod(value, NULL), value), f);
	case OPTION_LIST:
		return add_to_list(body, def->member, value, f);
	case OPTION_LINES:
		return add_to_lines(body, def->member, value, f);
	case OPTION_RULE:
		return add_rule(body, def->member, value, f);
	case OPTION_WHEN:
		return add_when(body, def->member, value, now_us, f);
	case OPTION_TEXT:
	case OPTION_CHOICE:
		break;
	}
	return body_add_string(body, def->member, value, f);
}

int body_add_options(
	const struct invocation *i, int64_t now_us, struct json_object *body, struct failure *f)
{
	int r = 0;

	for (unsigned n = 0; r == 0 && n < i->option_count; n++)
		if (i->options[n].def->member)
			r = add_option(body, i->options[n].def, i->options[n].value, now_us, f);
	return r;
}

/* ---- tags ---- */

static const char *tag_option(const struct invocation *i, unsigned n)
{
	return strcmp(i->options[n].def->name, "tag") == 0 ? i->options[n].value : NULL;
}

static bool relative(const char *tag)
{
	return *tag == '+' || *tag == '-';
}

bool body_tags_relative(const struct invocation *i)
{
	for (unsigned n = 0; n < i->option_count; n++)
		if (tag_option(i, n) && relative(tag_option(i, n)))
			return true;
	return false;
}

static size_t find_tag(struct json_object *list, const char *tag)
{
	size_t n = json_object_array_length(list), at = 0;

	while (at < n &&
		strcmp(json_object_get_string(json_object_array_get_idx(list, at)), tag) != 0)
		at++;
	return at;
}

static int apply_tag(struct json_object *tags, const char *tag, struct failure *f)
{
	bool remove = *tag == '-';
	const char *name = relative(tag) ? tag + 1 : tag;
	size_t at = find_tag(tags, name);

	if (remove) {
		if (at == json_object_array_length(tags))
			return fail(f, CLI_FAILED, "the node has no tag \"%s\"", name);
		json_object_array_del_idx(tags, at, 1);
		return 0;
	}
	return *name && at == json_object_array_length(tags) ? append(tags, name, f) : 0;
}

static int copy_tags(struct json_object *from, struct json_object *to, struct failure *f)
{
	int r = 0;

	if (!json_object_is_type(from, json_type_array))
		return 0;
	for (size_t i = 0; r == 0 && i < json_object_array_length(from); i++) {
		struct json_object *tag = json_object_array_get_idx(from, i);

		if (json_object_is_type(tag, json_type_string))
			r = append(to, json_object_get_string(tag), f);
	}
	return r;
}

int body_tags(const struct invocation *i, struct json_object *present, struct json_object **ret,
	struct failure *f)
{
	bool some_relative = body_tags_relative(i), given = false;
	struct json_object *tags = json_object_new_array();
	int r = tags ? 0 : fail(f, CLI_FAILED, "out of memory");

	if (r == 0 && some_relative)
		r = copy_tags(present, tags, f);
	for (unsigned n = 0; r == 0 && n < i->option_count; n++) {
		const char *tag = tag_option(i, n);

		if (!tag)
			continue;
		given = true;
		if (some_relative && !relative(tag))
			r = fail(f, CLI_USAGE,
				"--tag: +TAG and -TAG change what there is, a bare TAG "
				"replaces it: not both at once");
		else
			r = apply_tag(tags, tag, f);
	}
	if (r != 0 || !given) {
		json_object_put(tags);
		tags = NULL;
	}
	if (r == 0)
		*ret = tags;
	return r;
}
