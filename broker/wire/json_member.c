/* SPDX-License-Identifier: ISC */
/* Only for text that json_scan has passed: what stands where a value begins tells its type. */
#include "wire/json_member.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "wire/json.h"
#include "wire/json_slice.h"

static struct json_member *find(
	struct json_member *members, size_t count, const char *key, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (members[i].key_len == len && memcmp(members[i].key, key, len) == 0)
			return &members[i];
	return NULL;
}

bool json_member_next(
	char **p, struct json_member *members, size_t count, struct json_member **ret_member)
{
	struct json_member *m;
	const char *key;
	size_t len;

	if (!json_slice_next(p))
		return false;
	key = json_slice_key(p, &len);
	m = find(members, count, key, len);
	if (m)
		m->at = **p == 'n' ? NULL : *p; /* null */
	*ret_member = m;
	return true;
}

void json_members_read(char *at, struct json_member *members, size_t count)
{
	struct json_member *ignored;

	at++; /* the brace */
	while (json_member_next(&at, members, count, &ignored))
		json_slice_skip(&at);
}

static bool is_number(const char *at)
{
	return *at == '-' || (*at >= '0' && *at <= '9');
}

int json_member_string(
	const struct json_member *m, size_t max_bytes, const char **ret, struct err *e)
{
	char *at = m->at;
	const char *text;
	size_t len;

	if (!at)
		return 0;
	if (*at != '"')
		return json_wrong_type(m->key, "a string", e);
	text = json_slice_string(&at, &len);
	if (len > max_bytes)
		return json_too_long(m->key, max_bytes, e);
	*ret = text;
	return 0;
}

int json_member_bool(const struct json_member *m, bool *ret, struct err *e)
{
	if (!m->at)
		return 0;
	if (*m->at != 't' && *m->at != 'f')
		return json_wrong_type(m->key, "true or false", e);
	*ret = *m->at == 't';
	return 0;
}

int json_member_u64(
	const struct json_member *m, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	uint64_t value;
	bool negative;

	if (!m->at)
		return 0;
	if (!is_number(m->at) || !json_slice_integer(m->at, &value, &negative))
		return json_wrong_type(m->key, "an integer", e);
	if ((negative && value > 0) || value < min || value > max)
		return json_out_of_range(m->key, min, max, e);
	*ret = value;
	return 0;
}

int json_member_number(
	const struct json_member *m, double min, double max, double *ret, struct err *e)
{
	double value;

	if (!m->at)
		return 0;
	if (!is_number(m->at))
		return json_wrong_type(m->key, "a number", e);
	value = json_slice_number(m->at);
	if (!isfinite(value) || value < min || value > max)
		return json_out_of_bounds(m->key, min, max, e);
	*ret = value;
	return 0;
}

int json_member_object(const struct json_member *m, struct err *e)
{
	return m->at && *m->at != '{' ? json_wrong_type(m->key, "an object", e) : 0;
}

int json_member_array(const struct json_member *m, struct err *e)
{
	return m->at && *m->at != '[' ? json_wrong_type(m->key, "an array", e) : 0;
}

int json_member_need(const struct json_member *m, struct err *e)
{
	return m->at ? 0 : err_set(e, -EINVAL, "\"%s\" is missing", m->key);
}
