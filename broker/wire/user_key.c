/* SPDX-License-Identifier: ISC */
/*
 * Names are checked, cut at '\' or '@', folded, and put together again. Nothing here asks the
 * locale. The alias table is folded when it is filled; it holds no cycle, and what it maps to is
 * followed to the end, so a key is its own key.
 *
 * utf8proc's one-step NFKC-like mapping gives two spellings of Greek iota subscript two keys: hence
 * decomposition first, then composition with case folding.
 */
#include "wire/user_key.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#define DOMAIN_MAX_BYTES 255
#define ALIASES_MAX 1000

struct alias {
	char *alias, *domain; /* owned, folded */
};

struct user_names {
	char *default_domain; /* owned, folded; NULL = none */
	struct alias *aliases;
	size_t count;
};

struct slice {
	const char *p;
	size_t len;
};

static bool is_ascii(struct slice s)
{
	unsigned char bits = 0;

	for (size_t i = 0; i < s.len; i++)
		bits |= (unsigned char)s.p[i];
	return bits < 0x80;
}

/* What cannot be seen, or changes how the rest is shown, has no place in a name. */
static bool code_point_allowed(utf8proc_int32_t c)
{
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CS:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return false;
	default:
		return !utf8proc_get_property(c)->ignorable;
	}
}

static bool is_space(utf8proc_int32_t c)
{
	return c == ' ' || (c >= 0x80 && utf8proc_category(c) == UTF8PROC_CATEGORY_ZS);
}

/* The code point at P and its length; false if it is not well-formed. */
static bool next_code_point(const char *p, size_t left, utf8proc_int32_t *ret, size_t *ret_len)
{
	*ret_len = text_utf8_length(p, left);
	if (*ret_len == 0) {
		*ret = 0;
		*ret_len = 1;
		return *p == '\0'; /* NUL is well-formed, and refused as a control character */
	}
	utf8proc_iterate((const utf8proc_uint8_t *)p, (utf8proc_ssize_t)*ret_len, ret);
	return true;
}

/* Most names: printable ASCII alone needs no look at Unicode. */
static bool is_printable_ascii(struct slice s)
{
	bool ok = true;

	for (size_t i = 0; i < s.len; i++)
		ok = ok & (s.p[i] >= ' ') & (s.p[i] <= '~');
	return ok;
}

static void trim_ascii(struct slice *s)
{
	while (s->len > 0 && *s->p == ' ') {
		s->p++;
		s->len--;
	}
	while (s->len > 0 && s->p[s->len - 1] == ' ')
		s->len--;
}

static int check_length(size_t chars, struct err *e)
{
	if (chars == 0)
		return err_set(e, -EINVAL, "the user name is empty");
	if (chars > LIMIT_USER_CHARS)
		return err_set(
			e, -EINVAL, "the user name is longer than %d characters", LIMIT_USER_CHARS);
	return 0;
}

/* Checks S and cuts the space around it off. */
static int check_name(struct slice *s, struct err *e)
{
	const char *p = s->p, *end = p + s->len, *first = NULL, *last = NULL;
	size_t chars = 0, n;
	utf8proc_int32_t c;

	if (is_printable_ascii(*s)) {
		trim_ascii(s);
		return check_length(s->len, e);
	}
	for (; p < end; p += n) {
		if (!next_code_point(p, (size_t)(end - p), &c, &n))
			return err_set(e, -EINVAL, "the user name is not valid UTF-8");
		if (is_space(c))
			continue;
		if (!code_point_allowed(c))
			return err_set(e, -EINVAL,
				"the user name holds a control or invisible character (U+%04X)",
				(unsigned)c);
		if (!first)
			first = p;
		last = p + n;
	}
	for (p = first; p && p < last; p++)
		chars += ((unsigned char)*p & 0xc0) != 0x80;
	*s = (struct slice){first, (size_t)(last - first)};
	return check_length(chars, e);
}

int user_name_check(const char *input, size_t len, struct err *e)
{
	struct slice s = {input, len};

	return check_name(&s, e);
}

int user_name_display(const char *input, size_t len, char ret[LIMIT_USER_SIZE], struct err *e)
{
	struct slice s = {input, len};
	int r = check_name(&s, e);

	if (r < 0)
		return r;
	memcpy(ret, s.p, s.len);
	ret[s.len] = '\0';
	return 0;
}

static int fold_unicode(struct slice s, struct buf *out)
{
	utf8proc_uint8_t *apart = NULL, *folded = NULL;
	utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)s.p, (utf8proc_ssize_t)s.len,
		&apart, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);

	if (n >= 0)
		n = utf8proc_map(
			apart, n, &folded, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
	if (n >= 0)
		buf_add(out, folded, (size_t)n);
	free(apart);
	free(folded);
	if (n >= 0)
		return 0;
	return n == UTF8PROC_ERROR_NOMEM ? -ENOMEM : -EINVAL;
}

/* Appends the folded form of S. */
static int fold(struct slice s, struct buf *out)
{
	if (!is_ascii(s))
		return fold_unicode(s, out);
	for (size_t i = 0; i < s.len; i++)
		buf_addc(out, s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i]);
	return 0;
}

struct user_names *user_names_new(void)
{
	return calloc(1, sizeof(struct user_names));
}

void user_names_free(struct user_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->count; i++) {
		free(n->aliases[i].alias);
		free(n->aliases[i].domain);
	}
	free(n->aliases);
	free(n->default_domain);
	free(n);
}

/* What a folded domain stands for in the end. */
static const char *canonical(const struct user_names *n, const char *domain)
{
	/* No cycle can be added, so this ends. */
	for (size_t i = 0; n && i < n->count; i++)
		if (strcmp(n->aliases[i].alias, domain) == 0)
			return canonical(n, n->aliases[i].domain);
	return domain;
}

/* Checks and folds the name of a domain; the caller frees *RET. */
static int make_domain(const char *domain, char **ret, struct err *e)
{
	struct slice s = {domain, strlen(domain)};
	struct buf b = BUF_INIT(DOMAIN_MAX_BYTES);
	int r = check_name(&s, e);

	if (r < 0)
		return err_prefix(e, r, "domain \"%s\"", domain);
	if (memchr(s.p, '\\', s.len) || memchr(s.p, '@', s.len) || (s.len == 1 && *s.p == '.'))
		return err_set(e, -EINVAL, "\"%s\" cannot be the name of a domain", domain);
	r = fold(s, &b);
	if (r == 0)
		r = buf_error(&b);
	if (r == 0) {
		char *text = buf_steal(&b);

		if (text) {
			*ret = text;
			return 0;
		}
		r = -ENOMEM;
	}
	buf_deinit(&b);
	return err_errno(e, r, "could not use the domain \"%s\"", domain);
}

int user_names_set_default(struct user_names *n, const char *domain, struct err *e)
{
	char *folded = NULL;
	int r;

	if (*domain) {
		r = make_domain(domain, &folded, e);
		if (r < 0)
			return r;
	}
	free(n->default_domain);
	n->default_domain = folded;
	return 0;
}

static int append_alias(struct user_names *n, char **alias, char **domain, struct err *e)
{
	struct alias *aliases;

	if (n->count == ALIASES_MAX)
		return err_set(e, -EINVAL, "there are more than %d domain aliases", ALIASES_MAX);
	aliases = reallocarray(n->aliases, n->count + 1, sizeof(*aliases));
	if (!aliases)
		return err_errno(e, -ENOMEM, "could not keep a domain alias");
	n->aliases = aliases;
	aliases[n->count++] = (struct alias){STEAL(*alias), STEAL(*domain)};
	return 0;
}

int user_names_add_alias(struct user_names *n, const char *alias, const char *domain, struct err *e)
{
	CLEANUP(freep) char *from = NULL;
	CLEANUP(freep) char *to = NULL;
	int r = make_domain(alias, &from, e);

	if (r == 0)
		r = make_domain(domain, &to, e);
	if (r < 0)
		return r;
	if (strcmp(from, to) == 0)
		return 0; /* every spelling of a name stands for it already */
	if (strcmp(canonical(n, from), from) != 0) {
		if (strcmp(canonical(n, from), canonical(n, to)) == 0)
			return 0;
		return err_set(e, -EEXIST, "the domain alias \"%s\" already stands for \"%s\"",
			alias, canonical(n, from));
	}
	if (strcmp(canonical(n, to), from) == 0)
		return err_set(e, -EINVAL, "\"%s\" and \"%s\" cannot be aliases of each other",
			alias, domain);
	return append_alias(n, &from, &to, e);
}

struct parts {
	struct slice domain, user;
	bool has_domain;
};

static int split(struct slice s, struct parts *ret, struct err *e)
{
	const char *slash = memchr(s.p, '\\', s.len), *at = memrchr(s.p, '@', s.len);
	const char *end = s.p + s.len;

	*ret = (struct parts){.user = s};
	if (slash) {
		if (memchr(slash + 1, '\\', (size_t)(end - slash - 1)))
			return err_set(e, -EINVAL, "the user name holds more than one backslash");
		ret->domain = (struct slice){s.p, (size_t)(slash - s.p)};
		ret->user = (struct slice){slash + 1, (size_t)(end - slash - 1)};
		ret->has_domain = true;
	} else if (at) {
		ret->user = (struct slice){s.p, (size_t)(at - s.p)};
		ret->domain = (struct slice){at + 1, (size_t)(end - at - 1)};
		ret->has_domain = true;
	}
	/* Space beside the separator would be trimmed if the part stood alone. */
	if (check_name(&ret->user, NULL) < 0)
		return err_set(e, -EINVAL, "there is no user in the user name");
	if (ret->has_domain && check_name(&ret->domain, NULL) < 0)
		return err_set(e, -EINVAL, "there is no domain in the user name");
	return 0;
}

/* Appends "domain\" or "\node\" for P to OUT; nothing when there is no domain. */
static int add_domain(const struct user_names *names, const struct parts *p, const char *local_node,
	struct buf *out, struct err *e)
{
	struct buf domain = BUF_INIT(LIMIT_USER_KEY_SIZE), node = BUF_INIT(LIMIT_NAME_SIZE);
	bool dot = p->has_domain && p->domain.len == 1 && *p->domain.p == '.';
	const char *name = names ? names->default_domain : NULL;
	int r = 0;

	if (dot && !local_node)
		return err_set(
			e, -EINVAL, "\".\\\" means this computer, and a client cannot mean one");
	if (p->has_domain) {
		r = fold(p->domain, &domain);
		name = buf_str(&domain);
	}
	if (r == 0 && local_node)
		r = fold((struct slice){local_node, strlen(local_node)}, &node);
	if (r == 0 && (dot || (p->has_domain && local_node && strcmp(name, buf_str(&node)) == 0))) {
		buf_addc(out, '\\');
		buf_adds(out, buf_str(&node));
		buf_addc(out, '\\');
	} else if (r == 0 && name) {
		buf_adds(out, canonical(names, name));
		buf_addc(out, '\\');
	}
	if (r == 0)
		r = buf_error(&domain) ? buf_error(&domain) : buf_error(&node);
	buf_deinit(&domain);
	buf_deinit(&node);
	return r == 0 ? 0 : err_errno(e, r, "could not fold the domain of the user name");
}

int user_key_make(const struct user_names *names, const char *input, size_t len,
	const char *local_node, char ret[LIMIT_USER_KEY_SIZE], struct err *e)
{
	struct buf out = BUF_INIT(LIMIT_USER_KEY_SIZE - 1);
	struct slice s = {input, len};
	struct parts parts;
	int r = check_name(&s, e);

	if (r == 0)
		r = split(s, &parts, e);
	if (r == 0)
		r = add_domain(names, &parts, local_node, &out, e);
	if (r < 0) {
		buf_deinit(&out);
		return r;
	}
	r = fold(parts.user, &out);
	if (r == 0)
		r = buf_error(&out);
	if (r == 0)
		memcpy(ret, buf_str(&out), out.len + 1);
	else if (r == -ENOMEM)
		err_errno(e, r, "could not fold the user name");
	else
		r = err_set(
			e, -EINVAL, "the user name cannot be folded, or is too long when folded");
	buf_deinit(&out);
	return r;
}
