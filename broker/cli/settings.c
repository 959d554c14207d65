/* SPDX-License-Identifier: ISC */
/* Layers are merged from the strongest to the weakest: a layer fills only what is still unset. */
#include "cli/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/conf.h"
#include "base/text.h"

#define SYSTEM_FILE "/etc/termbroker/cli.conf"
#define PATH_MAX_BYTES 4096

struct layer {
	const char *name; /* for messages */
	const char *url, *socket, *ca_file, *pin, *token_file;
};

void settings_deinit(struct settings *s)
{
	free(s->url);
	free(s->socket);
	free(s->ca_file);
	free(s->pin);
	free(s->token_file);
	*s = (struct settings){0};
}

static int fill(char **member, const char *value, struct failure *f)
{
	if (*member || !value || !*value)
		return 0;
	*member = text_dup(value);
	return *member ? 0 : fail(f, CLI_FAILED, "out of memory");
}

static int merge(struct settings *s, const struct layer *l, struct failure *f)
{
	bool url = l->url && *l->url, path = l->socket && *l->socket;
	int r = 0;

	if (url && path)
		return fail(f, CLI_USAGE, "%s: both a url and a socket are named: which?", l->name);
	if (!s->url && !s->socket) {
		r = fill(&s->url, l->url, f);
		if (r == 0)
			r = fill(&s->socket, l->socket, f);
	}
	if (r == 0)
		r = fill(&s->ca_file, l->ca_file, f);
	if (r == 0)
		r = fill(&s->pin, l->pin, f);
	if (r == 0)
		r = fill(&s->token_file, l->token_file, f);
	return r;
}

static int merge_file(struct settings *s, const char *path, struct failure *f)
{
	cfg_opt_t opts[] = {CFG_STR("url", NULL, CFGF_NONE), CFG_STR("socket", NULL, CFGF_NONE),
		CFG_STR("ca_file", NULL, CFGF_NONE), CFG_STR("pin", NULL, CFGF_NONE),
		CFG_STR("token_file", NULL, CFGF_NONE), CFG_END()};
	struct err e = {0};
	cfg_t *cfg = NULL;
	int r;

	if (!path || (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR)))
		return 0;
	if (conf_load(opts, path, NULL, &cfg, &e) < 0)
		return fail(f, CLI_FAILED, "%s", e.text);
	r = merge(s,
		&(struct layer){.name = path,
			.url = cfg_getstr(cfg, "url"),
			.socket = cfg_getstr(cfg, "socket"),
			.ca_file = cfg_getstr(cfg, "ca_file"),
			.pin = cfg_getstr(cfg, "pin"),
			.token_file = cfg_getstr(cfg, "token_file")},
		f);
	cfg_free(cfg);
	return r;
}

int settings_load_from(const struct invocation *i, const char *home_file, const char *system_file,
	const char *socket_env, struct settings *ret, struct failure *f)
{
	const struct layer options = {.name = "options",
		.url = invocation_option(i, "url"),
		.socket = invocation_option(i, "socket"),
		.ca_file = invocation_option(i, "ca"),
		.pin = invocation_option(i, "pin"),
		.token_file = invocation_option(i, "token-file")};
	int r;

	*ret = (struct settings){0};
	r = merge(ret, &options, f);
	if (r == 0)
		r = merge(ret, &(struct layer){.name = "environment", .socket = socket_env}, f);
	if (r == 0)
		r = merge_file(ret, home_file, f);
	if (r == 0)
		r = merge_file(ret, system_file, f);
	if (r == 0 && !ret->url)
		r = fill(&ret->socket, SETTINGS_SOCKET, f);
	return r;
}

int settings_load(const struct invocation *i, struct settings *ret, struct failure *f)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[PATH_MAX_BYTES];
	int n = 0;

	if (config && *config == '/')
		n = snprintf(path, sizeof(path), "%s/termbroker/cli.conf", config);
	else if (home && *home == '/')
		n = snprintf(path, sizeof(path), "%s/.config/termbroker/cli.conf", home);
	return settings_load_from(i, n > 0 && n < (int)sizeof(path) ? path : NULL, SYSTEM_FILE,
		getenv("TERMBROKER_SOCKET"), ret, f);
}
