/* SPDX-License-Identifier: ISC */
/* The event catalogue: complete in both languages, the source's texts to the letter, safe values.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "journal/catalogue.h"
#include "journal/event.h"
#include "lib/tap.h"
#include "wire/json.h"

static void expect_render(const struct event *ev, enum event_language language, const char *want)
{
	struct buf b = BUF_INIT(65536);

	event_render(ev, language, &b);
	ck_assert_int_eq(buf_error(&b), 0);
	ck_assert_str_eq(buf_str(&b), want);
	buf_deinit(&b);
}

static bool declared(const struct catalogue_entry *c, const char *name, size_t len)
{
	for (size_t i = 0; i < EVENT_PARAMS_MAX && c->params[i]; i++)
		if (strlen(c->params[i]) == len && memcmp(c->params[i], name, len) == 0)
			return true;
	return false;
}

/* Whether {NAME} or {NAME:w} stands in TEXT. */
static bool has_mark(const char *text, const char *name, size_t len)
{
	for (const char *p = strchr(text, '{'); p; p = strchr(p + 1, '{'))
		if (strncmp(p + 1, name, len) == 0 && (p[1 + len] == '}' || p[1 + len] == ':'))
			return true;
	return false;
}

static void check_marks(const struct catalogue_entry *c, const char *text, const char *other)
{
	int depth = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '[' || *p == ']') {
			depth += *p == '[' ? 1 : -1;
			ck_assert_msg(depth == 0 || depth == 1, "%s: brackets", c->name);
		}
		if (*p == '{') {
			size_t len = strcspn(p + 1, ":}");

			ck_assert_msg(declared(c, p + 1, len), "%s: %s", c->name, p);
			ck_assert_msg(has_mark(other, p + 1, len), "%s: %s", c->name, p);
			ck_assert_msg(p[1 + len] == '}' || strncmp(p + 1 + len, ":w}", 3) == 0,
				"%s: %s", c->name, p);
		}
	}
	ck_assert_int_eq(depth, 0);
}

START_TEST(every_event_is_complete)
{
	const struct catalogue_entry *c = catalogue_entry((enum event_id)_i);

	ck_assert_ptr_nonnull(c);
	ck_assert_ptr_nonnull(c->name);
	ck_assert_ptr_nonnull(c->text[LANGUAGE_EN]);
	ck_assert_ptr_nonnull(c->text[LANGUAGE_RU]);
	ck_assert(strspn(c->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(c->name));
	ck_assert(text_utf8_valid(c->text[LANGUAGE_RU], strlen(c->text[LANGUAGE_RU])));
	ck_assert_str_ne(c->text[LANGUAGE_EN], c->text[LANGUAGE_RU]);
	for (const char *p = c->text[LANGUAGE_EN]; *p; p++)
		ck_assert_msg((signed char)*p > 0, "%s: not plain English", c->name);
	check_marks(c, c->text[LANGUAGE_EN], c->text[LANGUAGE_RU]);
	check_marks(c, c->text[LANGUAGE_RU], c->text[LANGUAGE_EN]);
	for (int i = 0; i < _i; i++)
		ck_assert_str_ne(event_name((enum event_id)i), c->name);
}
END_TEST

START_TEST(texts_of_the_source_are_to_the_letter)
{
	struct event ev;

	event_start(&ev, EVENT_NODE_FULL, 0);
	event_param(&ev, "node", "ts1");
	event_param(&ev, "address", "192.0.2.7");
	expect_render(&ev, LANGUAGE_RU,
		"Значение индекса нагрузки достигло предела в 10000 slv. Узел 192.0.2.7 не будет "
		"принимать новых пользователей до тех пор, пока нагрузка не снизится");
	event_start(&ev, EVENT_NODE_CHOSEN, 0);
	event_param(&ev, "address", "192.0.2.7");
	expect_render(&ev, LANGUAGE_RU,
		"Пользователь будет перенаправлен на этот узел: 192.0.2.7, т.к. он наименее "
		"загружен");
	event_start(&ev, EVENT_USER_LOGIN, 0);
	event_param(&ev, "user", "CORP\\иванов");
	expect_render(&ev, LANGUAGE_RU, "Пользователь CORP\\иванов успешно вошел в систему");
	ck_assert_int_eq(event_level_of(EVENT_NODE_FULL), EVENT_WARNING);
	ck_assert_int_eq(event_level_of(EVENT_NODE_CHOSEN), EVENT_DEBUG);
	ck_assert_int_eq(event_level_of(EVENT_USER_LOGIN), EVENT_INFO);
	ck_assert_int_eq(event_level_of(EVENT_NODE_SILENT), EVENT_WARNING);
	ck_assert_int_eq(event_level_of(EVENT_NODE_HEARD), EVENT_INFO);
}
END_TEST

START_TEST(codes_become_words)
{
	struct event ev;

	event_start(&ev, EVENT_CONNECT_REFUSED, 0);
	event_param(&ev, "user", "alice");
	event_param(&ev, "reason", "all_full");
	event_param(&ev, "counts", "nodes 3, full 3");
	expect_render(&ev, LANGUAGE_EN,
		"User alice was given no node: all nodes are full (nodes 3, full 3)");
	expect_render(&ev, LANGUAGE_RU,
		"Пользователю alice не предоставлен узел: все узлы заполнены (nodes 3, full 3)");
	event_start(&ev, EVENT_MAINTENANCE, 0);
	event_param(&ev, "kind", "node");
	event_param(&ev, "name", "drain");
	event_param(&ev, "mode", "drain");
	event_param(&ev, "reason", "node");
	event_param(&ev, "actor", "uid 0");
	/* only what is a code: a name or a reason that looks like one stays */
	expect_render(&ev, LANGUAGE_RU,
		"uid 0: узел drain переведен в режим «без новых пользователей». Причина: node");
}
END_TEST

START_TEST(empty_values_leave_no_hole)
{
	struct event ev;

	event_start(&ev, EVENT_CONNECT_REFUSED, 0);
	event_param(&ev, "user", "alice");
	event_param(&ev, "reason", "a new code");
	event_param(&ev, "counts", NULL);
	expect_render(&ev, LANGUAGE_EN, "User alice was given no node: a new code");
}
END_TEST

static const struct {
	const char *in, *out;
} hostile[] = {
	{"a\nb", "a\\nb"},
	{"a\r\nb\tc", "a\\r\\nb\\tc"},
	{"\x1b[2J", "\\x1B[2J"},
	{"a\x7f", "a\\x7F"},
	{"\xc2\x85", "\\xC2\\x85"},	     /* C1 next line */
	{"\xe2\x80\xa8", "\\xE2\\x80\\xA8"}, /* line separator */
	{"\xe2\x80\xa9", "\\xE2\\x80\\xA9"}, /* paragraph separator */
	{"\xe2\x80\xae"
	 "x",
		"\\xE2\\x80\\xAEx"}, /* right-to-left override */
	{"\xff"
	 "a\xc3",
		"\\xFF"
		"a\\xC3"},
	{"\xc0\x8a", "\\xC0\\x8A"},	     /* overlong line feed */
	{"\xed\xa0\x80", "\\xED\\xA0\\x80"}, /* surrogate */
	{"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"},
	{"\"quoted\" \\ {user} [x]", "\"quoted\" \\ {user} [x]"},
	{"Żółć 漢字", "Żółć 漢字"},
};

START_TEST(hostile_values_are_escaped)
{
	char want[256];
	struct event ev;

	snprintf(want, sizeof(want), "User %s has logged in successfully", hostile[_i].out);
	event_start(&ev, EVENT_USER_LOGIN, 0);
	event_param(&ev, "user", hostile[_i].in);
	expect_render(&ev, LANGUAGE_EN, want);
}
END_TEST

START_TEST(long_values_are_cut)
{
	static char name[100000];
	struct buf b = BUF_INIT(65536);
	struct event ev;

	memset(name, '\n', sizeof(name) - 1);
	event_start(&ev, EVENT_USER_LOGIN, 0);
	event_param(&ev, "user", name);
	event_render(&ev, LANGUAGE_EN, &b);
	ck_assert_int_eq(buf_error(&b), 0);
	ck_assert_uint_lt(b.len, 5000);
	ck_assert(text_utf8_valid(buf_str(&b), b.len));
	ck_assert_ptr_nonnull(strstr(buf_str(&b), "…"));
	buf_deinit(&b);
}
END_TEST

/* What is stored renders as the event itself would, and is JSON that a database takes. */
START_TEST(stored_form_renders_the_same)
{
	AUTO_JSON struct json_object *parsed = NULL;
	struct buf stored = BUF_INIT(65536), a = BUF_INIT(65536), b = BUF_INIT(65536);
	struct event ev;

	event_start(&ev, EVENT_USER_LOGOUT, 0);
	event_param(&ev, "user", hostile[_i].in);
	event_param(&ev, "node", "ts1");
	event_param(&ev, "session", NULL);
	event_params_json(&ev, &stored);
	ck_assert_int_eq(buf_error(&stored), 0);
	ck_assert_int_eq(json_parse_object(buf_str(&stored), stored.len, &parsed, NULL), 0);
	for (int l = LANGUAGE_EN; l <= LANGUAGE_RU; l++) {
		buf_reset(&a);
		buf_reset(&b);
		event_render(&ev, (enum event_language)l, &a);
		ck_assert_int_eq(event_render_stored("user-logout", buf_str(&stored),
					 (enum event_language)l, &b),
			0);
		ck_assert_str_eq(buf_str(&a), buf_str(&b));
	}
	buf_deinit(&stored);
	buf_deinit(&a);
	buf_deinit(&b);
}
END_TEST

START_TEST(stored_form_of_another_version)
{
	struct buf b = BUF_INIT(65536);

	ck_assert_int_eq(event_render_stored("brand\nnew", "{}", LANGUAGE_RU, &b), 0);
	ck_assert_str_eq(buf_str(&b), "brand\\nnew");
	buf_reset(&b);
	ck_assert_int_eq(event_render_stored("node-heard",
				 "{\"node\":7,\"more\":[1],\"address\":null}", LANGUAGE_EN, &b),
		0);
	ck_assert_str_eq(buf_str(&b), "Node 7 () is heard again: it may take new users");
	buf_reset(&b);
	ck_assert_int_eq(event_render_stored("node-heard", "{", LANGUAGE_EN, &b), -EINVAL);
	ck_assert_int_eq(event_render_stored("node-heard", "", LANGUAGE_EN, &b), -EINVAL);
	buf_deinit(&b);
}
END_TEST

START_TEST(names_levels_languages)
{
	enum event_level level;
	enum event_language language;
	enum event_id id;

	for (unsigned i = 0; i < EVENT_ID_COUNT; i++) {
		ck_assert_int_eq(event_parse_name(event_name((enum event_id)i), &id), 0);
		ck_assert_uint_eq(id, i);
	}
	ck_assert_int_eq(event_parse_name("no-such", &id), -ENOENT);
	ck_assert_int_eq(event_level_parse("Warning", &level), 0);
	ck_assert_int_eq(level, EVENT_WARNING);
	ck_assert_str_eq(event_level_name(EVENT_DEBUG), "DEBUG");
	ck_assert_int_eq(event_level_parse("loud", &level), -EINVAL);
	ck_assert_int_eq(event_level_parse(NULL, &level), -EINVAL);
	ck_assert_int_eq(event_language_parse("ru", &language), 0);
	ck_assert_int_eq(language, LANGUAGE_RU);
	ck_assert_int_eq(event_language_parse("de", &language), -EINVAL);
}
END_TEST

static Suite *make_suite(void)
{
	const int hostile_count = (int)(sizeof(hostile) / sizeof(hostile[0]));
	Suite *s = suite_create("event");
	TCase *t = tcase_create("event");

	tcase_add_loop_test(t, every_event_is_complete, 0, EVENT_ID_COUNT);
	tcase_add_test(t, texts_of_the_source_are_to_the_letter);
	tcase_add_test(t, codes_become_words);
	tcase_add_test(t, empty_values_leave_no_hole);
	tcase_add_loop_test(t, hostile_values_are_escaped, 0, hostile_count);
	tcase_add_test(t, long_values_are_cut);
	tcase_add_loop_test(t, stored_form_renders_the_same, 0, hostile_count);
	tcase_add_test(t, stored_form_of_another_version);
	tcase_add_test(t, names_levels_languages);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
