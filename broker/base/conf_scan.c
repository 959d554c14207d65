/* SPDX-License-Identifier: ISC */
/*
 * A second reader of the same grammar that knows the option table: it follows sections by name,
 * notes each path that is set ("section title key"), and looks at values before they are converted.
 * Where the text makes no sense to it, it stops and leaves the complaint to libconfuse.
 */
#include "base/conf_scan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

#define DEPTH_MAX 8
#define PATHS_MAX 4096
#define PATH_MAX_BYTES 2048
#define PATH_SEPARATOR '\x1f' /* cannot be in a path: control characters are refused */

enum token {
	TOKEN_END,
	TOKEN_WORD,
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_SET,
	TOKEN_ADD,
	TOKEN_COMMA,
	TOKEN_OTHER
};

struct reader {
	const char *p, *path;
	int line;
	struct err *e;
	int error;	  /* 0 or a negative errno: e is filled */
	bool stop;	  /* libconfuse will complain */
	struct buf word;  /* the last word, escapes left as they are */
	struct buf where; /* path of the innermost section */
	char **seen;
	size_t seen_count;
	size_t depth;
};

/* Fills the error; stops the reader. LINE 0: the current one. */
__attribute__((format(printf, 3, 4))) static void complain(
	struct reader *r, int line, const char *fmt, ...)
{
	struct buf text = BUF_INIT(sizeof(r->e->text));
	va_list ap;

	r->stop = true;
	if (r->error)
		return;
	va_start(ap, fmt);
	buf_addfv(&text, fmt, ap);
	va_end(ap);
	r->error =
		err_set(r->e, -EINVAL, "%s:%d: %s", r->path, line ? line : r->line, buf_str(&text));
	buf_deinit(&text);
}

static void no_memory(struct reader *r)
{
	r->stop = true;
	if (r->error == 0)
		r->error = err_errno(r->e, -ENOMEM, "could not read \"%s\"", r->path);
}

static bool at(const struct reader *r, const char *text)
{
	return strncmp(r->p, text, strlen(text)) == 0;
}

static void skip_comment(struct reader *r)
{
	int line = r->line;

	for (r->p += 2; *r->p && !at(r, "*/"); r->p++)
		r->line += *r->p == '\n';
	if (*r->p)
		r->p += 2;
	else
		complain(r, line, "the comment that begins here does not end");
}

static void skip_space(struct reader *r)
{
	for (;;) {
		if (*r->p == '\n' || *r->p == ' ' || *r->p == '\t' || *r->p == '\r')
			r->line += *r->p++ == '\n';
		else if (*r->p == '#' || at(r, "//"))
			r->p += strcspn(r->p, "\n");
		else if (at(r, "/*"))
			skip_comment(r);
		else
			return;
	}
}

static void check_variable(struct reader *r)
{
	if (at(r, "${"))
		complain(r, 0, "\"${\" would take a value from the environment; write it as '${'");
}

static enum token read_quoted(struct reader *r)
{
	char quote = *r->p++;
	int line = r->line;

	for (; *r->p && *r->p != quote; r->p++) {
		if (quote == '"')
			check_variable(r);
		if (*r->p == '\\' && r->p[1])
			buf_addc(&r->word, *r->p++);
		r->line += *r->p == '\n';
		buf_addc(&r->word, *r->p);
	}
	if (*r->p)
		r->p++;
	else
		complain(r, line, "the string that begins here does not end");
	return TOKEN_WORD;
}

static enum token read_word(struct reader *r)
{
	size_t len = strcspn(r->p, " #\"'\t\n\r={}()+,*");

	buf_add(&r->word, r->p, len);
	r->p += len;
	/* "a$" before a brace is the end of a word to libconfuse, but hardly meant so. */
	if (len > 0 && r->p[-1] == '$' && *r->p == '{') {
		r->p--;
		check_variable(r);
	}
	/* libconfuse would drop these without a word, and leave ":3389" of "*:3389". */
	if (*r->p == '*' || (*r->p == '+' && r->p[1] != '='))
		complain(r, 0, "a value with \"%c\" must stand in quotes", *r->p);
	return TOKEN_WORD;
}

static enum token next(struct reader *r)
{
	buf_reset(&r->word);
	skip_space(r);
	if (r->stop)
		return TOKEN_OTHER;
	switch (*r->p) {
	case '\0':
		return TOKEN_END;
	case '"':
	case '\'':
		return read_quoted(r);
	case '{':
		r->p++;
		return TOKEN_OPEN;
	case '}':
		r->p++;
		return TOKEN_CLOSE;
	case '=':
		r->p++;
		return TOKEN_SET;
	case ',':
		r->p++;
		return TOKEN_COMMA;
	case '(':
	case ')':
		return TOKEN_OTHER;
	case '+':
		if (r->p[1] == '=') {
			r->p += 2;
			return TOKEN_ADD;
		}
		return read_word(r);
	default:
		return read_word(r);
	}
}

/* Notes that the path WHERE + NAME was set; false if it was before. */
static bool note(struct reader *r, const char *name)
{
	struct buf path = BUF_INIT(PATH_MAX_BYTES);
	char **seen;
	char *text;

	buf_adds(&path, buf_str(&r->where));
	buf_adds(&path, name);
	text = buf_steal(&path);
	for (size_t i = 0; text && i < r->seen_count; i++) {
		if (strcmp(r->seen[i], text) == 0) {
			free(text);
			return false;
		}
	}
	seen = text && r->seen_count < PATHS_MAX
		       ? reallocarray(r->seen, r->seen_count + 1, sizeof(*seen))
		       : NULL;
	if (!seen) {
		free(text);
		if (r->seen_count == PATHS_MAX)
			complain(r, 0, "the file has more than %d settings", PATHS_MAX);
		else
			no_memory(r);
		return true;
	}
	r->seen = seen;
	seen[r->seen_count++] = text;
	return true;
}

static size_t count_digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* "0", "-7", "12", not "010", "0x10", "1k". */
static bool is_integer(const char *s)
{
	size_t n;

	s += *s == '-';
	n = count_digits(s);
	return n > 0 && !s[n] && (*s != '0' || n == 1);
}

/* An integer with or without fraction and exponent, finite. */
static bool is_number(const char *s)
{
	const char *p = s + (*s == '-');
	size_t n = count_digits(p);

	if (n == 0 || (*p == '0' && n > 1))
		return false;
	p += n;
	if (*p == '.') {
		n = count_digits(++p);
		if (n == 0)
			return false;
		p += n;
	}
	if (*p == 'e' || *p == 'E') {
		p += p[1] == '-' || p[1] == '+' ? 2 : 1;
		n = count_digits(p);
		if (n == 0)
			return false;
		p += n;
	}
	return !*p && isfinite(strtod(s, NULL));
}

static void check_value(struct reader *r, const cfg_opt_t *opt)
{
	const char *value = buf_str(&r->word);

	if (opt->parsecb)
		return;
	if (opt->type == CFGT_INT && !is_integer(value))
		complain(r, 0, "\"%s\" must be a decimal integer, not \"%s\"", opt->name, value);
	else if (opt->type == CFGT_FLOAT && !is_number(value))
		complain(r, 0, "\"%s\" must be a decimal number, not \"%s\"", opt->name, value);
	else if (opt->type == CFGT_BOOL && cfg_parse_boolean(value) < 0)
		complain(r, 0, "\"%s\" must be true or false, not \"%s\"", opt->name, value);
}

/* Behind the name of a setting. */
static void read_setting(struct reader *r, const cfg_opt_t *opt)
{
	bool list = opt->flags & CFGF_LIST;
	int line = r->line;
	enum token t = next(r);

	if ((t != TOKEN_SET && t != TOKEN_ADD) || r->stop) {
		r->stop = true;
		return;
	}
	if (t == TOKEN_SET && !note(r, opt->name))
		complain(r, line, "\"%s\" is set twice", opt->name);
	t = next(r);
	if (t == TOKEN_WORD && !r->stop)
		check_value(r, opt);
	else if (t != TOKEN_OPEN || !list)
		r->stop = true;
	if (t != TOKEN_OPEN)
		return;
	for (t = next(r); t == TOKEN_WORD || t == TOKEN_COMMA; t = next(r)) {
		if (t == TOKEN_WORD)
			check_value(r, opt);
		if (r->stop)
			return;
	}
	if (t == TOKEN_END)
		complain(r, line, "the list that begins here does not end");
	r->stop = r->stop || t != TOKEN_CLOSE;
}

/* Appends the name of a section, and its title or (if it may be repeated without one) number, to
 * the path. */
static void enter(struct reader *r, const cfg_opt_t *opt, const char *title)
{
	buf_adds(&r->where, opt->name);
	buf_addc(&r->where, PATH_SEPARATOR);
	if (title)
		buf_adds(&r->where, title);
	else if (opt->flags & CFGF_MULTI)
		buf_addu(&r->where, r->seen_count);
	buf_addc(&r->where, PATH_SEPARATOR);
	if (buf_error(&r->where) == -EOVERFLOW)
		complain(r, 0, "the title of the section \"%s\" is too long", opt->name);
	else if (buf_error(&r->where))
		no_memory(r);
	/* The section itself is a path: two of one title would silently be the last one alone. */
	else if (title && !note(r, ""))
		complain(r, 0, "there are two sections \"%s\" with the title \"%s\"", opt->name,
			title);
	else if (!title && (opt->flags & CFGF_MULTI))
		note(r, "");
}

static void read_settings(struct reader *r, const cfg_opt_t *opts, const char *name, int line);

/* Behind the name of a section. */
static void read_section(struct reader *r, const cfg_opt_t *opt)
{
	size_t len = r->where.len;
	int line = r->line;
	char *title = NULL;
	enum token t = next(r);

	if (opt->flags & CFGF_TITLE) {
		if (t == TOKEN_WORD) {
			title = buf_steal(&r->word);
			if (!title)
				no_memory(r);
		} else {
			r->stop = true;
		}
		t = next(r);
	}
	if (t != TOKEN_OPEN || r->stop) {
		r->stop = true;
	} else if (r->depth == DEPTH_MAX) {
		complain(r, line, "sections are nested too deeply");
	} else {
		enter(r, opt, title);
		r->depth++;
		read_settings(r, opt->subopts, opt->name, line);
		r->depth--;
		r->where.len = len;
		if (r->where.data)
			r->where.data[len] = '\0';
	}
	free(title);
}

static const cfg_opt_t *find_option(const cfg_opt_t *opts, const char *name)
{
	for (; opts->name; opts++)
		if (strcmp(opts->name, name) == 0)
			return opts;
	return NULL;
}

/* Until the end of the section NAME (NULL: of the file), which was opened at LINE. */
static void read_settings(struct reader *r, const cfg_opt_t *opts, const char *name, int line)
{
	while (!r->stop) {
		enum token t = next(r);
		const cfg_opt_t *opt =
			t == TOKEN_WORD ? find_option(opts, buf_str(&r->word)) : NULL;

		if (t == TOKEN_CLOSE && name)
			return;
		if (t == TOKEN_END && name)
			complain(r, line, "the section \"%s\" that begins here does not end", name);
		if (t != TOKEN_WORD || !opt || opt->type == CFGT_FUNC)
			r->stop = true;
		else if (opt->type == CFGT_SEC)
			read_section(r, opt);
		else
			read_setting(r, opt);
	}
}

/* What no line of a file may hold. */
static int check_bytes(const char *text, size_t len, const char *path, struct err *e)
{
	int line = 1;

	if (!text_utf8_valid(text, len))
		return err_set(e, -EINVAL, "%s: the file is not UTF-8 text", path);
	for (const char *p = text; *p; p++) {
		line += *p == '\n';
		if ((unsigned char)*p < 0x20 && *p != '\n' && *p != '\t' && *p != '\r')
			return err_set(e, -EINVAL, "%s:%d: the file holds a control character",
				path, line);
	}
	return 0;
}

int conf_scan(const char *text, size_t len, const char *path, const cfg_opt_t *opts, struct err *e)
{
	struct reader r = {.p = text, .path = path, .line = 1, .e = e};
	int error = check_bytes(text, len, path, e);

	if (error < 0)
		return error;
	buf_init(&r.word, len + 1);
	buf_init(&r.where, PATH_MAX_BYTES);
	read_settings(&r, opts, NULL, 0);
	if (buf_error(&r.word))
		no_memory(&r);
	for (size_t i = 0; i < r.seen_count; i++)
		free(r.seen[i]);
	free(r.seen);
	buf_deinit(&r.word);
	buf_deinit(&r.where);
	return r.error;
}
