/* SPDX-License-Identifier: ISC */
/*
 * Where the dispatcher is and how to trust it: options, then the environment (TERMBROKER_SOCKET),
 * then
 * ~/.config/termbroker/cli.conf, then /etc/termbroker/cli.conf. Each setting comes from the first
 * that has it; the first that names a socket or a URL decides between the two.
 */
#pragma once

#include "cli/command.h"

#define SETTINGS_SOCKET "/run/termbroker/admin.sock"

struct settings {
	char *url;			  /* NULL = by the socket */
	char *socket;			  /* never NULL after loading */
	char *ca_file, *pin, *token_file; /* NULL unset */
};

/* Loads for an invocation. 0 or an exit status; the caller calls settings_deinit in any case. */
int settings_load(const struct invocation *i, struct settings *ret, struct failure *f);
void settings_deinit(struct settings *s);

/* The same from named files (NULL or absent: skipped), for tests. */
int settings_load_from(const struct invocation *i, const char *home_file, const char *system_file,
	const char *socket_env, struct settings *ret, struct failure *f);
