/* SPDX-License-Identifier: ISC */
/*
 * The event catalogue (DESIGN §9): each event has a stable id, a level, the names of its parameters and
 * a text in English and Russian with {parameter} in the place of values. The table is events.c; nothing
 * else in the program knows a text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/limits.h"

enum event_level { EVENT_DEBUG, EVENT_INFO, EVENT_WARNING, EVENT_ERROR };
const char *event_level_name(enum event_level l); /* "DEBUG" … */
int event_level_parse(const char *text, enum event_level *ret); /* any case */

enum event_language { LANGUAGE_EN, LANGUAGE_RU };
int event_language_parse(const char *text, enum event_language *ret); /* "en", "ru" */

enum event_id {
	EVENT_NODE_FULL,         /* node-full: node, address */
	EVENT_NODE_NOT_FULL,     /* node-not-full: node, address, load_index */
	EVENT_NODE_CHOSEN,       /* node-chosen: node, address, user, load_index (least loaded) */
	EVENT_NODE_ROUND_ROBIN,  /* node-round-robin: node, address, user */
	EVENT_NODE_NAMED,        /* node-named: node, address, user, actor */
	EVENT_NODE_ROUTED,       /* node-routed: node, address, user */
	EVENT_SESSION_RECONNECT, /* session-reconnect: node, address, user, session */
	EVENT_SESSION_SUSPENDED, /* session-suspended: node, address, user, session */
	EVENT_CONNECT_REFUSED,   /* connect-refused: user, reason, counts */
	EVENT_USER_LOGIN,        /* user-login: user, node */
	EVENT_USER_LOGOUT,       /* user-logout: user, node, session */
	EVENT_NODE_SILENT,       /* node-silent: node, address, seconds */
	EVENT_NODE_HEARD,        /* node-heard: node, address */
	EVENT_NODE_REBOOTED,     /* node-rebooted: node, address */
	EVENT_NODE_SUSPECT,      /* node-suspect: node, address, reason */
	EVENT_NODE_TRUSTED,      /* node-trusted: node, address */
	EVENT_MASS_SILENCE,      /* mass-silence: silent, nodes */
	EVENT_DUPLICATE_AGENT,   /* duplicate-agent: node, address, other_address */
	EVENT_HEARTBEAT_REFUSED, /* heartbeat-refused: node, address, reason */
	EVENT_ADMIN_CREATED,     /* admin-created: kind, name, actor */
	EVENT_ADMIN_CHANGED,     /* admin-changed: kind, name, actor, changes */
	EVENT_ADMIN_REMOVED,     /* admin-removed: kind, name, actor */
	EVENT_MAINTENANCE,       /* maintenance: kind, name, mode, reason, actor */
	EVENT_SESSION_FORGOTTEN, /* session-forgotten: user, node, session, actor */
	EVENT_ACCESS_DENIED,     /* access-denied: actor, address, call, reason */
	EVENT_DOOR_REDIRECTED,   /* door-redirected: node, address, user, client */
	EVENT_DOOR_RELAYED,      /* door-relayed: node, address, user, client */
	EVENT_DOOR_ENDED,        /* door-ended: node, address, user, client, seconds, from_client, from_node, reason */
	EVENT_DOOR_FAILED,       /* door-failed: client, step, reason */
	EVENT_DATABASE_LOST,     /* database-lost: reason */
	EVENT_DATABASE_BACK,     /* database-back: seconds */
	EVENT_DISPATCHER_STARTED,/* dispatcher-started: dispatcher, version */
	EVENT_DISPATCHER_STOPPED,/* dispatcher-stopped: dispatcher */
	EVENT_RELOADED,          /* reloaded: result */
	EVENT_JOURNAL_GAP,       /* journal-gap: lines, reason (the log file's own) */
	EVENT_ID_COUNT
};
/* "node-full" …; -ENOENT for what is none. */
const char *event_name(enum event_id id);
int event_parse_name(const char *text, enum event_id *ret);
enum event_level event_level_of(enum event_id id);

#define EVENT_PARAMS_MAX 8

/* One event on its way to the sinks. Strings are borrowed. Keys in the order of the catalogue. */
struct event {
	enum event_id id;
	int64_t time_us;            /* wall clock */
	uint32_t provider_id;       /* 0 = none: of the dispatcher itself */
	uint32_t pool_id;           /* 0 = of the whole provider: shown in each of its pools */
	const char *pool;           /* its name, "" or NULL when pool_id is 0 */
	uint32_t node_id;           /* 0 = none */
	size_t count;
	struct {
		const char *key, *value;
	} params[EVENT_PARAMS_MAX];
};

/* event_start, then event_param for each parameter; a NULL value becomes "". */
void event_start(struct event *ev, enum event_id id, int64_t time_us);
void event_param(struct event *ev, const char *key, const char *value);

/* The text in LANGUAGE, control characters and line breaks of values escaped as \n, \xNN. */
void event_render(const struct event *ev, enum event_language language, struct buf *out);
/* The parameters as a JSON object: what the database keeps. */
void event_params_json(const struct event *ev, struct buf *out);
/* Renders from the stored form: NAME and the JSON of event_params_json. An unknown name renders as itself. */
int event_render_stored(const char *name, const char *params_json, enum event_language language,
	struct buf *out);
