/* SPDX-License-Identifier: ISC */
/*
 * The rows of the database on their way into the fleet: at the start, and in full again after each
 * reconnect.
 *
 * What an administrator sets is the database's word: rows that are gone are removed. What agents
 * say is newer here: load and sessions are taken only for nodes that were not heard by this
 * process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "service/state.h"

struct id_list {
	uint32_t *ids;
	size_t count, cap;
};

struct loading {
	struct id_list providers, pools, nodes, tokens;
	bool failed; /* no memory: the load does not count */
};

static void id_add(struct loading *l, struct id_list *list, uint32_t id)
{
	if (list->count == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 64;
		uint32_t *ids = realloc(list->ids, cap * sizeof(*ids));

		if (!ids) {
			l->failed = true;
			return;
		}
		list->ids = ids;
		list->cap = cap;
	}
	list->ids[list->count++] = id;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool id_has(const struct id_list *list, uint32_t id)
{
	return list->count && bsearch(&id, list->ids, list->count, sizeof(id), compare_ids);
}

static void id_sort(struct id_list *list)
{
	if (list->count)
		qsort(list->ids, list->count, sizeof(*list->ids), compare_ids);
}

void loading_free(struct loading *l)
{
	if (!l)
		return;
	free(l->providers.ids);
	free(l->pools.ids);
	free(l->nodes.ids);
	free(l->tokens.ids);
	free(l);
}

static void load_begin(void *ctx)
{
	struct service *s = ctx;

	loading_free(s->loading);
	s->loading = calloc(1, sizeof(*s->loading));
}

static void check(struct service *s, int r, const char *kind, const char *name)
{
	if (r == 0)
		return;
	log_error("could not take %s \"%s\" from the database: %s", kind, name, strerror(-r));
	if (r == -ENOMEM)
		s->loading->failed = true;
}

/* ---- names that moved ----
 *
 * What here has the name of a loaded row of another id is of yesterday: it gets its own new name
 * later in this load, or it is gone and will be removed at the end. Until then it is called
 * something that no object may be called. */

static void set_aside(char name[LIMIT_NAME_SIZE], uint32_t id)
{
	snprintf(name, LIMIT_NAME_SIZE, "~%" PRIu32, id);
}

static int put_provider(struct service *s, const struct provider_spec *spec)
{
	const struct provider *other = fleet_provider(s->fleet, spec->name);
	struct provider_spec aside;

	if (other && other->spec.id != spec->id) {
		aside = other->spec;
		set_aside(aside.name, aside.id);
		(void)fleet_put_provider(s->fleet, &aside, NULL);
	}
	return fleet_put_provider(s->fleet, spec, NULL);
}

static int put_pool(struct service *s, const struct pool_spec *spec)
{
	const struct pool *other = fleet_pool(s->fleet, spec->name);
	struct pool_spec aside;

	if (other && other->spec.id != spec->id) {
		aside = other->spec;
		set_aside(aside.name, aside.id);
		(void)fleet_put_pool(s->fleet, &aside, NULL);
	}
	return fleet_put_pool(s->fleet, spec, NULL);
}

/* An address has no such other value: who had it goes, and comes back from its row. */
static void free_endpoint(struct service *s, const struct node_spec *spec)
{
	struct node *n = fleet_node_by_endpoint(s->fleet, spec->address, spec->port);

	if (!n || n->spec.id == spec->id)
		return;
	admin_forget_node(s, n);
	(void)fleet_remove_node(s->fleet, n->spec.id);
}

static int put_node(struct service *s, const struct node_spec *spec, struct node **ret)
{
	const struct node *other;
	struct node_spec aside;

	free_endpoint(s, spec);
	other = fleet_node(s->fleet, spec->name);
	if (other && other->spec.id != spec->id) {
		aside = other->spec;
		set_aside(aside.name, aside.id);
		(void)fleet_put_node(s->fleet, &aside, NULL);
	}
	return fleet_put_node(s->fleet, spec, ret);
}

static int put_token(struct service *s, const struct token_spec *spec)
{
	const struct token *other = fleet_token(s->fleet, spec->name);

	if (other && other->spec.id != spec->id)
		(void)fleet_remove_token(s->fleet, other->spec.id);
	other = fleet_token_by_hash(s->fleet, spec->hash);
	if (other && other->spec.id != spec->id)
		(void)fleet_remove_token(s->fleet, other->spec.id);
	return fleet_put_token(s->fleet, spec, NULL);
}

/* ---- rows ---- */

static void load_provider(void *ctx, const struct provider_spec *spec)
{
	struct service *s = ctx;

	if (!s->loading)
		return;
	id_add(s->loading, &s->loading->providers, spec->id);
	check(s, put_provider(s, spec), "provider", spec->name);
}

static void load_pool(void *ctx, const struct pool_spec *spec)
{
	struct service *s = ctx;

	if (!s->loading)
		return;
	id_add(s->loading, &s->loading->pools, spec->id);
	check(s, put_pool(s, spec), "pool", spec->name);
}

static void load_node(void *ctx, const struct node_spec *spec, const struct node_stored *stored)
{
	struct service *s = ctx;
	struct node *n = NULL;

	if (!s->loading)
		return;
	id_add(s->loading, &s->loading->nodes, spec->id);
	check(s, put_node(s, spec, &n), "node", spec->name);
	if (n && !n->heard_here && stored)
		node_load(n, stored, clock_mono_ms());
}

static void load_token(void *ctx, const struct token_spec *spec)
{
	struct service *s = ctx;

	if (!s->loading)
		return;
	id_add(s->loading, &s->loading->tokens, spec->id);
	check(s, put_token(s, spec), "token", spec->name);
}

static void load_session(void *ctx, uint32_t node_id, const char *id, const char *user_key,
	const char *display, const char *client, bool active, int64_t since_ms,
	int64_t first_seen_ms)
{
	struct service *s = ctx;
	struct node *n = fleet_node_by_id(s->fleet, node_id);

	if (!s->loading || !n || n->heard_here)
		return;
	check(s,
		fleet_load_session(s->fleet, n, id, user_key, display, client, active, since_ms,
			first_seen_ms),
		"session", id);
}

static void remove_absent_nodes(struct service *s, const struct loading *l)
{
	struct node *n = fleet_next_node(s->fleet, NULL), *next;

	for (; n; n = next) {
		next = fleet_next_node(s->fleet, n);
		if (id_has(&l->nodes, n->spec.id))
			continue;
		admin_forget_node(s, n);
		fleet_remove_node(s->fleet, n->spec.id);
	}
}

#define REMOVE_ABSENT(kind, list)                                               \
	do {                                                                    \
		struct kind *item_ = fleet_next_##kind(s->fleet, NULL), *next_; \
		for (; item_; item_ = next_) {                                  \
			next_ = fleet_next_##kind(s->fleet, item_);             \
			if (!id_has(&(list), item_->spec.id))                   \
				fleet_remove_##kind(s->fleet, item_->spec.id);  \
		}                                                               \
	} while (0)

static void remove_absent(struct service *s, struct loading *l)
{
	id_sort(&l->providers);
	id_sort(&l->pools);
	id_sort(&l->nodes);
	id_sort(&l->tokens);
	REMOVE_ABSENT(token, l->tokens);
	remove_absent_nodes(s, l);
	REMOVE_ABSENT(pool, l->pools);
	REMOVE_ABSENT(provider, l->providers);
}

static void load_end(void *ctx, const char *cluster_id, const uint8_t *route_key)
{
	struct service *s = ctx;
	struct loading *l = s->loading;
	bool failed = !l || l->failed;

	if (!failed)
		remove_absent(s, l);
	loading_free(l);
	s->loading = NULL;
	if (failed) {
		log_error("could not load the fleet: out of memory");
		return;
	}
	for (struct provider *p = fleet_next_provider(s->fleet, NULL); p;
		p = fleet_next_provider(s->fleet, p))
		admin_reindex_provider(s, p);
	memcpy(s->route_key, route_key, sizeof(s->route_key));
	service_loaded(s, cluster_id);
}

static void lost(void *ctx, const char *reason)
{
	service_lost(ctx, reason);
}

static void unusable(void *ctx, const char *reason)
{
	service_unusable(ctx, reason);
}

static void row_refused(void *ctx, const char *what)
{
	struct service *s = ctx;
	unsigned suppressed;

	if (log_limit_ok(&s->row_limit, 20, 60000, clock_mono_ms(), &suppressed))
		log_error("the database refused a row, which is lost: %s (%u more like this)", what,
			suppressed);
}

const struct store_handler *loading_handler(void)
{
	static const struct store_handler handler = {
		.load_begin = load_begin,
		.load_provider = load_provider,
		.load_pool = load_pool,
		.load_node = load_node,
		.load_token = load_token,
		.load_session = load_session,
		.load_end = load_end,
		.lost = lost,
		.unusable = unusable,
		.warning = row_refused,
	};

	return &handler;
}
