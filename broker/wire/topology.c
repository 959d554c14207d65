/* SPDX-License-Identifier: ISC */
/* The list of dispatchers as agents, doors and the command line see it. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "wire/heartbeat.h"
#include "wire/json.h"
#include "wire/names.h"

/* An http or https URL without space or control character, short enough for its field. */
static bool url_valid(const char *url)
{
	if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
		return false;
	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\')
			return false;
	return strlen(strchr(url, '/') + 2) > 0;
}

static int parse_dispatcher(struct json_object *o, struct topology_dispatcher *ret, struct err *e)
{
	const char *name = NULL, *url = NULL;
	int r;

	if (!json_object_is_type(o, json_type_object))
		return err_set(e, -EINVAL, "\"dispatchers\" must hold objects");
	r = json_get_string(o, "name", sizeof(ret->name) - 1, &name, NULL, e);
	if (r == 0)
		r = json_get_string(o, "url", sizeof(ret->url) - 1, &url, NULL, e);
	if (r < 0)
		return r;
	if (!name || !name_valid(name))
		return err_set(e, -EINVAL, "a dispatcher has no valid \"name\"");
	if (!url || !url_valid(url))
		return err_set(e, -EINVAL, "the dispatcher \"%s\" has no valid \"url\"", name);
	text_copy(ret->name, sizeof(ret->name), name);
	text_copy(ret->url, sizeof(ret->url), url);
	return 0;
}

int topology_parse(struct json_object *o, struct topology *ret, struct err *e)
{
	struct topology t = {0};
	struct json_object *list = NULL;
	const char *id = NULL;
	bool has_version = false;
	int r = json_get_string(o, "cluster_id", sizeof(t.cluster_id) - 1, &id, NULL, e);

	if (r == 0)
		r = json_get_u64(o, "version", 0, INT64_MAX, &t.version, &has_version, e);
	if (r == 0)
		r = json_get_array(o, "dispatchers", LIMIT_DISPATCHERS, &list, NULL, e);
	if (r < 0)
		return r;
	if (!id || !*id)
		return err_set(e, -EINVAL, "\"cluster_id\" is missing");
	if (!has_version)
		return err_set(e, -EINVAL, "\"version\" is missing");
	text_copy(t.cluster_id, sizeof(t.cluster_id), id);
	t.count = list ? json_object_array_length(list) : 0;
	for (size_t i = 0; i < t.count && r == 0; i++)
		r = parse_dispatcher(json_object_array_get_idx(list, i), &t.dispatchers[i], e);
	if (r < 0)
		return r;
	*ret = t;
	return 0;
}

void topology_format(const struct topology *t, struct buf *out)
{
	buf_addc(out, '{');
	json_add_member_string(out, "cluster_id", t->cluster_id);
	json_add_member_u64(out, "version", t->version);
	json_add_key(out, "dispatchers");
	buf_addc(out, '[');
	for (size_t i = 0; i < t->count; i++) {
		buf_adds(out, i ? ",{" : "{");
		json_add_member_string(out, "name", t->dispatchers[i].name);
		json_add_member_string(out, "url", t->dispatchers[i].url);
		buf_addc(out, '}');
	}
	buf_adds(out, "]}");
}
