/* SPDX-License-Identifier: ISC */
/* HTTP to one dispatcher, by its admin socket or by its URL. */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/settings.h"

#define CLIENT_TIMEOUT_S 30

struct client;

/* Reads the token file if a URL is used. SETTINGS is borrowed. 0 or an exit status. */
int client_new(const struct settings *settings, struct client **ret, struct failure *f);
void client_free(struct client *c);

struct request {
	const char *method;	  /* "GET" */
	const char *path;	  /* "/api/v1/nodes/ts1", escaped */
	struct json_object *body; /* NULL = none; borrowed */
	const char *accept;	  /* NULL = JSON */
	long timeout_s;		  /* 0 = CLIENT_TIMEOUT_S */
};

struct response {
	long status;
	struct buf body;
};

/* 0 when any answer came, whatever its status; CLI_UNREACHABLE or CLI_DENIED when none did. The
 * caller calls response_deinit after success. */
int client_call(
	struct client *c, const struct request *request, struct response *ret, struct failure *f);
void response_deinit(struct response *r);

/* Adds "/TEXT" to a path, or "?KEY=VALUE" / "&KEY=VALUE", percent-encoded. */
void url_add_segment(struct buf *path, const char *text);
void url_add_query(struct buf *path, const char *key, const char *value);
