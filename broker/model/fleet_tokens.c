/* SPDX-License-Identifier: ISC */
/*
 * Tokens, found by id, by name and by the hash of the secret. The same invariants as fleet.c.
 * Lookup by hash needs no constant time: what is compared is a hash, which tells nothing of the
 * secret.
 */
#include "model/hash.h"

#include "model/fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/fleet_private.h"

struct token *fleet_token(const struct fleet *f, const char *name)
{
	struct token *t;

	HASH_FIND(by_name, f->token_names, name, strlen(name), t);
	return t;
}

struct token *fleet_token_by_hash(const struct fleet *f, const uint8_t hash[SECRET_HASH_SIZE])
{
	struct token *t;

	HASH_FIND(by_hash, f->token_hashes, hash, SECRET_HASH_SIZE, t);
	return t;
}

static struct token *token_by_id(const struct fleet *f, uint32_t id)
{
	struct token *t;

	HASH_FIND(by_id, f->tokens, &id, sizeof(id), t);
	return t;
}

static int link_keys(struct fleet *f, struct token *t)
{
	HASH_ADD_KEYPTR(by_name, f->token_names, t->spec.name, strlen(t->spec.name), t);
	if (!t->by_name.tbl)
		return -ENOMEM;
	HASH_ADD_KEYPTR(by_hash, f->token_hashes, t->spec.hash, SECRET_HASH_SIZE, t);
	return t->by_hash.tbl ? 0 : -ENOMEM;
}

/* Also undoes a link_keys that went half way. */
static void unlink_keys(struct fleet *f, struct token *t)
{
	if (t->by_name.tbl)
		HASH_DELETE(by_name, f->token_names, t);
	if (t->by_hash.tbl)
		HASH_DELETE(by_hash, f->token_hashes, t);
	memset(&t->by_name, 0, sizeof(t->by_name));
	memset(&t->by_hash, 0, sizeof(t->by_hash));
}

static int add_token(struct fleet *f, const struct token_spec *spec, struct token **ret)
{
	struct token *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->spec = *spec;
	HASH_ADD(by_id, f->tokens, spec.id, sizeof(t->spec.id), t);
	if (!t->by_id.tbl) {
		free(t);
		return -ENOMEM;
	}
	if (link_keys(f, t) < 0) {
		unlink_keys(f, t);
		HASH_DELETE(by_id, f->tokens, t);
		free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

static int change_token(struct fleet *f, struct token *t, const struct token_spec *spec)
{
	struct token_spec old = t->spec;

	unlink_keys(f, t);
	t->spec = *spec;
	if (link_keys(f, t) == 0)
		return 0;
	unlink_keys(f, t);
	t->spec = old;
	if (link_keys(f, t) < 0)
		unlink_keys(f, t);
	return -ENOMEM;
}

int fleet_put_token(struct fleet *f, const struct token_spec *spec, struct token **ret)
{
	struct token *t = token_by_id(f, spec->id);
	const struct token *same_name = fleet_token(f, spec->name);
	const struct token *same_hash = fleet_token_by_hash(f, spec->hash);
	int rc;

	if (spec->id == 0)
		return -EINVAL;
	if ((same_name && same_name != t) || (same_hash && same_hash != t))
		return -EEXIST;
	rc = t ? change_token(f, t, spec) : add_token(f, spec, &t);
	if (rc == 0 && ret)
		*ret = t;
	return rc;
}

int fleet_remove_token(struct fleet *f, uint32_t id)
{
	struct token *t = token_by_id(f, id);

	if (!t)
		return -ENOENT;
	unlink_keys(f, t);
	HASH_DELETE(by_id, f->tokens, t);
	free(t);
	return 0;
}

struct token *fleet_next_token(const struct fleet *f, const struct token *prev)
{
	return prev ? prev->by_id.next : f->tokens;
}
