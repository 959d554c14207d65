/* SPDX-License-Identifier: ISC */
/* agent.conf: every fault names file and line; the sample that is shipped is valid. */
#include <errno.h>

#include "agent/config.h"
#include "check_agent_tree.h"
#include "lib/tap.h"

static int load_text(const char *text, struct config **ret, struct err *e)
{
	char *dir = tree_new(), *path = tree_path(dir, "agent.conf");
	int error;

	tree_put(dir, "agent.conf", text);
	error = config_load(path, ret, e);
	free(path);
	tree_end(dir);
	return error;
}

START_TEST(all_keys)
{
	struct config *c = NULL;
	struct err e;

	ck_assert_msg(
		load_text("node = \"rdp-1\"\n"
			  "dispatchers = {\"https://d1.example:8443\", "
			  "\"https://[2001:db8::1]:8443/\"}\n"
			  "token_file = \"/t\"\nca_file = \"/c\"\n"
			  "pin = \"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n"
			  "collect_interval = 2\npush_interval = 3\ncache_size = 4\nport = 3390\n"
			  "state_dir = \"/s\"\nload_script = \"/l\"\nroot = \"/r\"\n"
			  "text_sessions = true\nlog_level = \"debug\"\n"
			  "cluster { refresh_interval = 0 }\n",
			&c, &e) == 0,
		"%s", e.text);
	ck_assert_str_eq(c->node, "rdp-1");
	ck_assert_uint_eq(c->dispatcher_count, 2);
	ck_assert_str_eq(c->dispatchers[0], "https://d1.example:8443");
	ck_assert_str_eq(c->dispatchers[1], "https://[2001:db8::1]:8443");
	ck_assert_str_eq(c->pins, "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	ck_assert_uint_eq(c->collect_interval, 2);
	ck_assert_uint_eq(c->push_interval, 3);
	ck_assert_uint_eq(c->cache_size, 4);
	ck_assert_uint_eq(c->port, 3390);
	ck_assert_str_eq(c->load_script, "/l");
	ck_assert_str_eq(c->root, "/r");
	ck_assert(c->text_sessions);
	ck_assert_uint_eq(c->refresh_interval, 0);
	ck_assert_int_eq(c->log_level, LOG_LEVEL_DEBUG);
	config_free(c);
}
END_TEST

START_TEST(defaults)
{
	struct config *c = NULL;
	struct err e;

	ck_assert_int_eq(load_text("node = \"n\"\n", &c, &e), 0);
	ck_assert_uint_eq(c->collect_interval, 5);
	ck_assert_uint_eq(c->push_interval, 15);
	ck_assert_uint_eq(c->cache_size, 12);
	ck_assert_uint_eq(c->port, 3389);
	ck_assert_uint_eq(c->refresh_interval, 30);
	ck_assert_str_eq(c->state_dir, "/var/lib/termbroker-agent");
	ck_assert_ptr_null(c->ca_file);
	ck_assert_ptr_null(c->root);
	ck_assert_ptr_null(c->load_script);
	ck_assert_str_eq(c->pins, "");
	ck_assert_int_eq(config_load_files(c, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "no dispatcher is set"));
	config_free(c);
}
END_TEST

static const struct {
	const char *text, *says;
} bad[] = {
	{"\nsurprise = 1\n", "agent.conf:2: "},
	{"node = \"a b\"\n", "agent.conf:1: "},
	{"node = \"-a\"\n", "is not a name"},
	{"\n\ncollect_interval = 0\n", "agent.conf:3: "},
	{"collect_interval = \"x\"\n", "agent.conf:1: "},
	{"push_interval = 3601\n", "must be within 1 and 3600"},
	{"cache_size = 1001\n", "must be within 1 and 1000"},
	{"port = 65536\n", "must be within 1 and 65535"},
	{"port = 0\n", "must be within 1 and 65535"},
	{"cluster { refresh_interval = -1 }\n", "must be within 0 and 86400"},
	{"cluster {\n refresh_interval = 5\n", "cluster"},
	{"dispatchers = {\"http://a:1\"}\n", "is not of the form"},
	{"dispatchers = {\"https://a:1/path\"}\n", "is not of the form"},
	{"dispatchers = {\"https://a:99999\"}\n", "is not of the form"},
	{"dispatchers = {\"https://user@a:1\"}\n", "is not of the form"},
	{"dispatchers = {\"https://\"}\n", "is not of the form"},
	{"dispatchers = {\"https://2001:db8::1:8443\"}\n", "is not of the form"},
	{"dispatchers = {\"https://[a]:1\"}\n", "is not of the form"},
	{"pin = \"AAAA\"\n", "sha256//"},
	{"pin = {\"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA;=\"}\n", "sha256//"},
	{"token_file = \"relative\"\n", "must be an absolute path"},
	{"state_dir = \"\"\n", "must be an absolute path"},
	{"log_level = \"loud\"\n", "must be error, warning, info or debug"},
	{"text_sessions = 7\n", "agent.conf:1: "},
};

START_TEST(faults)
{
	struct config *c = NULL;
	struct err e;

	ck_assert_int_lt(load_text(bad[_i].text, &c, &e), 0);
	ck_assert_ptr_null(c);
	ck_assert_msg(strstr(e.text, bad[_i].says) != NULL, "%s", e.text);
	ck_assert_msg(strstr(e.text, "agent.conf") != NULL, "%s", e.text);
}
END_TEST

START_TEST(later_files_win)
{
	char *dir = tree_new(), *path = tree_path(dir, "agent.conf");
	struct config *c = NULL;
	struct err e;

	tree_put(dir, "agent.conf", "node = \"a\"\nport = 1\n");
	tree_put(dir, "agent.conf.d/10-x.conf", "port = 2\n");
	tree_put(dir, "agent.conf.d/20-y.conf", "node = \"b\"\n");
	ck_assert_msg(config_load(path, &c, &e) == 0, "%s", e.text);
	ck_assert_str_eq(c->node, "b");
	ck_assert_uint_eq(c->port, 2);
	config_free(c);
	c = NULL;
	tree_put(dir, "agent.conf.d/20-y.conf", "node = 1 1\n");
	ck_assert_int_lt(config_load(path, &c, &e), 0);
	ck_assert_msg(strstr(e.text, "20-y.conf:1") != NULL, "%s", e.text);
	free(path);
	tree_end(dir);
}
END_TEST

START_TEST(token_files)
{
	char *dir = tree_new(), *path = tree_path(dir, "token");
	struct config *c = NULL;
	char text[256];
	struct err e;

	snprintf(text, sizeof(text),
		"node = \"n\"\ndispatchers = {\"https://a:1\"}\ntoken_file = \"%s\"\n", path);
	ck_assert_int_eq(load_text(text, &c, &e), 0);
	ck_assert_int_eq(config_load_files(c, &e), -ENOENT);
	tree_put(dir, "token", "secret-one\r\n");
	ck_assert_int_eq(chmod(path, 0640), 0);
	ck_assert_msg(config_load_files(c, &e) == 0, "%s", e.text);
	ck_assert_str_eq(c->token, "secret-one");
	ck_assert_int_eq(chmod(path, 0644), 0);
	ck_assert_int_eq(config_load_files(c, &e), -EPERM);
	ck_assert_ptr_null(strstr(e.text, "secret-one"));
	ck_assert_int_eq(chmod(path, 0600), 0);
	tree_put(dir, "token", "a\nb\n");
	ck_assert_int_eq(config_load_files(c, &e), -EINVAL);
	tree_put(dir, "token", "\n");
	ck_assert_int_eq(config_load_files(c, &e), -EINVAL);
	tree_remove(dir, "token");
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(config_load_files(c, &e), -EINVAL);
	config_free(c);
	free(path);
	tree_end(dir);
}
END_TEST

START_TEST(the_shipped_sample_is_valid)
{
	struct config *c = NULL;
	struct err e;

	ck_assert_msg(config_load(SAMPLE_CONF, &c, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(c->dispatcher_count, 1);
	ck_assert_uint_eq(c->collect_interval, 5);
	config_free(c);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("agent_config");
	TCase *c = tcase_create("all");

	suite_add_tcase(s, c);
	tcase_add_test(c, all_keys);
	tcase_add_test(c, defaults);
	tcase_add_loop_test(c, faults, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(c, later_files_win);
	tcase_add_test(c, token_files);
	tcase_add_test(c, the_shipped_sample_is_valid);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
