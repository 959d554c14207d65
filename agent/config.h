/* SPDX-License-Identifier: ISC */
/* agent.conf: what may stand in it, and the whole of it checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "wire/heartbeat.h"

#define CONFIG_PATH "/etc/termbroker/agent.conf"
#define CONFIG_URL_SIZE sizeof(((struct topology_dispatcher *)0)->url)
#define CONFIG_PINS_SIZE 1024

struct config {
	char node[LIMIT_NAME_SIZE];
	char dispatchers[LIMIT_DISPATCHERS][CONFIG_URL_SIZE]; /* "https://host:port", no path */
	size_t dispatcher_count;
	char *token_file;	     /* NULL unset */
	char *token;		     /* NULL until config_load_token; wiped when freed */
	char *ca_file;		     /* NULL unset */
	char pins[CONFIG_PINS_SIZE]; /* "sha256//…;sha256//…", "" unset */
	uint32_t collect_interval;   /* seconds */
	uint32_t push_interval;	     /* seconds, until a dispatcher names another */
	uint32_t cache_size;
	uint16_t port;
	char *state_dir;
	char *load_script; /* NULL unset */
	char *root;	   /* NULL: the live system */
	char *check_address; /* NULL: no agent check */
	uint16_t check_port;
	bool text_sessions;
	uint32_t refresh_interval; /* seconds, 0 off */
	enum log_level log_level;
};

/* Reads PATH and PATH.d/NAME.conf. Every error names file and line where there is one. The caller
 * frees with config_free. 0 or a negative errno. */
int config_load(const char *path, struct config **ret, struct err *e);
/* The defaults alone, for a machine without a file. */
int config_default(struct config **ret, struct err *e);
void config_free(struct config *c);

/* What pushing needs beyond the file: dispatchers and a token, read from token_file, which others
 * must not be able to read. Also that ca_file and load_script are there. 0 or a negative errno. */
int config_load_files(struct config *c, struct err *e);

/* "https://host", "https://host:port", nothing behind it. True if so, and RET has it without a
 * final '/'. */
bool config_url_valid(const char *text, char ret[CONFIG_URL_SIZE]);
