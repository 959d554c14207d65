/* SPDX-License-Identifier: ISC */
/*
 * json-c behind the scanner: it builds what json_scan has passed, and refuses none of it. Writing
 * goes straight into a buffer.
 */
#include "wire/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "wire/limits.h"

static void tokener_freep(struct json_tokener **t)
{
	if (*t)
		json_tokener_free(*t);
}

/* json-c's tree of a text that was scanned. */
static int build(const char *data, size_t len, struct json_object **ret, struct err *e)
{
	CLEANUP(tokener_freep) struct json_tokener *t = NULL;
	struct json_object *o;

	/* One level for the scalar inside the deepest container, one because json-c counts from
	 * one. */
	t = json_tokener_new_ex(LIMIT_JSON_DEPTH + 2);
	if (!t)
		return err_errno(e, -ENOMEM, "could not read JSON");
	/* Not JSON_TOKENER_STRICT: json_scan has refused all that it would, and that of json-c 0.18
	 * takes bytes above 127 for control characters. */
	o = json_tokener_parse_ex(t, data, (int)len);
	/* A number that ends with the text: only the NUL tells json-c that it is whole. */
	if (json_tokener_get_error(t) == json_tokener_continue)
		o = json_tokener_parse_ex(t, "", 1);
	if (json_tokener_get_error(t) != json_tokener_success)
		return err_set(e, -EINVAL, "invalid JSON: %s",
			json_tokener_error_desc(json_tokener_get_error(t)));
	*ret = o;
	return 0;
}

int json_parse(const char *data, size_t len, struct json_object **ret, struct err *e)
{
	int r = json_scan(data, len, e);

	return r < 0 ? r : build(data, len, ret, e);
}

int json_parse_object(const char *data, size_t len, struct json_object **ret, struct err *e)
{
	AUTO_JSON struct json_object *o = NULL;
	int r = json_parse(data, len, &o, e);

	if (r < 0)
		return r;
	if (!json_object_is_type(o, json_type_object))
		return err_set(e, -EINVAL, "the JSON value is not an object");
	*ret = STEAL(o);
	return 0;
}

int json_wrong_type(const char *key, const char *wanted, struct err *e)
{
	return err_set(e, -EINVAL, "\"%s\" must be %s", key, wanted);
}

int json_too_long(const char *key, size_t max_bytes, struct err *e)
{
	return err_set(e, -EINVAL, "\"%s\" is longer than %zu bytes", key, max_bytes);
}

int json_out_of_range(const char *key, uint64_t min, uint64_t max, struct err *e)
{
	return err_set(e, -EINVAL, "\"%s\" must be within %llu and %llu", key,
		(unsigned long long)min, (unsigned long long)max);
}

int json_out_of_bounds(const char *key, double min, double max, struct err *e)
{
	return err_set(e, -EINVAL, "\"%s\" must be within %g and %g", key, min, max);
}

/* The member KEY, or NULL when it is absent or null; *RET_FOUND says which. */
static struct json_object *member(struct json_object *o, const char *key, bool *ret_found)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, key, &v);
	if (ret_found)
		*ret_found = v != NULL;
	return v;
}

int json_get_string(struct json_object *o, const char *key, size_t max_bytes, const char **ret,
	bool *ret_found, struct err *e)
{
	struct json_object *v = member(o, key, ret_found);

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_string))
		return json_wrong_type(key, "a string", e);
	if ((size_t)json_object_get_string_len(v) > max_bytes)
		return json_too_long(key, max_bytes, e);
	*ret = json_object_get_string(v);
	return 0;
}

int json_get_bool(struct json_object *o, const char *key, bool *ret, bool *ret_found, struct err *e)
{
	struct json_object *v = member(o, key, ret_found);

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_boolean))
		return json_wrong_type(key, "true or false", e);
	*ret = json_object_get_boolean(v);
	return 0;
}

int json_get_u64(struct json_object *o, const char *key, uint64_t min, uint64_t max, uint64_t *ret,
	bool *ret_found, struct err *e)
{
	struct json_object *v = member(o, key, ret_found);
	uint64_t value;

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_int))
		return json_wrong_type(key, "an integer", e);
	value = json_object_get_uint64(v);
	/* json-c turns a negative number into 0, and caps the signed reading of a large one. */
	if (json_object_get_int64(v) < 0 || value < min || value > max)
		return json_out_of_range(key, min, max, e);
	*ret = value;
	return 0;
}

int json_get_number(struct json_object *o, const char *key, double min, double max, double *ret,
	bool *ret_found, struct err *e)
{
	struct json_object *v = member(o, key, ret_found);
	double value;

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_double) && !json_object_is_type(v, json_type_int))
		return json_wrong_type(key, "a number", e);
	value = json_object_get_double(v);
	if (!isfinite(value) || value < min || value > max)
		return json_out_of_bounds(key, min, max, e);
	*ret = value;
	return 0;
}

int json_get_array(struct json_object *o, const char *key, size_t max_items,
	struct json_object **ret, bool *ret_found, struct err *e)
{
	struct json_object *v = member(o, key, ret_found);

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_array))
		return json_wrong_type(key, "an array", e);
	if (json_object_array_length(v) > max_items)
		return err_set(e, -EINVAL, "\"%s\" has more than %zu items", key, max_items);
	*ret = v;
	return 0;
}

int json_get_object(struct json_object *o, const char *key, struct json_object **ret,
	bool *ret_found, struct err *e)
{
	struct json_object *v = member(o, key, ret_found);

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_object))
		return json_wrong_type(key, "an object", e);
	*ret = v;
	return 0;
}

/* How a byte that JSON does not take as it is is written. */
static void add_escape(struct buf *b, unsigned char c)
{
	static const char written[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *at = c ? strchr(written, c) : NULL;

	if (at) {
		buf_addc(b, '\\');
		buf_addc(b, letters[at - written]);
	} else {
		buf_addf(b, "\\u%04x", c);
	}
}

static bool plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

void json_add_string(struct buf *b, const char *s)
{
	size_t left = s ? strlen(s) : 0;

	if (!s) {
		buf_adds(b, "null");
		return;
	}
	buf_addc(b, '"');
	while (left > 0) {
		size_t n = 0;

		while (n < left && plain((unsigned char)s[n]))
			n++;
		buf_add(b, s, n);
		s += n;
		left -= n;
		if (left == 0)
			break;
		n = text_utf8_length(s, left);
		if (n > 1)
			buf_add(b, s, n);
		else if (n == 1)
			add_escape(b, (unsigned char)*s);
		else
			buf_adds(b,
				"\xef\xbf\xbd"); /* a name from a foreign file need not be UTF-8 */
		n = n ? n : 1;
		s += n;
		left -= n;
	}
	buf_addc(b, '"');
}

void json_add_key(struct buf *b, const char *key)
{
	char last = b->len ? b->data[b->len - 1] : '{';

	if (last != '{' && last != '[')
		buf_addc(b, ',');
	buf_addc(b, '"');
	buf_adds(b, key);
	buf_add(b, "\":", 2);
}

void json_add_member_string(struct buf *b, const char *key, const char *value)
{
	json_add_key(b, key);
	json_add_string(b, value);
}

void json_add_member_u64(struct buf *b, const char *key, uint64_t value)
{
	json_add_key(b, key);
	buf_addu(b, value);
}

void json_add_member_bool(struct buf *b, const char *key, bool value)
{
	json_add_key(b, key);
	buf_adds(b, value ? "true" : "false");
}
