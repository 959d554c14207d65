/* SPDX-License-Identifier: ISC */
/*
 * termbrokerd.conf: one table of keys with their defaults and ranges, then a check of what belongs
 * together.
 */
#include "service/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/secret.h"
#include "base/text.h"
#include "service/config_private.h"
#include "wire/heartbeat.h"
#include "wire/names.h"

#define HOST_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:[]"

/* ---- the keys ---- */

int config_check_port(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 0, 65535);
}

static int check_seconds(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, 3600);
}

/* How long to wait; 0 = not at all; a week is enough. */
static int check_wait(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 0, 7 * 86400);
}

static int check_count(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, 1000000);
}

int config_check_name(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *name = cfg_opt_getstr(opt);

	if (!name || !*name || name_valid(name))
		return 0;
	cfg_error(cfg, "%s: \"%s\" is no valid name: 1 to 64 of A-Z a-z 0-9 . _ -",
		cfg_opt_name(opt), name);
	return -1;
}

static int check_log_level(cfg_t *cfg, cfg_opt_t *opt)
{
	enum log_level level;

	if (log_level_parse(cfg_opt_getstr(opt), &level) == 0)
		return 0;
	cfg_error(cfg, "%s: \"%s\" is none of error, warning, info, debug", cfg_opt_name(opt),
		cfg_opt_getstr(opt));
	return -1;
}

static int check_event_level(cfg_t *cfg, cfg_opt_t *opt)
{
	enum event_level level;

	if (event_level_parse(cfg_opt_getstr(opt), &level) == 0)
		return 0;
	cfg_error(cfg, "%s: \"%s\" is none of error, warning, info, debug", cfg_opt_name(opt),
		cfg_opt_getstr(opt));
	return -1;
}

static int check_language(cfg_t *cfg, cfg_opt_t *opt)
{
	enum event_language language;

	if (event_language_parse(cfg_opt_getstr(opt), &language) == 0)
		return 0;
	cfg_error(cfg, "%s: \"%s\" is none of en, ru", cfg_opt_name(opt), cfg_opt_getstr(opt));
	return -1;
}

/* What agents are told must be what an agent takes: scheme, host, and perhaps a port. The port that
 * may be added later fits too. */
static int check_advertise(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *url = cfg_opt_getstr(opt), *host = url ? strstr(url, "://") : NULL;
	bool ok = host && (strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0);

	if (!url || !*url)
		return 0;
	if (ok)
		ok = host[3] && host[3] != ':' &&
		     host[3 + strspn(host + 3, HOST_CHARACTERS)] == '\0' &&
		     strlen(url) + sizeof(":65535") <=
			     sizeof(((struct topology_dispatcher *)NULL)->url);
	if (ok)
		return 0;
	cfg_error(cfg, "%s: \"%.300s\" is not like https://HOST or https://HOST:PORT",
		cfg_opt_name(opt), url);
	return -1;
}

int config_check_address(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *address = cfg_opt_getstr(opt);
	unsigned char binary[sizeof(struct in6_addr)];

	if (address && (inet_pton(AF_INET, address, binary) == 1 ||
			       inet_pton(AF_INET6, address, binary) == 1))
		return 0;
	cfg_error(cfg, "%s: address \"%.80s\" is no IP address", cfg_name(cfg),
		address ? address : "");
	return -1;
}

static const char *const routes[] = {
	[RDP_TO_NODE] = "none", [RDP_BY_TOKEN] = "token", [RDP_BY_MSTS] = "msts"};

static int parse_route(const char *text, enum config_rdp_route *ret)
{
	for (unsigned i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(routes[i], text) == 0) {
			*ret = (enum config_rdp_route)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int check_route(cfg_t *cfg, cfg_opt_t *opt)
{
	enum config_rdp_route route;

	if (parse_route(cfg_opt_getstr(opt), &route) == 0)
		return 0;
	cfg_error(cfg, "%s: \"%s\" is none of none, token, msts", cfg_opt_name(opt),
		cfg_opt_getstr(opt));
	return -1;
}

/* A host name or an IP address, as clients are told it. */
static int check_host(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *host = cfg_opt_getstr(opt);
	unsigned char binary[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET6, host, binary) == 1 ||
		(strlen(host) < 254 && strspn(host, HOST_CHARACTERS) == strlen(host) &&
			!strpbrk(host, ":[]")))
		return 0;
	cfg_error(cfg, "%s: \"%.80s\" is neither a host name nor an IP address", cfg_opt_name(opt),
		host);
	return -1;
}

static int check_some_port(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, 65535);
}

static int check_lifetime(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 60, 366 * 86400);
}

static int check_socket_path(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *path = cfg_opt_getstr(opt);

	if (!path || strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return 0;
	cfg_error(cfg, "admin_socket: the path is longer than 107 bytes: \"%.160s\"", path);
	return -1;
}

static cfg_opt_t listen_opts[] = {
	CFG_STR("address", "::", CFGF_NONE),
	CFG_INT("port", 8443, CFGF_NONE),
	CFG_BOOL("tls", cfg_true, CFGF_NONE),
	CFG_STR("certificate", "", CFGF_NONE),
	CFG_STR("key", "", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t socket_opts[] = {
	CFG_STR("path", "/run/termbroker/admin.sock", CFGF_NONE),
	CFG_STR("group", "termbroker-admin", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t database_opts[] = {
	CFG_STR("connection", "dbname=termbroker user=termbrokerd", CFGF_NONE),
	CFG_STR("migration", "", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t journal_opts[] = {
	CFG_STR("file", "/var/log/termbroker/termbroker.log", CFGF_NONE),
	CFG_STR("level", "info", CFGF_NONE),
	CFG_BOOL("syslog", cfg_false, CFGF_NONE),
	CFG_STR("syslog_socket", "", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t alias_opts[] = {
	CFG_STR("domain", "", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t user_names_opts[] = {
	CFG_STR("default_domain", "", CFGF_NONE),
	CFG_SEC("alias", alias_opts, CFGF_MULTI | CFGF_TITLE),
	CFG_END(),
};
static cfg_opt_t rdp_file_opts[] = {
	CFG_STR("route", "none", CFGF_NONE),
	CFG_STR("address", "", CFGF_NONE),
	CFG_INT("port", 3389, CFGF_NONE),
	CFG_INT("lifetime", 3600, CFGF_NONE),
	CFG_STR("certificate", "", CFGF_NONE),
	CFG_STR("key", "", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t limits_opts[] = {
	CFG_INT("connections", 4096, CFGF_NONE),
	CFG_INT("connections_per_address", 512, CFGF_NONE),
	CFG_INT("request_deadline", 10, CFGF_NONE),
	CFG_INT("idle_timeout", 75, CFGF_NONE),
	CFG_INT("door_connections", 1024, CFGF_NONE),
	CFG_INT("door_connections_per_address", 64, CFGF_NONE),
	CFG_INT("door_first_packet", 10, CFGF_NONE),
	CFG_INT("door_handshake", 30, CFGF_NONE),
	CFG_INT("door_node", 5, CFGF_NONE),
	CFG_INT("door_relayed", 10000, CFGF_NONE),
	CFG_INT("door_relayed_per_address", 1000, CFGF_NONE),
	CFG_INT("door_drain", 30, CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t opts[] = {
	CFG_STR("name", "", CFGF_NONE),
	CFG_STR("advertise", "", CFGF_NONE),
	CFG_SEC("listen", listen_opts, CFGF_MULTI),
	CFG_SEC("door", NULL, CFGF_MULTI),
	CFG_SEC("admin_socket", socket_opts, CFGF_NONE),
	CFG_SEC("database", database_opts, CFGF_NONE),
	CFG_SEC("journal", journal_opts, CFGF_NONE),
	CFG_STR("log_language", "en", CFGF_NONE),
	CFG_STR("log_level", "info", CFGF_NONE),
	CFG_INT("stale_after", 45, CFGF_NONE),
	CFG_INT("push_interval", 15, CFGF_NONE),
	CFG_SEC("user_names", user_names_opts, CFGF_NONE),
	CFG_SEC("rdp_file", rdp_file_opts, CFGF_NONE),
	CFG_SEC("limits", limits_opts, CFGF_NONE),
	CFG_BOOL("open_metrics", cfg_false, CFGF_NONE),
	CFG_END(),
};

void config_validate(cfg_opt_t *table, const char *name, cfg_validate_callback_t check)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			table->validcb = check;
}

static void set_checks(void)
{
	for (cfg_opt_t *opt = opts; opt->name; opt++)
		if (strcmp(opt->name, "door") == 0)
			opt->subopts = config_door_keys();
	config_validate(opts, "name", config_check_name);
	config_validate(opts, "advertise", check_advertise);
	config_validate(opts, "log_language", check_language);
	config_validate(opts, "log_level", check_log_level);
	config_validate(opts, "stale_after", check_seconds);
	config_validate(opts, "push_interval", check_seconds);
	config_validate(listen_opts, "address", config_check_address);
	config_validate(listen_opts, "port", config_check_port);
	config_validate(socket_opts, "path", check_socket_path);
	config_validate(journal_opts, "level", check_event_level);
	config_validate(rdp_file_opts, "route", check_route);
	config_validate(rdp_file_opts, "address", check_host);
	config_validate(rdp_file_opts, "port", check_some_port);
	config_validate(rdp_file_opts, "lifetime", check_lifetime);
	config_validate(limits_opts, "connections", check_count);
	config_validate(limits_opts, "connections_per_address", check_count);
	config_validate(limits_opts, "request_deadline", check_seconds);
	config_validate(limits_opts, "idle_timeout", check_seconds);
	config_validate(limits_opts, "door_connections", check_count);
	config_validate(limits_opts, "door_connections_per_address", check_count);
	config_validate(limits_opts, "door_first_packet", check_seconds);
	config_validate(limits_opts, "door_handshake", check_seconds);
	config_validate(limits_opts, "door_node", check_seconds);
	config_validate(limits_opts, "door_relayed", check_count);
	config_validate(limits_opts, "door_relayed_per_address", check_count);
	config_validate(limits_opts, "door_drain", check_wait);
}

/* ---- from libconfuse to the struct ---- */

char *config_take(const char *text, bool *failed)
{
	char *copy = strdup(text ? text : "");

	if (!copy)
		*failed = true;
	return copy;
}

/* The file in which a section stands: the main one, or one of conf.d. */
static const char *file_of(const cfg_t *sec, const char *file)
{
	return sec->filename ? sec->filename : file;
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static int take_listener(cfg_t *sec, struct config_listener *ret, const char *file, struct err *e)
{
	bool failed = false;

	ret->address = config_take(cfg_getstr(sec, "address"), &failed);
	ret->port = (uint16_t)cfg_getint(sec, "port");
	ret->tls = cfg_getbool(sec, "tls");
	ret->certificate = config_take(cfg_getstr(sec, "certificate"), &failed);
	ret->key = config_take(cfg_getstr(sec, "key"), &failed);
	if (failed)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	if (!ret->tls && !is_loopback(ret->address))
		return err_set(e, -EINVAL,
			"%s:%d: listen: tls = false is for loopback addresses only, not for \"%s\"",
			file_of(sec, file), sec->line, ret->address);
	if (ret->tls && (!ret->certificate[0] || !ret->key[0]))
		return err_set(e, -EINVAL, "%s:%d: listen \"%s\": certificate and key must be set",
			file_of(sec, file), sec->line, ret->address);
	return 0;
}

static int take_listeners(cfg_t *cfg, struct config *c, const char *file, struct err *e)
{
	unsigned count = cfg_size(cfg, "listen");
	int r;

	if (count > CONFIG_LISTENERS_MAX)
		return err_set(
			e, -E2BIG, "%s: more than %d listen sections", file, CONFIG_LISTENERS_MAX);
	for (unsigned i = 0; i < count; i++) {
		c->listener_count++;
		r = take_listener(cfg_getnsec(cfg, "listen", i), &c->listeners[i], file, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_doors(cfg_t *cfg, struct config *c, const char *file, struct err *e)
{
	unsigned count = cfg_size(cfg, "door");
	int r = 0;

	if (count > CONFIG_DOORS_MAX)
		return err_set(e, -E2BIG, "%s: more than %d door sections", file, CONFIG_DOORS_MAX);
	for (unsigned i = 0; i < count && r == 0; i++) {
		c->door_count++;
		r = config_door_take(cfg_getnsec(cfg, "door", i), file, &c->doors[i], e);
	}
	return r;
}

static int take_user_names(cfg_t *sec, struct config *c, const char *file, struct err *e)
{
	int r;

	c->user_names = user_names_new();
	if (!c->user_names)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	r = user_names_set_default(c->user_names, cfg_getstr(sec, "default_domain"), e);
	if (r < 0)
		return err_prefix(e, r, "%s: user_names: default_domain", file);
	for (unsigned i = 0; i < cfg_size(sec, "alias"); i++) {
		cfg_t *alias = cfg_getnsec(sec, "alias", i);

		r = user_names_add_alias(
			c->user_names, cfg_title(alias), cfg_getstr(alias, "domain"), e);
		if (r < 0)
			return err_prefix(e, r, "%s:%d: alias \"%s\"", file_of(alias, file),
				alias->line, cfg_title(alias));
	}
	return 0;
}

static void take_journal(cfg_t *cfg, struct config *c, bool *failed)
{
	cfg_t *sec = cfg_getsec(cfg, "journal");

	c->journal_file = config_take(cfg_getstr(sec, "file"), failed);
	c->syslog_socket = config_take(cfg_getstr(sec, "syslog_socket"), failed);
	event_level_parse(cfg_getstr(sec, "level"), &c->journal.level);
	event_language_parse(cfg_getstr(cfg, "log_language"), &c->journal.language);
	c->journal.syslog = cfg_getbool(sec, "syslog");
	c->journal.ident = "termbrokerd";
	c->journal.file = c->journal_file;
	c->journal.syslog_socket =
		c->syslog_socket && c->syslog_socket[0] ? c->syslog_socket : NULL;
	log_level_parse(cfg_getstr(cfg, "log_level"), &c->log_level);
}

static void take_limits(cfg_t *sec, struct config *c)
{
	c->max_connections = (unsigned)cfg_getint(sec, "connections");
	c->max_connections_per_address = (unsigned)cfg_getint(sec, "connections_per_address");
	c->request_deadline_ms = cfg_getint(sec, "request_deadline") * 1000;
	c->idle_timeout_ms = cfg_getint(sec, "idle_timeout") * 1000;
	c->door_connections = (unsigned)cfg_getint(sec, "door_connections");
	c->door_connections_per_address = (unsigned)cfg_getint(sec, "door_connections_per_address");
	c->door_first_packet_ms = cfg_getint(sec, "door_first_packet") * 1000;
	c->door_handshake_ms = cfg_getint(sec, "door_handshake") * 1000;
	c->door_node_ms = cfg_getint(sec, "door_node") * 1000;
	c->door_relayed = (unsigned)cfg_getint(sec, "door_relayed");
	c->door_relayed_per_address = (unsigned)cfg_getint(sec, "door_relayed_per_address");
	c->door_drain_ms = cfg_getint(sec, "door_drain") * 1000;
}

static int take_rdp_file(cfg_t *sec, struct config *c, const char *file, struct err *e)
{
	bool failed = false;

	(void)parse_route(cfg_getstr(sec, "route"), &c->rdp_route);
	c->rdp_address = config_take(cfg_getstr(sec, "address"), &failed);
	c->rdp_port = (uint16_t)cfg_getint(sec, "port");
	c->rdp_lifetime_s = cfg_getint(sec, "lifetime");
	c->rdp_certificate = config_take(cfg_getstr(sec, "certificate"), &failed);
	c->rdp_key = config_take(cfg_getstr(sec, "key"), &failed);
	if (failed)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	if ((c->rdp_route == RDP_TO_NODE) != !c->rdp_address[0])
		return err_set(e, -EINVAL,
			"%s:%d: rdp_file: address must be set if route is token or msts, and only "
			"then",
			file_of(sec, file), sec->line);
	if (!c->rdp_certificate[0] != !c->rdp_key[0])
		return err_set(e, -EINVAL, "%s:%d: rdp_file: certificate and key belong together",
			file_of(sec, file), sec->line);
	return 0;
}

/* This host's name, as far as it may be a dispatcher's. */
static int default_name(struct config *c, const char *file, struct err *e)
{
	char host[LIMIT_NAME_SIZE] = "";
	bool failed = false;

	if (c->name[0])
		return 0;
	if (gethostname(host, sizeof(host) - 1) < 0 || !name_valid(host))
		return err_set(e, -EINVAL,
			"%s: name must be set: the host's own name is no valid one", file);
	free(c->name);
	c->name = config_take(host, &failed);
	return failed ? err_errno(e, -ENOMEM, "could not read \"%s\"", file) : 0;
}

static int convert(cfg_t *cfg, struct config *c, const char *file, struct err *e)
{
	cfg_t *database = cfg_getsec(cfg, "database"), *socket = cfg_getsec(cfg, "admin_socket");
	bool failed = false;
	int r;

	c->name = config_take(cfg_getstr(cfg, "name"), &failed);
	c->advertise = config_take(cfg_getstr(cfg, "advertise"), &failed);
	c->socket_path = config_take(cfg_getstr(socket, "path"), &failed);
	c->socket_group = config_take(cfg_getstr(socket, "group"), &failed);
	c->database = config_take(cfg_getstr(database, "connection"), &failed);
	c->migration_database = config_take(cfg_getstr(database, "migration"), &failed);
	c->stale_after_ms = cfg_getint(cfg, "stale_after") * 1000;
	c->push_interval_s = (unsigned)cfg_getint(cfg, "push_interval");
	c->open_metrics = cfg_getbool(cfg, "open_metrics");
	take_journal(cfg, c, &failed);
	take_limits(cfg_getsec(cfg, "limits"), c);
	if (failed)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	if (c->stale_after_ms <= c->push_interval_s * 1000)
		return err_set(e, -EINVAL,
			"%s: stale_after (%d s) must be longer than push_interval (%u s), or every "
			"node falls silent",
			file, (int)(c->stale_after_ms / 1000), c->push_interval_s);
	r = default_name(c, file, e);
	if (r < 0)
		return r;
	r = take_listeners(cfg, c, file, e);
	if (r < 0)
		return r;
	r = take_doors(cfg, c, file, e);
	if (r < 0)
		return r;
	r = take_rdp_file(cfg_getsec(cfg, "rdp_file"), c, file, e);
	if (r < 0)
		return r;
	if (c->listener_count == 0 && !c->socket_path[0])
		return err_set(e, -EINVAL,
			"%s: neither a listen section nor an admin_socket: nobody could ask", file);
	return take_user_names(cfg_getsec(cfg, "user_names"), c, file, e);
}

int config_load(const char *file, const char *conf_d, struct config **ret, struct err *e)
{
	struct config *c;
	cfg_t *cfg = NULL;
	int r;

	set_checks();
	r = conf_load(opts, file, conf_d, &cfg, e);
	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	r = c ? convert(cfg, c, file, e) : err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	cfg_free(cfg);
	if (r < 0) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void config_free_listeners(struct config *c)
{
	for (unsigned i = 0; i < c->listener_count; i++) {
		free(c->listeners[i].address);
		free(c->listeners[i].certificate);
		free(c->listeners[i].key);
	}
	memset(c->listeners, 0, sizeof(c->listeners));
	c->listener_count = 0;
}

void config_free_doors(struct config *c)
{
	for (unsigned i = 0; i < c->door_count; i++)
		config_door_deinit(&c->doors[i]);
	c->door_count = 0;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	config_free_listeners(c);
	config_free_doors(c);
	free(c->name);
	free(c->advertise);
	free(c->socket_path);
	free(c->socket_group);
	if (c->database)
		secret_wipe(c->database, strlen(c->database));
	free(c->database);
	if (c->migration_database)
		secret_wipe(c->migration_database, strlen(c->migration_database));
	free(c->migration_database);
	free(c->journal_file);
	free(c->syslog_socket);
	free(c->rdp_address);
	free(c->rdp_certificate);
	free(c->rdp_key);
	user_names_free(c->user_names);
	free(c);
}
