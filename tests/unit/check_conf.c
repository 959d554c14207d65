/* SPDX-License-Identifier: ISC */
/* base/conf: what is read, in which order, and that every mistake is named with file and line. */
#include "base/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tap.h"

static char folder[64], conf_path[128], dir_path[128];

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/check_conf.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(conf_path, sizeof(conf_path), "%s/main.conf", folder);
	snprintf(dir_path, sizeof(dir_path), "%s/conf.d", folder);
}

static void teardown(void)
{
	static const char *const names[] = {
		"10-a.conf", "9-b.conf", "20-c.conf", "note.txt", ".h.conf"};
	char path[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir_path, names[i]);
		unlink(path);
	}
	rmdir(dir_path);
	unlink(conf_path);
	rmdir(conf_path);
	rmdir(folder);
}

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fwrite(text, 1, len, f);
	fclose(f);
}

static void write_extra(const char *name, const char *text)
{
	char path[256];

	mkdir(dir_path, 0700);
	snprintf(path, sizeof(path), "%s/%s", dir_path, name);
	write_file(path, text, strlen(text));
}

static int check_port(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, 65535);
}

static int load(cfg_t **ret, struct err *e)
{
	static char default_urls[] = "{a, b}";
	cfg_opt_t inner[] = {CFG_INT("deep", 1, CFGF_NONE), CFG_END()};
	cfg_opt_t provider[] = {CFG_STR("tag", "none", CFGF_NONE),
		CFG_BOOL("sharing", cfg_true, CFGF_NONE), CFG_SEC("inner", inner, CFGF_NONE),
		CFG_END()};
	cfg_opt_t cluster[] = {CFG_INT("refresh", 30, CFGF_NONE), CFG_END()};
	cfg_opt_t rule[] = {CFG_INT("n", 1, CFGF_NONE), CFG_END()};
	cfg_opt_t opts[] = {CFG_INT("port", 8443, CFGF_NONE), CFG_STR("listen", "::", CFGF_NONE),
		CFG_FLOAT("factor", 1.0, CFGF_NONE), CFG_BOOL("metrics", cfg_false, CFGF_NONE),
		CFG_STR_LIST("urls", default_urls, CFGF_NONE),
		CFG_INT_LIST("sizes", NULL, CFGF_NONE),
		CFG_SEC("provider", provider, CFGF_MULTI | CFGF_TITLE),
		CFG_SEC("cluster", cluster, CFGF_NONE), CFG_SEC("rule", rule, CFGF_MULTI),
		CFG_END()};

	opts[0].validcb = check_port;
	return conf_load(opts, conf_path, dir_path, ret, e);
}

static cfg_t *load_text(const char *text)
{
	struct err e = {""};
	cfg_t *cfg = NULL;

	write_file(conf_path, text, strlen(text));
	ck_assert_msg(load(&cfg, &e) == 0, "%s", e.text);
	return cfg;
}

/* LINE 0: no line is named. WHAT must be part of the message. */
static void refuse(const char *text, size_t len, int line, const char *what)
{
	char place[200];
	struct err e = {""};
	cfg_t *cfg = NULL;

	write_file(conf_path, text, len);
	ck_assert_msg(load(&cfg, &e) < 0, "accepted: %s", text);
	ck_assert_ptr_null(cfg);
	if (line)
		snprintf(place, sizeof(place), "%s:%d: ", conf_path, line);
	else
		snprintf(place, sizeof(place), "%s", conf_path);
	ck_assert_msg(strncmp(e.text, place, strlen(place)) == 0, "%s", e.text);
	ck_assert_msg(strstr(e.text, what) != NULL, "\"%s\" is not in: %s", what, e.text);
	ck_assert_msg(strstr(e.text, "end-of-file") == NULL, "%s", e.text);
}

START_TEST(defaults_come_from_the_table)
{
	cfg_t *cfg = load_text("");

	ck_assert_int_eq(cfg_getint(cfg, "port"), 8443);
	ck_assert_str_eq(cfg_getstr(cfg, "listen"), "::");
	ck_assert_uint_eq(cfg_size(cfg, "urls"), 2);
	ck_assert_uint_eq(cfg_size(cfg, "provider"), 0);
	ck_assert_int_eq(cfg_getint(cfg_getsec(cfg, "cluster"), "refresh"), 30);
	cfg_free(cfg);
}
END_TEST

START_TEST(reads_every_kind)
{
	cfg_t *cfg = load_text(
		"# a comment\nport = 443 // another\nlisten = \"*:3389\"\n/* and\none */\n"
		"factor = 2.5e-1\nmetrics = on\nurls = {https://a:1/x, 'b c', d}\n"
		"sizes = {1, -2, 0}\nprovider \"office one\" { tag = gpu sharing = no\n"
		"inner { deep = 3 } }\nprovider two {}\ncluster { refresh = 0 }\n"
		"rule { n = 1 }\nrule { n = 2 }");
	cfg_t *office = cfg_gettsec(cfg, "provider", "office one");

	ck_assert_int_eq(cfg_getint(cfg, "port"), 443);
	ck_assert_str_eq(cfg_getstr(cfg, "listen"), "*:3389");
	ck_assert(cfg_getfloat(cfg, "factor") == 0.25);
	ck_assert_int_eq(cfg_getbool(cfg, "metrics"), cfg_true);
	ck_assert_uint_eq(cfg_size(cfg, "urls"), 3);
	ck_assert_str_eq(cfg_getnstr(cfg, "urls", 0), "https://a:1/x");
	ck_assert_int_eq(cfg_getnint(cfg, "sizes", 1), -2);
	ck_assert_str_eq(cfg_getstr(office, "tag"), "gpu");
	ck_assert_int_eq(cfg_getbool(office, "sharing"), cfg_false);
	ck_assert_int_eq(cfg_getint(cfg_getsec(office, "inner"), "deep"), 3);
	ck_assert_str_eq(cfg_getstr(cfg_gettsec(cfg, "provider", "two"), "tag"), "none");
	ck_assert_int_eq(cfg_getint(cfg_getsec(cfg, "cluster"), "refresh"), 0);
	ck_assert_uint_eq(cfg_size(cfg, "rule"), 2);
	ck_assert_int_eq(cfg_getint(cfg_getnsec(cfg, "rule", 1), "n"), 2);
	cfg_free(cfg);
}
END_TEST

START_TEST(later_files_win_in_the_order_of_their_names)
{
	cfg_t *cfg;

	write_extra("20-c.conf", "port = 20\nprovider three {}\n");
	write_extra("10-a.conf",
		"port = 10\nurls = {z}\nprovider two { tag = x }\ncluster { refresh = 5 }\n");
	write_extra("9-b.conf", "listen = nine\n");
	write_extra("note.txt", "nonsense");
	write_extra(".h.conf", "nonsense");
	cfg = load_text("port = 1\nurls = {a, b, c}\nprovider one {}\nlisten = main\n");
	ck_assert_int_eq(cfg_getint(cfg, "port"), 20);
	ck_assert_str_eq(cfg_getstr(cfg, "listen"), "nine");
	ck_assert_uint_eq(cfg_size(cfg, "urls"), 1);
	ck_assert_uint_eq(cfg_size(cfg, "provider"), 3);
	ck_assert_str_eq(cfg_getstr(cfg_gettsec(cfg, "provider", "two"), "tag"), "x");
	ck_assert_int_eq(cfg_getint(cfg_getsec(cfg, "cluster"), "refresh"), 5);
	cfg_free(cfg);
}
END_TEST

START_TEST(an_error_in_a_later_file_names_that_file)
{
	struct err e = {""};
	cfg_t *cfg = NULL;

	write_file(conf_path, "port = 1\n", 9);
	write_extra("10-a.conf", "\n\ncluster {\n prot = 10\n}\n");
	ck_assert_int_eq(load(&cfg, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, "/conf.d/10-a.conf:4: ") != NULL, "%s", e.text);
	ck_assert_msg(strstr(e.text, "prot") != NULL, "%s", e.text);
}
END_TEST

static const struct {
	const char *text;
	int line;
	const char *what;
} mistakes[] = {
	{"port = 1\nprot = 2\n", 2, "no such option 'prot'"},
	{"cluster {\n refrsh = 2\n}\n", 2, "no such option 'refrsh'"},
	{"port = many\n", 1, "\"port\" must be a decimal integer, not \"many\""},
	{"port = 1.5\n", 1, "\"port\" must be a decimal integer"},
	{"port = 010\n", 1, "\"port\" must be a decimal integer, not \"010\""},
	{"port = \"010\"\n", 1, "\"port\" must be a decimal integer"},
	{"port = 0x10\n", 1, "\"port\" must be a decimal integer"},
	{"port = \"\"\n", 1, "\"port\" must be a decimal integer"},
	{"port = 99999999999999999999\n", 1, "out of range"},
	{"\nport = 0\n", 2, "\"port\" must be within 1 and 65535, not 0"},
	{"port = 65536\n", 1, "\"port\" must be within 1 and 65535, not 65536"},
	{"sizes = {1, 2x}\n", 1, "\"sizes\" must be a decimal integer, not \"2x\""},
	{"factor = nan\n", 1, "\"factor\" must be a decimal number, not \"nan\""},
	{"factor = inf\n", 1, "\"factor\" must be a decimal number"},
	{"factor = 1e999\n", 1, "\"factor\" must be a decimal number"},
	{"factor = 0x1p3\n", 1, "\"factor\" must be a decimal number"},
	{"factor = 1.\n", 1, "\"factor\" must be a decimal number"},
	{"metrics = perhaps\n", 1, "\"metrics\" must be true or false, not \"perhaps\""},
	{"port = 1\n\nport = 2\n", 3, "\"port\" is set twice"},
	{"urls = {a}\nurls = {b}\n", 2, "\"urls\" is set twice"},
	{"cluster { refresh = 1 }\ncluster { refresh = 2 }\n", 2, "\"refresh\" is set twice"},
	{"provider a { tag = x tag = y }\n", 1, "\"tag\" is set twice"},
	{"provider a {}\nprovider a {}\n", 2, "two sections \"provider\" with the title \"a\""},
	{"cluster {\n refresh = 1\n", 1, "the section \"cluster\" that begins here does not end"},
	{"provider a {\n inner {\n deep = 1\n}\n", 1, "the section \"provider\" that begins here"},
	{"urls = {a,\n", 1, "the list that begins here does not end"},
	{"\nlisten = \"abc\n", 2, "the string that begins here does not end"},
	{"listen = 'abc\n\n", 1, "the string that begins here does not end"},
	{"/* abc\n", 1, "the comment that begins here does not end"},
	{"listen = ${HOME}\n", 1, "\"${\" would take a value from the environment"},
	{"listen = \"a${HOME}\"\n", 1, "\"${\" would take a value from the environment"},
	{"listen = a${HOME}\n", 1, "\"${\" would take a value from the environment"},
	{"listen = *:3389\n", 1, "must stand in quotes"},
	{"port = +3\n", 1, "must stand in quotes"},
	{"listen = a\x01z\n", 1, "control character"},
	{"listen = a\xffz\n", 0, "not UTF-8"},
	{"port\n", 0, ""},
	{"port =\n", 0, ""},
	{"}\n", 1, "unexpected closing brace"},
	{"provider {}\n", 1, "missing title"},
	{"port = {1}\n", 1, "unexpected token"},
	{"port + 1\n", 1, ""},
	{"= 3\n", 1, "unexpected token"},
	{"include(\"/etc/passwd\")\n", 1, "no such option 'include'"},
};

START_TEST(mistakes_are_named)
{
	refuse(mistakes[_i].text, strlen(mistakes[_i].text), mistakes[_i].line, mistakes[_i].what);
}
END_TEST

START_TEST(single_quotes_keep_a_dollar)
{
	cfg_t *cfg = load_text("listen = '${HOME}'\n");

	ck_assert_str_eq(cfg_getstr(cfg, "listen"), "${HOME}");
	cfg_free(cfg);
}
END_TEST

START_TEST(a_nul_byte_is_refused)
{
	refuse("port = 1\n\0port = 2\n", 19, 0, "not UTF-8");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	struct err e = {""};
	cfg_t *cfg = NULL;

	ck_assert_int_eq(load(&cfg, &e), -ENOENT);
	ck_assert_msg(strstr(e.text, "main.conf\": No such file") != NULL, "%s", e.text);
	mkdir(conf_path, 0700);
	ck_assert_int_eq(load(&cfg, &e), -EISDIR);
	ck_assert_msg(strstr(e.text, "main.conf\": Is a directory") != NULL, "%s", e.text);
	rmdir(conf_path);
	ck_assert_int_eq(mkfifo(conf_path, 0600), 0);
	ck_assert_int_eq(load(&cfg, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, "not a regular file") != NULL, "%s", e.text);
	ck_assert_ptr_null(cfg);
}
END_TEST

START_TEST(a_file_has_a_size_limit)
{
	size_t len = 1024 * 1024 + 1;
	char *big = malloc(len);
	struct err e = {""};
	cfg_t *cfg = NULL;

	ck_assert_ptr_nonnull(big);
	memset(big, ' ', len);
	write_file(conf_path, big, len - 1);
	ck_assert_msg(load(&cfg, &e) == 0, "%s", e.text);
	cfg_free(cfg);
	cfg = NULL;
	write_file(conf_path, big, len);
	ck_assert_int_eq(load(&cfg, &e), -EFBIG);
	free(big);
}
END_TEST

START_TEST(a_failed_load_leaves_the_next_alone)
{
	cfg_t *cfg;

	refuse("cluster { refresh = \"x\n", 22, 1, "does not end");
	refuse("port = 1 2 3 {", 14, 0, "");
	cfg = load_text("port = 7\n");
	ck_assert_int_eq(cfg_getint(cfg, "port"), 7);
	cfg_free(cfg);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("conf");
	TCase *t = tcase_create("conf");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, defaults_come_from_the_table);
	tcase_add_test(t, reads_every_kind);
	tcase_add_test(t, later_files_win_in_the_order_of_their_names);
	tcase_add_test(t, an_error_in_a_later_file_names_that_file);
	tcase_add_loop_test(t, mistakes_are_named, 0, sizeof(mistakes) / sizeof(*mistakes));
	tcase_add_test(t, single_quotes_keep_a_dollar);
	tcase_add_test(t, a_nul_byte_is_refused);
	tcase_add_test(t, what_is_no_file_is_refused);
	tcase_add_test(t, a_file_has_a_size_limit);
	tcase_add_test(t, a_failed_load_leaves_the_next_alone);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
