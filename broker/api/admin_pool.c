/* SPDX-License-Identifier: ISC */
/* Pools in JSON. default_tags and forced_tags are tag requests, kept as they were written. */
#include <errno.h>
#include <string.h>

#include "api/admin.h"
#include "policy/tags.h"
#include "wire/json.h"

static int read_untagged(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	struct pool_spec *p = spec;
	const char *text = value ? json_object_get_string(value) : "";

	if (strcmp(text, "untagged") == 0)
		p->untagged_default = UNTAGGED_NONE;
	else if (strcmp(text, "any") == 0)
		p->untagged_default = UNTAGGED_ANY;
	else
		return err_set(e, -EINVAL, "\"untagged_default\" must be untagged or any");
	return 0;
}

static const struct field fields[] = {
	FIELD_REQUIRED(struct pool_spec, name, field_string),
	{"provider", field_provider, offsetof(struct pool_spec, provider_id), sizeof(uint32_t),
		true},
	FIELD(struct pool_spec, default_tags, field_string),
	FIELD(struct pool_spec, forced_tags, field_string),
	FIELD(struct pool_spec, allowed_tags, field_tags),
	FIELD(struct pool_spec, untagged_default, read_untagged),
	FIELD(struct pool_spec, rdp_extra, field_string),
};

static void init(union admin_spec *spec)
{
	pool_spec_init(&spec->pool);
}

static const void *find(const struct fleet *f, const char *name)
{
	return fleet_pool(f, name);
}

static const void *next(const struct fleet *f, const void *prev)
{
	return fleet_next_pool(f, prev);
}

static void spec_of(const void *object, union admin_spec *ret)
{
	memcpy(&ret->pool, &((const struct pool *)object)->spec, sizeof(ret->pool));
}

static int check_tags(const char *name, const char *text, struct err *e)
{
	struct tag_request request;

	if (tag_request_parse(text, &request, e) < 0)
		return err_prefix(e, -EINVAL, "\"%s\"", name);
	return 0;
}

static int check(const union admin_spec *spec, struct err *e)
{
	int r = pool_spec_check(&spec->pool, e);

	if (r == 0)
		r = check_tags("default_tags", spec->pool.default_tags, e);
	if (r == 0)
		r = check_tags("forced_tags", spec->pool.forced_tags, e);
	return r;
}

static void format(struct buf *b, const struct fleet *f, const void *object)
{
	const struct pool *p = object;
	const struct pool_spec *s = &p->spec;

	json_add_member_string(b, "name", s->name);
	json_add_member_string(b, "provider", p->provider->spec.name);
	json_add_member_string(b, "default_tags", s->default_tags);
	json_add_member_string(b, "forced_tags", s->forced_tags);
	add_member_tags(b, "allowed_tags", &s->allowed_tags);
	json_add_member_string(
		b, "untagged_default", s->untagged_default == UNTAGGED_ANY ? "any" : "untagged");
	json_add_member_string(b, "rdp_extra", s->rdp_extra);
	add_member_mode(b, s->mode, s->mode_reason);
}

static void put(struct service *s, const struct caller *caller, const union admin_spec *spec,
	const char *changes, service_admin_done *done, void *ctx)
{
	service_put_pool(s, caller, &spec->pool, changes, done, ctx);
}

static const struct admin_kind kind = {
	.path = "pools",
	.word = "pool",
	.kind = STORE_POOL,
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

const struct admin_kind *admin_pool(void)
{
	return &kind;
}
