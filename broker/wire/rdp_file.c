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
#include "wire/rdp_sign.h"

#define FILE_MAX 65536 /* bytes of UTF-8, the signature included */

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
		"username", "loadbalanceinfo", "use redirection server name", "signscope",
		"signature"};

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

static void add_address(struct buf *text, const char *key, const char *address)
{
	bool v6 = strchr(address, ':') != NULL;

	buf_addf(text, v6 ? "%s:s:[%s]\r\n" : "%s:s:%s\r\n", key, address);
}

static void add_number(struct buf *text, const char *key, unsigned value)
{
	buf_addf(text, "%s:i:%u\r\n", key, value);
}

static void add_extra(struct buf *text, const char *extra)
{
	while (*extra) {
		size_t len = strcspn(extra, "\n");

		if (len > 0) {
			buf_add(text, extra, len);
			buf_adds(text, "\r\n");
		}
		extra += len + (extra[len] == '\n');
	}
}

static void add_lines(const struct rdp_file *f, const char *extra, struct buf *text)
{
	bool has_fqdn = f->fqdn && *f->fqdn;

	add_address(text, "full address", has_fqdn ? f->fqdn : f->address);
	/* Unsigned, it could be set to lead a signed file elsewhere. */
	if (has_fqdn || f->signer)
		add_address(text, "alternate full address", f->address);
	add_number(text, "server port", f->port);
	if (f->user && *f->user)
		buf_addf(text, "username:s:%s\r\n", f->user);
	if (f->route && *f->route)
		buf_addf(text, "loadbalanceinfo:s:%s\r\n", f->route);
	if (!extra_has(extra, "prompt for credentials"))
		add_number(text, "prompt for credentials", f->prompt_for_credentials);
	if (!extra_has(extra, "authentication level"))
		add_number(text, "authentication level", f->authentication_level);
	add_number(text, "use redirection server name", f->use_redirection_server_name);
	add_extra(text, extra);
}

static int write_file(const struct rdp_file *f, const char *extra, struct buf *out, struct err *e)
{
	struct buf text = BUF_INIT(FILE_MAX);
	int r = 0;

	add_lines(f, extra, &text);
	if (f->signer && !buf_error(&text))
		r = rdp_sign(f->signer, buf_str(&text), &text, e);
	if (r == 0 && buf_error(&text)) {
		out->error = buf_error(&text);
	} else if (r == 0) {
		buf_add(out, "\xff\xfe", 2);
		utf16_add(out, text.data, text.len);
	}
	buf_deinit(&text);
	return r;
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
		r = write_file(f, extra, out, e);
	return r;
}
