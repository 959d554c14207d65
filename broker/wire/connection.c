/* SPDX-License-Identifier: ISC */
/* What a client asks and is told. Tags stay text here: what they mean is decided elsewhere. */
#include "wire/connection.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "wire/json.h"
#include "wire/names.h"
#include "wire/user_key.h"

/* A member that must be a name; "" when it is absent and not REQUIRED. */
static int get_name(struct json_object *o, const char *key, bool required,
	char ret[LIMIT_NAME_SIZE], struct err *e)
{
	const char *value = NULL;
	int r = json_get_string(o, key, LIMIT_NAME_SIZE - 1, &value, NULL, e);

	ret[0] = '\0';
	if (r < 0)
		return r;
	if (!value && required)
		return err_set(e, -EINVAL, "\"%s\" is missing", key);
	if (value && !name_valid(value))
		return err_set(e, -EINVAL,
			"\"%s\" must be 1 to %d letters, digits, '.', '_' or '-', and not begin "
			"with '.' or "
			"'-'",
			key, LIMIT_NAME_SIZE - 1);
	if (value)
		text_copy(ret, LIMIT_NAME_SIZE, value);
	return 0;
}

static int get_user(struct json_object *o, char ret[LIMIT_USER_SIZE], struct err *e)
{
	const char *value = NULL;
	int r = json_get_string(o, "user", LIMIT_BODY, &value, NULL, e);

	if (r < 0)
		return r;
	if (!value)
		return err_set(e, -EINVAL, "\"user\" is missing");
	r = user_name_display(value, strlen(value), ret, e);
	return r < 0 ? err_prefix(e, r, "\"user\"") : 0;
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

/* Optional text of one line; *RET_FOUND may be NULL. */
static int get_line(struct json_object *o, const char *key, char *ret, size_t size, bool *ret_found,
	struct err *e)
{
	const char *value = NULL;
	int r = json_get_string(o, key, size - 1, &value, ret_found, e);

	ret[0] = '\0';
	if (r < 0)
		return r;
	if (value && has_control(value))
		return err_set(e, -EINVAL, "\"%s\" holds a control character", key);
	if (value)
		text_copy(ret, size, value);
	return 0;
}

int connection_request_parse(
	const char *data, size_t len, struct connection_request *ret, struct err *e)
{
	AUTO_JSON struct json_object *o = NULL;
	struct connection_request request = {0};
	int r = json_parse_object(data, len, &o, e);

	if (r == 0)
		r = get_name(o, "pool", true, request.pool, e);
	if (r == 0)
		r = get_user(o, request.user, e);
	if (r == 0)
		r = get_line(o, "tags", request.tags, sizeof(request.tags), &request.has_tags, e);
	if (r == 0)
		r = get_line(o, "client", request.client, sizeof(request.client), NULL, e);
	if (r == 0)
		r = get_name(o, "node", false, request.node, e);
	if (r < 0)
		return r;
	*ret = request;
	return 0;
}

void connection_request_format(const struct connection_request *r, struct buf *out)
{
	buf_addc(out, '{');
	json_add_member_string(out, "pool", r->pool);
	json_add_member_string(out, "user", r->user);
	if (r->has_tags)
		json_add_member_string(out, "tags", r->tags);
	if (r->client[0])
		json_add_member_string(out, "client", r->client);
	if (r->node[0])
		json_add_member_string(out, "node", r->node);
	buf_addc(out, '}');
}

void connection_answer_format(const struct connection_answer *a, struct buf *out)
{
	buf_addc(out, '{');
	json_add_member_string(out, "node", a->node);
	json_add_member_string(out, "address", a->address);
	if (a->fqdn && *a->fqdn)
		json_add_member_string(out, "fqdn", a->fqdn);
	json_add_member_u64(out, "port", a->port);
	json_add_member_string(out, "reason", a->reason);
	if (a->has_load_index)
		json_add_member_u64(out, "load_index", a->load_index);
	json_add_key(out, "tags");
	buf_addc(out, '[');
	for (size_t i = 0; i < a->tag_count; i++) {
		if (i)
			buf_addc(out, ',');
		json_add_string(out, a->tags[i]);
	}
	buf_addc(out, ']');
	if (a->session_id) {
		json_add_key(out, "session");
		buf_addc(out, '{');
		json_add_member_string(out, "id", a->session_id);
		json_add_member_string(out, "state", a->session_active ? "active" : "disconnected");
		buf_addc(out, '}');
	}
	buf_addc(out, '}');
}
