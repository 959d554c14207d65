-- SPDX-License-Identifier: ISC
--
-- Run once, by a superuser, before the first `termbroker db migrate`:
--
--     sudo -u postgres psql -d postgres -f bootstrap.sql
--     sudo -u postgres psql -d postgres -v database=brokers -f bootstrap.sql   (another name)
--
-- It makes what only a superuser may make: two roles and the database. Everything inside the
-- database is made by the migrations. Running it again changes nothing.
--
--   termbroker_owner  owns the database and the schema; only migrations act as it. It has no
--                     password: whoever migrates is a superuser, a member of it, or comes in
--                     by the peer method.
--   termbrokerd       the service. It owns nothing; the migrations grant it what it needs. It has
--                     no password at first: the peer method lets the system user of the same name in;
--                     for a database on another machine set one with \password termbrokerd.
\set ON_ERROR_STOP on
\if :{?database}
\else
	\set database termbroker
\endif

SELECT 'CREATE ROLE termbroker_owner LOGIN'
	WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'termbroker_owner') \gexec
SELECT 'CREATE ROLE termbrokerd LOGIN'
	WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'termbrokerd') \gexec
-- User names and texts are UTF-8; what must sort by byte says so in the schema.
SELECT format('CREATE DATABASE %I OWNER termbroker_owner ENCODING ''UTF8'' TEMPLATE template0', :'database')
	WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec

REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO termbrokerd;
