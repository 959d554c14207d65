-- SPDX-License-Identifier: ISC
--
-- The tables. Names, tags and lengths are held to the same rules as on the wire, so that a program's mistake
-- cannot leave a row that another program refuses to load. Text compares by byte (COLLATE "C"):
-- names are case-sensitive and their order must not depend on the server's locale.

CREATE TABLE schema_migration (
	version integer PRIMARY KEY CHECK (version > 0),
	name text COLLATE "C" NOT NULL UNIQUE,
	sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
	applied_at timestamptz NOT NULL DEFAULT now(),
	applied_by text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE schema_migration IS 'the numbered files that made this schema, with the hash of their text';

CREATE TABLE cluster (
	one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
	cluster_id uuid NOT NULL DEFAULT gen_random_uuid(),
	created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cluster IS 'one row: the identity by which agents and dispatchers know this cluster';
INSERT INTO cluster DEFAULT VALUES;

CREATE DOMAIN object_name AS text COLLATE "C"
	CONSTRAINT object_name_syntax CHECK (VALUE ~ '^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$');
COMMENT ON DOMAIN object_name IS 'the name of a provider, pool, node or token';

CREATE DOMAIN tag_name AS text COLLATE "C"
	CONSTRAINT tag_name_syntax CHECK (VALUE ~ '^[A-Za-z0-9._][A-Za-z0-9._-]{0,63}$' AND VALUE NOT IN ('none', 'any'));
COMMENT ON DOMAIN tag_name IS 'one tag of a node; none and any are words of a request';

CREATE DOMAIN tag_set AS tag_name[]
	CONSTRAINT tag_set_size CHECK (cardinality(VALUE) <= 32 AND array_ndims(VALUE) IS NOT DISTINCT FROM nullif(least(cardinality(VALUE), 1), 0)
		AND array_position(VALUE, NULL) IS NULL);
COMMENT ON DOMAIN tag_set IS 'at most 32 tags, none of them null';

CREATE DOMAIN host_address AS text COLLATE "C"
	CONSTRAINT host_address_syntax CHECK (VALUE ~ '^[A-Za-z0-9:._-]{1,255}$');
COMMENT ON DOMAIN host_address IS 'an IPv4 or IPv6 address without brackets, or a host name';

CREATE DOMAIN reason_text AS text
	CONSTRAINT reason_text_length CHECK (octet_length(VALUE) <= 256);

CREATE TYPE admin_mode AS ENUM ('enabled', 'drain', 'disabled');
CREATE TYPE mass_silence_rule AS ENUM ('refuse', 'keep');
CREATE TYPE untagged_rule AS ENUM ('none', 'any');
CREATE TYPE token_role AS ENUM ('agent', 'client', 'auditor', 'admin');
CREATE TYPE node_voice AS ENUM ('never', 'silent', 'heard');
CREATE TYPE event_level AS ENUM ('DEBUG', 'INFO', 'WARNING', 'ERROR');

CREATE TABLE provider (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name object_name NOT NULL CONSTRAINT provider_name_key UNIQUE,
	share_sessions boolean NOT NULL,
	balance_by_metrics boolean NOT NULL,
	prefer_sharing boolean NOT NULL,
	on_mass_silence mass_silence_rule NOT NULL,
	cpu_rule boolean NOT NULL,
	cpu_zero integer NOT NULL,
	cpu_full integer NOT NULL,
	memory_rule boolean NOT NULL,
	memory_zero integer NOT NULL,
	memory_full integer NOT NULL,
	sessions_rule boolean NOT NULL,
	load_script_rule boolean NOT NULL,
	mode admin_mode NOT NULL,
	mode_reason reason_text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	changed_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT provider_cpu_points CHECK (0 <= cpu_zero AND cpu_zero < cpu_full AND cpu_full <= 10000),
	CONSTRAINT provider_memory_points CHECK (0 <= memory_zero AND memory_zero < memory_full AND memory_full <= 10000)
);
COMMENT ON TABLE provider IS 'a set of nodes balanced together; zero and full points in hundredths of a percent';

CREATE TABLE pool (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name object_name NOT NULL CONSTRAINT pool_name_key UNIQUE,
	provider_id integer NOT NULL CONSTRAINT pool_provider_fkey REFERENCES provider,
	default_tags text NOT NULL,
	forced_tags text NOT NULL,
	allowed_tags tag_set NOT NULL,
	untagged_default untagged_rule NOT NULL,
	rdp_extra text NOT NULL,
	mode admin_mode NOT NULL,
	mode_reason reason_text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	changed_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT pool_tags_length CHECK (octet_length(default_tags) <= 1024 AND octet_length(forced_tags) <= 1024),
	CONSTRAINT pool_rdp_extra_length CHECK (octet_length(rdp_extra) <= 1023)
);
CREATE INDEX pool_provider ON pool (provider_id);
COMMENT ON TABLE pool IS 'what a client asks for: served by one provider, with a rule about tags';

CREATE TABLE node (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name object_name NOT NULL CONSTRAINT node_name_key UNIQUE,
	provider_id integer NOT NULL CONSTRAINT node_provider_fkey REFERENCES provider,
	address host_address NOT NULL,
	fqdn text COLLATE "C" NOT NULL,
	port integer NOT NULL,
	tags tag_set NOT NULL,
	max_sessions integer NOT NULL,
	load_multiplier integer NOT NULL,
	mode admin_mode NOT NULL,
	mode_reason reason_text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	changed_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT node_fqdn_syntax CHECK (fqdn = '' OR fqdn ~ '^[A-Za-z0-9:._-]{1,255}$'),
	CONSTRAINT node_port_range CHECK (port BETWEEN 1 AND 65535),
	CONSTRAINT node_max_sessions_range CHECK (max_sessions >= 0),
	CONSTRAINT node_load_multiplier_range CHECK (load_multiplier BETWEEN 1 AND 1000000)
);
-- Host names are the same in any case.
CREATE UNIQUE INDEX node_address_port_key ON node (lower(address), port);
CREATE INDEX node_provider ON node (provider_id);
COMMENT ON TABLE node IS 'a terminal server, as the administrator set it; load_multiplier in ten-thousandths, max_sessions 0 = no limit';

-- Heartbeats update every row of this table every few seconds: narrow, no index beyond the key and
-- room in each page, so that the new version of a row stays beside the old one (HOT).
CREATE TABLE node_load (
	node_id integer PRIMARY KEY REFERENCES node ON DELETE CASCADE,
	voice node_voice NOT NULL,
	boot_id text COLLATE "C" NOT NULL CHECK (octet_length(boot_id) <= 36),
	old_boot_ids text[] NOT NULL CHECK (cardinality(old_boot_ids) <= 4),
	seq bigint NOT NULL CHECK (seq >= 0),
	accepting boolean NOT NULL,
	cpu_busy integer CHECK (cpu_busy BETWEEN 0 AND 10000),
	cpu_count integer CHECK (cpu_count >= 0),
	memory_total bigint CHECK (memory_total > 0),
	memory_available bigint CHECK (memory_available >= 0),
	custom_load integer CHECK (custom_load BETWEEN 0 AND 10000),
	metric_missing boolean NOT NULL,
	window_samples integer NOT NULL CHECK (window_samples >= 0),
	window_seconds integer NOT NULL CHECK (window_seconds >= 0),
	load_index integer CHECK (load_index BETWEEN 0 AND 10000),
	full_told boolean NOT NULL,
	sessions_complete boolean NOT NULL,
	heard_at timestamptz,
	agent_version text NOT NULL CHECK (octet_length(agent_version) <= 32),
	agent_address text NOT NULL CHECK (octet_length(agent_address) <= 255),
	CONSTRAINT node_load_memory CHECK (memory_available <= memory_total),
	CONSTRAINT node_load_memory_both CHECK ((memory_total IS NULL) = (memory_available IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
COMMENT ON TABLE node_load IS 'what the node''s agent said last and the load index made of it; null = that metric was not reported; percentages in hundredths';

CREATE TABLE session (
	node_id integer NOT NULL REFERENCES node ON DELETE CASCADE,
	id text COLLATE "C" NOT NULL CONSTRAINT session_id_syntax CHECK (id ~ '^[\x20-\x7e]{1,64}$'),
	user_key text COLLATE "C" NOT NULL CONSTRAINT session_user_key_length CHECK (octet_length(user_key) BETWEEN 1 AND 3151),
	display text NOT NULL CONSTRAINT session_display_length CHECK (octet_length(display) <= 1024),
	client text NOT NULL CONSTRAINT session_client_length CHECK (octet_length(client) <= 256),
	active boolean NOT NULL,
	since timestamptz,
	first_seen timestamptz NOT NULL,
	PRIMARY KEY (node_id, id)
) WITH (fillfactor = 80);
COMMENT ON TABLE session IS 'the users'' sessions as the agents report them; display is empty where it equals user_key';

CREATE TABLE token (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name object_name NOT NULL CONSTRAINT token_name_key UNIQUE,
	role token_role NOT NULL,
	node_id integer CONSTRAINT token_node_fkey REFERENCES node ON DELETE CASCADE,
	hash bytea NOT NULL CONSTRAINT token_hash_key UNIQUE CHECK (octet_length(hash) = 32),
	tags tag_set NOT NULL,
	see_sessions boolean NOT NULL,
	expires_at timestamptz,
	revoked boolean NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	changed_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT token_agent_has_node CHECK ((role = 'agent') = (node_id IS NOT NULL))
);
CREATE INDEX token_node ON token (node_id) WHERE node_id IS NOT NULL;
COMMENT ON TABLE token IS 'who may call: the SHA-256 of a token, never the token';

-- A token without rows here may ask for every pool. So a pool that a token names cannot be removed: the last row
-- would take the limit along.
CREATE TABLE token_pool (
	token_id integer NOT NULL REFERENCES token ON DELETE CASCADE,
	pool_id integer NOT NULL CONSTRAINT token_pool_pool_fkey REFERENCES pool,
	PRIMARY KEY (token_id, pool_id)
);
CREATE INDEX token_pool_pool ON token_pool (pool_id);
COMMENT ON TABLE token_pool IS 'the pools a client token is limited to';

-- No foreign keys: the journal outlives what it tells of, so it keeps the names too.
CREATE TABLE event (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	request_id uuid NOT NULL CONSTRAINT event_request_id_key UNIQUE,
	at timestamptz NOT NULL,
	dispatcher text NOT NULL CHECK (octet_length(dispatcher) BETWEEN 1 AND 255),
	level event_level NOT NULL,
	name text COLLATE "C" NOT NULL CONSTRAINT event_name_syntax CHECK (name ~ '^[a-z][a-z0-9-]{0,63}$'),
	provider_id integer,
	provider text,
	pool_id integer,
	pool text,
	node_id integer,
	node text,
	params json NOT NULL CONSTRAINT event_params_object CHECK (json_typeof(params) = 'object' AND octet_length(params::text) <= 65536)
);
CREATE INDEX event_pool ON event (pool_id, id) WHERE pool_id IS NOT NULL;
CREATE INDEX event_provider ON event (provider_id, id) WHERE pool_id IS NULL AND provider_id IS NOT NULL;
COMMENT ON TABLE event IS 'the journal: append-only for the service; the text is made from name and params when it is read';
