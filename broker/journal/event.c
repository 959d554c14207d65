/* SPDX-License-Identifier: ISC */
/*
 * Events and their texts. A text of the catalogue is trusted and copied as it is; every value
 * passes escape_add. Values put into the stored JSON are made well-formed UTF-8 first, because a
 * database takes nothing else and because one bad byte must not lose the whole event.
 */
#include "journal/event.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "journal/catalogue.h"
#include "journal/render.h"
#include "wire/json.h"

static const char *const level_names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};

const char *event_level_name(enum event_level l)
{
	return (unsigned)l <= EVENT_ERROR ? level_names[l] : "?";
}

int event_level_parse(const char *text, enum event_level *ret)
{
	for (unsigned i = 0; i <= EVENT_ERROR; i++) {
		if (text && strcasecmp(text, level_names[i]) == 0) {
			*ret = (enum event_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

int event_language_parse(const char *text, enum event_language *ret)
{
	if (text && strcmp(text, "en") == 0)
		*ret = LANGUAGE_EN;
	else if (text && strcmp(text, "ru") == 0)
		*ret = LANGUAGE_RU;
	else
		return -EINVAL;
	return 0;
}

const char *event_name(enum event_id id)
{
	const struct catalogue_entry *c = catalogue_entry(id);

	return c ? c->name : "?";
}

int event_parse_name(const char *text, enum event_id *ret)
{
	for (unsigned i = 0; i < EVENT_ID_COUNT; i++) {
		if (text && strcmp(text, event_name((enum event_id)i)) == 0) {
			*ret = (enum event_id)i;
			return 0;
		}
	}
	return -ENOENT;
}

enum event_level event_level_of(enum event_id id)
{
	const struct catalogue_entry *c = catalogue_entry(id);

	return c ? c->level : EVENT_ERROR;
}

void event_start(struct event *ev, enum event_id id, int64_t time_us)
{
	*ev = (struct event){.id = id, .time_us = time_us};
}

void event_param(struct event *ev, const char *key, const char *value)
{
	assert(ev->count < EVENT_PARAMS_MAX);
	ev->params[ev->count].key = key;
	ev->params[ev->count].value = value ? value : "";
	ev->count++;
}

/* The value of the parameter whose name is KEY, LEN bytes; "" if the event has none. */
static const char *find_value(const struct event *ev, const char *key, size_t len)
{
	for (size_t i = 0; i < ev->count; i++)
		if (strlen(ev->params[i].key) == len && memcmp(ev->params[i].key, key, len) == 0)
			return ev->params[i].value;
	return "";
}

/* Adds the value of the mark at P (behind its brace); returns what follows the mark. */
static const char *add_mark(const struct event *ev, const char *p, enum event_language language,
	enum escape_style style, bool *empty, struct buf *out)
{
	const char *close = strchr(p, '}');
	size_t len;
	const char *value;

	assert(close);
	len = (size_t)(close - p);
	if (len > 2 && memcmp(close - 2, ":w", 2) == 0)
		value = catalogue_word(find_value(ev, p, len - 2), language);
	else
		value = find_value(ev, p, len);
	*empty = *value == '\0';
	escape_add(out, value, style);
	return close + 1;
}

/* The text up to STOP, into OUT; returns where it ended. *ret_empty: some value in it was empty. */
static const char *add_part(const struct event *ev, const char *p, char stop,
	enum event_language language, enum escape_style style, bool *ret_empty, struct buf *out)
{
	*ret_empty = false;
	while (*p && *p != stop && *p != '[') {
		bool empty = false;

		if (*p == '{') {
			p = add_mark(ev, p + 1, language, style, &empty, out);
			*ret_empty = *ret_empty || empty;
		} else {
			buf_addc(out, *p++);
		}
	}
	return p;
}

void render_event(const struct event *ev, enum event_language language, enum escape_style style,
	struct buf *out)
{
	const struct catalogue_entry *c = catalogue_entry(ev->id);
	const char *p = c ? c->text[language] : "";
	bool empty;

	for (;;) {
		struct buf part = BUF_INIT((size_t)EVENT_PARAMS_MAX * (ESCAPE_VALUE_MAX + 64));

		p = add_part(ev, p, '\0', language, style, &empty, out);
		if (*p != '[')
			return;
		p = add_part(ev, p + 1, ']', language, style, &empty, &part);
		if (!empty)
			buf_add(out, buf_str(&part), part.len);
		buf_deinit(&part);
		assert(*p == ']');
		p++;
	}
}

void event_render(const struct event *ev, enum event_language language, struct buf *out)
{
	render_event(ev, language, ESCAPE_TEXT, out);
}

void event_params_json(const struct event *ev, struct buf *out)
{
	struct buf safe = BUF_INIT(ESCAPE_VALUE_MAX + 64);

	buf_addc(out, '{');
	for (size_t i = 0; i < ev->count; i++) {
		const char *value = ev->params[i].value;
		size_t len = strlen(value);

		if (len > ESCAPE_VALUE_MAX || !text_utf8_valid(value, len)) {
			buf_reset(&safe);
			escape_add(&safe, value, ESCAPE_TEXT);
			value = buf_str(&safe);
		}
		json_add_member_string(out, ev->params[i].key, value);
	}
	buf_addc(out, '}');
	buf_deinit(&safe);
}

int event_render_stored(
	const char *name, const char *params_json, enum event_language language, struct buf *out)
{
	AUTO_JSON struct json_object *params = NULL;
	const struct catalogue_entry *c;
	struct event ev;
	enum event_id id;
	int r;

	if (event_parse_name(name, &id) < 0) {
		escape_add(out, name, ESCAPE_TEXT);
		return 0;
	}
	r = json_parse_object(params_json, strlen(params_json), &params, NULL);
	if (r < 0)
		return r;
	event_start(&ev, id, 0);
	c = catalogue_entry(id);
	for (size_t i = 0; i < EVENT_PARAMS_MAX && c->params[i]; i++) {
		struct json_object *value = NULL;

		if (json_object_object_get_ex(params, c->params[i], &value))
			event_param(&ev, c->params[i], json_object_get_string(value));
	}
	event_render(&ev, language, out);
	return buf_error(out);
}
