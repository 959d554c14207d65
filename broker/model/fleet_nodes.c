/* SPDX-License-Identifier: ISC */
/*
 * Nodes, found by id, by name (also in any case) and by "address port". The same invariants as
 * fleet.c, and: a node is in the farm of its provider and in no other. A change makes all its room
 * first (farm, tags, keys), so that what comes after cannot fail.
 */
#include "model/hash.h"

#include "model/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/fleet_private.h"

struct node *fleet_node(const struct fleet *f, const char *name)
{
	struct node *n;

	HASH_FIND(by_name, f->node_names, name, strlen(name), n);
	return n;
}

/* Names are ASCII (wire/names). */
static void fold_name(const char *name, char ret[LIMIT_NAME_SIZE])
{
	size_t i = 0;

	for (; i < LIMIT_NAME_SIZE - 1 && name[i]; i++)
		ret[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
	ret[i] = '\0';
}

struct node *fleet_node_any_case(const struct fleet *f, const char *name)
{
	struct node *n = fleet_node(f, name);
	char folded[LIMIT_NAME_SIZE];

	if (n || strlen(name) >= sizeof(folded))
		return n;
	fold_name(name, folded);
	HASH_FIND(by_folded, f->node_folded, folded, strlen(folded), n);
	return n;
}

struct node *fleet_node_by_id(const struct fleet *f, uint32_t id)
{
	struct node *n;

	HASH_FIND(by_id, f->nodes, &id, sizeof(id), n);
	return n;
}

static void make_endpoint(const char *address, uint16_t port, char ret[LIMIT_ADDRESS_SIZE + 8])
{
	snprintf(ret, LIMIT_ADDRESS_SIZE + 8, "%s %u", address, port);
}

struct node *fleet_node_by_endpoint(const struct fleet *f, const char *address, uint16_t port)
{
	char endpoint[LIMIT_ADDRESS_SIZE + 8];
	struct node *n;

	make_endpoint(address, port, endpoint);
	HASH_FIND(by_endpoint, f->node_endpoints, endpoint, strlen(endpoint), n);
	return n;
}

static int link_keys(struct fleet *f, struct node *n)
{
	make_endpoint(n->spec.address, n->spec.port, n->endpoint);
	HASH_ADD_KEYPTR(by_name, f->node_names, n->spec.name, strlen(n->spec.name), n);
	if (!n->by_name.tbl)
		return -ENOMEM;
	fold_name(n->spec.name, n->folded);
	HASH_ADD_KEYPTR(by_folded, f->node_folded, n->folded, strlen(n->folded), n);
	if (!n->by_folded.tbl)
		return -ENOMEM;
	HASH_ADD_KEYPTR(by_endpoint, f->node_endpoints, n->endpoint, strlen(n->endpoint), n);
	return n->by_endpoint.tbl ? 0 : -ENOMEM;
}

/* Also undoes a link_keys that went half way. */
static void unlink_keys(struct fleet *f, struct node *n)
{
	if (n->by_name.tbl)
		HASH_DELETE(by_name, f->node_names, n);
	if (n->by_folded.tbl)
		HASH_DELETE(by_folded, f->node_folded, n);
	if (n->by_endpoint.tbl)
		HASH_DELETE(by_endpoint, f->node_endpoints, n);
	memset(&n->by_name, 0, sizeof(n->by_name));
	memset(&n->by_folded, 0, sizeof(n->by_folded));
	memset(&n->by_endpoint, 0, sizeof(n->by_endpoint));
}

static int add_node(
	struct fleet *f, const struct node_spec *spec, struct provider *p, struct node **ret)
{
	struct node *n;
	int rc = farm_reserve(&p->farm);

	if (rc == 0)
		rc = farm_prepare_tags(&p->farm, NULL, &spec->tags);
	if (rc < 0)
		return rc;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->spec = *spec;
	n->spellings = f->spellings;
	HASH_ADD(by_id, f->nodes, spec.id, sizeof(n->spec.id), n);
	if (!n->by_id.tbl) {
		free(n);
		return -ENOMEM;
	}
	if (link_keys(f, n) < 0) {
		unlink_keys(f, n);
		HASH_DELETE(by_id, f->nodes, n);
		free(n);
		return -ENOMEM;
	}
	n->provider = p;
	farm_add(&p->farm, n);
	*ret = n;
	return 0;
}

static int change_keys(struct fleet *f, struct node *n, const struct node_spec *spec)
{
	struct node_spec old = n->spec;
	bool renamed = strcmp(old.name, spec->name) != 0;

	if (!renamed && strcmp(old.address, spec->address) == 0 && old.port == spec->port) {
		n->spec = *spec;
		return 0;
	}
	unlink_keys(f, n);
	n->spec = *spec;
	if (link_keys(f, n) == 0) {
		if (renamed) /* the keys of local users hold the node's name */
			n->spellings = f->spellings - 1;
		return 0;
	}
	unlink_keys(f, n);
	n->spec = old;
	if (link_keys(f, n) < 0)
		unlink_keys(f, n);
	return -ENOMEM;
}

static int change_node(
	struct fleet *f, struct node *n, const struct node_spec *spec, struct provider *p)
{
	bool moves = n->provider != p;
	int rc = moves ? farm_reserve(&p->farm) : 0;

	if (rc == 0)
		rc = farm_prepare_tags(&p->farm, moves ? NULL : &n->spec.tags, &spec->tags);
	if (rc == 0)
		rc = change_keys(f, n, spec);
	if (rc < 0)
		return rc;
	if (moves) {
		farm_remove(&n->provider->farm, n->slot);
		n->provider = p;
		farm_add(&p->farm, n);
	}
	return 0;
}

bool fleet_tags_fit(const struct fleet *f, const struct node_spec *spec, uint32_t others)
{
	const struct provider *p = fleet_provider_by_id(f, spec->provider_id);
	const struct node *n = fleet_node_by_id(f, spec->id);
	const struct tag_set *old = n && n->provider == p ? &n->spec.tags : NULL;

	return !p || farm_tags_with(&p->farm, old, &spec->tags) + others <= FARM_TAGS_MAX;
}

int fleet_put_node(struct fleet *f, const struct node_spec *spec, struct node **ret)
{
	struct provider *p = fleet_provider_by_id(f, spec->provider_id);
	struct node *n = fleet_node_by_id(f, spec->id);
	const struct node *same_name = fleet_node(f, spec->name);
	const struct node *same_endpoint = fleet_node_by_endpoint(f, spec->address, spec->port);
	int rc;

	if (spec->id == 0)
		return -EINVAL;
	if (!p)
		return -ENOENT;
	if ((same_name && same_name != n) || (same_endpoint && same_endpoint != n))
		return -EEXIST;
	rc = n ? change_node(f, n, spec, p) : add_node(f, spec, p, &n);
	if (rc < 0)
		return rc;
	farm_set_tags(&p->farm, n->slot, &n->spec.tags);
	node_refresh(n);
	if (ret)
		*ret = n;
	return 0;
}

/* Their names must be free for a node that comes in its place. */
static void remove_tokens(struct fleet *f, uint32_t node_id)
{
	struct token *t = fleet_next_token(f, NULL), *next;

	for (; t; t = next) {
		next = fleet_next_token(f, t);
		if (t->spec.node_id == node_id)
			(void)fleet_remove_token(f, t->spec.id);
	}
}

int fleet_remove_node(struct fleet *f, uint32_t id)
{
	struct node *n = fleet_node_by_id(f, id);

	if (!n)
		return -ENOENT;
	remove_tokens(f, id);
	session_drop_all(f, n);
	farm_remove(&n->provider->farm, n->slot);
	unlink_keys(f, n);
	HASH_DELETE(by_id, f->nodes, n);
	free(n);
	return 0;
}

struct node *fleet_next_node(const struct fleet *f, const struct node *prev)
{
	return prev ? prev->by_id.next : f->nodes;
}
