/* SPDX-License-Identifier: ISC */
/* Nodes in JSON: what the administrator set and what the agent said last. */
#include <errno.h>
#include <string.h>

#include "api/admin.h"
#include "base/clock.h"
#include "wire/json.h"

static int read_number(const struct field *f, struct json_object *value, uint32_t min, uint32_t max,
	uint32_t *ret, struct err *e)
{
	int64_t v;

	if (!json_object_is_type(value, json_type_int))
		return err_set(e, -EINVAL, "\"%s\" must be a whole number", f->name);
	v = json_object_get_int64(value);
	if (v < min || v > max)
		return err_set(e, -EINVAL, "\"%s\" must be within %u..%u", f->name, min, max);
	*ret = (uint32_t)v;
	return 0;
}

static int read_port(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	uint32_t port = 0;
	int r = read_number(f, value, 1, 65535, &port, e);

	if (r == 0)
		((struct node_spec *)spec)->port = (uint16_t)port;
	return r;
}

static int read_max_sessions(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	return read_number(
		f, value, 0, NODE_MAX_SESSIONS, &((struct node_spec *)spec)->max_sessions, e);
}

static int read_multiplier(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	return field_decimal(f->name, value, 4, 1, NODE_MAX_MULTIPLIER,
		&((struct node_spec *)spec)->load_multiplier, e);
}

static const struct field fields[] = {
	FIELD_REQUIRED(struct node_spec, name, field_string),
	{"provider", field_provider, offsetof(struct node_spec, provider_id), sizeof(uint32_t),
		true},
	FIELD_REQUIRED(struct node_spec, address, field_string),
	FIELD(struct node_spec, fqdn, field_string),
	FIELD(struct node_spec, port, read_port),
	FIELD(struct node_spec, tags, field_tags),
	/* changes of the same member: "tags" alone is seen to change */
	{"tags_add", field_tags_add, offsetof(struct node_spec, tags), 0, false},
	{"tags_remove", field_tags_remove, offsetof(struct node_spec, tags), 0, false},
	FIELD(struct node_spec, max_sessions, read_max_sessions),
	FIELD(struct node_spec, load_multiplier, read_multiplier),
};

static void init(union admin_spec *spec)
{
	node_spec_init(&spec->node);
}

static const void *find(const struct fleet *f, const char *name)
{
	return fleet_node(f, name);
}

static const void *next(const struct fleet *f, const void *prev)
{
	return fleet_next_node(f, prev);
}

static void spec_of(const void *object, union admin_spec *ret)
{
	memcpy(&ret->node, &((const struct node *)object)->spec, sizeof(ret->node));
}

static int check(const union admin_spec *spec, struct err *e)
{
	return node_spec_check(&spec->node, e);
}

static void add_metrics(struct buf *b, const struct node_metrics *m)
{
	json_add_key(b, "metrics");
	buf_addc(b, '{');
	if (m->has_cpu) {
		add_member_decimal(b, "cpu_busy_percent", m->cpu_busy, 2);
		json_add_member_u64(b, "cpu_count", m->cpu_count);
	}
	if (m->has_memory) {
		json_add_member_u64(b, "memory_total_bytes", m->memory_total);
		json_add_member_u64(b, "memory_available_bytes", m->memory_available);
	}
	if (m->has_custom_load)
		add_member_decimal(b, "custom_load", m->custom_load, 2);
	buf_addc(b, '}');
}

static void add_agent(struct buf *b, const struct node *n)
{
	char when[CLOCK_RFC3339_SIZE];

	json_add_key(b, "load_index");
	if (n->has_index)
		buf_addu(b, n->index);
	else
		buf_adds(b, "null");
	json_add_member_u64(b, "sessions", n->session_count);
	add_metrics(b, &n->metrics);
	json_add_member_bool(b, "missing_metrics", n->metrics.missing);
	json_add_member_string(
		b, "heard_at", n->heard_wall_us ? clock_rfc3339(n->heard_wall_us, when) : NULL);
	json_add_member_string(b, "agent_version", n->agent_version);
	json_add_member_string(b, "agent_address", n->agent_address);
}

static void format(struct buf *b, const struct fleet *f, const void *object)
{
	const struct node *n = object;
	const struct node_spec *s = &n->spec;

	json_add_member_string(b, "name", s->name);
	json_add_member_string(b, "provider", n->provider->spec.name);
	json_add_member_string(b, "address", s->address);
	json_add_member_string(b, "fqdn", s->fqdn);
	json_add_member_u64(b, "port", s->port);
	add_member_tags(b, "tags", &s->tags);
	json_add_member_u64(b, "max_sessions", s->max_sessions);
	add_member_decimal(b, "load_multiplier", s->load_multiplier, 4);
	add_member_mode(b, s->mode, s->mode_reason);
	json_add_member_string(b, "state", node_state_name(service_node_state(n)));
	add_agent(b, n);
}

static void put(struct service *s, const struct caller *caller, const union admin_spec *spec,
	const char *changes, service_admin_done *done, void *ctx)
{
	service_put_node(s, caller, &spec->node, changes, done, ctx);
}

static const struct admin_kind kind = {
	.path = "nodes",
	.word = "node",
	.kind = STORE_NODE,
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

const struct admin_kind *admin_node(void)
{
	return &kind;
}
