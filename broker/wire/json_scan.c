/* SPDX-License-Identifier: ISC */
/*
 * One pass over the text with an explicit stack of at most LIMIT_JSON_DEPTH containers.
 *
 * Keys: those of the open objects lie on one stack, an inner object's above its parent's, and leave
 * it when their object closes; so the keys of the closing object are together at the top. A few are
 * compared pair by pair, many are sorted first: n log n, whatever the sender chose. The stack
 * begins inside the scanner and moves to the heap for documents with many keys; LIMIT_JSON_VALUES
 * bounds it.
 */
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json_lex.h"
#include "wire/limits.h"

#define KEYS_INLINE 64
#define KEYS_PAIRWISE 16

struct level {
	bool object;
	size_t first_key;
};

struct scanner {
	struct json_lex lex;
	unsigned values, depth;
	bool no_memory;
	const struct json_key *doubled; /* the later of two equal keys */
	struct level level[LIMIT_JSON_DEPTH];
	struct json_key *keys; /* inline_keys or on the heap */
	size_t key_count, key_cap;
	struct json_key inline_keys[KEYS_INLINE];
};

static bool fail_at(struct scanner *s, const char *at, const char *wrong)
{
	if (!s->lex.wrong)
		s->lex.p = at;
	return json_lex_fail(&s->lex, wrong);
}

static bool grow_keys(struct scanner *s)
{
	size_t cap = s->key_cap * 2;
	struct json_key *keys = malloc(cap * sizeof(*keys));

	if (!keys) {
		s->no_memory = true;
		return json_lex_fail(&s->lex, "out of memory");
	}
	memcpy(keys, s->keys, s->key_count * sizeof(*keys));
	if (s->keys != s->inline_keys)
		free(s->keys);
	s->keys = keys;
	s->key_cap = cap;
	return true;
}

static int compare_keys(const void *a, const void *b, void *data)
{
	return json_key_compare(data, a, b);
}

static bool duplicate(struct scanner *s, const struct json_key *a, const struct json_key *b)
{
	s->doubled = a->at > b->at ? a : b;
	return fail_at(s, s->lex.data + s->doubled->at, "duplicate key");
}

/* The keys of the object that closes, which end the stack. */
static bool check_keys(struct scanner *s, size_t first)
{
	struct json_key *k = s->keys + first;
	size_t n = s->key_count - first;
	const char *data = s->lex.data;

	if (n > KEYS_PAIRWISE) {
		qsort_r(k, n, sizeof(*k), compare_keys, (void *)(uintptr_t)data);
		for (size_t i = 1; i < n; i++)
			if (json_key_compare(data, &k[i - 1], &k[i]) == 0)
				return duplicate(s, &k[i - 1], &k[i]);
		return true;
	}
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (k[i].head == k[j].head && json_key_compare(data, &k[i], &k[j]) == 0)
				return duplicate(s, &k[i], &k[j]);
	return true;
}

/* A key and its colon. */
static bool scan_key(struct scanner *s)
{
	struct json_lex *l = &s->lex;

	if (l->p == l->end || *l->p != '"')
		return json_lex_fail(l, "a key is missing");
	if (s->key_count == s->key_cap && !grow_keys(s))
		return false;
	l->p++;
	if (!json_lex_string(l, &s->keys[s->key_count]))
		return false;
	s->key_count++;
	json_lex_space(l);
	if (l->p == l->end || *l->p != ':')
		return json_lex_fail(l, "a colon is missing");
	l->p++;
	json_lex_space(l);
	return true;
}

/* P is behind '[' or '{'. *RET_EMPTY: the container closed at once, else the next thing is a value.
 */
static bool open_container(struct scanner *s, bool object, bool *ret_empty)
{
	struct json_lex *l = &s->lex;

	if (s->depth == LIMIT_JSON_DEPTH)
		return fail_at(s, l->p - 1, "nested too deeply");
	json_lex_space(l);
	*ret_empty = l->p < l->end && *l->p == (object ? '}' : ']');
	if (*ret_empty) {
		l->p++;
		return true;
	}
	s->level[s->depth++] = (struct level){.object = object, .first_key = s->key_count};
	return !object || scan_key(s);
}

/* One value, or the beginning of a container; *RET_OPEN: it is the latter. */
static bool scan_value(struct scanner *s, bool *ret_open)
{
	struct json_lex *l = &s->lex;
	bool empty = false, ok;

	*ret_open = false;
	if (l->p == l->end)
		return json_lex_fail(l, "a value is missing");
	if (s->values++ == LIMIT_JSON_VALUES)
		return json_lex_fail(l, "too many values");
	switch (*l->p) {
	case '{':
	case '[':
		l->p++;
		ok = open_container(s, l->p[-1] == '{', &empty);
		*ret_open = ok && !empty;
		return ok;
	case '"':
		l->p++;
		return json_lex_string(l, NULL);
	case 't':
		return json_lex_word(l, "true");
	case 'f':
		return json_lex_word(l, "false");
	case 'n':
		return json_lex_word(l, "null");
	default:
		return json_lex_number(l);
	}
}

/* Behind a value: closes containers until another value follows (*RET_MORE) or none is open. */
static bool scan_after_value(struct scanner *s, bool *ret_more)
{
	struct json_lex *l = &s->lex;

	*ret_more = false;
	for (;;) {
		struct level *top;

		json_lex_space(l);
		if (s->depth == 0)
			return true;
		top = &s->level[s->depth - 1];
		if (l->p < l->end && *l->p == ',') {
			l->p++;
			json_lex_space(l);
			*ret_more = true;
			return !top->object || scan_key(s);
		}
		if (l->p == l->end || *l->p != (top->object ? '}' : ']'))
			return json_lex_fail(
				l, top->object ? "',' or '}' is missing" : "',' or ']' is missing");
		l->p++;
		if (top->object && !check_keys(s, top->first_key))
			return false;
		s->key_count = top->first_key;
		s->depth--;
	}
}

static bool scan_document(struct scanner *s)
{
	bool more = true, open;

	json_lex_space(&s->lex);
	if (s->lex.p == s->lex.end)
		return json_lex_fail(&s->lex, "the text is empty");
	while (more) {
		if (!scan_value(s, &open))
			return false;
		if (!open && !scan_after_value(s, &more))
			return false;
	}
	return s->lex.p == s->lex.end || json_lex_fail(&s->lex, "something follows the value");
}

/* The member that was being read, if its name can be shown. */
static bool member_of_error(const struct scanner *s, const struct json_key **ret)
{
	const struct json_key *k;

	if (s->depth == 0 || !s->level[s->depth - 1].object || s->key_count == 0)
		return false;
	k = s->doubled ? s->doubled : &s->keys[s->key_count - 1];
	if (k->escaped || k->bytes == 0 || k->bytes >= LIMIT_NAME_SIZE)
		return false;
	for (uint32_t i = 0; i < k->bytes; i++)
		if (s->lex.data[k->at + i] <= ' ' || s->lex.data[k->at + i] > '~')
			return false;
	*ret = k;
	return true;
}

static int describe(const struct scanner *s, struct err *e)
{
	size_t at = (size_t)(s->lex.p - s->lex.data);
	const struct json_key *k;

	if (s->no_memory)
		return err_errno(e, -ENOMEM, "could not read JSON");
	if (member_of_error(s, &k))
		return err_set(e, -EINVAL, "invalid JSON at byte %zu, member \"%.*s\": %s", at,
			(int)k->bytes, s->lex.data + k->at, s->lex.wrong);
	return err_set(e, -EINVAL, "invalid JSON at byte %zu: %s", at, s->lex.wrong);
}

int json_scan(const char *data, size_t len, struct err *e)
{
	struct scanner s;
	int r = 0;

	if (len > UINT32_MAX / 2)
		return err_set(e, -EINVAL, "the JSON text is too long");
	s.lex = (struct json_lex){.data = data, .p = data, .end = data + len};
	s.values = s.depth = 0;
	s.no_memory = false;
	s.doubled = NULL;
	s.key_count = 0;
	s.key_cap = KEYS_INLINE;
	s.keys = s.inline_keys; /* left uninitialised: written before it is read */
	if (!scan_document(&s))
		r = describe(&s, e);
	if (s.keys != s.inline_keys)
		free(s.keys);
	return r;
}
