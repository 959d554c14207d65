/* SPDX-License-Identifier: ISC */
/*
 * Every value is checked before a byte is written. EXTRA may not say where to connect or who with:
 * its lines come from an administrator who sets them for a whole pool, and those are the answer's
 * own.
 */
#include "wire/rdp_file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/utf16.h"

static int check_value(const char *key, const char *s, size_t len, struct err *e)
{
	if (!text_utf8_valid(s, len))
		return err_set(e, -EINVAL, "%s is not UTF-8", key);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		/* C0, DEL, C1, and the line and paragraph separators U+2028, U+2029 */
		if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)s[i + 1] < 0xa0) ||
			(c == 0xe2 && (unsigned char)s[i + 1] == 0x80 &&
				((unsigned char)s[i + 2] & 0xfe) == 0xa8))
			return err_set(
				e, -EINVAL, "%s holds a line break or control character", key);
	}
	return 0;
}

static int check_extra(const char *extra, struct err *e)
{
	static const char *const own[] = {"full address", "alternate full address", "server port",
		"username", "loadbalanceinfo", "use redirection server name",
		"signscope", "signature"};

	while (*extra) {
		size_t len = strcspn(extra, "\n"), key = strcspn(extra, ":");
		int r = check_value("a further line", extra, len, e);

		if (r < 0)
			return r;
		if (len > 0 &&
			(key + 3 > len || extra[key + 2] != ':' || !strchr("isb", extra[key + 1])))
			return err_set(e, -EINVAL, "a further line is not key:type:value");
		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			if (strlen(own[i]) == key && strncasecmp(own[i], extra, key) == 0)
				return err_set(e, -EINVAL, "a further line sets \"%s\"", own[i]);
		extra += len + (extra[len] == '\n');
	}
	return 0;
}

/* Whether EXTRA has a line for KEY. */
static bool extra_has(const char *extra, const char *key)
{
	size_t len = strlen(key);

	while (*extra) {
		if (strncasecmp(extra, key, len) == 0 && extra[len] == ':')
			return true;
		extra += strcspn(extra, "\n");
		extra += *extra == '\n';
	}
	return false;
}

static void add_text(struct buf *out, const char *s)
{
	utf16_add(out, s, strlen(s));
}

static void add_string(struct buf *out, const char *key, const char *value)
{
	add_text(out, key);
	add_text(out, ":s:");
	add_text(out, value);
	add_text(out, "\r\n");
}

static void add_address(struct buf *out, const char *key, const char *address)
{
	bool v6 = strchr(address, ':') != NULL;

	add_text(out, key);
	add_text(out, v6 ? ":s:[" : ":s:");
	add_text(out, address);
	add_text(out, v6 ? "]\r\n" : "\r\n");
}

static void add_number(struct buf *out, const char *key, unsigned value)
{
	struct buf digits = BUF_INIT(16);

	buf_addu(&digits, value);
	add_text(out, key);
	add_text(out, ":i:");
	add_text(out, buf_str(&digits));
	add_text(out, "\r\n");
	if (buf_error(&digits))
		out->error = buf_error(&digits);
	buf_deinit(&digits);
}

static void add_extra(struct buf *out, const char *extra)
{
	while (*extra) {
		size_t len = strcspn(extra, "\n");

		if (len > 0) {
			utf16_add(out, extra, len);
			add_text(out, "\r\n");
		}
		extra += len + (extra[len] == '\n');
	}
}

static void write_file(const struct rdp_file *f, const char *extra, struct buf *out)
{
	bool has_fqdn = f->fqdn && *f->fqdn;

	buf_add(out, "\xff\xfe", 2);
	add_address(out, "full address", has_fqdn ? f->fqdn : f->address);
	if (has_fqdn)
		add_address(out, "alternate full address", f->address);
	add_number(out, "server port", f->port);
	if (f->user && *f->user)
		add_string(out, "username", f->user);
	if (f->route && *f->route)
		add_string(out, "loadbalanceinfo", f->route);
	if (!extra_has(extra, "prompt for credentials"))
		add_number(out, "prompt for credentials", f->prompt_for_credentials);
	if (!extra_has(extra, "authentication level"))
		add_number(out, "authentication level", f->authentication_level);
	add_number(out, "use redirection server name", f->use_redirection_server_name);
	add_extra(out, extra);
}

int rdp_file_format(const struct rdp_file *f, struct buf *out, struct err *e)
{
	const char *extra = f->extra ? f->extra : "";
	int r = check_value("the address", f->address, strlen(f->address), e);

	if (r == 0 && f->fqdn)
		r = check_value("the host name", f->fqdn, strlen(f->fqdn), e);
	if (r == 0 && f->user)
		r = check_value("the user name", f->user, strlen(f->user), e);
	if (r == 0 && f->route)
		r = check_value("the routing token", f->route, strlen(f->route), e);
	if (r == 0)
		r = check_extra(extra, e);
	if (r == 0)
		write_file(f, extra, out);
	return r;
}
