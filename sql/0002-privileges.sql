-- SPDX-License-Identifier: ISC
--
-- What the service's role may do, and nothing else: it owns nothing, so it can drop, alter and truncate
-- nothing; of the journal it can only read and append. Deletes that follow a foreign key run with the
-- owner's rights.
DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'termbrokerd') THEN
		RAISE EXCEPTION 'role "termbrokerd" does not exist: a superuser must run bootstrap.sql first';
	END IF;
END
$$;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO termbrokerd;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;

GRANT SELECT ON schema_migration, cluster TO termbrokerd;
GRANT SELECT, INSERT, UPDATE, DELETE ON provider, pool, node, token, session TO termbrokerd;
GRANT SELECT, INSERT, UPDATE ON node_load TO termbrokerd;
GRANT SELECT, INSERT, DELETE ON token_pool TO termbrokerd;
GRANT SELECT, INSERT ON event TO termbrokerd;
