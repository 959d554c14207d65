/* SPDX-License-Identifier: ISC */
/* Specs in JSON: what is written can be read again, a change touches what it names, errors name the
 * field. */
#include <errno.h>
#include <string.h>

#include "api/admin.h"
#include "api/query.h"
#include "lib/made_fleet.h"
#include "lib/tap.h"
#include "wire/json.h"

static struct fleet *fleet;

static void setup(void)
{
	fleet = fleet_new();
	ck_assert_ptr_nonnull(fleet);
	made_provider(fleet, 1, "farm");
	made_pool(fleet, 2, "office", 1);
	made_node(fleet, 3, 1, "gpu east");
}

static void teardown(void)
{
	fleet_free(fleet);
}

static int read_text(const struct admin_kind *k, const char *text, bool creating,
	union admin_spec *spec, const char **ret_code, struct err *e)
{
	AUTO_JSON struct json_object *o = NULL;

	ck_assert_int_eq(json_parse_object(text, strlen(text), &o, e), 0);
	return fields_read(k->fields, k->field_count, o, creating, spec, fleet, ret_code, e);
}

/* What format wrote of OBJECT, less what is not set by it, read over defaults, is the spec of
 * OBJECT. */
static void check_round_trip(const struct admin_kind *k, const char *name)
{
	AUTO_JSON struct json_object *o = NULL;
	const void *object = k->find(fleet, name);
	struct buf text = BUF_INIT(65536), changes = BUF_INIT(1000);
	union admin_spec stored, read;
	const char *code;
	struct err e = {""};

	ck_assert_ptr_nonnull(object);
	buf_addc(&text, '{');
	k->format(&text, fleet, object);
	buf_addc(&text, '}');
	ck_assert_int_eq(json_parse_object(buf_str(&text), text.len, &o, &e), 0);
	json_object_object_foreach(o, key, value)
	{
		bool settable = false;

		(void)value;
		for (size_t i = 0; i < k->field_count; i++)
			settable = settable || strcmp(k->fields[i].name, key) == 0;
		if (!settable)
			json_object_object_del(o, key);
	}
	memset(&stored, 0, sizeof(stored));
	memset(&read, 0, sizeof(read));
	k->spec_of(object, &stored);
	k->init(&read);
	ck_assert_msg(fields_read(k->fields, k->field_count, o, true, &read, fleet, &code, &e) == 0,
		"%s", e.text);
	ck_assert_msg(k->check(&read, &e) == 0, "%s", e.text);
	fields_changed(k->fields, k->field_count, &stored, &read, &changes);
	ck_assert_str_eq(buf_str(&changes), "");
	buf_deinit(&text);
	buf_deinit(&changes);
}

START_TEST(defaults_come_back)
{
	check_round_trip(admin_provider(), "farm");
	check_round_trip(admin_pool(), "office");
	check_round_trip(admin_node(), "n3");
}
END_TEST

START_TEST(everything_set_comes_back)
{
	const struct admin_kind *k = admin_node();
	union admin_spec spec;
	const char *code;
	struct err e = {""};

	memset(&spec, 0, sizeof(spec));
	k->init(&spec);
	ck_assert_int_eq(read_text(k,
				 "{\"name\":\"x\",\"provider\":\"farm\",\"address\":\"2001:db8::"
				 "1\",\"fqdn\":"
				 "\"x.example\",\"port\":65535,\"tags\":[\"a\",\"b\",\"a\"],\"max_"
				 "sessions\":7,"
				 "\"load_multiplier\":0.0001}",
				 true, &spec, &code, &e),
		0);
	ck_assert_uint_eq(spec.node.provider_id, 1);
	ck_assert_uint_eq(spec.node.tags.count, 2);
	ck_assert_uint_eq(spec.node.load_multiplier, 1);
	ck_assert_uint_eq(spec.node.port, 65535);
	spec.node.id = 9;
	ck_assert_int_eq(fleet_put_node(fleet, &spec.node, NULL), 0);
	check_round_trip(k, "x");
}
END_TEST

START_TEST(a_token_comes_back_without_its_secret)
{
	const struct admin_kind *k = admin_token();
	struct buf text = BUF_INIT(65536);
	union admin_spec spec;
	const char *code;
	struct err e = {""};

	memset(&spec, 0, sizeof(spec));
	k->init(&spec);
	ck_assert_int_eq(
		read_text(k,
			"{\"name\":\"t\",\"role\":\"client\",\"pools\":[\"office\"],\"tags\":"
			"[\"gpu\"],\"see_sessions\":true,\"expires_at\":\"2090-01-02T03:04:05Z\"}",
			true, &spec, &code, &e),
		0);
	spec.token.id = 5;
	memset(spec.token.hash, 0xab, sizeof(spec.token.hash));
	ck_assert_int_eq(fleet_put_token(fleet, &spec.token, NULL), 0);
	check_round_trip(k, "t");
	k->format(&text, fleet, fleet_token(fleet, "t"));
	ck_assert_ptr_null(strstr(buf_str(&text), "hash"));
	ck_assert_ptr_null(strstr(buf_str(&text), "abab"));
	ck_assert_ptr_nonnull(
		strstr(buf_str(&text), "\"expires_at\":\"2090-01-02T03:04:05.000Z\""));
	buf_deinit(&text);
}
END_TEST

START_TEST(a_change_touches_what_it_names)
{
	const struct admin_kind *k = admin_node();
	struct buf changes = BUF_INIT(1000);
	union admin_spec before, after;
	const char *code;
	struct err e = {""};

	memset(&before, 0, sizeof(before));
	k->spec_of(k->find(fleet, "n3"), &before);
	memcpy(&after, &before, sizeof(after));
	ck_assert_int_eq(
		read_text(k, "{\"port\":3390,\"tags\":[\"gpu\",\"east\"],\"fqdn\":\"a.b\"}", false,
			&after, &code, &e),
		0);
	fields_changed(k->fields, k->field_count, &before, &after, &changes);
	ck_assert_str_eq(buf_str(&changes), "fqdn, port"); /* the tags are what they were */
	buf_deinit(&changes);
}
END_TEST

START_TEST(errors_name_the_field)
{
	static const struct {
		const char *text, *code, *words;
	} bad[] = {
		{"{\"naem\":1}", "field_unknown", "\"naem\""},
		{"{\"state\":\"ok\"}", "field_unknown", "\"state\""},
		{"{\"mode\":\"drain\"}", "field_unknown", "maintenance"},
		{"{\"port\":true}", "field_invalid", "\"port\""},
		{"{\"port\":null}", "field_invalid", "\"port\""},
		{"{\"load_multiplier\":1e300}", "field_invalid", "\"load_multiplier\""},
		{"{\"max_sessions\":4294967297}", "field_invalid", "\"max_sessions\""},
		{"{\"tags\":[\"-a\"]}", "field_invalid", "\"tags\""},
		{"{\"tags\":[null]}", "field_invalid", "\"tags\""},
		{"{\"provider\":\"none\"}", "field_invalid", "none"},
		{"{}", "field_missing", "\"name\""},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		union admin_spec spec = {0};
		const char *code = "";
		struct err e = {""};

		ck_assert_int_eq(
			read_text(admin_node(), bad[i].text, true, &spec, &code, &e), -EINVAL);
		ck_assert_str_eq(code, bad[i].code);
		ck_assert_msg(strstr(e.text, bad[i].words), "%s: %s", bad[i].text, e.text);
	}
}
END_TEST

START_TEST(decimals_are_written_short)
{
	struct buf b = BUF_INIT(1000);

	buf_addc(&b, '{');
	add_member_decimal(&b, "a", 10000, 4);
	add_member_decimal(&b, "b", 12500, 4);
	add_member_decimal(&b, "c", 1, 4);
	add_member_decimal(&b, "d", 0, 2);
	add_member_decimal(&b, "e", 9999, 2);
	ck_assert_str_eq(buf_str(&b), "{\"a\":1,\"b\":1.25,\"c\":0.0001,\"d\":0,\"e\":99.99");
	buf_deinit(&b);
}
END_TEST

START_TEST(queries)
{
	char text[16];
	uint64_t v = 5;
	bool on = false;
	struct err e;

	ck_assert_int_eq(query_string("a=1&b=x%20y+z&a=2", "b", text, sizeof(text), &e), 0);
	ck_assert_str_eq(text, "x y z");
	ck_assert_int_eq(query_u64("a=1&b=x&a=2", "a", 0, 9, &v, &e), 0);
	ck_assert_uint_eq(v, 1);
	ck_assert_int_eq(query_u64("aa=7&=3&a&", "a", 0, 9, &v, &e), 0);
	ck_assert_uint_eq(v, 1);
	ck_assert_int_eq(query_u64("a=10", "a", 0, 9, &v, &e), -EINVAL);
	ck_assert_int_eq(query_u64("a=-1", "a", 0, 9, &v, &e), -EINVAL);
	ck_assert_int_eq(query_string("a=%00b", "a", text, sizeof(text), &e), -EINVAL);
	ck_assert_int_eq(query_string("a=%ff", "a", text, sizeof(text), &e), -EINVAL);
	ck_assert_int_eq(query_string("a=0123456789abcdef", "a", text, sizeof(text), &e), -EINVAL);
	ck_assert_int_eq(query_string("a=%", "a", text, sizeof(text), &e), 0);
	ck_assert_int_eq(query_bool("x=true", "x", &on, &e), 0);
	ck_assert(on);
	ck_assert_int_eq(query_bool("x=1", "x", &on, &e), -EINVAL);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("api_json");
	TCase *t = tcase_create("api_json");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, defaults_come_back);
	tcase_add_test(t, everything_set_comes_back);
	tcase_add_test(t, a_token_comes_back_without_its_secret);
	tcase_add_test(t, a_change_touches_what_it_names);
	tcase_add_test(t, errors_name_the_field);
	tcase_add_test(t, decimals_are_written_short);
	tcase_add_test(t, queries);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
