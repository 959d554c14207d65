/* SPDX-License-Identifier: ISC */
/*
 * Each kind of row is a run in the sorted list, and each run is one statement. The columns are
 * written in the order of the statement's parameters.
 */
#include "store/batch_rows.h"

#include <string.h>

#include "store/array.h"
#include "store/pipeline.h"

#define COLUMN_MAX ((size_t)256 << 20)

void batch_rows_init(struct batch_rows *b, const char *dispatcher)
{
	b->dispatcher = dispatcher;
	for (size_t i = 0; i < BATCH_COLUMNS; i++)
		buf_init(&b->columns[i], COLUMN_MAX);
}

void batch_rows_deinit(struct batch_rows *b)
{
	for (size_t i = 0; i < BATCH_COLUMNS; i++)
		buf_deinit(&b->columns[i]);
}

static const struct node *node_of(const struct row *r)
{
	return ((const struct node_row *)r)->node;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int batch_rows_compare(const void *pa, const void *pb)
{
	const struct row *a = *(struct row *const *)pa, *b = *(struct row *const *)pb;
	const struct session_row *s = (const struct session_row *)a,
				 *t = (const struct session_row *)b;
	int c;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == ROW_NODE)
		return compare_numbers(node_of(a)->spec.id, node_of(b)->spec.id);
	if (a->kind == ROW_EVENT)
		return compare_numbers(a->seq, b->seq);
	c = compare_numbers(s->node_id, t->node_id);
	return c ? c : strcmp(s->id, t->id);
}

static uint64_t at_most(uint64_t value, uint64_t max)
{
	return value < max ? value : max;
}

static void add_or_null(struct buf *b, bool known, uint64_t value)
{
	if (known)
		array_u64(b, value);
	else
		array_null(b);
}

static const char *voice_name(enum node_voice voice)
{
	return voice == NODE_HEARD ? "heard" : voice == NODE_SILENT ? "silent" : "never";
}

static void add_old_boot_ids(struct buf *column, const struct node *n)
{
	char text[4 * LIMIT_BOOT_ID_SIZE] = "";
	size_t len = 0;

	for (size_t i = 0; i < 4; i++) {
		size_t more = strlen(n->old_boot_ids[i]);

		if (more == 0)
			continue;
		if (len > 0)
			text[len++] = ' ';
		memcpy(text + len, n->old_boot_ids[i], more + 1);
		len += more;
	}
	array_text(column, text);
}

/* Numbers beyond the column's type are cut rather than refused: a node's own nonsense must not cost
 * its row. */
static void add_node(struct buf *c, const struct node *n)
{
	const struct node_metrics *m = &n->metrics;

	array_u64(c++, n->spec.id);
	array_text(c++, voice_name(n->voice));
	array_text(c++, n->boot_id);
	add_old_boot_ids(c++, n);
	array_u64(c++, at_most(n->seq, INT64_MAX));
	array_bool(c++, n->accepting);
	add_or_null(c++, m->has_cpu, m->cpu_busy);
	add_or_null(c++, m->has_cpu, at_most(m->cpu_count, INT32_MAX));
	add_or_null(c++, m->has_memory, at_most(m->memory_total, INT64_MAX));
	add_or_null(c++, m->has_memory, at_most(m->memory_available, INT64_MAX));
	add_or_null(c++, m->has_custom_load, m->custom_load);
	array_bool(c++, m->missing);
	array_u64(c++, at_most(m->window_samples, INT32_MAX));
	array_u64(c++, at_most(m->window_seconds, INT32_MAX));
	add_or_null(c++, n->has_index, n->index);
	array_bool(c++, n->full_told);
	array_bool(c++, n->sessions_complete);
	add_or_null(c++, n->heard_wall_us > 0, (uint64_t)n->heard_wall_us);
	array_text(c++, n->agent_version);
	array_text(c, n->agent_address);
}

/* Microseconds; beyond the year 9999 lies what no clock said. */
static uint64_t moment(int64_t ms)
{
	return ms > 0 ? at_most((uint64_t)ms, UINT64_C(253402300799999)) * 1000 : 0;
}

static void add_session(struct buf *c, const struct session_row *s)
{
	array_u64(c++, s->node_id);
	array_text(c++, s->id);
	if (s->row.kind == ROW_SESSION_ENDED)
		return;
	array_text(c++, s->user_key);
	array_text(c++, s->display);
	array_text(c++, s->client);
	array_bool(c++, s->active);
	add_or_null(c++, s->since_ms > 0, moment(s->since_ms));
	array_u64(c, moment(s->first_seen_ms));
}

static void add_event(struct buf *c, const struct event_row_queued *e)
{
	array_text(c++, e->request_id);
	array_i64(c++, e->time_us);
	array_text(c++, event_level_name(e->level));
	array_text(c++, e->name);
	add_or_null(c++, e->provider_id != 0, e->provider_id);
	add_or_null(c++, e->pool_id != 0, e->pool_id);
	array_text(c++, e->pool);
	add_or_null(c++, e->node_id != 0, e->node_id);
	array_text(c, e->params);
}

struct shape {
	enum statement statement;
	size_t columns;
};

static const struct shape shapes[] = {
	[ROW_NODE] = {SQL_NODE_LOAD_UPSERT, 20},
	[ROW_SESSION_ENDED] = {SQL_SESSION_DELETE, 2},
	[ROW_SESSION] = {SQL_SESSION_UPSERT, 8},
	[ROW_EVENT] = {SQL_EVENT_INSERT, 9},
};

static void add_row(struct batch_rows *b, const struct row *r)
{
	switch (r->kind) {
	case ROW_NODE:
		if (node_of(r))
			add_node(b->columns, node_of(r));
		break;
	case ROW_EVENT:
		add_event(b->columns, (const struct event_row_queued *)r);
		break;
	default:
		add_session(b->columns, (const struct session_row *)r);
	}
}

static bool send_run(struct batch_rows *b, struct row *const *rows, size_t count, PGconn *conn)
{
	const struct shape *shape = &shapes[rows[0]->kind];
	const char *values[BATCH_COLUMNS];
	size_t n = shape->columns;

	for (size_t i = 0; i < n; i++)
		array_begin(&b->columns[i]);
	for (size_t i = 0; i < count; i++)
		add_row(b, rows[i]);
	for (size_t i = 0; i < n; i++) {
		array_end(&b->columns[i]);
		if (buf_error(&b->columns[i]))
			return false;
		values[i] = buf_str(&b->columns[i]);
	}
	if (rows[0]->kind == ROW_EVENT)
		values[n++] = b->dispatcher;
	return segment_query(conn, shape->statement, n, values);
}

bool batch_rows_send(struct batch_rows *b, struct row *const *rows, size_t count, PGconn *conn)
{
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && rows[to]->kind == rows[from]->kind;)
			to++;
		if (!send_run(b, rows + from, to - from, conn))
			return false;
	}
	return true;
}

void batch_rows_describe(const struct row *r, struct err *ret)
{
	const struct session_row *s = (const struct session_row *)r;

	switch (r->kind) {
	case ROW_NODE:
		err_set(ret, 0, "the state of node \"%s\"",
			node_of(r) ? node_of(r)->spec.name : "");
		break;
	case ROW_EVENT:
		err_set(ret, 0, "an event %s", ((const struct event_row_queued *)r)->name);
		break;
	default:
		err_set(ret, 0, "session \"%s\" of node %u", s->id, s->node_id);
	}
}
