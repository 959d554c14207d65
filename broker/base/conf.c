/* SPDX-License-Identifier: ISC */
/*
 * libconfuse, fenced in. It would end the process on a directory, accept a file that ends inside a
 * section, and expand the environment; so files are read and checked here (conf_scan.c) and it
 * gets text in memory. A sentinel key is appended to each file: it must come out as a top-level
 * key, or the two of us have read the file differently and the file is refused.
 *
 * libconfuse reports through a callback without a context and keeps its scanner in globals: one
 * load at a time in a thread, its state in `loading`.
 */
#include "base/conf.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/conf_scan.h"
#include "base/text.h"

#define FILE_MAX_BYTES (1024 * 1024)
#define PATH_MAX_BYTES 4096
#define SENTINEL "termbroker-end-of-file"

static _Thread_local struct {
	struct err *e; /* NULL while nothing is loaded */
	const char *path;
	bool failed; /* the first report stands, those behind it are consequences */
} loading;

__attribute__((format(printf, 2, 0))) static void report(cfg_t *cfg, const char *fmt, va_list ap)
{
	char text[sizeof(((struct err *)NULL)->text)];

	if (!loading.path || loading.failed)
		return;
	loading.failed = true;
	vsnprintf(text, sizeof(text), fmt, ap);
	if (strstr(text, SENTINEL))
		err_set(loading.e, 0, "%s: the file ends inside a section or value", loading.path);
	else
		err_set(loading.e, 0, "%s:%d: %s", loading.path, cfg ? cfg->line : 0, text);
}

static size_t count_opts(const cfg_opt_t *opts)
{
	size_t n = 0;

	while (opts[n].name)
		n++;
	return n;
}

/* A context for OPTS and the sentinel. libconfuse copies the array. */
static cfg_t *new_context(cfg_opt_t *opts)
{
	size_t n = count_opts(opts);
	cfg_opt_t *all = calloc(n + 2, sizeof(*all));
	cfg_opt_t sentinel[] = {CFG_INT(SENTINEL, 0, CFGF_NONE), CFG_END()};
	cfg_t *cfg;

	if (!all)
		return NULL;
	memcpy(all, opts, n * sizeof(*all));
	memcpy(all + n, sentinel, sizeof(sentinel));
	cfg = cfg_init(all, CFGF_NONE);
	free(all);
	if (cfg)
		cfg_set_error_function(cfg, report);
	return cfg;
}

/* Lets libconfuse read TEXT, which came from PATH. */
static int parse_text(cfg_t *cfg, const char *text, size_t len, const char *path, struct err *e)
{
	CLEANUP(fclosep) FILE *f = fmemopen((void *)(uintptr_t)text, len, "r");
	int r;

	if (!f)
		return err_errno(e, -errno, "could not read \"%s\"", path);
	free(cfg->filename);
	cfg->filename = strdup(path);
	if (!cfg->filename)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", path);
	cfg_setint(cfg, SENTINEL, 0);
	loading.e = e;
	loading.path = path;
	loading.failed = false;
	errno = 0; /* libconfuse looks for ERANGE without clearing it */
	r = cfg_parse_fp(cfg, f);
	if (r != CFG_SUCCESS && !loading.failed)
		err_set(e, 0, "%s:%d: not a valid setting", path, cfg->line);
	else if (r == CFG_SUCCESS && cfg_getint(cfg, SENTINEL) != 1)
		r = err_set(e, -EINVAL, "%s: the file ends inside a section or value", path);
	loading.e = NULL;
	loading.path = NULL;
	return r == CFG_SUCCESS ? 0 : -EINVAL;
}

static int load_file(cfg_t *cfg, cfg_opt_t *opts, const char *path, struct err *e)
{
	struct buf b = BUF_INIT(FILE_MAX_BYTES + 64);
	CLEANUP(freep) char *text = NULL;
	size_t len = 0;
	int r = text_read_file(path, FILE_MAX_BYTES, &text, &len);

	if (r == -EINVAL)
		return err_set(e, r, "could not read \"%s\": not a regular file", path);
	if (r < 0)
		return err_errno(e, r, "could not read \"%s\"", path);
	r = conf_scan(text, len, path, opts, e);
	if (r < 0)
		return r;
	buf_add(&b, text, len);
	buf_adds(&b, "\n" SENTINEL " = 1\n");
	r = buf_error(&b);
	if (r < 0)
		err_errno(e, r, "could not read \"%s\"", path);
	else
		r = parse_text(cfg, b.data, b.len, path, e);
	buf_deinit(&b);
	return r;
}

static int is_conf(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return d->d_name[0] != '.' && dot && strcmp(dot, ".conf") == 0;
}

/* By bytes, whatever the locale says. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_dir(cfg_t *cfg, cfg_opt_t *opts, const char *dir, struct err *e)
{
	char path[PATH_MAX_BYTES];
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_conf, by_name), r = 0;

	if (n < 0)
		return errno == ENOENT
			       ? 0
			       : err_errno(e, -errno, "could not read the folder \"%s\"", dir);
	for (int i = 0; i < n; i++) {
		if (r == 0) {
			int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);

			if (len < 0 || (size_t)len >= sizeof(path))
				r = err_set(e, -ENAMETOOLONG, "the path \"%s/%s\" is too long", dir,
					names[i]->d_name);
			else
				r = load_file(cfg, opts, path, e);
		}
		free(names[i]);
	}
	free(names);
	return r;
}

int conf_load(cfg_opt_t *opts, const char *path, const char *dir_d, cfg_t **ret_cfg, struct err *e)
{
	cfg_t *cfg = new_context(opts);
	int r;

	if (!cfg)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", path);
	r = load_file(cfg, opts, path, e);
	if (r == 0 && dir_d)
		r = load_dir(cfg, opts, dir_d, e);
	if (r < 0) {
		cfg_free(cfg);
		return r;
	}
	*ret_cfg = cfg;
	return 0;
}

int conf_check_range(cfg_t *cfg, cfg_opt_t *opt, long min, long max)
{
	for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
		long v = cfg_opt_getnint(opt, i);

		if (v < min || v > max) {
			cfg_error(cfg, "\"%s\" must be within %ld and %ld, not %ld", opt->name, min,
				max, v);
			return -1;
		}
	}
	return 0;
}
