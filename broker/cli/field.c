/* SPDX-License-Identifier: ISC */
/* What is missing or null reads "-"; nothing in an answer is trusted to have the expected type. */
#include "cli/field.h"

#include <string.h>

#include "base/clock.h"
#include "cli/when.h"
#include "wire/limits.h"

struct json_object *field_find(struct json_object *item, const char *path)
{
	char name[LIMIT_NAME_SIZE];

	for (;;) {
		size_t len = strcspn(path, ".");

		if (len >= sizeof(name) || !json_object_is_type(item, json_type_object))
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		if (!json_object_object_get_ex(item, name, &item))
			return NULL;
		if (path[len] == '\0')
			return item;
		path += len + 1;
	}
}

static void add_none(bool raw, struct buf *out)
{
	if (!raw)
		buf_addc(out, '-');
}

static void add_list(struct json_object *list, bool raw, struct buf *out)
{
	size_t n = json_object_array_length(list);

	if (n == 0)
		add_none(raw, out);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			buf_adds(out, raw ? "," : ", ");
		field_value(json_object_array_get_idx(list, i), raw, out);
	}
}

void field_value(struct json_object *v, bool raw, struct buf *out)
{
	switch (json_object_get_type(v)) {
	case json_type_null:
		add_none(raw, out);
		break;
	case json_type_boolean:
		buf_adds(out, json_object_get_boolean(v) ? "on" : "off");
		break;
	case json_type_array:
		add_list(v, raw, out);
		break;
	case json_type_string:
		if (json_object_get_string_len(v) == 0)
			add_none(raw, out);
		else
			buf_adds(out, json_object_get_string(v));
		break;
	default:
		buf_adds(out, json_object_to_json_string_ext(v, JSON_C_TO_STRING_NOSLASHESCAPE));
		break;
	}
}

static void add_percent(double share, struct buf *out)
{
	buf_addf(out, "%.0f %%", share);
}

static void add_size(double bytes, struct buf *out)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t i = 0;

	for (; bytes >= 1024 && i < 5; i++)
		bytes /= 1024;
	buf_addf(out, bytes < 10 && i > 0 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

static bool read_time(struct json_object *v, int64_t *ret)
{
	return json_object_is_type(v, json_type_string) &&
	       clock_parse_rfc3339(json_object_get_string(v), ret) == 0;
}

static void add_age(struct json_object *v, int64_t now_us, struct buf *out)
{
	char age[WHEN_AGE_SIZE];
	int64_t then;

	if (read_time(v, &then))
		buf_adds(out, when_age(then, now_us, age));
	else
		field_value(v, false, out);
}

static void add_used(struct json_object *metrics, struct buf *out)
{
	struct json_object *total = field_find(metrics, "memory_total_bytes");
	struct json_object *available = field_find(metrics, "memory_available_bytes");
	double all = json_object_get_double(total);

	if (!total || !available || !(all > 0))
		buf_addc(out, '-');
	else
		add_percent(100 * (all - json_object_get_double(available)) / all, out);
}

static void add_sessions(struct json_object *item, struct buf *out)
{
	struct json_object *most = field_find(item, "max_sessions");

	field_value(field_find(item, "sessions"), false, out);
	if (json_object_get_int64(most) > 0)
		buf_addf(out, "/%lld", (long long)json_object_get_int64(most));
}

static void add_address(struct json_object *item, struct buf *out)
{
	struct json_object *address = field_find(item, "address"), *port = field_find(item, "port");
	bool plain = !port || json_object_get_int64(port) == 3389;
	bool brackets = address && !plain && strchr(json_object_get_string(address), ':');

	buf_adds(out, brackets ? "[" : "");
	field_value(address, false, out);
	buf_adds(out, brackets ? "]" : "");
	if (!plain)
		buf_addf(out, ":%lld", (long long)json_object_get_int64(port));
}

void field_text(
	struct json_object *item, const struct field *f, bool raw, int64_t now_us, struct buf *out)
{
	struct json_object *v = field_find(item, f->path);

	if (raw) {
		field_value(v, true, out);
		return;
	}
	switch (f->form) {
	case FIELD_PLAIN:
		field_value(v, false, out);
		break;
	case FIELD_PERCENT:
		if (v)
			add_percent(json_object_get_double(v), out);
		else
			add_none(false, out);
		break;
	case FIELD_AGE:
		add_age(v, now_us, out);
		break;
	case FIELD_USED:
		add_used(v, out);
		break;
	case FIELD_SESSIONS:
		add_sessions(item, out);
		break;
	case FIELD_ADDRESS:
		add_address(item, out);
		break;
	}
}

static bool ends_in(const char *name, const char *end)
{
	size_t a = strlen(name), b = strlen(end);

	return a >= b && strcmp(name + a - b, end) == 0;
}

void field_named_value(const char *name, struct json_object *v, int64_t now_us, struct buf *out)
{
	int64_t then;

	if (v && ends_in(name, "_bytes")) {
		add_size(json_object_get_double(v), out);
	} else if (v && ends_in(name, "_percent")) {
		add_percent(json_object_get_double(v), out);
	} else if (read_time(v, &then)) {
		char age[WHEN_AGE_SIZE];

		buf_adds(out, json_object_get_string(v));
		if (then <= now_us)
			buf_addf(out, " (%s ago)", when_age(then, now_us, age));
	} else {
		field_value(v, false, out);
	}
}
