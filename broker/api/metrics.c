/* SPDX-License-Identifier: ISC */
/*
 * GET /metrics: Prometheus' text format. Names of nodes, pools and providers cannot hold what a
 * label would have to escape. Series for each node stop at NODE_SERIES_MAX nodes; the sums go on.
 */
#include <inttypes.h>

#include "api/handlers.h"

#define CONTENT_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define NODE_SERIES_MAX 2000

static void family(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_addf(b, "# HELP termbroker_%s %s\n# TYPE termbroker_%s %s\n", name, help, name, type);
}

static void value(struct buf *b, const char *name, const char *labels, uint64_t v)
{
	buf_addf(b, "termbroker_%s%s %" PRIu64 "\n", name, labels, v);
}

static void single(struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
	family(b, name, type, help);
	value(b, name, "", v);
}

static void labelled(
	struct buf *b, const char *name, const char *label, const char *text, uint64_t v)
{
	buf_addf(b, "termbroker_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text, v);
}

/* A histogram: each bucket counts what the ones before it count, too. */
static void add_door_waits(struct buf *b, const struct service_info *info)
{
	uint64_t count = 0;

	family(b, "door_seconds", "histogram",
		"From an RDP client's connection until it is redirected or relayed.");
	for (unsigned i = 0; i < SERVICE_DOOR_BUCKETS; i++) {
		unsigned ms = service_door_bound_ms(i);

		count += info->door_waits[i];
		buf_addf(b, "termbroker_door_seconds_bucket{le=\"%u.%03u\"} %" PRIu64 "\n",
			ms / 1000, ms % 1000, count);
	}
	count += info->door_waits[SERVICE_DOOR_BUCKETS];
	buf_addf(b, "termbroker_door_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", count);
	buf_addf(b, "termbroker_door_seconds_sum %" PRIu64 ".%03" PRIu64 "\n",
		info->door_wait_ms / 1000, info->door_wait_ms % 1000);
	buf_addf(b, "termbroker_door_seconds_count %" PRIu64 "\n", count);
}

static void add_service(struct buf *b, const struct service_info *info)
{
	family(b, "build_info", "gauge", "Version of this dispatcher.");
	buf_addf(b, "termbroker_build_info{version=\"%s\"} 1\n", TERMBROKER_VERSION);
	single(b, "uptime_seconds", "gauge", "Seconds since this dispatcher started.",
		(uint64_t)info->uptime_s);
	single(b, "ready", "gauge", "1 if this dispatcher can broker.", info->ready);
	single(b, "database_up", "gauge", "1 if the database is connected.", info->database_up);
	family(b, "connects_total", "counter", "Requests for a node, by the reason of the answer.");
	for (unsigned i = 0; i <= CHOICE_NODE_UNKNOWN; i++)
		labelled(b, "connects_total", "reason", choice_reason_name((enum choice_reason)i),
			info->connects[i]);
	family(b, "heartbeats_total", "counter", "Heartbeats, by what became of them.");
	labelled(b, "heartbeats_total", "result", "taken", info->heartbeats);
	labelled(b, "heartbeats_total", "result", "replayed", info->heartbeats_replayed);
	labelled(b, "heartbeats_total", "result", "refused", info->heartbeats_refused);
	labelled(b, "heartbeats_total", "result", "duplicate", info->heartbeats_duplicate);
	family(b, "door_clients_total", "counter",
		"RDP clients at the door, by what became of them.");
	labelled(b, "door_clients_total", "result", "redirected", info->door_redirected);
	labelled(b, "door_clients_total", "result", "relayed", info->door_relayed);
	labelled(b, "door_clients_total", "result", "refused", info->door_refused);
	labelled(b, "door_clients_total", "result", "failed", info->door_failed);
	single(b, "door_relayed_open", "gauge", "RDP clients that are relayed now.",
		info->door_open);
	single(b, "door_relayed_bytes_total", "counter",
		"Bytes relayed for RDP clients that have left, both ways.", info->door_bytes);
	single(b, "door_node_refusals_total", "counter",
		"Nodes that did not take a relayed client.", info->door_node_refused);
	add_door_waits(b, info);
	single(b, "heartbeat_sessions_dropped_total", "counter",
		"Sessions in heartbeats that could not be taken.", info->sessions_dropped);
	single(b, "logins_total", "counter", "Logins that agents reported.", info->logins);
	single(b, "denied_total", "counter", "Calls without or beyond authority.", info->denied);
	single(b, "journal_lost_total", "counter", "Journal lines that could not be written.",
		info->journal_lost);
}

static void add_fleet(struct buf *b, const struct service_info *info, const struct fleet *f)
{
	struct fleet_counts counts;

	fleet_counts(f, &counts);
	family(b, "nodes", "gauge", "Nodes by state.");
	for (unsigned i = 0; i < NODE_STATE_COUNT; i++)
		labelled(b, "nodes", "state", node_state_name((enum node_state)i), info->nodes[i]);
	single(b, "providers", "gauge", "Providers.", counts.providers);
	single(b, "pools", "gauge", "Pools.", counts.pools);
	single(b, "sessions", "gauge", "Sessions on all nodes.", counts.sessions);
	single(b, "users", "gauge", "Users with a session.", counts.users);
}

static void node_series(struct buf *b, const struct fleet *f, const char *name, const char *help,
	bool (*get)(const struct node *n, uint64_t *ret))
{
	unsigned count = 0;
	uint64_t v;

	family(b, name, "gauge", help);
	for (const struct node *n = fleet_next_node(f, NULL); n && count < NODE_SERIES_MAX;
		n = fleet_next_node(f, n), count++)
		if (get(n, &v))
			buf_addf(b, "termbroker_%s{node=\"%s\",provider=\"%s\"} %" PRIu64 "\n",
				name, n->spec.name, n->provider->spec.name, v);
}

static bool get_index(const struct node *n, uint64_t *ret)
{
	*ret = n->index;
	return n->has_index;
}

static bool get_sessions(const struct node *n, uint64_t *ret)
{
	*ret = n->session_count;
	return true;
}

static bool get_takes_users(const struct node *n, uint64_t *ret)
{
	enum node_state state = service_node_state(n);

	*ret = state == NODE_STATE_OK || state == NODE_STATE_SUSPECT; /* the latter last */
	return true;
}

static void add_store(struct buf *b, struct service *s)
{
	struct store_stats stats;

	store_stats(service_store(s), &stats);
	single(b, "store_batches_total", "counter", "Batches committed.", stats.batches);
	single(b, "store_rows_total", "counter", "Rows in committed batches.", stats.batch_rows);
	single(b, "store_retries_total", "counter", "Batches split and tried again.",
		stats.batch_retries);
	single(b, "store_reconnects_total", "counter", "Connections made to the database.",
		stats.reconnects);
	single(b, "store_events_written_total", "counter", "Events written to the database.",
		stats.events_written);
	single(b, "store_events_dropped_total", "counter",
		"Events dropped while the database was away.", stats.events_dropped);
	single(b, "store_rows_refused_total", "counter",
		"Rows that the database refused for their content: lost.", stats.rows_refused);
	family(b, "store_queued", "gauge", "What waits to be written.");
	labelled(b, "store_queued", "what", "nodes", stats.queued_nodes);
	labelled(b, "store_queued", "what", "events", stats.queued_events);
	labelled(b, "store_queued", "what", "operations", stats.queued_operations);
	family(b, "store_batch_seconds_total", "counter", "Time that batches took.");
	buf_addf(b, "termbroker_store_batch_seconds_total %" PRIu64 ".%06" PRIu64 "\n",
		stats.batch_us_total / 1000000, stats.batch_us_total % 1000000);
}

static void add_http(struct buf *b, const struct api *a)
{
	static const char *const classes[API_STATUS_CLASSES] = {
		NULL, NULL, "2xx", "3xx", "4xx", "5xx"};
	const struct api_counters *c = &a->counters;

	family(b, "http_requests_total", "counter", "Requests answered, by status.");
	for (unsigned i = 2; i < API_STATUS_CLASSES; i++)
		labelled(b, "http_requests_total", "status", classes[i], c->requests[i]);
	single(b, "http_connections", "gauge", "Open connections.", a->connections);
	single(b, "http_connections_accepted_total", "counter", "Connections accepted.",
		c->accepted_connections);
	single(b, "http_connections_refused_total", "counter", "Connections over a cap.",
		c->refused_connections);
	single(b, "http_accept_pauses_total", "counter",
		"Pauses of accepting for want of descriptors or memory.", c->accept_pauses);
	single(b, "http_bad_requests_total", "counter", "Requests refused for their framing.",
		c->bad_framing);
	single(b, "http_deadlines_total", "counter", "Requests that were not complete in time.",
		c->deadlines);
}

void handle_metrics(struct request *r)
{
	struct service *s = r->api->service;
	const struct fleet *f = service_fleet(s);
	struct buf *b = request_out(r);
	struct service_info info;

	service_info(s, &info);
	add_service(b, &info);
	add_fleet(b, &info, f);
	node_series(b, f, "node_load_index", "Load index of a node, 0 to 10000.", get_index);
	node_series(b, f, "node_sessions", "Sessions on a node.", get_sessions);
	node_series(b, f, "node_takes_users", "1 if a node takes new users.", get_takes_users);
	add_store(b, s);
	add_http(b, r->api);
	request_send(r, 200, CONTENT_METRICS);
}
