/* SPDX-License-Identifier: ISC */
/* termbrokerd.conf: the shipped sample, each key, and each mistake with the words that name it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/config.h"
#include "tap.h"

static char folder[] = "/tmp/check-config-XXXXXX";
static char file[64];

static void make_folder(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/termbrokerd.conf", folder);
}

static void remove_folder(void)
{
	unlink(file);
	rmdir(folder);
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static int load(const char *text, struct config **ret, struct err *e)
{
	FILE *f = fopen(file, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	return config_load(file, NULL, ret, e);
}

static const char minimal[] = "listen { address = \"127.0.0.1\" port = 0 tls = false }\n";

START_TEST(defaults_are_those_of_the_manual)
{
	struct config *c = NULL;
	struct err e = {""};

	ck_assert_msg(load(minimal, &c, &e) == 0, "%s", e.text);
	ck_assert_int_eq(c->stale_after_ms, 45000);
	ck_assert_uint_eq(c->push_interval_s, 15);
	ck_assert_uint_eq(c->listener_count, 1);
	ck_assert_str_eq(c->socket_path, "/run/termbroker/admin.sock");
	ck_assert_str_eq(c->socket_group, "termbroker-admin");
	ck_assert_int_eq(c->journal.level, EVENT_INFO);
	ck_assert_int_eq(c->journal.language, LANGUAGE_EN);
	ck_assert(c->name[0] != '\0');
	ck_assert(!c->open_metrics);
	ck_assert_int_eq(c->request_deadline_ms, 10000);
	ck_assert_int_eq(c->idle_timeout_ms, 75000);
	ck_assert_uint_eq(c->max_connections, 4096);
	ck_assert_uint_eq(c->max_connections_per_address, 512);
	ck_assert(!c->journal.syslog);
	config_free(c);
}
END_TEST

START_TEST(every_key_is_taken)
{
	struct config *c = NULL;
	struct err e = {""};
	char key[LIMIT_USER_KEY_SIZE];

	ck_assert_msg(load("name = \"b1\"\nadvertise = \"https://b1:9\"\n"
			   "listen { address = \"::1\" port = 9 certificate = \"c\" key = \"k\" }\n"
			   "listen { address = \"127.0.0.1\" port = 10 tls = false }\n"
			   "admin_socket { path = \"/s\" group = \"\" }\n"
			   "database { connection = \"a\" migration = \"b\" }\n"
			   "journal { file = \"/j\" level = \"debug\" syslog = true }\n"
			   "log_language = \"ru\"\nlog_level = \"debug\"\n"
			   "stale_after = 20\npush_interval = 5\n"
			   "user_names { default_domain = \"corp.example\" alias \"CORP\" { domain "
			   "= \"corp.example\" } }\n"
			   "limits { connections = 7 connections_per_address = 3 request_deadline "
			   "= 2 idle_timeout = 4 }\n"
			   "open_metrics = true\n",
			      &c, &e) == 0,
		"%s", e.text);
	ck_assert_str_eq(c->name, "b1");
	ck_assert_str_eq(c->advertise, "https://b1:9");
	ck_assert_uint_eq(c->listener_count, 2);
	ck_assert_str_eq(c->listeners[0].address, "::1");
	ck_assert_uint_eq(c->listeners[0].port, 9);
	ck_assert(c->listeners[0].tls && !c->listeners[1].tls);
	ck_assert_str_eq(c->socket_path, "/s");
	ck_assert_str_eq(c->database, "a");
	ck_assert_str_eq(c->migration_database, "b");
	ck_assert_str_eq(c->journal.file, "/j");
	ck_assert_int_eq(c->journal.level, EVENT_DEBUG);
	ck_assert_int_eq(c->journal.language, LANGUAGE_RU);
	ck_assert(c->journal.syslog);
	ck_assert_int_eq(c->log_level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(c->stale_after_ms, 20000);
	ck_assert_uint_eq(c->max_connections, 7);
	ck_assert_uint_eq(c->max_connections_per_address, 3);
	ck_assert_int_eq(c->request_deadline_ms, 2000);
	ck_assert_int_eq(c->idle_timeout_ms, 4000);
	ck_assert(c->open_metrics);
	ck_assert_int_eq(user_key_make(c->user_names, "CORP\\Alice", 10, NULL, key, &e), 0);
	ck_assert_str_eq(key, "corp.example\\alice");
	config_free(c);
}
END_TEST

#define H10 "hhhhhhhhhh"
#define H100 H10 H10 H10 H10 H10 H10 H10 H10 H10 H10

static const struct {
	const char *text, *says;
} mistakes[] = {
	{"colour = 1\n", "colour"},
	{"stale_after = \"soon\"\n", ":1: "},
	{"\nstale_after = 0\n", ":2: "},
	{"stale_after = 10\n", "must be longer than push_interval"},
	{"log_language = \"de\"\n", "none of en, ru"},
	{"log_level = \"loud\"\n", "none of error"},
	{"name = \"a b\"\n", "no valid name"},
	{"journal { level = \"x\" }\n", "none of error"},
	{"listen { address = \"0.0.0.0\" tls = false }\n", "loopback addresses only"},
	{"listen { address = \"127.0.0.1\" }\n", "certificate and key must be set"},
	{"\nlisten { address = \"0.0.0.0\" tls = false }\n", ":2: "},
	{"\nlisten { address = \"127.0.0.1\" }\n", ":2: "},
	{"listen { address = \"no address\" tls = false }\n", "is no IP address"},
	{"listen { address = \"localhost\" tls = false }\n",
		":1: listen: address \"localhost\" is no IP address"},
	{"advertise = \"ftp://broker\"\n", "https://HOST"},
	{"advertise = \"broker:8443\"\n", "https://HOST"},
	{"advertise = \"https://\"\n", "https://HOST"},
	{"advertise = \"https://:8443\"\n", "https://HOST"},
	{"advertise = \"https://a b\"\n", "https://HOST"},
	{"advertise = \"https://a/path\"\n", "https://HOST"},
	{"advertise = \"https://" H100 H100 H100 "\"\n", "https://HOST"},
	{"admin_socket { path = \"/" H100 "/admin.sock\" }\n", "longer than 107 bytes"},
	{"listen { port = 70000 tls = false }\n", "port"},
	{"admin_socket { path = \"\" }\n", "nobody could ask"},
	{"user_names { alias \"C\" { domain = \"a\" } alias \"C\" { domain = \"b\" } }\n", "alias"},
	{"listen { address = \"127.0.0.1\" tls = false\n", "does not end"},
	{"stale_after = 50\nstale_after = 60\n", "stale_after"},
};

START_TEST(a_mistake_is_named)
{
	struct config *c = NULL;
	struct err e = {""};

	ck_assert_int_lt(load(mistakes[_i].text, &c, &e), 0);
	ck_assert_ptr_null(c);
	ck_assert_msg(strstr(e.text, file) != NULL, "no file in: %s", e.text);
	ck_assert_msg(strstr(e.text, mistakes[_i].says) != NULL, "wanted \"%s\" in: %s",
		mistakes[_i].says, e.text);
}
END_TEST

START_TEST(the_sample_is_valid)
{
	struct config *c = NULL;
	struct err e = {""};
	const char *source = getenv("TERMBROKER_SOURCE");
	char sample[512];

	ck_assert_ptr_nonnull(source);
	snprintf(sample, sizeof(sample), "%s/packaging/etc/termbrokerd.conf", source);
	ck_assert_msg(config_load(sample, NULL, &c, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(c->listeners[0].port, 8443);
	config_free(c);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("config");
	TCase *tc = tcase_create("config");

	tcase_add_checked_fixture(tc, make_folder, remove_folder);
	tcase_add_test(tc, defaults_are_those_of_the_manual);
	tcase_add_test(tc, every_key_is_taken);
	tcase_add_loop_test(
		tc, a_mistake_is_named, 0, (int)(sizeof(mistakes) / sizeof(mistakes[0])));
	tcase_add_test(tc, the_sample_is_valid);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return tap_run(make_suite());
}
