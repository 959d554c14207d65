/* SPDX-License-Identifier: ISC */
/* Providers in JSON. Rules: percentages with up to two decimals; a rule left out of `rules` keeps
 * its value. */
#include <errno.h>
#include <string.h>

#include "api/admin.h"
#include "wire/json.h"

static int read_rule(const char *name, struct json_object *o, struct load_rule *rule, struct err *e)
{
	char path[48];

	if (!json_object_is_type(o, json_type_object))
		return err_set(e, -EINVAL, "\"rules.%s\" must be an object", name);
	json_object_object_foreach(o, key, value)
	{
		int r = 0;

		snprintf(path, sizeof(path), "rules.%s.%.16s", name, key);
		if (strcmp(key, "on") == 0 && json_object_is_type(value, json_type_boolean))
			rule->on = json_object_get_boolean(value);
		else if (strcmp(key, "on") == 0)
			r = err_set(e, -EINVAL, "\"%s\" must be true or false", path);
		else if (strcmp(key, "zero") == 0)
			r = field_decimal(path, value, 2, 0, 10000, &rule->zero, e);
		else if (strcmp(key, "full") == 0)
			r = field_decimal(path, value, 2, 0, 10000, &rule->full, e);
		else
			r = err_set(e, -EINVAL, "unknown field \"%s\"", path);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A rule whose zero and full points are fixed. */
static int read_switch(const char *name, struct json_object *o, bool *on, struct err *e)
{
	struct json_object *value;

	if (!json_object_is_type(o, json_type_object) || json_object_object_length(o) != 1 ||
		!json_object_object_get_ex(o, "on", &value) ||
		!json_object_is_type(value, json_type_boolean))
		return err_set(e, -EINVAL, "\"rules.%s\" must be {\"on\": true or false}", name);
	*on = json_object_get_boolean(value);
	return 0;
}

static int read_rules(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	struct provider_spec *p = spec;

	if (!json_object_is_type(value, json_type_object))
		return err_set(e, -EINVAL, "\"rules\" must be an object");
	json_object_object_foreach(value, key, rule)
	{
		int r;

		if (strcmp(key, "cpu") == 0)
			r = read_rule("cpu", rule, &p->cpu, e);
		else if (strcmp(key, "memory") == 0)
			r = read_rule("memory", rule, &p->memory, e);
		else if (strcmp(key, "sessions") == 0)
			r = read_switch("sessions", rule, &p->sessions_rule, e);
		else if (strcmp(key, "load_script") == 0)
			r = read_switch("load_script", rule, &p->load_script_rule, e);
		else
			r = err_set(e, -EINVAL, "unknown field \"rules.%.32s\"", key);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_mass_silence(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	struct provider_spec *p = spec;

	if (!json_object_is_type(value, json_type_string) ||
		mass_silence_parse(json_object_get_string(value), &p->on_mass_silence) < 0)
		return err_set(e, -EINVAL, "\"on_mass_silence\" must be refuse or keep");
	return 0;
}

#define RULES_AT offsetof(struct provider_spec, cpu)
#define RULES_SIZE (offsetof(struct provider_spec, load_script_rule) + sizeof(bool) - RULES_AT)

static const struct field fields[] = {
	FIELD_REQUIRED(struct provider_spec, name, field_string),
	FIELD(struct provider_spec, share_sessions, field_bool),
	FIELD(struct provider_spec, balance_by_metrics, field_bool),
	FIELD(struct provider_spec, prefer_sharing, field_bool),
	FIELD(struct provider_spec, on_mass_silence, read_mass_silence),
	{"rules", read_rules, RULES_AT, RULES_SIZE, false},
};

static void init(union admin_spec *spec)
{
	provider_spec_init(&spec->provider);
}

static const void *find(const struct fleet *f, const char *name)
{
	return fleet_provider(f, name);
}

static const void *next(const struct fleet *f, const void *prev)
{
	return fleet_next_provider(f, prev);
}

static void spec_of(const void *object, union admin_spec *ret)
{
	memcpy(&ret->provider, &((const struct provider *)object)->spec, sizeof(ret->provider));
}

static int check(const union admin_spec *spec, struct err *e)
{
	return provider_spec_check(&spec->provider, e);
}

static void add_rule(struct buf *b, const char *key, const struct load_rule *rule)
{
	json_add_key(b, key);
	buf_addc(b, '{');
	json_add_member_bool(b, "on", rule->on);
	add_member_decimal(b, "zero", rule->zero, 2);
	add_member_decimal(b, "full", rule->full, 2);
	buf_addc(b, '}');
}

static void add_switch(struct buf *b, const char *key, bool on)
{
	json_add_key(b, key);
	buf_addc(b, '{');
	json_add_member_bool(b, "on", on);
	buf_addc(b, '}');
}

static void format(struct buf *b, const struct fleet *f, const void *object)
{
	const struct provider *p = object;
	const struct provider_spec *s = &p->spec;

	json_add_member_string(b, "name", s->name);
	json_add_member_bool(b, "share_sessions", s->share_sessions);
	json_add_member_bool(b, "balance_by_metrics", s->balance_by_metrics);
	json_add_member_bool(b, "prefer_sharing", s->prefer_sharing);
	json_add_member_string(b, "on_mass_silence", mass_silence_name(s->on_mass_silence));
	json_add_key(b, "rules");
	buf_addc(b, '{');
	add_rule(b, "cpu", &s->cpu);
	add_rule(b, "memory", &s->memory);
	add_switch(b, "sessions", s->sessions_rule);
	add_switch(b, "load_script", s->load_script_rule);
	buf_addc(b, '}');
	json_add_member_u64(b, "nodes", p->farm.count);
	json_add_member_bool(b, "mass_silence", p->mass_silence);
	add_member_mode(b, s->mode, s->mode_reason);
}

static void put(struct service *s, const struct caller *caller, const union admin_spec *spec,
	const char *changes, service_admin_done *done, void *ctx)
{
	service_put_provider(s, caller, &spec->provider, changes, done, ctx);
}

static const struct admin_kind kind = {
	.path = "providers",
	.word = "provider",
	.kind = STORE_PROVIDER,
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

const struct admin_kind *admin_provider(void)
{
	return &kind;
}
