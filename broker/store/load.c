/* SPDX-License-Identifier: ISC */
/*
 * One read after the other on the reading connection, between BEGIN and COMMIT of one snapshot. A
 * row that this program cannot understand ends the load: it means that the schema is not what it
 * says.
 */
#include "store/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"
#include "wire/route_token.h"

struct load {
	struct read read;
	struct reader *reader;
	const struct store_handler *handler;
	void *handler_ctx;
	const struct queue *queue;
	load_done *done;
	void *ctx;
	char cluster_id[LIMIT_BOOT_ID_SIZE];
	uint8_t route_key[ROUTE_KEY_SIZE];
};

static bool load_row(struct read *r, const PGresult *result, int i);
static void step_done(struct read *r, int result, const struct fault *fault);

struct load *load_new(const struct store_handler *handler, void *handler_ctx,
	const struct queue *queue, load_done *done, void *ctx)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct load){.handler = handler,
		.handler_ctx = handler_ctx,
		.queue = queue,
		.done = done,
		.ctx = ctx};
	l->read = (struct read){.progressing = true, .row = load_row, .done = step_done};
	return l;
}

void load_free(struct load *l)
{
	if (l)
		secret_wipe(l->route_key, sizeof(l->route_key));
	free(l);
}

const char *load_cluster_id(const struct load *l)
{
	return l->cluster_id;
}

const uint8_t *load_route_key(const struct load *l)
{
	return l->route_key;
}

bool load_start(struct load *l, struct reader *reader)
{
	l->reader = reader;
	l->read.statement = SQL_BEGIN_SNAPSHOT;
	if (!reader_send(reader, &l->read))
		return false;
	l->handler->load_begin(l->handler_ctx);
	return true;
}

static void step_done(struct read *r, int result, const struct fault *fault)
{
	struct load *l = (struct load *)r;

	if (result < 0 || r->statement == SQL_COMMIT) {
		l->done(l->ctx, result, fault);
		return;
	}
	r->statement++;
	reader_send(l->reader, r);
}

/* ---- rows: columns in the order of the statement ---- */

struct cursor {
	const PGresult *result;
	int row, column;
	bool bad;
};

static uint32_t next_u32(struct cursor *c)
{
	int32_t value = row_i32(c->result, c->row, c->column++);

	return value > 0 ? (uint32_t)value : 0;
}

static uint64_t next_u64(struct cursor *c)
{
	int64_t value = row_i64(c->result, c->row, c->column++);

	return value > 0 ? (uint64_t)value : 0;
}

static bool next_bool(struct cursor *c)
{
	return row_bool(c->result, c->row, c->column++);
}

static const char *next_text(struct cursor *c)
{
	return row_text(c->result, c->row, c->column++);
}

static bool next_null(const struct cursor *c)
{
	return row_null(c->result, c->row, c->column);
}

static void next_copy(struct cursor *c, char *ret, size_t size)
{
	if (text_copy(ret, size, next_text(c)) < 0)
		c->bad = true;
}

static struct load_rule next_rule(struct cursor *c)
{
	struct load_rule r;

	r.on = next_bool(c);
	r.zero = next_u32(c);
	r.full = next_u32(c);
	return r;
}

static enum admin_mode next_mode(struct cursor *c, char reason[LIMIT_REASON_SIZE])
{
	enum admin_mode mode = ADMIN_DISABLED;

	if (admin_mode_parse(next_text(c), &mode) < 0)
		c->bad = true;
	next_copy(c, reason, LIMIT_REASON_SIZE);
	return mode;
}

/* The next item of a list, cut off *AT; false at its end. */
static bool next_item(const char **at, char separator, char *ret, size_t size)
{
	const char *end = strchr(*at, separator);
	size_t len = end ? (size_t)(end - *at) : strlen(*at);

	if (len == 0 || len >= size)
		return false;
	memcpy(ret, *at, len);
	ret[len] = '\0';
	*at += end ? len + 1 : len;
	return true;
}

static void next_tags(struct cursor *c, struct tag_set *set)
{
	const char *at = next_text(c);
	char tag[LIMIT_NAME_SIZE];

	set->count = 0;
	while (next_item(&at, ',', tag, sizeof(tag))) {
		if (tag_set_add(set, tag, NULL) < 0)
			c->bad = true;
	}
	c->bad = c->bad || *at;
}

static bool load_provider(struct load *l, struct cursor *c)
{
	struct provider_spec s = {0};

	s.id = next_u32(c);
	next_copy(c, s.name, sizeof(s.name));
	s.share_sessions = next_bool(c);
	s.balance_by_metrics = next_bool(c);
	s.prefer_sharing = next_bool(c);
	if (mass_silence_parse(next_text(c), &s.on_mass_silence) < 0)
		c->bad = true;
	s.cpu = next_rule(c);
	s.memory = next_rule(c);
	s.sessions_rule = next_bool(c);
	s.load_script_rule = next_bool(c);
	s.mode = next_mode(c, s.mode_reason);
	if (!c->bad)
		l->handler->load_provider(l->handler_ctx, &s);
	return !c->bad;
}

static bool load_pool(struct load *l, struct cursor *c)
{
	struct pool_spec s = {0};

	s.id = next_u32(c);
	next_copy(c, s.name, sizeof(s.name));
	s.provider_id = next_u32(c);
	next_copy(c, s.default_tags, sizeof(s.default_tags));
	next_copy(c, s.forced_tags, sizeof(s.forced_tags));
	next_tags(c, &s.allowed_tags);
	s.untagged_default = strcmp(next_text(c), "any") == 0 ? UNTAGGED_ANY : UNTAGGED_NONE;
	next_copy(c, s.rdp_extra, sizeof(s.rdp_extra));
	s.mode = next_mode(c, s.mode_reason);
	if (!c->bad)
		l->handler->load_pool(l->handler_ctx, &s);
	return !c->bad;
}

static void next_metrics(struct cursor *c, struct node_metrics *m)
{
	m->has_cpu = !next_null(c);
	m->cpu_busy = next_u32(c);
	m->cpu_count = next_u32(c);
	m->has_memory = !next_null(c);
	m->memory_total = next_u64(c);
	m->memory_available = next_u64(c);
	m->has_custom_load = !next_null(c);
	m->custom_load = next_u32(c);
	m->missing = next_bool(c);
	m->window_samples = next_u32(c);
	m->window_seconds = next_u32(c);
}

static void next_stored(struct cursor *c, struct node_stored *s)
{
	const char *voice = next_text(c), *old;

	s->voice = strcmp(voice, "heard") == 0	  ? NODE_HEARD
		   : strcmp(voice, "silent") == 0 ? NODE_SILENT
						  : NODE_NEVER_HEARD;
	next_copy(c, s->boot_id, sizeof(s->boot_id));
	old = next_text(c);
	for (int i = 0; i < 4 && next_item(&old, ' ', s->old_boot_ids[i], LIMIT_BOOT_ID_SIZE);)
		i++;
	s->seq = next_u64(c);
	s->accepting = next_bool(c);
	next_metrics(c, &s->metrics);
	s->has_index = !next_null(c);
	s->index = next_u32(c);
	s->full_told = next_bool(c);
	s->sessions_complete = next_bool(c);
	s->heard_wall_us = row_time_us(c->result, c->row, c->column++);
	next_copy(c, s->agent_version, sizeof(s->agent_version));
	next_copy(c, s->agent_address, sizeof(s->agent_address));
}

static bool load_node(struct load *l, struct cursor *c)
{
	struct node_spec s = {0};
	struct node_stored stored = {0};

	s.id = next_u32(c);
	next_copy(c, s.name, sizeof(s.name));
	s.provider_id = next_u32(c);
	next_copy(c, s.address, sizeof(s.address));
	next_copy(c, s.fqdn, sizeof(s.fqdn));
	s.port = (uint16_t)next_u32(c);
	next_tags(c, &s.tags);
	s.max_sessions = next_u32(c);
	s.load_multiplier = next_u32(c);
	s.mode = next_mode(c, s.mode_reason);
	next_stored(c, &stored);
	if (!c->bad)
		l->handler->load_node(l->handler_ctx, &s, &stored);
	return !c->bad;
}

static void next_pool_ids(struct cursor *c, struct token_spec *s)
{
	const char *at = next_text(c);
	char item[16];
	uint64_t id;

	while (next_item(&at, ',', item, sizeof(item))) {
		/* A limit that is not understood whole must not become a wider one. */
		if (s->pool_count >= LIMIT_TOKEN_POOLS ||
			text_parse_u64(item, 1, UINT32_MAX, &id) < 0) {
			c->bad = true;
			return;
		}
		s->pool_ids[s->pool_count++] = (uint32_t)id;
	}
}

static bool load_token(struct load *l, struct cursor *c)
{
	struct token_spec s = {0};

	s.id = next_u32(c);
	next_copy(c, s.name, sizeof(s.name));
	if (role_parse(next_text(c), &s.role) < 0)
		c->bad = true;
	s.node_id = next_u32(c);
	if (PQgetlength(c->result, c->row, c->column) == SECRET_HASH_SIZE)
		memcpy(s.hash, next_text(c), SECRET_HASH_SIZE);
	else
		c->bad = true;
	next_pool_ids(c, &s);
	next_tags(c, &s.tags);
	s.see_sessions = next_bool(c);
	s.expires_us = row_time_us(c->result, c->row, c->column++);
	s.revoked = next_bool(c);
	if (!c->bad)
		l->handler->load_token(l->handler_ctx, &s);
	return !c->bad;
}

static bool load_session(struct load *l, struct cursor *c)
{
	uint32_t node_id = next_u32(c);
	const char *id = next_text(c), *key = next_text(c), *display = next_text(c);
	const char *client = next_text(c);
	bool active = next_bool(c);
	int64_t since_ms = row_time_us(c->result, c->row, c->column++) / 1000;
	int64_t first_seen_ms = row_time_us(c->result, c->row, c->column) / 1000;

	if (!queue_has_session(l->queue, node_id, id))
		l->handler->load_session(l->handler_ctx, node_id, id, key, *display ? display : key,
			client, active, since_ms, first_seen_ms);
	return true;
}

static void next_route_key(struct cursor *c, uint8_t ret[ROUTE_KEY_SIZE])
{
	char secret[128];

	next_copy(c, secret, sizeof(secret));
	secret_hash(secret, strlen(secret), ret);
	secret_wipe(secret, sizeof(secret));
}

static bool load_row(struct read *r, const PGresult *result, int i)
{
	struct load *l = (struct load *)r;
	struct cursor c = {.result = result, .row = i};

	switch (r->statement) {
	case SQL_LOAD_CLUSTER:
		next_copy(&c, l->cluster_id, sizeof(l->cluster_id));
		next_route_key(&c, l->route_key);
		return !c.bad;
	case SQL_LOAD_PROVIDERS:
		return load_provider(l, &c);
	case SQL_LOAD_POOLS:
		return load_pool(l, &c);
	case SQL_LOAD_NODES:
		return load_node(l, &c);
	case SQL_LOAD_TOKENS:
		return load_token(l, &c);
	case SQL_LOAD_SESSIONS:
		return load_session(l, &c);
	default:
		return true;
	}
}
