/* SPDX-License-Identifier: ISC */
/* Strings are zero-filled behind their end, so that specs can be compared by their bytes. */
#include "api/fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "wire/json.h"

static void *member(const struct field *f, void *spec)
{
	return (char *)spec + f->offset;
}

int field_string(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	size_t len;

	if (value && !json_object_is_type(value, json_type_string))
		return err_set(e, -EINVAL, "\"%s\" must be a string", f->name);
	len = value ? (size_t)json_object_get_string_len(value) : 0;
	if (len >= f->size)
		return err_set(e, -EINVAL, "\"%s\" is longer than %zu bytes", f->name, f->size - 1);
	memset(member(f, spec), 0, f->size);
	if (len)
		memcpy(member(f, spec), json_object_get_string(value), len);
	return 0;
}

int field_bool(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	if (!json_object_is_type(value, json_type_boolean))
		return err_set(e, -EINVAL, "\"%s\" must be true or false", f->name);
	*(bool *)member(f, spec) = json_object_get_boolean(value);
	return 0;
}

int field_tags_add(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	struct tag_set *tags = member(f, spec);
	size_t count = 0;

	if (value && !json_object_is_type(value, json_type_array))
		return err_set(e, -EINVAL, "\"%s\" must be an array of tags", f->name);
	if (value)
		count = json_object_array_length(value);
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(value, i);
		int r;

		if (!json_object_is_type(item, json_type_string))
			return err_set(e, -EINVAL, "\"%s\" must be an array of tags", f->name);
		r = tag_set_add(tags, json_object_get_string(item), e);
		if (r == -E2BIG)
			return err_set(e, -EINVAL, "\"%s\" holds more than %d tags", f->name,
				LIMIT_TAGS_PER_NODE);
		if (r < 0)
			return err_prefix(e, -EINVAL, "\"%s\"", f->name);
	}
	return 0;
}

int field_tags_remove(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	size_t count = 0;

	if (value && !json_object_is_type(value, json_type_array))
		return err_set(e, -EINVAL, "\"%s\" must be an array of tags", f->name);
	if (value)
		count = json_object_array_length(value);
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(value, i);

		if (!json_object_is_type(item, json_type_string))
			return err_set(e, -EINVAL, "\"%s\" must be an array of tags", f->name);
		tag_set_remove(member(f, spec), json_object_get_string(item));
	}
	return 0;
}

int field_tags(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	memset(member(f, spec), 0, sizeof(struct tag_set));
	return field_tags_add(f, value, spec, fleet, e);
}

int field_provider(const struct field *f, struct json_object *value, void *spec,
	const struct fleet *fleet, struct err *e)
{
	const struct provider *p;

	if (!json_object_is_type(value, json_type_string))
		return err_set(e, -EINVAL, "\"provider\" must be the name of a provider");
	p = fleet_provider(fleet, json_object_get_string(value));
	if (!p)
		return err_set(e, -EINVAL, "\"provider\": there is no provider \"%.64s\"",
			json_object_get_string(value));
	*(uint32_t *)member(f, spec) = p->spec.id;
	return 0;
}

static const struct field *find_field(const struct field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static int unknown_field(const char *name, struct err *e)
{
	if (strcmp(name, "mode") == 0 || strcmp(name, "mode_reason") == 0)
		return err_set(e, -EINVAL, "\"%s\" is not set here but by PUT …/maintenance", name);
	return err_set(e, -EINVAL, "unknown field \"%.64s\"", name);
}

int fields_read(const struct field *fields, size_t count, struct json_object *object, bool creating,
	void *spec, const struct fleet *fleet, const char **ret_code, struct err *e)
{
	json_object_object_foreach(object, name, value)
	{
		const struct field *f = find_field(fields, count, name);

		*ret_code = f ? "field_invalid" : "field_unknown";
		if (!f)
			return unknown_field(name, e);
		if (f->read(f, value, spec, fleet, e) < 0)
			return -EINVAL;
	}
	*ret_code = "field_missing";
	for (size_t i = 0; creating && i < count; i++)
		if (fields[i].required && !json_object_object_get_ex(object, fields[i].name, NULL))
			return err_set(e, -EINVAL, "\"%s\" is missing", fields[i].name);
	return 0;
}

void fields_changed(const struct field *fields, size_t count, const void *before, const void *after,
	struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct field *f = &fields[i];

		if (memcmp((const char *)before + f->offset, (const char *)after + f->offset,
			    f->size) == 0)
			continue;
		if (out->len)
			buf_adds(out, ", ");
		buf_adds(out, f->name);
	}
}

static double power_of_ten(unsigned n)
{
	double v = 1;

	while (n--)
		v *= 10;
	return v;
}

int field_decimal(const char *name, struct json_object *value, unsigned decimals, uint32_t min,
	uint32_t max, uint32_t *ret, struct err *e)
{
	double scale = power_of_ten(decimals), v, rounded;

	if (!json_object_is_type(value, json_type_double) &&
		!json_object_is_type(value, json_type_int))
		return err_set(e, -EINVAL, "\"%s\" must be a number", name);
	v = json_object_get_double(value) * scale;
	if (!isfinite(v) || v < min || v > max)
		return err_set(
			e, -EINVAL, "\"%s\" must be within %g..%g", name, min / scale, max / scale);
	rounded = nearbyint(v);
	if (fabs(v - rounded) > 1e-6)
		return err_set(e, -EINVAL, "\"%s\" has more than %u decimals", name, decimals);
	*ret = (uint32_t)rounded;
	return 0;
}

void add_member_decimal(struct buf *b, const char *key, uint64_t value, unsigned decimals)
{
	uint64_t scale = (uint64_t)power_of_ten(decimals);
	uint64_t rest = value % scale;

	json_add_key(b, key);
	buf_addu(b, value / scale);
	if (rest)
		buf_addc(b, '.');
	while (rest) {
		scale /= 10;
		buf_addc(b, (char)('0' + rest / scale));
		rest %= scale;
	}
}

void add_member_tags(struct buf *b, const char *key, const struct tag_set *tags)
{
	json_add_key(b, key);
	buf_addc(b, '[');
	for (uint32_t i = 0; i < tags->count; i++) {
		if (i)
			buf_addc(b, ',');
		json_add_string(b, tags->tag[i]);
	}
	buf_addc(b, ']');
}
