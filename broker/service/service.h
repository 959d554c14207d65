/* SPDX-License-Identifier: ISC */
/*
 * The operations of one dispatcher, independent of how a request came in. This is the only place
 * where fleet (model), decision (policy), journal and store meet; the API and the door call it and
 * format what it answers. The fleet's only writer.
 *
 * Each operation takes a DONE that is called exactly once from the loop, perhaps before the
 * operation returns. Everything handed to DONE is borrowed for the length of the call. Strings and
 * structs handed in are copied where they must outlive the call. service_free ends what is
 * outstanding with SERVICE_UNAVAILABLE.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/fleet.h"
#include "policy/choose.h"
#include "policy/load_index.h"
#include "service/config.h"
#include "store/store.h"
#include "wire/connection.h"
#include "wire/door_message.h"
#include "wire/heartbeat.h"
#include "wire/route_token.h"

struct service;

/* Stopped for good: the database is unusable (wrong schema …). REASON is for the log. */
typedef void service_fatal(void *ctx, const char *reason);

/* CONFIG is borrowed until service_free or the next service_reload. 0 or a negative errno. */
int service_new(struct event_base *base, const struct config *config, struct journal *journal,
	service_fatal *fatal, void *ctx, struct service **ret, struct err *e);
void service_start(struct service *s);
/* Journals the stop, writes what is queued (3 s at most), then calls STOPPED. New requests are
 * refused. */
void service_stop(struct service *s, void (*stopped)(void *ctx), void *ctx);
void service_free(struct service *s);
/* Takes another configuration (the caller frees the old one afterwards). The database string needs
 * a restart. */
void service_reload(struct service *s, const struct config *config);
/* Called each time the service becomes ready or unready. */
void service_on_ready(struct service *s, void (*callback)(void *ctx, bool ready), void *ctx);

/* Called after each commit of events: those who follow the journal may read on. One listener. */
void service_on_events(struct service *s, void (*callback)(void *ctx), void *ctx);

/* Whether the database was read once. Before, nobody's token is known and every list is empty. */
bool service_is_loaded(const struct service *s);

/* What may be read at any time, on the loop. */
const struct fleet *service_fleet(const struct service *s);
const struct config *service_config(const struct service *s);
struct store *service_store(struct service *s); /* for reading events */

/* ---- who asks ---- */
struct caller {
	enum role role;
	char actor[128];		  /* token name, or "uid 1000 (alice)": for the journal */
	char address[LIMIT_ADDRESS_SIZE]; /* of the peer; "local" for the socket */
	const struct token_spec *token;	  /* NULL on the admin socket; for the length of the call */
};
/* The token's role for a bearer TEXT: 0; -EACCES unknown, revoked or expired (WHY says which, for
 * the journal only). */
int service_authenticate(const struct service *s, const char *text, size_t len, int64_t now_wall_us,
	const struct token **ret, const char **ret_why);
/* Journals a denied call, rate limited per address. */
void service_denied(
	struct service *s, const struct caller *caller, const char *call, const char *reason);

/* ---- errors ---- */
enum service_status {
	SERVICE_OK,
	SERVICE_INVALID,     /* 400 */
	SERVICE_DENIED,	     /* 403 */
	SERVICE_NOT_FOUND,   /* 404 */
	SERVICE_CONFLICT,    /* 409 */
	SERVICE_REFUSED,     /* no node for this user now: 503 with Retry-After (404 for an unknown
				pool) */
	SERVICE_UNAVAILABLE, /* 503: no database, stopping */
	SERVICE_FAILED	     /* 500 */
};
struct service_error {
	enum service_status status;
	const char *code; /* static: "pool_unknown", "name_taken", "heartbeat_replayed", … */
	char detail[480];
	uint32_t retry_after_s; /* 0 = none */
};

/* ---- asking for a node ---- */
struct connect_result {
	struct service_error error;
	const struct caller *caller;	 /* who asked, with the token as it was then */
	const struct choice *choice;	 /* NULL if it never came to a decision */
	const struct pool *pool;	 /* NULL when unknown */
	struct connection_answer answer; /* when error.status is SERVICE_OK */
	const char *user;		 /* as it came in, trimmed */
	const char *tags;		 /* as they came in; "" none */
};
typedef void service_connect_done(void *ctx, const struct connect_result *r);
void service_connect(struct service *s, const struct caller *caller,
	const struct connection_request *request, service_connect_done *done, void *ctx);

/* ---- route tokens ---- */

/* A token that leads USER, as it came in, through any door into POOL with TAGS, "" for none; it
 * lives as long as is configured, but not longer than CALLER's own. 0; -EMSGSIZE: name and tags are
 * too long; -EIO. */
int service_route_mint(const struct service *s, const struct caller *caller,
	const struct pool *pool, const char *user, const char *tags, char ret[ROUTE_TOKEN_SIZE],
	struct err *e);
/* -EINVAL, -ETIME as route_token_open; -ENOENT: its pool is gone. */
int service_route_open(const struct service *s, const char *text, const struct pool **ret_pool,
	struct route_ticket *ret, struct err *e);

/* ---- the RDP door ----
 * Asks for a node. DONE is called once, perhaps before this returns. */
void service_door_ask(
	struct service *s, const struct door_question *q, door_answered *done, void *ctx);
/* What became of a client, for the journal and the counters; a node that refused becomes suspect.
 */
void service_door_tell(struct service *s, const struct door_report *r);

#define SERVICE_DOOR_BUCKETS 11
/* The upper bound of a bucket of service_info.door_waits, 0..SERVICE_DOOR_BUCKETS-1. */
unsigned service_door_bound_ms(unsigned bucket);

struct explain_result {
	struct service_error error; /* SERVICE_OK also when the decision is a refusal */
	const struct choice *choice;
	const struct choose_input *input; /* for choose_verdict on each node */
	const struct pool *pool;
	const char *user_key;
};
typedef void service_explain_done(void *ctx, const struct explain_result *r);
/* The same decision, reserving and journalling nothing. */
void service_explain(struct service *s, const struct caller *caller,
	const struct connection_request *request, service_explain_done *done, void *ctx);

/* ---- heartbeats ---- */
typedef void service_heartbeat_done(
	void *ctx, const struct service_error *error, const struct heartbeat_reply *reply);
/* H must name the caller's own node. Answered at once when it only refreshes numbers; after the
 * commit when it brought logins or changed sessions, so that nothing acknowledged is lost. */
void service_heartbeat(struct service *s, const struct caller *caller, const struct heartbeat *h,
	service_heartbeat_done *done, void *ctx);
/* The text could not be parsed: journalled, rate limited; the node keeps what it had. */
void service_heartbeat_refused(struct service *s, const struct caller *caller, const char *reason);
const struct topology *service_topology(const struct service *s);

/* ---- administration ---- */
struct admin_result {
	struct service_error error;
	const char *token; /* a new token's text, shown once; else NULL */
};
typedef void service_admin_done(void *ctx, const struct admin_result *r);

/* id 0 creates, else replaces the whole spec of that id. CHANGES: "address, port" for the journal
 * (PATCH). */
void service_put_provider(struct service *s, const struct caller *caller,
	const struct provider_spec *spec, const char *changes, service_admin_done *done, void *ctx);
void service_put_pool(struct service *s, const struct caller *caller, const struct pool_spec *spec,
	const char *changes, service_admin_done *done, void *ctx);
void service_put_node(struct service *s, const struct caller *caller, const struct node_spec *spec,
	const char *changes, service_admin_done *done, void *ctx);
/* Creating makes the secret; a change keeps it. */
void service_put_token(struct service *s, const struct caller *caller,
	const struct token_spec *spec, const char *changes, service_admin_done *done, void *ctx);
void service_remove(struct service *s, const struct caller *caller, enum store_kind kind,
	const char *name, bool force, service_admin_done *done, void *ctx);
void service_set_maintenance(struct service *s, const struct caller *caller, enum store_kind kind,
	const char *name, enum admin_mode mode, const char *reason, service_admin_done *done,
	void *ctx);
/* One that its node no longer reports, or whose node is silent; else SERVICE_CONFLICT. */
void service_forget_session(struct service *s, const struct caller *caller, const char *node,
	const char *id, service_admin_done *done, void *ctx);

/* ---- how it goes ---- */
enum node_state { /* one word for a human, the strongest first */
	NODE_STATE_DISABLED,
	NODE_STATE_DRAIN,
	NODE_STATE_NEVER_HEARD,
	NODE_STATE_SILENT,
	NODE_STATE_NOT_ACCEPTING,
	NODE_STATE_STALE,
	NODE_STATE_FULL,
	NODE_STATE_SUSPECT,
	NODE_STATE_OK,
	NODE_STATE_COUNT
};
enum node_state service_node_state(const struct node *n);
const char *node_state_name(enum node_state st);

struct service_info {
	const char *dispatcher;
	int64_t uptime_s;
	bool ready; /* can broker: the fleet was loaded */
	bool database_up;
	bool grace;				    /* started less than stale_after ago */
	uint64_t connects[CHOICE_NODE_UNKNOWN + 1]; /* by enum choice_reason */
	uint64_t heartbeats, heartbeats_replayed, heartbeats_refused, heartbeats_duplicate;
	uint64_t sessions_dropped; /* entries of heartbeats that could not be taken */
	uint64_t logins, denied;
	uint64_t door_redirected, door_relayed, door_refused, door_failed; /* RDP clients */
	uint64_t door_open, door_node_refused, door_bytes;
	uint64_t door_waits[SERVICE_DOOR_BUCKETS +
			    1]; /* accepted to redirected or relayed; not summed up */
	uint64_t door_wait_ms;
	uint64_t nodes[NODE_STATE_COUNT];
	uint64_t journal_lost;
};
void service_info(struct service *s, struct service_info *ret);
