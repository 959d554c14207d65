/* SPDX-License-Identifier: ISC */
/*
 * One table of keys for libconfuse, checks that need one value only beside it, and one walk that
 * copies into struct config. Nothing outside this file sees libconfuse.
 */
#include "agent/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/window.h"
#include "base/cleanup.h"
#include "base/conf.h"
#include "base/secret.h"
#include "base/text.h"
#include "wire/names.h"

#define TOKEN_MAX 512
#define PIN_LENGTH (8 + 44) /* "sha256//" and 32 bytes in base64 */

bool config_url_valid(const char *text, char ret[CONFIG_URL_SIZE])
{
	char host[LIMIT_ADDRESS_SIZE];
	const char *p = text + 8, *end;
	size_t len = strlen(text);
	uint64_t port;

	if (strncmp(text, "https://", 8) != 0 || len >= CONFIG_URL_SIZE)
		return false;
	if (*p == '[') {
		p++;
		end = strchr(p, ']');
	} else {
		end = p + strcspn(p, ":/");
	}
	if (!end || (size_t)(end - p) >= sizeof(host))
		return false;
	memcpy(host, p, (size_t)(end - p));
	host[end - p] = '\0';
	if (!address_valid(host) || (text[8] == '[') != (strchr(host, ':') != NULL))
		return false;
	if (*end == ']')
		end++;
	memcpy(ret, text, len + 1);
	if (len > 8 && ret[len - 1] == '/')
		ret[len - 1] = '\0';
	end = ret + (end - text);
	if (*end == '\0')
		return true;
	return *end == ':' && text_parse_u64(end + 1, 1, 65535, &port) == 0;
}

static bool pin_valid(const char *pin)
{
	if (strncmp(pin, "sha256//", 8) != 0 || strlen(pin) != PIN_LENGTH)
		return false;
	return strspn(pin + 8,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") == 43 &&
	       pin[PIN_LENGTH - 1] == '=';
}

static int check_dispatchers(cfg_t *cfg, cfg_opt_t *opt)
{
	char url[CONFIG_URL_SIZE];

	if (cfg_opt_size(opt) > LIMIT_DISPATCHERS) {
		cfg_error(cfg, "\"dispatchers\" has more than %d entries", LIMIT_DISPATCHERS);
		return -1;
	}
	for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
		if (config_url_valid(cfg_opt_getnstr(opt, i), url))
			continue;
		cfg_error(cfg, "\"dispatchers\": \"%s\" is not of the form \"https://host:port\"",
			cfg_opt_getnstr(opt, i));
		return -1;
	}
	return 0;
}

static int check_pins(cfg_t *cfg, cfg_opt_t *opt)
{
	if (cfg_opt_size(opt) * (PIN_LENGTH + 1) > CONFIG_PINS_SIZE) {
		cfg_error(cfg, "\"pin\" has too many entries");
		return -1;
	}
	for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
		if (pin_valid(cfg_opt_getnstr(opt, i)))
			continue;
		cfg_error(cfg, "\"pin\" must be \"sha256//\" and 44 characters of base64, as "
			       "\"termbroker node "
			       "add\" prints it");
		return -1;
	}
	return 0;
}

static int check_node(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *v = cfg_opt_getstr(opt);

	if (!v || name_valid(v))
		return 0;
	cfg_error(cfg,
		"\"node\": \"%s\" is not a name (letters, digits, '.', '_', '-', at most 64)", v);
	return -1;
}

static int check_path(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *v = cfg_opt_getstr(opt);

	if (!v || v[0] == '/')
		return 0;
	cfg_error(cfg, "\"%s\" must be an absolute path, not \"%s\"", opt->name, v);
	return -1;
}

static int check_level(cfg_t *cfg, cfg_opt_t *opt)
{
	enum log_level level;

	if (log_level_parse(cfg_opt_getstr(opt), &level) == 0)
		return 0;
	cfg_error(cfg, "\"log_level\" must be error, warning, info or debug, not \"%s\"",
		cfg_opt_getstr(opt));
	return -1;
}

static int check_interval(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, 3600);
}

static int check_refresh(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 0, 86400);
}

static int check_cache(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, WINDOW_SAMPLES_MAX);
}

static int check_port(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 1, 65535);
}

/* 0: any that is free, for tests */
static int check_any_port(cfg_t *cfg, cfg_opt_t *opt)
{
	return conf_check_range(cfg, opt, 0, 65535);
}

static int check_address(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *v = cfg_opt_getstr(opt);
	unsigned char binary[sizeof(struct in6_addr)];

	if (!v || !v[0] || inet_pton(AF_INET, v, binary) == 1 ||
		inet_pton(AF_INET6, v, binary) == 1)
		return 0;
	cfg_error(cfg, "\"agent_check\": address \"%.80s\" is no IP address", v);
	return -1;
}

/* libconfuse hands out the last "cluster" of a file; its validators are set by path. */
static void set_checks(cfg_opt_t *opts)
{
	static const struct {
		const char *key;
		cfg_validate_callback_t check;
	} checks[] = {
		{"node", check_node},
		{"dispatchers", check_dispatchers},
		{"pin", check_pins},
		{"token_file", check_path},
		{"ca_file", check_path},
		{"state_dir", check_path},
		{"load_script", check_path},
		{"root", check_path},
		{"collect_interval", check_interval},
		{"push_interval", check_interval},
		{"cache_size", check_cache},
		{"port", check_port},
		{"log_level", check_level},
		{"refresh_interval", check_refresh},
	};

	for (; opts->name; opts++)
		for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
			if (strcmp(opts->name, checks[i].key) == 0)
				opts->validcb = checks[i].check;
}

static char *copy_string(cfg_t *cfg, const char *key, bool *failed)
{
	const char *v = cfg_getstr(cfg, key);
	char *copy = v && v[0] ? strdup(v) : NULL;

	if (v && v[0] && !copy)
		*failed = true;
	return copy;
}

static void copy_lists(struct config *c, cfg_t *cfg)
{
	size_t used = 0;

	c->dispatcher_count = cfg_size(cfg, "dispatchers");
	for (unsigned i = 0; i < c->dispatcher_count; i++)
		config_url_valid(cfg_getnstr(cfg, "dispatchers", i), c->dispatchers[i]);
	for (unsigned i = 0; i < cfg_size(cfg, "pin"); i++)
		used += (size_t)snprintf(c->pins + used, sizeof(c->pins) - used, "%s%s",
			i ? ";" : "", cfg_getnstr(cfg, "pin", i));
}

static int copy_node(struct config *c, cfg_t *cfg, struct err *e)
{
	char host[LIMIT_NAME_SIZE] = "";
	const char *node = cfg_getstr(cfg, "node");

	if (node && node[0])
		return text_copy(c->node, sizeof(c->node), node);
	if (gethostname(host, sizeof(host) - 1) != 0 || !name_valid(host))
		return err_set(e, -EINVAL,
			"\"node\" is not set, and the host name \"%s\" cannot be a node's name",
			host);
	return text_copy(c->node, sizeof(c->node), host);
}

static int from_confuse(cfg_t *cfg, struct config **ret, struct err *e)
{
	struct config *c = calloc(1, sizeof(*c));
	bool failed = false;
	int error;

	if (!c)
		return err_errno(e, -ENOMEM, "could not take over the configuration");
	copy_lists(c, cfg);
	c->token_file = copy_string(cfg, "token_file", &failed);
	c->ca_file = copy_string(cfg, "ca_file", &failed);
	c->state_dir = copy_string(cfg, "state_dir", &failed);
	c->load_script = copy_string(cfg, "load_script", &failed);
	c->root = copy_string(cfg, "root", &failed);
	c->collect_interval = (uint32_t)cfg_getint(cfg, "collect_interval");
	c->push_interval = (uint32_t)cfg_getint(cfg, "push_interval");
	c->cache_size = (uint32_t)cfg_getint(cfg, "cache_size");
	c->port = (uint16_t)cfg_getint(cfg, "port");
	c->text_sessions = cfg_getbool(cfg, "text_sessions");
	c->refresh_interval = (uint32_t)cfg_getint(cfg_getsec(cfg, "cluster"), "refresh_interval");
	log_level_parse(cfg_getstr(cfg, "log_level"), &c->log_level);
	c->check_address = copy_string(cfg_getsec(cfg, "agent_check"), "address", &failed);
	c->check_port = (uint16_t)cfg_getint(cfg_getsec(cfg, "agent_check"), "port");
	error = failed ? err_errno(e, -ENOMEM, "could not take over the configuration")
		       : copy_node(c, cfg, e);
	if (error) {
		config_free(c);
		return error;
	}
	*ret = c;
	return 0;
}

static int load(const char *path, struct config **ret, struct err *e)
{
	cfg_opt_t cluster[] = {
		CFG_INT("refresh_interval", 30, CFGF_NONE),
		CFG_END(),
	};
	cfg_opt_t agent_check[] = {
		CFG_STR("address", NULL, CFGF_NONE),
		CFG_INT("port", 3390, CFGF_NONE),
		CFG_END(),
	};
	cfg_opt_t opts[] = {
		CFG_STR("node", NULL, CFGF_NONE),
		CFG_STR_LIST("dispatchers", NULL, CFGF_NONE),
		CFG_STR("token_file", "/etc/termbroker/agent.token", CFGF_NONE),
		CFG_STR("ca_file", NULL, CFGF_NONE),
		CFG_STR_LIST("pin", NULL, CFGF_NONE),
		CFG_INT("collect_interval", 5, CFGF_NONE),
		CFG_INT("push_interval", 15, CFGF_NONE),
		CFG_INT("cache_size", 12, CFGF_NONE),
		CFG_INT("port", 3389, CFGF_NONE),
		CFG_STR("state_dir", "/var/lib/termbroker-agent", CFGF_NONE),
		CFG_STR("load_script", NULL, CFGF_NONE),
		CFG_STR("root", NULL, CFGF_NONE),
		CFG_BOOL("text_sessions", cfg_false, CFGF_NONE),
		CFG_STR("log_level", "info", CFGF_NONE),
		CFG_SEC("cluster", cluster, CFGF_NONE),
		CFG_SEC("agent_check", agent_check, CFGF_NONE),
		CFG_END(),
	};
	CLEANUP(freep) char *dir = NULL;
	cfg_t *cfg = NULL;
	int error;

	set_checks(opts);
	set_checks(cluster);
	agent_check[0].validcb = check_address;
	agent_check[1].validcb = check_any_port;
	if (!path) {
		cfg = cfg_init(opts, CFGF_NONE);
		if (!cfg)
			return err_errno(e, -ENOMEM, "could not take over the configuration");
	} else {
		if (asprintf(&dir, "%s.d", path) < 0) {
			dir = NULL;
			return err_errno(e, -ENOMEM, "could not read \"%s\"", path);
		}
		error = conf_load(opts, path, dir, &cfg, e);
		if (error)
			return error;
	}
	error = from_confuse(cfg, ret, e);
	cfg_free(cfg);
	return error && path ? err_prefix(e, error, "%s", path) : error;
}

int config_load(const char *path, struct config **ret, struct err *e)
{
	return load(path, ret, e);
}

int config_default(struct config **ret, struct err *e)
{
	return load(NULL, ret, e);
}

static void drop_token(struct config *c)
{
	if (c->token)
		secret_wipe(c->token, strlen(c->token));
	free(c->token);
	c->token = NULL;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	drop_token(c);
	free(c->token_file);
	free(c->ca_file);
	free(c->state_dir);
	free(c->load_script);
	free(c->root);
	free(c->check_address);
	free(c);
}

/* The token is one line of visible ASCII, so that nothing in it can become a header of its own. */
static int take_token(struct config *c, const char *data, size_t len, struct err *e)
{
	while (len > 0 && (data[len - 1] == '\n' || data[len - 1] == '\r' || data[len - 1] == ' '))
		len--;
	if (len == 0)
		return err_set(e, -EINVAL, "token file \"%s\" is empty", c->token_file);
	for (size_t i = 0; i < len; i++)
		if (data[i] <= 0x20 || data[i] >= 0x7f)
			return err_set(e, -EINVAL,
				"token file \"%s\" must hold one line with the token and nothing "
				"else",
				c->token_file);
	drop_token(c);
	c->token = strndup(data, len);
	return c->token ? 0 : err_errno(e, -ENOMEM, "could not read \"%s\"", c->token_file);
}

static int load_token(struct config *c, struct err *e)
{
	CLEANUP(closep) int fd = open(c->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char data[TOKEN_MAX];
	struct stat st;
	ssize_t n;
	int error;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_errno(e, -errno, "could not read token file \"%s\"", c->token_file);
	if (!S_ISREG(st.st_mode))
		return err_set(
			e, -EINVAL, "token file \"%s\" is not a regular file", c->token_file);
	if (st.st_mode & (S_IROTH | S_IWOTH))
		return err_set(e, -EPERM,
			"token file \"%s\" can be read or written by everyone; run: chmod 0640 "
			"\"%s\"",
			c->token_file, c->token_file);
	n = read(fd, data, sizeof(data));
	if (n < 0)
		return err_errno(e, -errno, "could not read token file \"%s\"", c->token_file);
	error = (size_t)n == sizeof(data)
			? err_set(e, -EFBIG, "token file \"%s\" is too long", c->token_file)
			: take_token(c, data, (size_t)n, e);
	secret_wipe(data, sizeof(data));
	return error;
}

int config_load_files(struct config *c, struct err *e)
{
	if (c->dispatcher_count == 0)
		return err_set(e, -EINVAL,
			"no dispatcher is set: \"dispatchers\" needs one \"https://host:port\" at "
			"least");
	if (!c->token_file)
		return err_set(e, -EINVAL, "\"token_file\" is not set");
	if (c->ca_file && access(c->ca_file, R_OK) != 0)
		return err_errno(e, -errno, "could not read CA file \"%s\"", c->ca_file);
	if (c->load_script && access(c->load_script, X_OK) != 0)
		return err_errno(e, -errno, "could not run load script \"%s\"", c->load_script);
	return load_token(c, e);
}
