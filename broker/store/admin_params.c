/* SPDX-License-Identifier: ISC */
/* Parameters: `values` points at text of the caller, or at this struct's own numbers and array. */
#include "store/admin_params.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/secret.h"
#include "store/array.h"
#include "store/pipeline.h"

#define ARRAY_MAX 16384

void params_init(struct params *p)
{
	p->count = 0;
	buf_init(&p->array, ARRAY_MAX);
}

void params_text(struct params *p, const char *value)
{
	p->values[p->count++] = value;
}

void params_bool(struct params *p, bool value)
{
	params_text(p, value ? "t" : "f");
}

void params_i64(struct params *p, int64_t value)
{
	char *text = p->numbers[p->count];

	snprintf(text, sizeof(p->numbers[0]), "%" PRId64, value);
	params_text(p, text);
}

void params_id(struct params *p, uint32_t id)
{
	if (id == 0)
		params_text(p, NULL);
	else
		params_i64(p, id);
}

void params_ids(struct params *p, const uint32_t *ids, size_t count)
{
	array_begin(&p->array);
	for (size_t i = 0; i < count; i++)
		array_u64(&p->array, ids[i]);
	array_end(&p->array);
	params_text(p, buf_str(&p->array));
}

static void params_tags(struct params *p, const struct tag_set *tags)
{
	array_tags(&p->array, tags);
	params_text(p, buf_str(&p->array));
}

static void params_rule(struct params *p, const struct load_rule *r)
{
	params_bool(p, r->on);
	params_i64(p, r->zero);
	params_i64(p, r->full);
}

void params_provider(struct params *p, const struct provider_spec *s)
{
	params_text(p, s->name);
	params_bool(p, s->share_sessions);
	params_bool(p, s->balance_by_metrics);
	params_bool(p, s->prefer_sharing);
	params_text(p, mass_silence_name(s->on_mass_silence));
	params_rule(p, &s->cpu);
	params_rule(p, &s->memory);
	params_bool(p, s->sessions_rule);
	params_bool(p, s->load_script_rule);
	params_text(p, admin_mode_name(s->mode));
	params_text(p, s->mode_reason);
}

void params_pool(struct params *p, const struct pool_spec *s)
{
	params_text(p, s->name);
	params_i64(p, s->provider_id);
	params_text(p, s->default_tags);
	params_text(p, s->forced_tags);
	params_tags(p, &s->allowed_tags);
	params_text(p, s->untagged_default == UNTAGGED_ANY ? "any" : "none");
	params_text(p, s->rdp_extra);
	params_text(p, admin_mode_name(s->mode));
	params_text(p, s->mode_reason);
}

void params_node(struct params *p, const struct node_spec *s)
{
	params_text(p, s->name);
	params_i64(p, s->provider_id);
	params_text(p, s->address);
	params_text(p, s->fqdn);
	params_i64(p, s->port);
	params_tags(p, &s->tags);
	params_i64(p, s->max_sessions);
	params_i64(p, s->load_multiplier);
	params_text(p, admin_mode_name(s->mode));
	params_text(p, s->mode_reason);
}

void params_token(struct params *p, const struct token_spec *s)
{
	params_text(p, s->name);
	params_text(p, role_name(s->role));
	params_id(p, s->node_id);
	secret_hex(s->hash, p->hash);
	params_text(p, p->hash);
	params_tags(p, &s->tags);
	params_bool(p, s->see_sessions);
	if (s->expires_us > 0)
		params_i64(p, s->expires_us);
	else
		params_text(p, NULL);
	params_bool(p, s->revoked);
}

bool params_send(struct params *p, PGconn *conn, enum statement statement)
{
	bool sent = !buf_error(&p->array) && segment_query(conn, statement, p->count, p->values);

	buf_deinit(&p->array);
	return sent;
}
