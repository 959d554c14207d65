/* SPDX-License-Identifier: ISC */
/*
 * Every SQL text that the running dispatcher sends, prepared once per connection. The order of the
 * parameters is the contract with the caller: it stands beside each text.
 */
#pragma once

enum statement {
	/* the writing connection */
	SQL_NODE_LOAD_UPSERT,
	SQL_SESSION_DELETE,
	SQL_SESSION_UPSERT,
	SQL_EVENT_INSERT,
	SQL_EVENT_WITH_OBJECT,
	SQL_PROVIDER_INSERT,
	SQL_PROVIDER_UPDATE,
	SQL_POOL_INSERT,
	SQL_POOL_UPDATE,
	SQL_NODE_INSERT,
	SQL_NODE_UPDATE,
	SQL_TOKEN_INSERT,
	SQL_TOKEN_UPDATE,
	SQL_TOKEN_POOLS_DELETE,
	SQL_TOKEN_POOLS_INSERT,
	SQL_PROVIDER_DELETE,
	SQL_POOL_DELETE,
	SQL_NODE_DELETE,
	SQL_TOKEN_DELETE,
	SQL_SESSION_FORGET,
	SQL_WRITER_END, /* number of the above */
	/* the reading connection; all answer in binary */
	SQL_BEGIN_SNAPSHOT = SQL_WRITER_END,
	SQL_LOAD_PATIENCE,
	SQL_LOAD_CLUSTER,
	SQL_LOAD_PROVIDERS,
	SQL_LOAD_POOLS,
	SQL_LOAD_NODES,
	SQL_LOAD_TOKENS,
	SQL_LOAD_SESSIONS,
	SQL_COMMIT,
	SQL_READ_EVENTS,
	SQL_READ_POOL_EVENTS,
	SQL_READ_NEWEST_EVENTS,
	SQL_READ_NEWEST_POOL_EVENTS,
	SQL_END
};

/* The name it is prepared under, and its text. */
const char *statement_name(enum statement s);
const char *statement_text(enum statement s);
