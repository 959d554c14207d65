#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""sql/: what the service's role may and may not do, and what the constraints refuse."""

import os
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import PrivatePostgres, Suite

SQL = Path(__file__).resolve().parents[2] / "sql"
TABLES = ("provider", "pool", "node", "node_load", "session", "token", "token_pool", "event",
          "cluster", "schema_migration")
suite = Suite("privileges")


def migrated(t):
    """A server with the schema, applied as the owner."""
    pg = PrivatePostgres(t)
    pg.bootstrap()
    for path in sorted(SQL.glob("[0-9]*.sql")):
        pg.psql(f"begin; {path.read_text()} ; commit", database="termbroker",
                user="termbroker_owner")
    return pg


def refused(pg, sql, words, user="termbrokerd"):
    done = pg.psql(sql, database="termbroker", user=user, check=False)
    assert done.returncode != 0, f"not refused: {sql}"
    assert words in done.stderr, f"{sql}: {done.stderr}"


PROVIDER = ("insert into provider (name, share_sessions, balance_by_metrics, prefer_sharing,"
            " on_mass_silence, cpu_rule, cpu_zero, cpu_full, memory_rule, memory_zero, memory_full,"
            " sessions_rule, load_script_rule, mode, mode_reason) values ({name}, true, true, true,"
            " 'refuse', true, {zero}, {full}, true, 0, 9500, true, true, {mode}, '')")
NODE = ("insert into node (name, provider_id, address, fqdn, port, tags, max_sessions,"
        " load_multiplier, mode, mode_reason) values ({name}, {provider}, {address}, '', {port},"
        " {tags}, {max}, {multiplier}, 'enabled', '')")
EVENT = ("insert into event (request_id, at, dispatcher, level, name, params) values"
         " (gen_random_uuid(), now(), 'd1', 'INFO', {name}, {params})")


def provider(name="'east'", zero=0, full=10000, mode="'enabled'"):
    return PROVIDER.format(name=name, zero=zero, full=full, mode=mode)


def node(name="'ts1'", provider="(select min(id) from provider)", address="'192.0.2.1'", port=3389,
         tags="'{gpu}'", max=0, multiplier=10000):
    return NODE.format(name=name, provider=provider, address=address, port=port, tags=tags, max=max,
                       multiplier=multiplier)


def event(name="'user-login'", params="'{}'"):
    return EVENT.format(name=name, params=params)


@suite.test
def the_service_owns_nothing_and_changes_no_schema(t):
    pg = migrated(t)
    owned = pg.psql("select count(*) from pg_shdepend where refobjid = 'termbrokerd'::regrole"
                    " and deptype = 'o'", database="termbroker")
    assert owned == "0", owned
    for table in TABLES:
        refused(pg, f"drop table {table} cascade", "must be owner")
        refused(pg, f"alter table {table} add column x int", "must be owner")
        refused(pg, f"truncate {table} cascade", "permission denied")
        refused(pg, f"create trigger x before insert on {table} execute function now()",
                "permission denied")
    refused(pg, "create table x (n int)", "permission denied")
    refused(pg, "create temporary table x (n int)", "permission denied")
    refused(pg, "drop schema public cascade", "must be owner")
    refused(pg, "set role termbroker_owner", "permission denied")


@suite.test
def the_journal_is_append_only(t):
    pg = migrated(t)
    pg.psql(event(), database="termbroker", user="termbrokerd")
    refused(pg, "update event set name = 'other'", "permission denied")
    refused(pg, "delete from event", "permission denied")
    refused(pg, "select setval('event_id_seq', 1)", "permission denied")
    refused(pg, "insert into event (id, request_id, at, dispatcher, level, name, params) values"
            " (1, gen_random_uuid(), now(), 'd1', 'INFO', 'x', '{}')", "GENERATED ALWAYS")
    for table in ("cluster", "schema_migration"):
        refused(pg, f"delete from {table}", "permission denied")
        refused(pg, f"insert into {table} default values", "permission denied")


@suite.test
def others_see_nothing(t):
    pg = migrated(t)
    pg.psql("create role stranger")
    for table in TABLES:
        refused(pg, f"set role stranger; select * from public.{table}", "permission denied",
                user="postgres")
    assert pg.psql("select has_database_privilege('stranger', 'termbroker', 'connect')") == "f"


@suite.test
def the_service_can_do_its_work(t):
    pg = migrated(t)
    pg.psql(f"{provider()}; {node()}; update node set port = 1; delete from node;"
            " delete from provider", database="termbroker", user="termbrokerd")


@suite.test
def every_table_says_what_it_is(t):
    pg = migrated(t)
    silent = pg.psql("select string_agg(relname, ' ') from pg_class where relkind = 'r' and"
                     " relnamespace = 'public'::regnamespace and obj_description(oid) is null",
                     database="termbroker")
    assert silent == "", silent


@suite.test
def names_tags_and_ranges_are_checked(t):
    pg = migrated(t)
    for name in ("''", "'-x'", "'.x'", "'a b'", "'a;b'", "repeat('a', 65)", "E'a\\n'", "'ж'"):
        refused(pg, provider(name=name), "object_name_syntax")
    for name in ("'a'", "repeat('a', 64)", "'_x'", "'A.b-c_1'"):
        pg.psql(provider(name=name), database="termbroker", user="termbrokerd")
    refused(pg, provider(name="'a'"), "provider_name_key")
    refused(pg, provider(name="'z'", zero=5000, full=5000), "provider_cpu_points")
    refused(pg, provider(name="'z'", zero=-1), "provider_cpu_points")
    refused(pg, provider(name="'z'", full=10001), "provider_cpu_points")
    refused(pg, provider(name="'z'", mode="'off'"), "invalid input value for enum")
    for tags in ("'{a;b}'", "'{none}'", "'{any}'", "'{-x}'", "'{\"\"}'", "'{NULL}'", "'{\"a b\"}'",
                 "'{{a},{b}}'", "array(select 't' || i from generate_series(1, 33) i)"):
        refused(pg, node(tags=tags), "tag_")
    for tags in ("'{}'", "'{gpu,.x,\"NULL\"}'"):
        pg.psql(f"{node(tags=tags)}; delete from node", database="termbroker", user="termbrokerd")
    refused(pg, node(port=0), "node_port_range")
    refused(pg, node(port=65536), "node_port_range")
    refused(pg, node(max=-1), "node_max_sessions_range")
    refused(pg, node(multiplier=0), "node_load_multiplier_range")
    refused(pg, node(multiplier=1000001), "node_load_multiplier_range")
    refused(pg, node(provider=4711), "node_provider_fkey")
    for address in ("''", "'a b'", "'[::1]'", "repeat('a', 256)", "'a/b'"):
        refused(pg, node(address=address), "host_address_syntax")
    pg.psql(node(address="'Host.example'"), database="termbroker", user="termbrokerd")
    refused(pg, node(name="'ts2'", address="'host.EXAMPLE'"), "node_address_port_key")
    refused(pg, node(address="'192.0.2.2'"), "node_name_key")
    refused(pg, "delete from provider", "node_provider_fkey")
    refused(pg, event(name="'User Login'"), "event_name_syntax")
    refused(pg, event(params="'[]'"), "event_params_object")


@suite.test
def migrations_need_the_service_role(t):
    pg = PrivatePostgres(t)
    pg.psql("create role termbroker_owner login; create database termbroker owner termbroker_owner")
    pg.psql((SQL / "0001-schema.sql").read_text(), database="termbroker", user="termbroker_owner")
    refused(pg, (SQL / "0002-privileges.sql").read_text(), 'role "termbrokerd" does not exist',
            user="termbroker_owner")


suite.main()
