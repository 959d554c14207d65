/* SPDX-License-Identifier: ISC */
/* What the command line sends and prints: CSV, cells, times, request bodies, settings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/body.h"
#include "cli/client.h"
#include "cli/csv.h"
#include "cli/field.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/when.h"
#include "lib/tap.h"
#include "wire/json.h"

#define NOW 1796081997000000 /* 2026-11-30T23:39:57Z */

/* ---- CSV ---- */

static const struct {
	const char *in, *out;
} csv_cases[] = {
	{"", ""},
	{"plain", "plain"},
	{"a,b", "\"a,b\""},
	{"say \"x\"", "\"say \"\"x\"\"\""},
	{"a\nb", "\"a\nb\""},
	{"a\rb", "\"a\rb\""},
	{" edge", "\" edge\""},
	{"edge ", "\"edge \""},
	{"in between", "in between"},
	{"Żółć;x", "Żółć;x"},
};

START_TEST(csv_quotes_what_needs_it)
{
	struct buf b = BUF_INIT(256);
	char want[64];

	csv_field(&b, true, csv_cases[_i].in);
	csv_field(&b, false, csv_cases[_i].in);
	csv_end(&b);
	snprintf(want, sizeof(want), "%s,%s\r\n", csv_cases[_i].out, csv_cases[_i].out);
	ck_assert_str_eq(buf_str(&b), want);
	buf_deinit(&b);
}
END_TEST

/* ---- cells ---- */

static const char node[] =
	"{\"name\":\"ts1\",\"address\":\"10.0.0.1\",\"port\":3390,\"fqdn\":\"\",\"tags\":[\"gpu\","
	"\"east\"],"
	"\"none\":[],\"max_sessions\":20,\"sessions\":5,\"load_index\":null,\"on\":true,\"x\":1.5,"
	"\"metrics\":{\"cpu_busy_percent\":37.4,\"memory_total_bytes\":8589934592,"
	"\"memory_available_bytes\":6442450944},\"heard_at\":\"2026-11-30T23:36:50.5Z\"}";

static const struct {
	struct field field;
	const char *human, *raw;
} cells[] = {
	{{"", "name", FIELD_PLAIN, 0}, "ts1", "ts1"},
	{{"", "load_index", FIELD_PLAIN, 0}, "-", ""},
	{{"", "fqdn", FIELD_PLAIN, 0}, "-", ""},
	{{"", "absent", FIELD_PLAIN, 0}, "-", ""},
	{{"", "name.absent", FIELD_PLAIN, 0}, "-", ""},
	{{"", "tags", FIELD_PLAIN, 0}, "gpu, east", "gpu,east"},
	{{"", "none", FIELD_PLAIN, 0}, "-", ""},
	{{"", "on", FIELD_PLAIN, 0}, "on", "on"},
	{{"", "x", FIELD_PLAIN, 0}, "1.5", "1.5"},
	{{"", "metrics.cpu_busy_percent", FIELD_PERCENT, 0}, "37 %", "37.4"},
	{{"", "absent", FIELD_PERCENT, 0}, "-", ""},
	{{"", "metrics", FIELD_USED, 0}, "25 %", NULL},
	{{"", "absent", FIELD_USED, 0}, "-", ""},
	{{"", "sessions", FIELD_SESSIONS, 0}, "5/20", "5"},
	{{"", "address", FIELD_ADDRESS, 0}, "10.0.0.1:3390", "10.0.0.1"},
	{{"", "heard_at", FIELD_AGE, 0}, "3 min", "2026-11-30T23:36:50.5Z"},
	{{"", "name", FIELD_AGE, 0}, "ts1", "ts1"},
	{{"", "absent", FIELD_AGE, 0}, "-", ""},
};

START_TEST(a_cell_for_people_and_for_programs)
{
	AUTO_JSON struct json_object *o = json_tokener_parse(node);
	struct buf b = BUF_INIT(256);

	ck_assert_ptr_nonnull(o);
	field_text(o, &cells[_i].field, false, NOW, &b);
	ck_assert_str_eq(buf_str(&b), cells[_i].human);
	buf_reset(&b);
	if (cells[_i].raw) {
		field_text(o, &cells[_i].field, true, NOW, &b);
		ck_assert_str_eq(buf_str(&b), cells[_i].raw);
	}
	buf_deinit(&b);
}
END_TEST

START_TEST(ipv6_with_a_port)
{
	static const struct field field = {"", "address", FIELD_ADDRESS, 0};
	AUTO_JSON struct json_object *o =
		json_tokener_parse("{\"address\":\"2001:db8::1\",\"port\":3390}");
	AUTO_JSON struct json_object *p =
		json_tokener_parse("{\"address\":\"2001:db8::1\",\"port\":3389}");
	struct buf b = BUF_INIT(256);

	field_text(o, &field, false, NOW, &b);
	buf_addc(&b, ' ');
	field_text(p, &field, false, NOW, &b);
	ck_assert_str_eq(buf_str(&b), "[2001:db8::1]:3390 2001:db8::1");
	buf_deinit(&b);
}
END_TEST

static void expect_named(const char *name, const char *json, const char *want)
{
	AUTO_JSON struct json_object *o = json_tokener_parse(json);
	struct buf b = BUF_INIT(256);

	field_named_value(name, field_find(o, "v"), NOW, &b);
	ck_assert_str_eq(buf_str(&b), want);
	buf_deinit(&b);
}

START_TEST(values_by_their_names)
{
	expect_named("memory_total_bytes", "{\"v\":8589934592}", "8.0 GiB");
	expect_named("memory_total_bytes", "{\"v\":512}", "512 B");
	expect_named("memory_total_bytes", "{\"v\":null}", "-");
	expect_named("cpu_busy_percent", "{\"v\":12.6}", "13 %");
	expect_named(
		"heard_at", "{\"v\":\"2026-11-30T21:39:57Z\"}", "2026-11-30T21:39:57Z (2 h ago)");
	expect_named("expires_at", "{\"v\":\"2027-11-30T21:39:57Z\"}", "2027-11-30T21:39:57Z");
	expect_named("port", "{\"v\":3389}", "3389");
}
END_TEST

START_TEST(control_characters_do_not_reach_the_terminal)
{
	char text[128] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(f);
	output_text(f, "a\x1b[2J\r\x7f\xc2\x9b\xff é\n");
	fclose(f);
	ck_assert_str_eq(text, "a\\x1B[2J\\x0D\\x7F\\xC2\\x9B\\xFF é\n");
}
END_TEST

/* ---- times ---- */

START_TEST(times)
{
	char age[WHEN_AGE_SIZE];
	int64_t t = -1;

	ck_assert_int_eq(when_parse("never", NOW, &t), 0);
	ck_assert_int_eq(t, 0);
	ck_assert_int_eq(when_parse("30d", NOW, &t), 0);
	ck_assert_int_eq(t, NOW + 30 * 86400 * INT64_C(1000000));
	ck_assert_int_eq(when_parse("12h", NOW, &t), 0);
	ck_assert_int_eq(t, NOW + 12 * 3600 * INT64_C(1000000));
	ck_assert_int_eq(when_parse("45min", NOW, &t), 0);
	ck_assert_int_eq(when_parse("2026-11-30T23:39:57Z", 0, &t), 0);
	ck_assert_int_eq(t, NOW);
	ck_assert_int_eq(when_parse("", NOW, &t), -EINVAL);
	ck_assert_int_eq(when_parse("0d", NOW, &t), -EINVAL);
	ck_assert_int_eq(when_parse("-1d", NOW, &t), -EINVAL);
	ck_assert_int_eq(when_parse("99999999d", NOW, &t), -EINVAL);
	ck_assert_int_eq(when_parse("5", NOW, &t), -EINVAL);
	ck_assert_str_eq(when_age(NOW - 59000000, NOW, age), "59 s");
	ck_assert_str_eq(when_age(NOW - 60000000, NOW, age), "1 min");
	ck_assert_str_eq(when_age(NOW - INT64_C(90000000000), NOW, age), "1 d");
	ck_assert_str_eq(when_age(NOW + 5000000, NOW, age), "0 s");
}
END_TEST

/* ---- bodies ---- */

static struct invocation parsed(int argc, const char *const words[])
{
	struct invocation i;
	struct failure f;

	ck_assert_msg(
		invocation_parse(argc, (char *const *)(uintptr_t)words, &i, &f) == 0, "%s", f.text);
	return i;
}

#define PARSED(...)                                                                         \
	parsed((int)(sizeof((const char *[]){"termbroker", __VA_ARGS__}) / sizeof(char *)), \
		(const char *const[]){"termbroker", __VA_ARGS__})

static void expect_body(const struct invocation *i, const char *want)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	struct failure f;

	ck_assert_int_eq(body_add_options(i, NOW, body, &f), 0);
	ck_assert_str_eq(json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN), want);
}

START_TEST(bodies_have_the_types_of_the_api)
{
	struct invocation i =
		PARSED("node", "add", "ts1", "--provider", "p", "--address", "a", "--port", "3390",
			"--tag", "x", "--tag", "y", "--load-multiplier", "1.25", "--socket", "/s");

	expect_body(&i,
		"{\"provider\":\"p\",\"address\":\"a\",\"port\":3390,\"tags\":[\"x\",\"y\"],"
		"\"load_multiplier\":1.25}");
	i = PARSED("provider", "set", "p", "--share-sessions", "off", "--prefer-sharing", "on",
		"--on-mass-silence", "keep");
	expect_body(&i,
		"{\"share_sessions\":false,\"prefer_sharing\":true,\"on_mass_silence\":\"keep\"}");
	i = PARSED("provider", "set", "p", "--cpu-rule", "off", "--memory-rule", "10-90.5",
		"--sessions-rule", "on");
	expect_body(&i, "{\"rules\":{\"cpu\":{\"on\":false},\"memory\":{\"on\":true,\"zero\":10,"
			"\"full\":90.5},\"sessions\":{\"on\":true}}}");
	i = PARSED("pool", "set", "p", "--allowed-tag", "", "--rdp-extra", "audiomode:i:0",
		"--rdp-extra", "x:s:y", "--default-tags", "");
	expect_body(&i, "{\"allowed_tags\":[],\"rdp_extra\":\"audiomode:i:0\\nx:s:y\","
			"\"default_tags\":\"\"}");
	i = PARSED("token", "add", "t", "--role", "client", "--expires", "1h");
	expect_body(&i, "{\"role\":\"client\",\"expires_at\":\"2026-12-01T00:39:57.000Z\"}");
	i = PARSED("token", "add", "t", "--role", "client", "--expires", "never");
	expect_body(&i, "{\"role\":\"client\"}");
}
END_TEST

static void expect_tags(const struct invocation *i, const char *present, const char *want)
{
	AUTO_JSON struct json_object *have = json_tokener_parse(present), *tags = NULL;
	struct failure f = {.code = CLI_DONE};

	if (!want) {
		ck_assert_int_ne(body_tags(i, have, &tags, &f), 0);
		ck_assert(f.text[0] != '\0');
		return;
	}
	ck_assert_int_eq(body_tags(i, have, &tags, &f), 0);
	if (*want)
		ck_assert_str_eq(
			json_object_to_json_string_ext(tags, JSON_C_TO_STRING_PLAIN), want);
	else
		ck_assert_ptr_null(tags);
}

START_TEST(tags_are_added_removed_replaced)
{
	struct invocation i = PARSED("node", "set", "n", "--tag", "+gpu", "--tag", "-east");

	expect_tags(&i, "[\"east\",\"big\"]", "[\"big\",\"gpu\"]");
	expect_tags(&i, "[\"east\",\"gpu\"]", "[\"gpu\"]");
	expect_tags(&i, "[]", NULL); /* there is no "east" to remove */
	i = PARSED("node", "set", "n", "--tag", "a", "--tag", "b", "--tag", "a");
	expect_tags(&i, "[\"east\"]", "[\"a\",\"b\"]");
	i = PARSED("node", "set", "n", "--tag", "");
	expect_tags(&i, "[\"east\"]", "[]");
	i = PARSED("node", "set", "n", "--tag", "+a", "--tag", "b");
	expect_tags(&i, "[\"east\"]", NULL);
	i = PARSED("node", "set", "n", "--port", "1");
	expect_tags(&i, "[\"east\"]", "");
}
END_TEST

START_TEST(paths_are_escaped)
{
	struct buf b = BUF_INIT(256);

	url_add_segment(&b, "../a b");
	url_add_segment(&b, "ts1:7");
	url_add_query(&b, "user", "CORP\\ü&x");
	url_add_query(&b, "state", "active");
	ck_assert_str_eq(buf_str(&b), "/..%2Fa%20b/ts1%3A7?user=CORP%5C%C3%BC%26x&state=active");
	buf_deinit(&b);
}
END_TEST

/* ---- settings ---- */

static char folder[64], home[128], etc[128];

static void setup(void)
{
	strcpy(folder, "/tmp/check-cli-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(home, sizeof(home), "%s/home.conf", folder);
	snprintf(etc, sizeof(etc), "%s/etc.conf", folder);
}

static void teardown(void)
{
	unlink(home);
	unlink(etc);
	rmdir(folder);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void expect_settings(const struct invocation *i, const char *env, const char *url,
	const char *path, const char *pin)
{
	struct settings s;
	struct failure f = {.code = CLI_DONE};

	ck_assert_msg(settings_load_from(i, home, etc, env, &s, &f) == 0, "%s", f.text);
	ck_assert_pstr_eq(s.url, url);
	ck_assert_pstr_eq(s.socket, path);
	ck_assert_pstr_eq(s.pin, pin);
	settings_deinit(&s);
}

START_TEST(the_strongest_layer_wins)
{
	struct invocation none = PARSED("status");
	struct invocation socket = PARSED("status", "--socket", "/opt");
	struct invocation url = PARSED("status", "--url", "https://opt");

	expect_settings(&none, NULL, NULL, SETTINGS_SOCKET, NULL);
	write_file(etc, "url = \"https://etc\"\npin = \"sha256//etc\"\n");
	expect_settings(&none, NULL, "https://etc", NULL, "sha256//etc");
	expect_settings(&none, "/env", NULL, "/env", "sha256//etc");
	write_file(home, "socket = \"/home\"\npin = \"sha256//home\"\n");
	expect_settings(&none, NULL, NULL, "/home", "sha256//home");
	expect_settings(&url, "/env", "https://opt", NULL, "sha256//home");
	expect_settings(&socket, "/env", NULL, "/opt", "sha256//home");
}
END_TEST

START_TEST(bad_settings_are_named)
{
	struct invocation none = PARSED("status");
	struct invocation both = PARSED("status", "--url", "https://a", "--socket", "/b");
	struct settings s;
	struct failure f;

	write_file(etc, "url = \"https://etc\"\ncolour = \"red\"\n");
	ck_assert_int_eq(settings_load_from(&none, home, etc, NULL, &s, &f), CLI_FAILED);
	ck_assert_ptr_nonnull(strstr(f.text, "etc.conf:2"));
	settings_deinit(&s);
	ck_assert_int_eq(settings_load_from(&both, NULL, NULL, NULL, &s, &f), CLI_USAGE);
	settings_deinit(&s);
}
END_TEST

static int open_client(const char *url, const char *pin, const char *token_file, struct failure *f)
{
	struct settings s = {.url = (char *)(uintptr_t)url,
		.pin = (char *)(uintptr_t)pin,
		.token_file = (char *)(uintptr_t)token_file};
	struct client *c = NULL;
	int r = client_new(&s, &c, f);

	client_free(c);
	return r;
}

START_TEST(tokens_are_guarded)
{
	struct failure f;

	write_file(home, "secret-token\n");
	ck_assert_int_eq(chmod(home, 0600), 0);
	ck_assert_int_eq(open_client("https://h", NULL, home, &f), 0);
	ck_assert_int_eq(open_client("http://127.0.0.1:80", NULL, home, &f), 0);
	ck_assert_int_eq(open_client("http://h", NULL, home, &f), CLI_USAGE);
	ck_assert_int_eq(open_client("http://127.0.0.1.evil", NULL, home, &f), CLI_USAGE);
	ck_assert_int_eq(open_client("https://h", "md5//x", home, &f), CLI_USAGE);
	ck_assert_int_eq(chmod(home, 0644), 0);
	ck_assert_int_eq(open_client("https://h", NULL, home, &f), CLI_FAILED);
	ck_assert_ptr_nonnull(strstr(f.hint, "chmod 600"));
	ck_assert_int_eq(chmod(home, 0600), 0);
	write_file(home, "two words");
	ck_assert_int_eq(open_client("https://h", NULL, home, &f), CLI_FAILED);
	ck_assert_ptr_null(strstr(f.text, "two"));
	write_file(home, "\n");
	ck_assert_int_eq(open_client("https://h", NULL, home, &f), CLI_FAILED);
	ck_assert_int_eq(open_client("https://h", NULL, etc, &f), CLI_FAILED);
	ck_assert_ptr_nonnull(strstr(f.text, etc));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("cli_output");
	TCase *t = tcase_create("output"), *files = tcase_create("settings");

	tcase_add_loop_test(
		t, csv_quotes_what_needs_it, 0, (int)(sizeof(csv_cases) / sizeof(csv_cases[0])));
	tcase_add_loop_test(
		t, a_cell_for_people_and_for_programs, 0, (int)(sizeof(cells) / sizeof(cells[0])));
	tcase_add_test(t, ipv6_with_a_port);
	tcase_add_test(t, values_by_their_names);
	tcase_add_test(t, control_characters_do_not_reach_the_terminal);
	tcase_add_test(t, times);
	tcase_add_test(t, bodies_have_the_types_of_the_api);
	tcase_add_test(t, tags_are_added_removed_replaced);
	tcase_add_test(t, paths_are_escaped);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(files, setup, teardown);
	tcase_add_test(files, the_strongest_layer_wins);
	tcase_add_test(files, bad_settings_are_named);
	tcase_add_test(files, tokens_are_guarded);
	suite_add_tcase(s, files);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
