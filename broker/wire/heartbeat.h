/* SPDX-License-Identifier: ISC */
/*
 * The heartbeat, agent → dispatcher, and its reply (DESIGN "Heartbeat").
 *
 * Percentages travel as JSON numbers 0..100 and live here as hundredths of a percent (0..10000), so that
 * everything after the parser is integer arithmetic. A missing metric is has_… = false, never 0.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/limits.h"

struct heartbeat_session {
	const char *id;     /* unique on the node, 1..64 printable ASCII characters */
	const char *user;   /* as the node spells it */
	const char *client; /* address or name of the client; "" unknown */
	bool active;        /* false = disconnected */
	int64_t since_ms;   /* Unix time; 0 unknown. The receiver clamps a future one. */
};

struct heartbeat {
	char node[LIMIT_NAME_SIZE];
	char boot_id[LIMIT_BOOT_ID_SIZE];
	uint64_t seq; /* milliseconds since boot */
	bool accepting;
	uint32_t window_samples;
	uint32_t window_seconds;
	bool has_cpu;
	uint32_t cpu_busy; /* hundredths of a percent */
	uint32_t cpu_count;
	bool has_memory;
	uint64_t memory_total, memory_available; /* bytes; 0 < total, available <= total */
	bool has_custom_load;
	uint32_t custom_load; /* hundredths of a percent */
	bool sessions_complete;
	struct heartbeat_session *sessions; /* owned array; strings lie in `text` */
	size_t session_count;
	size_t sessions_dropped; /* bad entries left out by the parser */
	const char **logins;     /* who logged in since the last acknowledged push */
	size_t login_count;
	char agent_version[LIMIT_VERSION_SIZE];
	char *text; /* holds the strings after parsing; NULL when built by the agent */
};

/* Parses and checks. A message without "sessions" comes out with sessions_complete false. 0; -EINVAL
 * with member and reason; -E2BIG for more than LIMIT_SESSIONS sessions or LIMIT_LOGINS logins; -ENOMEM.
 * One bad session entry (no or bad id, user, or state; an id seen before) is dropped and counted. */
int heartbeat_parse(const char *data, size_t len, struct heartbeat *ret, struct err *e);
/* Frees what heartbeat_parse made; zero-initialised is fine. Builders of their own free their own. */
void heartbeat_deinit(struct heartbeat *h);
/* Appends the JSON text. Absent metrics are left out. Failure shows in buf_error. */
void heartbeat_format(const struct heartbeat *h, struct buf *out);

struct topology_dispatcher {
	char name[LIMIT_NAME_SIZE];
	char url[LIMIT_ADDRESS_SIZE + 16]; /* "https://host:port" */
};
struct topology {
	char cluster_id[LIMIT_BOOT_ID_SIZE];
	uint64_t version;
	size_t count;
	struct topology_dispatcher dispatchers[LIMIT_DISPATCHERS];
};

struct heartbeat_reply {
	bool has_load_index; /* false: the node has no metrics */
	uint32_t load_index; /* slv */
	bool maintenance;    /* the node takes no new user, for whatever cause */
	uint32_t push_interval; /* seconds the agent should keep; 1..3600 */
	struct topology topology;
};
int heartbeat_reply_parse(const char *data, size_t len, struct heartbeat_reply *ret, struct err *e);
void heartbeat_reply_format(const struct heartbeat_reply *r, struct buf *out);
/* The topology alone, as GET /api/v1/topology answers it: {cluster_id, version, dispatchers:[{name,url}]}. */
int topology_parse(struct json_object *o, struct topology *ret, struct err *e);
void topology_format(const struct topology *t, struct buf *out);
