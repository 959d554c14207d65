/* SPDX-License-Identifier: ISC */
/*
 * An operation sends its statements in one segment: for a change the change and then its event, for
 * a removal the event first, while names can still be looked up. The event's statement writes
 * nothing unless the object exists, so what was not there leaves no event either.
 */
#include "store/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "store/admin_params.h"

static const struct segment_class operation_class;

static void free_operation(void *op)
{
	operation_free(op);
}

struct operation *operation_new(enum operation_kind kind, struct queue *q, const struct event *ev,
	store_done *done, void *ctx)
{
	struct operation *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->segment.class = &operation_class;
	op->kind = kind;
	op->answer = (struct answer){.done = done, .ctx = ctx, .asked = op, .free = free_operation};
	if (ev) {
		op->event = queue_event_row(q, ev);
		if (!op->event) {
			free(op);
			return NULL;
		}
	}
	return op;
}

void operation_free(struct operation *op)
{
	if (!op)
		return;
	if (op->event)
		row_free(&op->event->row);
	free(op);
}

/* ---- sending ---- */

static const char *object_word(const struct operation *op)
{
	static const char *const words[] = {"provider", "pool", "node", "token"};

	if (op->kind == OPERATION_FORGET_SESSION)
		return "session";
	return words[op->kind == OPERATION_REMOVE ? (int)op->of.removed : (int)op->kind];
}

static const char *object_name(const struct operation *op)
{
	switch (op->kind) {
	case OPERATION_PROVIDER:
		return op->of.provider.name;
	case OPERATION_POOL:
		return op->of.pool.name;
	case OPERATION_NODE:
		return op->of.node.name;
	case OPERATION_TOKEN:
		return op->token.name;
	default:
		return "";
	}
}

/* The parameters of SQL_EVENT_WITH_OBJECT. */
static bool send_event(const struct operation *op, PGconn *conn)
{
	const struct event_row_queued *e = op->event;
	struct params p;
	char object[32];

	if (!e)
		return true;
	params_init(&p);
	params_text(&p, e->request_id);
	params_i64(&p, e->time_us);
	params_text(&p, event_level_name(e->level));
	params_text(&p, e->name);
	params_id(&p, e->provider_id);
	params_id(&p, e->pool_id);
	params_text(&p, e->pool);
	params_id(&p, e->node_id);
	params_text(&p, e->params);
	params_text(&p, op->dispatcher);
	snprintf(object, sizeof(object), "%s%s", op->id ? "" : "new-", object_word(op));
	params_text(&p, object);
	params_id(&p, op->id);
	params_text(&p, op->kind == OPERATION_FORGET_SESSION ? op->of.session : NULL);
	params_text(&p, op->id ? NULL : object_name(op));
	return params_send(&p, conn, SQL_EVENT_WITH_OBJECT);
}

static bool send_provider(const struct operation *op, PGconn *conn)
{
	struct params p;

	params_init(&p);
	params_provider(&p, &op->of.provider);
	if (op->id)
		params_id(&p, op->id);
	return params_send(&p, conn, op->id ? SQL_PROVIDER_UPDATE : SQL_PROVIDER_INSERT);
}

static bool send_pool(const struct operation *op, PGconn *conn)
{
	struct params p;

	params_init(&p);
	params_pool(&p, &op->of.pool);
	if (op->id)
		params_id(&p, op->id);
	return params_send(&p, conn, op->id ? SQL_POOL_UPDATE : SQL_POOL_INSERT);
}

/* NODE_NAME: the node created just before, or NULL. */
static bool send_token(const struct operation *op, const char *node_name, PGconn *conn)
{
	const struct token_spec *t = &op->token;
	struct params p;

	params_init(&p);
	params_token(&p, t);
	if (t->id)
		params_id(&p, t->id);
	else
		params_text(&p, node_name);
	if (!params_send(&p, conn, t->id ? SQL_TOKEN_UPDATE : SQL_TOKEN_INSERT))
		return false;
	if (t->id) {
		params_init(&p);
		params_id(&p, t->id);
		if (!params_send(&p, conn, SQL_TOKEN_POOLS_DELETE))
			return false;
	}
	if (t->pool_count == 0)
		return true;
	params_init(&p);
	params_text(&p, t->name);
	params_ids(&p, t->pool_ids, t->pool_count);
	return params_send(&p, conn, SQL_TOKEN_POOLS_INSERT);
}

static bool send_node(const struct operation *op, PGconn *conn)
{
	struct params p;

	params_init(&p);
	params_node(&p, &op->of.node);
	if (op->id)
		params_id(&p, op->id);
	if (!params_send(&p, conn, op->id ? SQL_NODE_UPDATE : SQL_NODE_INSERT))
		return false;
	return !op->has_token || send_token(op, op->of.node.name, conn);
}

static bool send_removal(const struct operation *op, PGconn *conn)
{
	static const enum statement statements[] = {[STORE_PROVIDER] = SQL_PROVIDER_DELETE,
		[STORE_POOL] = SQL_POOL_DELETE,
		[STORE_NODE] = SQL_NODE_DELETE,
		[STORE_TOKEN] = SQL_TOKEN_DELETE};
	struct params p;

	params_init(&p);
	params_id(&p, op->id);
	if (op->kind == OPERATION_REMOVE)
		return params_send(&p, conn, statements[op->of.removed]);
	params_text(&p, op->of.session);
	return params_send(&p, conn, SQL_SESSION_FORGET);
}

static bool send_operation(struct segment *s, PGconn *conn)
{
	struct operation *op = (struct operation *)s;

	op->found = false;
	switch (op->kind) {
	case OPERATION_PROVIDER:
		return send_provider(op, conn) && send_event(op, conn);
	case OPERATION_POOL:
		return send_pool(op, conn) && send_event(op, conn);
	case OPERATION_NODE:
		return send_node(op, conn) && send_event(op, conn);
	case OPERATION_TOKEN:
		return send_token(op, NULL, conn) && send_event(op, conn);
	default:
		return send_event(op, conn) && send_removal(op, conn);
	}
}

/* ---- answers ---- */

/* Only the statements that change the object itself return rows: the object first, then a token. */
static void take_result(struct segment *s, unsigned index, const PGresult *result)
{
	struct operation *op = (struct operation *)s;
	uint32_t id;

	if (PQntuples(result) != 1)
		return;
	id = (uint32_t)strtoul(PQgetvalue(result, 0, 0), NULL, 10);
	if (!op->found)
		op->answer.id = id;
	else
		op->new_token_id = id;
	op->found = true;
}

static void explain_taken(struct operation *op, const struct fault *f)
{
	const struct node_spec *n = &op->of.node;

	if (strcmp(f->constraint, "node_address_port_key") == 0) {
		op->answer.result = -EADDRINUSE;
		err_set(&op->answer.why, 0, "another node has address %s port %u", n->address,
			n->port);
	} else if (strcmp(f->constraint, "node_name_any_case_key") == 0)
		err_set(&op->answer.why, 0,
			"a node whose name differs from \"%s\" in case alone exists already",
			n->name);
	else if (strcmp(f->constraint, "token_hash_key") == 0)
		err_set(&op->answer.why, 0, "another token has this value");
	else if (strcmp(f->constraint, "token_name_key") == 0)
		err_set(&op->answer.why, 0, "a token named \"%s\" exists already", op->token.name);
	else
		err_set(&op->answer.why, 0, "a %s named \"%s\" exists already", object_word(op),
			object_name(op));
}

/* A foreign key: of a removal something still refers to it, of a change what it refers to is not
 * there. */
static void explain_reference(struct operation *op, const struct fault *f)
{
	if (op->kind == OPERATION_REMOVE) {
		op->answer.result = -EBUSY;
		err_set(&op->answer.why, 0, "%s",
			strcmp(f->table, "pool") == 0	      ? "the provider still serves a pool"
			: strcmp(f->table, "node") == 0	      ? "the provider still has nodes"
			: strcmp(f->table, "token_pool") == 0 ? "a token is limited to this pool"
							      : f->message.text);
		return;
	}
	op->answer.result = -ENOENT;
	err_set(&op->answer.why, 0, "there is no such %s",
		strstr(f->constraint, "_provider_fkey") ? "provider"
		: strstr(f->constraint, "_pool_fkey")	? "pool"
							: "node");
}

static void explain(struct operation *op, const struct fault *f)
{
	op->answer.result = fault_result(f->sqlstate);
	switch (op->answer.result) {
	case -EEXIST:
		explain_taken(op, f);
		break;
	case -EBUSY:
		explain_reference(op, f);
		break;
	case -EINVAL:
		if (f->constraint[0])
			err_set(&op->answer.why, 0, "the database refused a value (constraint %s)",
				f->constraint);
		else
			err_set(&op->answer.why, 0, "the database refused a value: %s",
				f->message.text);
		break;
	default:
		err_set(&op->answer.why, 0, "%s", f->message.text);
	}
}

static void answered(struct segment *s, enum segment_end end, const struct fault *fault)
{
	struct operation *op = (struct operation *)s;

	if (end == SEGMENT_LOST) {
		op->answer.result = strcmp(fault->sqlstate, "57014") == 0 ? -ETIMEDOUT : -ENOTCONN;
		err_set(&op->answer.why, 0,
			"the database was lost before it answered (%s): unknown whether done",
			fault->message.text);
	} else if (end == SEGMENT_REFUSED) {
		explain(op, fault);
	} else if (!op->found) {
		op->answer.result = -ENOENT;
		err_set(&op->answer.why, 0, "there is no such %s", object_word(op));
	}
	op->settled(op->owner, op);
}

static const struct segment_class operation_class = {
	.send = send_operation, .result = take_result, .done = answered};
