/* SPDX-License-Identifier: ISC */
/*
 * The fleet and its providers, pools and tokens; the nodes are in fleet_nodes.c.
 *
 * Invariants: an item is in every hash of its kind or in none; a hash's key is memory of the item
 * itself, so an item leaves the hash before that key is overwritten; a pool's and a node's provider
 * is in the fleet.
 */
#include "model/hash.h"

#include "model/fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/fleet_private.h"

struct fleet *fleet_new(void)
{
	struct fleet *f = calloc(1, sizeof(*f));

	if (f)
		session_index_init(&f->sessions);
	return f;
}

/* ---- providers ---- */

struct provider *fleet_provider(const struct fleet *f, const char *name)
{
	struct provider *p;

	HASH_FIND(by_name, f->provider_names, name, strlen(name), p);
	return p;
}

struct provider *fleet_provider_by_id(const struct fleet *f, uint32_t id)
{
	struct provider *p;

	HASH_FIND(by_id, f->providers, &id, sizeof(id), p);
	return p;
}

static int link_provider_name(struct fleet *f, struct provider *p)
{
	HASH_ADD_KEYPTR(by_name, f->provider_names, p->spec.name, strlen(p->spec.name), p);
	return p->by_name.tbl ? 0 : -ENOMEM;
}

static void unlink_provider_name(struct fleet *f, struct provider *p)
{
	if (p->by_name.tbl)
		HASH_DELETE(by_name, f->provider_names, p);
	memset(&p->by_name, 0, sizeof(p->by_name));
}

static int add_provider(struct fleet *f, const struct provider_spec *spec, struct provider **ret)
{
	struct provider *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->spec = *spec;
	HASH_ADD(by_id, f->providers, spec.id, sizeof(p->spec.id), p);
	if (!p->by_id.tbl) {
		free(p);
		return -ENOMEM;
	}
	if (link_provider_name(f, p) < 0) {
		HASH_DELETE(by_id, f->providers, p);
		free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

int fleet_put_provider(struct fleet *f, const struct provider_spec *spec, struct provider **ret)
{
	struct provider *p = fleet_provider_by_id(f, spec->id);
	struct provider *other = fleet_provider(f, spec->name);
	int rc = 0;

	if (spec->id == 0)
		return -EINVAL;
	if (other && other != p)
		return -EEXIST;
	if (!p) {
		rc = add_provider(f, spec, &p);
	} else if (other) {
		p->spec = *spec;
	} else {
		struct provider_spec old = p->spec;

		unlink_provider_name(f, p);
		p->spec = *spec;
		rc = link_provider_name(f, p);
		if (rc < 0) {
			p->spec = old;
			(void)link_provider_name(f, p);
		}
	}
	if (rc == 0 && ret)
		*ret = p;
	return rc;
}

static void free_provider(struct fleet *f, struct provider *p)
{
	unlink_provider_name(f, p);
	HASH_DELETE(by_id, f->providers, p);
	farm_deinit(&p->farm);
	free(p);
}

int fleet_remove_provider(struct fleet *f, uint32_t id)
{
	struct provider *p = fleet_provider_by_id(f, id);

	if (!p)
		return -ENOENT;
	if (p->farm.count)
		return -EBUSY;
	for (const struct pool *pool = f->pools; pool; pool = pool->by_id.next) {
		if (pool->provider == p)
			return -EBUSY;
	}
	free_provider(f, p);
	return 0;
}

struct provider *fleet_next_provider(const struct fleet *f, const struct provider *prev)
{
	return prev ? prev->by_id.next : f->providers;
}

/* ---- pools ---- */

struct pool *fleet_pool(const struct fleet *f, const char *name)
{
	struct pool *p;

	HASH_FIND(by_name, f->pool_names, name, strlen(name), p);
	return p;
}

struct pool *fleet_pool_by_id(const struct fleet *f, uint32_t id)
{
	struct pool *p;

	HASH_FIND(by_id, f->pools, &id, sizeof(id), p);
	return p;
}

static int link_pool_name(struct fleet *f, struct pool *p)
{
	HASH_ADD_KEYPTR(by_name, f->pool_names, p->spec.name, strlen(p->spec.name), p);
	return p->by_name.tbl ? 0 : -ENOMEM;
}

static void unlink_pool_name(struct fleet *f, struct pool *p)
{
	if (p->by_name.tbl)
		HASH_DELETE(by_name, f->pool_names, p);
	memset(&p->by_name, 0, sizeof(p->by_name));
}

static int add_pool(struct fleet *f, const struct pool_spec *spec, struct pool **ret)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->spec = *spec;
	HASH_ADD(by_id, f->pools, spec.id, sizeof(p->spec.id), p);
	if (!p->by_id.tbl) {
		free(p);
		return -ENOMEM;
	}
	if (link_pool_name(f, p) < 0) {
		HASH_DELETE(by_id, f->pools, p);
		free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

int fleet_put_pool(struct fleet *f, const struct pool_spec *spec, struct pool **ret)
{
	struct pool *p = fleet_pool_by_id(f, spec->id);
	struct pool *other = fleet_pool(f, spec->name);
	struct provider *provider = fleet_provider_by_id(f, spec->provider_id);
	int rc = 0;

	if (spec->id == 0)
		return -EINVAL;
	if (!provider)
		return -ENOENT;
	if (other && other != p)
		return -EEXIST;
	if (!p) {
		rc = add_pool(f, spec, &p);
	} else if (other) {
		p->spec = *spec;
	} else {
		struct pool_spec old = p->spec;

		unlink_pool_name(f, p);
		p->spec = *spec;
		rc = link_pool_name(f, p);
		if (rc < 0) {
			p->spec = old;
			(void)link_pool_name(f, p);
		}
	}
	if (rc < 0)
		return rc;
	p->provider = provider;
	if (ret)
		*ret = p;
	return 0;
}

static void free_pool(struct fleet *f, struct pool *p)
{
	unlink_pool_name(f, p);
	HASH_DELETE(by_id, f->pools, p);
	free(p);
}

int fleet_remove_pool(struct fleet *f, uint32_t id)
{
	struct pool *p = fleet_pool_by_id(f, id);

	if (!p)
		return -ENOENT;
	free_pool(f, p);
	return 0;
}

struct pool *fleet_next_pool(const struct fleet *f, const struct pool *prev)
{
	return prev ? prev->by_id.next : f->pools;
}

/* ---- all ---- */

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	while (f->tokens)
		(void)fleet_remove_token(f, f->tokens->spec.id);
	while (f->pools)
		free_pool(f, f->pools);
	while (f->nodes)
		(void)fleet_remove_node(f, f->nodes->spec.id);
	while (f->providers)
		free_provider(f, f->providers);
	session_index_deinit(&f->sessions);
	free(f->order);
	free(f->fresh);
	free(f);
}

void fleet_counts(const struct fleet *f, struct fleet_counts *ret)
{
	*ret = (struct fleet_counts){
		.providers = HASH_CNT(by_id, f->providers),
		.pools = HASH_CNT(by_id, f->pools),
		.nodes = HASH_CNT(by_id, f->nodes),
		.tokens = HASH_CNT(by_id, f->tokens),
		.sessions = f->sessions.sessions,
		.users = f->sessions.users,
	};
}

void fleet_user_names_changed(struct fleet *f)
{
	f->spellings++;
}
