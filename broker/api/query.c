/* SPDX-License-Identifier: ISC */
/* Values are short, so each is looked up in the text where it is used. */
#include "api/query.h"

#include <errno.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The raw value and its length, or NULL. */
static const char *find(const char *query, const char *key, size_t *ret_len)
{
	size_t key_len = strlen(key);

	while (*query) {
		size_t len = strcspn(query, "&");

		if (len > key_len && query[key_len] == '=' && strncmp(query, key, key_len) == 0) {
			*ret_len = len - key_len - 1;
			return query + key_len + 1;
		}
		query += len + (query[len] == '&');
	}
	return NULL;
}

int query_string(const char *query, const char *key, char *ret, size_t size, struct err *e)
{
	size_t len, decoded_len = 0;
	const char *raw = find(query, key, &len);
	char *copy, *decoded;
	int r = 0;

	ret[0] = '\0';
	if (!raw)
		return 0;
	if (len > 3 * size)
		return err_set(e, -EINVAL, "%s is too long", key);
	copy = strndup(raw, len);
	decoded = copy ? evhttp_uridecode(copy, 1, &decoded_len) : NULL;
	if (!decoded)
		r = err_set(e, -ENOMEM, "no memory");
	else if (decoded_len >= size)
		r = err_set(e, -EINVAL, "%s is longer than %zu bytes", key, size - 1);
	else if (strlen(decoded) != decoded_len || !text_utf8_valid(decoded, decoded_len))
		r = err_set(e, -EINVAL, "%s is not UTF-8 text", key);
	else
		memcpy(ret, decoded, decoded_len + 1);
	free(decoded);
	free(copy);
	return r;
}

int query_u64(const char *query, const char *key, uint64_t min, uint64_t max, uint64_t *ret,
	struct err *e)
{
	char text[24];
	int r = query_string(query, key, text, sizeof(text), e);

	if (r < 0 || !text[0])
		return r;
	if (text_parse_u64(text, min, max, ret) < 0)
		return err_set(e, -EINVAL, "%s must be a number within %" PRIu64 "..%" PRIu64, key,
			min, max);
	return 0;
}

int query_bool(const char *query, const char *key, bool *ret, struct err *e)
{
	char text[8];
	int r = query_string(query, key, text, sizeof(text), e);

	if (r < 0 || !text[0])
		return r;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_set(e, -EINVAL, "%s must be true or false", key);
	*ret = text[0] == 't';
	return 0;
}
