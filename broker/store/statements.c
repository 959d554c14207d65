/* SPDX-License-Identifier: ISC */
/*
 * The SQL. Values come as parameters, lists as arrays for unnest, so one text serves a batch of any
 * size. Moments travel as microseconds since 1970: text of a timestamp would depend on settings.
 *
 * Batches lock rows in the order of their keys (the caller sorts), because two dispatchers that
 * write the same rows in different orders deadlock. A row whose node has just been removed is left
 * out by the join rather than refused, for it would take its batch along.
 */
#include "store/statements.h"

#include <stddef.h>

#define MOMENT(x) "(timestamptz 'epoch' + " x " * interval '1 microsecond')"
#define MICROSECONDS(x) "(extract(epoch FROM " x ") * 1000000)::bigint"

#define EVENT_COLUMNS                                                                      \
	"(request_id, at, dispatcher, level, name, provider_id, provider, pool_id, pool, " \
	"node_id, "                                                                        \
	"node, params) "

/* Names are kept as they are now: the object may be gone when the journal is read. */
#define EVENT_NAMES                             \
	" LEFT JOIN node n ON n.id = e.node_id" \
	" LEFT JOIN pool o ON o.id = e.pool_id" \
	" LEFT JOIN provider p ON p.id = coalesce(e.provider_id, o.provider_id, n.provider_id)"

#define EVENT_VALUES                                                                      \
	"e.request_id, " MOMENT(                                                          \
		"e.at") ", e.dispatcher, e.level, e.name,"                                \
			" coalesce(e.provider_id, o.provider_id, n.provider_id), p.name," \
			" e.pool_id, coalesce(o.name, e.pool), e.node_id, n.name, e.params"

#define EVENT_ROW                                                                      \
	"e.id, " MICROSECONDS(                                                         \
		"e.at") ", e.dispatcher, e.level, e.name, e.provider, e.pool, e.node," \
			" e.params::text"

/* Two index ranges, each already in the order of ids: never a scan of other pools' rows. */
#define POOL_EVENTS(order)                                                                       \
	"SELECT " EVENT_ROW " FROM ("                                                            \
	"(SELECT * FROM event WHERE pool_id = $4 AND id > $1 AND level >= $2 ORDER BY id " order \
	" LIMIT $3) UNION ALL "                                                                  \
	"(SELECT * FROM event WHERE pool_id IS NULL AND provider_id = $5 AND id > $1 AND level " \
	">= $2"                                                                                  \
	" ORDER BY id " order " LIMIT $3) ORDER BY id " order " LIMIT $3) e ORDER BY e.id"

#define ANY_EVENTS(order)                                                                     \
	"SELECT " EVENT_ROW " FROM ("                                                         \
	"SELECT * FROM event WHERE id > $1 AND level >= $2 ORDER BY id " order " LIMIT $3) e" \
	" ORDER BY e.id"

struct text {
	const char *name, *text;
};

static const struct text texts[SQL_END] = {
	/* arrays, one item a node: as the columns stand; old_boot_ids separated by spaces */
	[SQL_NODE_LOAD_UPSERT] = {"node_load_upsert",
		"INSERT INTO node_load AS l (node_id, voice, boot_id, old_boot_ids, seq, "
		"accepting, cpu_busy,"
		" cpu_count, memory_total, memory_available, custom_load, metric_missing, "
		"window_samples,"
		" window_seconds, load_index, full_told, sessions_complete, heard_at, "
		"agent_version,"
		" agent_address) "
		"SELECT r.node_id, r.voice, r.boot_id, string_to_array(r.old_boot_ids, ' '), r.seq,"
		" r.accepting, r.cpu_busy, r.cpu_count, r.memory_total, r.memory_available, "
		"r.custom_load,"
		" r.metric_missing, r.window_samples, r.window_seconds, r.load_index, r.full_told,"
		" r.sessions_complete, " MOMENT(
			"r.heard_at") ", r.agent_version, r.agent_address "
				      "FROM unnest($1::int[], $2::node_voice[], $3::text[], "
				      "$4::text[], $5::bigint[], $6::bool[],"
				      " $7::int[], $8::int[], $9::bigint[], $10::bigint[], "
				      "$11::int[], $12::bool[], $13::int[],"
				      " $14::int[], $15::int[], $16::bool[], $17::bool[], "
				      "$18::bigint[], $19::text[], $20::text[])"
				      " AS r (node_id, voice, boot_id, old_boot_ids, seq, "
				      "accepting, cpu_busy, cpu_count,"
				      " memory_total, memory_available, custom_load, "
				      "metric_missing, window_samples,"
				      " window_seconds, load_index, full_told, sessions_complete, "
				      "heard_at, agent_version,"
				      " agent_address) "
				      "JOIN node ON node.id = r.node_id ORDER BY r.node_id "
				      "ON CONFLICT (node_id) DO UPDATE SET voice = excluded.voice, "
				      "boot_id = excluded.boot_id,"
				      " old_boot_ids = excluded.old_boot_ids, seq = excluded.seq, "
				      "accepting = excluded.accepting,"
				      " cpu_busy = excluded.cpu_busy, cpu_count = "
				      "excluded.cpu_count,"
				      " memory_total = excluded.memory_total, memory_available = "
				      "excluded.memory_available,"
				      " custom_load = excluded.custom_load, metric_missing = "
				      "excluded.metric_missing,"
				      " window_samples = excluded.window_samples, window_seconds = "
				      "excluded.window_seconds,"
				      " load_index = excluded.load_index, full_told = "
				      "excluded.full_told,"
				      " sessions_complete = excluded.sessions_complete, heard_at = "
				      "excluded.heard_at,"
				      " agent_version = excluded.agent_version, agent_address = "
				      "excluded.agent_address"},
	/* arrays: node ids, session ids */
	[SQL_SESSION_DELETE] = {"session_delete",
		"DELETE FROM session s USING unnest($1::int[], $2::text[]) AS r (node_id, id)"
		" WHERE s.node_id = r.node_id AND s.id = r.id COLLATE \"C\""},
	/* arrays: node ids, session ids, user keys, display names, clients, active, since, first
	   seen */
	[SQL_SESSION_UPSERT] = {"session_upsert",
		"INSERT INTO session AS s (node_id, id, user_key, display, client, active, "
		"since, first_seen) "
		"SELECT r.node_id, r.id, r.user_key, r.display, r.client, "
		"r.active, " MOMENT("r.since") ", " MOMENT(
			"r.first_seen") " "
					"FROM unnest($1::int[], $2::text[], $3::text[], "
					"$4::text[], $5::text[], $6::bool[],"
					" $7::bigint[], $8::bigint[]) AS r (node_id, id, "
					"user_key, display, client, active, since,"
					" first_seen) "
					"JOIN node ON node.id = r.node_id ORDER BY "
					"r.node_id, r.id COLLATE \"C\" "
					"ON CONFLICT (node_id, id) DO UPDATE SET user_key "
					"= excluded.user_key,"
					" display = excluded.display, client = "
					"excluded.client, active = excluded.active,"
					" since = excluded.since, first_seen = "
					"excluded.first_seen"},
	/* arrays: request ids, moments, levels, names, provider ids, pool ids, pool names, node
	 * ids, parameters; and the dispatcher */
	[SQL_EVENT_INSERT] = {"event_insert",
		"INSERT INTO event " EVENT_COLUMNS "SELECT " EVENT_VALUES " FROM ("
		"SELECT u.*, $10::text AS dispatcher FROM unnest($1::uuid[], $2::bigint[],"
		" $3::event_level[], $4::text[], $5::int[], $6::int[], $7::text[], $8::int[], "
		"$9::json[])"
		" WITH ORDINALITY AS u (request_id, at, level, name, provider_id, pool_id, pool, "
		"node_id,"
		" params, position)) e" EVENT_NAMES " ORDER BY e.position "
		"ON CONFLICT (request_id) DO NOTHING"},
	/* one event of an administrative change: the same ten as single values; $11 the kind of
	 * object and $12 its id, which must exist (and stays until the commit), $13 a session's id;
	 * $14 the name of an object that was created just before, whose id nobody knows yet */
	[SQL_EVENT_WITH_OBJECT] = {"event_with_object",
		"INSERT INTO event " EVENT_COLUMNS "SELECT " EVENT_VALUES " FROM ("
		"SELECT $1::uuid AS request_id, $2::bigint AS at, $3::event_level AS level,"
		" $4::text AS name,"
		" coalesce($5::int, (SELECT c.id FROM provider c WHERE $11 = 'new-provider' AND "
		"c.name = $14::text))"
		" AS provider_id,"
		" coalesce($6::int, (SELECT c.id FROM pool c WHERE $11 = 'new-pool' AND c.name = "
		"$14::text))"
		" AS pool_id, $7::text AS pool,"
		" coalesce($8::int, (SELECT c.id FROM node c WHERE $11 = 'new-node' AND c.name = "
		"$14::text))"
		" AS node_id, $9::json AS params, $10::text AS dispatcher) e" EVENT_NAMES
		" WHERE CASE $11::text"
		" WHEN 'provider' THEN EXISTS (SELECT FROM provider c WHERE c.id = $12::int FOR "
		"UPDATE)"
		" WHEN 'pool' THEN EXISTS (SELECT FROM pool c WHERE c.id = $12 FOR UPDATE)"
		" WHEN 'node' THEN EXISTS (SELECT FROM node c WHERE c.id = $12 FOR UPDATE)"
		" WHEN 'token' THEN EXISTS (SELECT FROM token c WHERE c.id = $12 FOR UPDATE)"
		" WHEN 'session' THEN EXISTS (SELECT FROM session c WHERE c.node_id = $12 AND c.id "
		"= $13::text"
		" FOR UPDATE)"
		" ELSE $14::text IS NOT NULL END "
		"ON CONFLICT (request_id) DO NOTHING"},
	/* the columns from name to mode_reason */
	[SQL_PROVIDER_INSERT] = {"provider_insert",
		"INSERT INTO provider (name, share_sessions, balance_by_metrics, prefer_sharing,"
		" on_mass_silence, cpu_rule, cpu_zero, cpu_full, memory_rule, memory_zero, "
		"memory_full,"
		" sessions_rule, load_script_rule, mode, mode_reason) VALUES ($1, $2, $3, $4, $5, "
		"$6, $7, $8,"
		" $9, $10, $11, $12, $13, $14, $15) RETURNING id"},
	/* the same, and the id */
	[SQL_PROVIDER_UPDATE] = {"provider_update",
		"UPDATE provider SET name = $1, share_sessions = $2, balance_by_metrics = $3,"
		" prefer_sharing = $4, on_mass_silence = $5, cpu_rule = $6, cpu_zero = $7, "
		"cpu_full = $8,"
		" memory_rule = $9, memory_zero = $10, memory_full = $11, sessions_rule = $12,"
		" load_script_rule = $13, mode = $14, mode_reason = $15, changed_at = now() WHERE "
		"id = $16"
		" RETURNING id"},
	[SQL_POOL_INSERT] = {"pool_insert",
		"INSERT INTO pool (name, provider_id, default_tags, forced_tags, allowed_tags,"
		" untagged_default, rdp_extra, mode, mode_reason) VALUES ($1, $2, $3, $4, "
		"$5::text[], $6, $7, $8, $9)"
		" RETURNING id"},
	[SQL_POOL_UPDATE] = {"pool_update",
		"UPDATE pool SET name = $1, provider_id = $2, default_tags = $3, forced_tags = $4,"
		" allowed_tags = $5::text[], untagged_default = $6, rdp_extra = $7, mode = $8, "
		"mode_reason = $9,"
		" changed_at = now() WHERE id = $10 RETURNING id"},
	[SQL_NODE_INSERT] = {"node_insert",
		"INSERT INTO node (name, provider_id, address, fqdn, port, tags, max_sessions,"
		" load_multiplier, mode, mode_reason) VALUES ($1, $2, $3, $4, $5, $6::text[], $7, "
		"$8, $9, $10)"
		" RETURNING id"},
	[SQL_NODE_UPDATE] = {"node_update",
		"UPDATE node SET name = $1, provider_id = $2, address = $3, fqdn = $4, port = $5,"
		" tags = $6::text[], max_sessions = $7, load_multiplier = $8, mode = $9, "
		"mode_reason = $10,"
		" changed_at = now() WHERE id = $11 RETURNING id"},
	/* name, role, node id, hash in hexadecimal, tags, see_sessions, expires, revoked; $9: the
	 * name of the node created just before, in place of its id */
	[SQL_TOKEN_INSERT] = {"token_insert",
		"INSERT INTO token (name, role, node_id, hash, tags, see_sessions, expires_at, "
		"revoked)"
		" VALUES ($1, $2, coalesce($3::int, (SELECT n.id FROM node n WHERE n.name = "
		"$9::text)),"
		" decode($4, 'hex'), $5::text[], $6, " MOMENT("$7::bigint") ", $8) RETURNING id"},
	/* the same eight, and the id */
	[SQL_TOKEN_UPDATE] = {"token_update",
		"UPDATE token SET name = $1, role = $2, node_id = $3, hash = decode($4, 'hex'),"
		" tags = $5::text[], see_sessions = $6, expires_at = " MOMENT(
			"$7::bigint") ", revoked = $8,"
				      " changed_at = now() WHERE id = $9 RETURNING id"},
	[SQL_TOKEN_POOLS_DELETE] = {"token_pools_delete",
		"DELETE FROM token_pool WHERE token_id = $1"},
	/* the token's name, an array of pool ids */
	[SQL_TOKEN_POOLS_INSERT] = {"token_pools_insert",
		"INSERT INTO token_pool (token_id, pool_id) SELECT DISTINCT t.id, u.pool_id"
		" FROM token t, unnest($2::int[]) AS u (pool_id) WHERE t.name = $1"},
	[SQL_PROVIDER_DELETE] = {"provider_delete",
		"DELETE FROM provider WHERE id = $1 RETURNING id"},
	[SQL_POOL_DELETE] = {"pool_delete", "DELETE FROM pool WHERE id = $1 RETURNING id"},
	[SQL_NODE_DELETE] = {"node_delete", "DELETE FROM node WHERE id = $1 RETURNING id"},
	[SQL_TOKEN_DELETE] = {"token_delete", "DELETE FROM token WHERE id = $1 RETURNING id"},
	[SQL_SESSION_FORGET] = {"session_forget",
		"DELETE FROM session WHERE node_id = $1 AND id = $2 RETURNING node_id"},

	[SQL_BEGIN_SNAPSHOT] = {"begin_snapshot",
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	/* for this transaction: a load may take its time, a look into the journal may not */
	[SQL_LOAD_PATIENCE] = {"load_patience",
		"SELECT set_config('statement_timeout', '60000', true)"},
	[SQL_LOAD_CLUSTER] = {"load_cluster", "SELECT cluster_id::text, route_secret FROM cluster"},
	[SQL_LOAD_PROVIDERS] = {"load_providers",
		"SELECT id, name, share_sessions, balance_by_metrics, prefer_sharing, "
		"on_mass_silence,"
		" cpu_rule, cpu_zero, cpu_full, memory_rule, memory_zero, memory_full, "
		"sessions_rule,"
		" load_script_rule, mode, mode_reason FROM provider ORDER BY id"},
	[SQL_LOAD_POOLS] = {"load_pools",
		"SELECT id, name, provider_id, default_tags, forced_tags, "
		"array_to_string(allowed_tags, ','),"
		" untagged_default, rdp_extra, mode, mode_reason FROM pool ORDER BY id"},
	[SQL_LOAD_NODES] = {"load_nodes",
		"SELECT id, name, provider_id, address, fqdn, port, array_to_string(tags, ','), "
		"max_sessions,"
		" load_multiplier, mode, mode_reason, voice, boot_id, "
		"array_to_string(old_boot_ids, ' '),"
		" seq, accepting, cpu_busy, cpu_count, memory_total, memory_available, custom_load,"
		" metric_missing, window_samples, window_seconds, load_index, full_told, "
		"sessions_complete,"
		" heard_at, agent_version, agent_address"
		" FROM node LEFT JOIN node_load ON node_id = id ORDER BY id"},
	[SQL_LOAD_TOKENS] = {"load_tokens", "SELECT id, name, role, node_id, hash, (SELECT "
					    "string_agg(pool_id::text, ',' ORDER BY pool_id)"
					    " FROM token_pool WHERE token_id = id), "
					    "array_to_string(tags, ','), see_sessions, expires_at,"
					    " revoked FROM token ORDER BY id"},
	[SQL_LOAD_SESSIONS] = {"load_sessions", "SELECT node_id, id, user_key, display, client, "
						"active, since, first_seen FROM session"
						" ORDER BY node_id, id"},
	[SQL_COMMIT] = {"commit", "COMMIT"},
	/* after, least level, limit; with a pool: its id, its provider's id */
	[SQL_READ_EVENTS] = {"read_events", ANY_EVENTS("ASC")},
	[SQL_READ_POOL_EVENTS] = {"read_pool_events", POOL_EVENTS("ASC")},
	[SQL_READ_NEWEST_EVENTS] = {"read_newest_events", ANY_EVENTS("DESC")},
	[SQL_READ_NEWEST_POOL_EVENTS] = {"read_newest_pool_events", POOL_EVENTS("DESC")},
};

const char *statement_name(enum statement s)
{
	return texts[s].name;
}

const char *statement_text(enum statement s)
{
	return texts[s].text;
}
