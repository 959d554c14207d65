/* SPDX-License-Identifier: ISC */
/* Tokens in JSON: never the secret, nor its hash. */
#include <errno.h>
#include <string.h>

#include "api/admin.h"
#include "base/clock.h"
#include "wire/json.h"

static int read_role(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	if (!json_object_is_type(value, json_type_string) ||
		role_parse(json_object_get_string(value), &((struct token_spec *)spec)->role) < 0)
		return err_set(e, -EINVAL, "\"role\" must be agent, client, auditor or admin");
	return 0;
}

static int read_node(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	const struct node *n;

	if (value && !json_object_is_type(value, json_type_string))
		return err_set(e, -EINVAL, "\"node\" must be the name of a node");
	n = value ? fleet_node(fleet, json_object_get_string(value)) : NULL;
	if (value && !n)
		return err_set(e, -EINVAL, "\"node\": there is no node \"%.64s\"",
			json_object_get_string(value));
	((struct token_spec *)spec)->node_id = n ? n->spec.id : 0;
	return 0;
}

static bool has_pool(const struct token_spec *t, uint32_t id)
{
	for (uint32_t i = 0; i < t->pool_count; i++)
		if (t->pool_ids[i] == id)
			return true;
	return false;
}

static int read_pools(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	struct token_spec *t = spec;
	size_t count = 0;

	if (value && !json_object_is_type(value, json_type_array))
		return err_set(e, -EINVAL, "\"pools\" must be an array of pool names");
	if (value)
		count = json_object_array_length(value);
	if (count > LIMIT_TOKEN_POOLS)
		return err_set(e, -EINVAL, "\"pools\" holds more than %d names", LIMIT_TOKEN_POOLS);
	memset(t->pool_ids, 0, sizeof(t->pool_ids));
	t->pool_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(value, i);
		const struct pool *p = json_object_is_type(item, json_type_string)
					       ? fleet_pool(fleet, json_object_get_string(item))
					       : NULL;

		if (!p)
			return err_set(e, -EINVAL, "\"pools\": there is no pool \"%.64s\"",
				item ? json_object_get_string(item) : "null");
		if (!has_pool(t, p->spec.id))
			t->pool_ids[t->pool_count++] = p->spec.id;
	}
	return 0;
}

static int read_expires(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	int64_t us = 0;

	if (value &&
		(!json_object_is_type(value, json_type_string) ||
			clock_parse_rfc3339(json_object_get_string(value), &us) < 0 || us <= 0))
		return err_set(
			e, -EINVAL, "\"expires_at\" must be a time such as 2030-01-31T00:00:00Z");
	((struct token_spec *)spec)->expires_us = us;
	return 0;
}

#define POOLS_AT offsetof(struct token_spec, pool_count)
#define POOLS_SIZE \
	(offsetof(struct token_spec, pool_ids) + sizeof(uint32_t) * LIMIT_TOKEN_POOLS - POOLS_AT)

static const struct field fields[] = {
	FIELD_REQUIRED(struct token_spec, name, field_string),
	FIELD_REQUIRED(struct token_spec, role, read_role),
	{"node", read_node, offsetof(struct token_spec, node_id), sizeof(uint32_t), false},
	{"pools", read_pools, POOLS_AT, POOLS_SIZE, false},
	FIELD(struct token_spec, tags, field_tags),
	FIELD(struct token_spec, see_sessions, field_bool),
	{"expires_at", read_expires, offsetof(struct token_spec, expires_us), sizeof(int64_t),
		false},
	FIELD(struct token_spec, revoked, field_bool),
};

static void init(union admin_spec *spec)
{
	token_spec_init(&spec->token);
}

static const void *find(const struct fleet *f, const char *name)
{
	return fleet_token(f, name);
}

static const void *next(const struct fleet *f, const void *prev)
{
	return fleet_next_token(f, prev);
}

static void spec_of(const void *object, union admin_spec *ret)
{
	memcpy(&ret->token, &((const struct token *)object)->spec, sizeof(ret->token));
}

static int check(const union admin_spec *spec, struct err *e)
{
	return token_spec_check(&spec->token, e);
}

static void add_pools(struct buf *b, const struct fleet *f, const struct token_spec *s)
{
	json_add_key(b, "pools");
	buf_addc(b, '[');
	for (uint32_t i = 0; i < s->pool_count; i++) {
		const struct pool *p = fleet_pool_by_id(f, s->pool_ids[i]);

		if (!p)
			continue;
		if (b->len && b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		json_add_string(b, p->spec.name);
	}
	buf_addc(b, ']');
}

static void format(struct buf *b, const struct fleet *f, const void *object)
{
	const struct token_spec *s = &((const struct token *)object)->spec;
	const struct node *n = s->node_id ? fleet_node_by_id(f, s->node_id) : NULL;
	char when[CLOCK_RFC3339_SIZE];

	json_add_member_string(b, "name", s->name);
	json_add_member_string(b, "role", role_name(s->role));
	if (n)
		json_add_member_string(b, "node", n->spec.name);
	add_pools(b, f, s);
	add_member_tags(b, "tags", &s->tags);
	json_add_member_bool(b, "see_sessions", s->see_sessions);
	if (s->expires_us)
		json_add_member_string(b, "expires_at", clock_rfc3339(s->expires_us, when));
	json_add_member_bool(b, "revoked", s->revoked);
}

static void put(struct service *s, const struct caller *caller, const union admin_spec *spec,
	const char *changes, service_admin_done *done, void *ctx)
{
	service_put_token(s, caller, &spec->token, changes, done, ctx);
}

static const struct admin_kind kind = {
	.path = "tokens",
	.word = "token",
	.kind = STORE_TOKEN,
	.fields = fields,
	.field_count = sizeof(fields) / sizeof(fields[0]),
	.init = init,
	.find = find,
	.next = next,
	.spec_of = spec_of,
	.check = check,
	.format = format,
	.put = put,
};

const struct admin_kind *admin_token(void)
{
	return &kind;
}
