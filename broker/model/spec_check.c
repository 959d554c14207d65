/* SPDX-License-Identifier: ISC */
/*
 * Whether a spec's values are in their ranges. The database has the same rules as constraints; here
 * they get words that name the member.
 */
#include "model/spec.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "wire/names.h"

#define PERCENT_FULL 10000u /* hundredths of a percent */

static int check_name(const char *name, struct err *e)
{
	if (name_valid(name))
		return 0;
	return err_set(e, -EINVAL,
		"name \"%.80s\" is not one to %d of A-Z a-z 0-9 . _ - (not beginning with - or .)",
		name, LIMIT_NAME_SIZE - 1);
}

/* Bytes at P that a terminal obeys or that change how the rest of a line reads: C0 and C1 controls,
 * line and paragraph separators, bidirectional overrides and isolates. LEFT bytes of UTF-8. */
static bool is_control(const char *p, size_t left)
{
	const unsigned char *b = (const unsigned char *)p;

	if (iscntrl(b[0]) || (left >= 2 && b[0] == 0xc2 && b[1] < 0xa0))
		return true;
	if (left < 3 || b[0] != 0xe2)
		return false;
	return (b[1] == 0x80 && b[2] >= 0xa8 && b[2] <= 0xae) ||
	       (b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9);
}

/* Text that an operator will read in one line of a log. */
static int check_reason(const char *text, size_t size, struct err *e)
{
	size_t len = strnlen(text, size);

	if (len == size || !text_utf8_valid(text, len))
		return err_set(e, -EINVAL, "reason is not UTF-8 of at most %zu bytes", size - 1);
	for (size_t i = 0; i < len; i++) {
		if (is_control(text + i, len - i))
			return err_set(e, -EINVAL, "reason holds a control or direction character");
	}
	return 0;
}

static int check_mode(enum admin_mode mode, const char *reason, struct err *e)
{
	if ((unsigned)mode > ADMIN_DISABLED)
		return err_set(e, -EINVAL, "mode is not enabled, drain or disabled");
	return check_reason(reason, LIMIT_REASON_SIZE, e);
}

static int check_rule(const char *name, const struct load_rule *r, struct err *e)
{
	if (r->zero >= r->full || r->full > PERCENT_FULL)
		return err_set(e, -EINVAL, "%s rule needs 0 <= zero < full <= 100 percent", name);
	return 0;
}

static int check_tags(const char *member, const struct tag_set *set, struct err *e)
{
	if (set->count > LIMIT_TAGS_PER_NODE)
		return err_set(e, -EINVAL, "%s has more than %d tags", member, LIMIT_TAGS_PER_NODE);
	for (uint32_t i = 0; i < set->count; i++) {
		if (!tag_name_valid(set->tag[i]))
			return err_set(e, -EINVAL, "%s: \"%.64s\" is no tag", member, set->tag[i]);
	}
	return 0;
}

int provider_spec_check(const struct provider_spec *s, struct err *e)
{
	int rc = check_name(s->name, e);

	if (rc == 0)
		rc = check_mode(s->mode, s->mode_reason, e);
	if (rc == 0)
		rc = check_rule("cpu", &s->cpu, e);
	if (rc == 0)
		rc = check_rule("memory", &s->memory, e);
	if (rc == 0 && (unsigned)s->on_mass_silence > MASS_SILENCE_KEEP)
		rc = err_set(e, -EINVAL, "on_mass_silence is not refuse or keep");
	return rc;
}

/*
 * Keys that a pool may add to its .rdp files, and their type: what the desktop looks like and which
 * devices come along, the program to start instead of one, and the gateway on the way. Left out on
 * purpose: what the answer says itself (address, port, user name, token), passwords, and
 * signatures.
 */
static const struct {
	const char *key;
	const char *types; /* "is": Microsoft's page says i, what rdpsign.exe signs is s */
} rdp_keys[] = {
	{"allow desktop composition", "i"},
	{"allow font smoothing", "i"},
	{"alternate shell", "s"},
	{"audiocapturemode", "i"},
	{"audiomode", "i"},
	{"audioqualitymode", "i"},
	{"authentication level", "i"},
	{"autoreconnection enabled", "i"},
	{"bandwidthautodetect", "i"},
	{"bitmapcachepersistenable", "i"},
	{"camerastoredirect", "s"},
	{"compression", "i"},
	{"connection type", "i"},
	{"desktop size id", "i"},
	{"desktopheight", "i"},
	{"desktopscalefactor", "i"},
	{"desktopwidth", "i"},
	{"devicestoredirect", "s"},
	{"disable cursor setting", "i"},
	{"disable full window drag", "i"},
	{"disable menu anims", "i"},
	{"disable themes", "i"},
	{"disable wallpaper", "i"},
	{"disableconnectionsharing", "i"},
	{"disableremoteappcapscheck", "i"},
	{"displayconnectionbar", "i"},
	{"drivestoredirect", "s"},
	{"dynamic resolution", "i"},
	{"enablecredsspsupport", "i"},
	{"encode redirected video capture", "i"},
	{"gatewaycredentialssource", "i"},
	{"gatewayhostname", "s"},
	{"gatewayprofileusagemethod", "i"},
	{"gatewayusagemethod", "i"},
	{"kdcproxyname", "s"},
	{"keyboardhook", "i"},
	{"maximizetocurrentdisplays", "i"},
	{"negotiate security layer", "i"},
	{"networkautodetect", "i"},
	{"pinconnectionbar", "i"},
	{"prompt for credentials", "i"},
	{"promptcredentialonce", "i"},
	{"rdgiskdcproxy", "i"},
	{"redirectclipboard", "i"},
	{"redirectcomports", "i"},
	{"redirectdirectx", "i"},
	{"redirectdrives", "i"},
	{"redirected video capture encoding quality", "i"},
	{"redirectlocation", "i"},
	{"redirectposdevices", "i"},
	{"redirectprinters", "i"},
	{"redirectsmartcards", "i"},
	{"redirectwebauthn", "i"},
	{"remoteapplicationcmdline", "s"},
	{"remoteapplicationexpandcmdline", "is"},
	{"remoteapplicationexpandworkingdir", "is"},
	{"remoteapplicationfile", "s"},
	{"remoteapplicationfileextensions", "s"},
	{"remoteapplicationicon", "s"},
	{"remoteapplicationmode", "i"},
	{"remoteapplicationname", "s"},
	{"remoteapplicationprogram", "s"},
	{"screen mode id", "i"},
	{"selectedmonitors", "s"},
	{"session bpp", "i"},
	{"shell working directory", "s"},
	{"singlemoninwindowedmode", "i"},
	{"smart sizing", "i"},
	{"span monitors", "i"},
	{"usbdevicestoredirect", "s"},
	{"use multimon", "i"},
	{"videoplaybackmode", "i"},
};

/* The types that KEY may have; NULL: it is not allowed. */
static const char *rdp_key_types(const char *key, size_t len)
{
	for (size_t i = 0; i < sizeof(rdp_keys) / sizeof(rdp_keys[0]); i++) {
		if (strlen(rdp_keys[i].key) == len && memcmp(rdp_keys[i].key, key, len) == 0)
			return rdp_keys[i].types;
	}
	return NULL;
}

/* A decimal of at most nine digits, maybe with a minus. */
static bool is_small_integer(const char *s, size_t len)
{
	if (len > 0 && *s == '-') {
		s++;
		len--;
	}
	if (len == 0 || len > 9)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
	}
	return true;
}

static int check_rdp_value(const char *line, size_t key_len, size_t len, struct err *e)
{
	const char *value = line + key_len + 3;
	size_t value_len = len - key_len - 3;

	if (line[key_len + 1] == 'i' && !is_small_integer(value, value_len))
		return err_set(
			e, -EINVAL, "rdp_extra: \"%.*s\" needs a number", (int)key_len, line);
	for (size_t i = 0; i < value_len; i++) {
		if (is_control(value + i, value_len - i))
			return err_set(e, -EINVAL,
				"rdp_extra: \"%.*s\" holds a control or direction character",
				(int)key_len, line);
	}
	return 0;
}

/* One line "key:i:123" or "key:s:text", LEN bytes of EXTRA. */
static int check_rdp_line(const char *extra, const char *line, size_t len, struct err *e)
{
	const char *colon = memchr(line, ':', len), *types;
	size_t key_len = colon ? (size_t)(colon - line) : 0;

	if (!colon || len < key_len + 3 || colon[2] != ':' || (colon[1] != 'i' && colon[1] != 's'))
		return err_set(e, -EINVAL, "rdp_extra: \"%.*s\" is not key:i:number or key:s:text",
			(int)len, line);
	types = rdp_key_types(line, key_len);
	if (!types)
		return err_set(
			e, -EINVAL, "rdp_extra: key \"%.*s\" is not allowed", (int)key_len, line);
	if (!strchr(types, colon[1]))
		return err_set(e, -EINVAL, "rdp_extra: key \"%.*s\" is of type %s", (int)key_len,
			line, types);
	for (const char *other = extra; other < line; other += strcspn(other, "\n") + 1) {
		if (strncmp(other, line, key_len + 1) == 0)
			return err_set(e, -EINVAL, "rdp_extra: key \"%.*s\" is there twice",
				(int)key_len, line);
	}
	return check_rdp_value(line, key_len, len, e);
}

static int check_rdp_extra(const struct pool_spec *s, struct err *e)
{
	size_t total = strnlen(s->rdp_extra, sizeof(s->rdp_extra));
	const char *line = s->rdp_extra;

	if (total == sizeof(s->rdp_extra) || !text_utf8_valid(s->rdp_extra, total))
		return err_set(e, -EINVAL, "rdp_extra is not UTF-8 of at most %zu bytes",
			sizeof(s->rdp_extra) - 1);
	while (*line) {
		size_t len = strcspn(line, "\n");
		int rc = len ? check_rdp_line(s->rdp_extra, line, len, e) : 0;

		if (rc < 0)
			return rc;
		line += len + (line[len] == '\n');
	}
	return 0;
}

int pool_spec_check(const struct pool_spec *s, struct err *e)
{
	int rc = check_name(s->name, e);

	if (rc == 0)
		rc = check_mode(s->mode, s->mode_reason, e);
	if (rc == 0)
		rc = check_tags("allowed_tags", &s->allowed_tags, e);
	if (rc == 0 && (unsigned)s->untagged_default > UNTAGGED_ANY)
		rc = err_set(e, -EINVAL, "untagged_default is not none or any");
	if (rc == 0)
		rc = check_rdp_extra(s, e);
	return rc;
}

/* An address that no client can connect to: unspecified, multicast, broadcast; or one that has
 * another spelling, which would let two nodes share it (IPv4 written as IPv6). */
static bool address_of_no_node(const char *s)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, s, &v4) == 1) {
		uint32_t a = ntohl(v4.s_addr);

		return a >> 24 == 0 || a >> 28 == 14 || a == INADDR_BROADCAST;
	}
	return inet_pton(AF_INET6, s, &v6) == 1 &&
	       (IN6_IS_ADDR_UNSPECIFIED(&v6) || IN6_IS_ADDR_MULTICAST(&v6) ||
		       IN6_IS_ADDR_V4MAPPED(&v6));
}

int node_spec_check(const struct node_spec *s, struct err *e)
{
	int rc = check_name(s->name, e);

	if (rc == 0)
		rc = check_mode(s->mode, s->mode_reason, e);
	if (rc == 0 && !address_valid(s->address))
		rc = err_set(e, -EINVAL, "address \"%.80s\" is not an IP address or host name",
			s->address);
	if (rc == 0 && address_of_no_node(s->address))
		rc = err_set(e, -EINVAL, "address \"%.80s\" is none that a client can connect to",
			s->address);
	if (rc == 0 && s->fqdn[0] && !address_valid(s->fqdn))
		rc = err_set(e, -EINVAL, "fqdn \"%.80s\" is not a host name", s->fqdn);
	if (rc == 0 && s->port == 0)
		rc = err_set(e, -EINVAL, "port is not within 1..65535");
	if (rc == 0)
		rc = check_tags("tags", &s->tags, e);
	if (rc == 0 && s->max_sessions > NODE_MAX_SESSIONS)
		rc = err_set(e, -EINVAL, "max_sessions is not within 0..%u", NODE_MAX_SESSIONS);
	if (rc == 0 && (s->load_multiplier < 1 || s->load_multiplier > NODE_MAX_MULTIPLIER))
		rc = err_set(e, -EINVAL, "load_multiplier is not within 0.0001..100");
	return rc;
}

int token_spec_check(const struct token_spec *s, struct err *e)
{
	int rc = check_name(s->name, e);

	if (rc == 0 && (unsigned)s->role > ROLE_ADMIN)
		rc = err_set(e, -EINVAL, "role is not agent, client, auditor or admin");
	if (rc == 0 && s->role == ROLE_AGENT && s->node_id == 0)
		rc = err_set(e, -EINVAL, "an agent's token needs its node");
	if (rc == 0 && s->role != ROLE_AGENT && s->node_id != 0)
		rc = err_set(e, -EINVAL, "node is for an agent's token only");
	if (rc == 0 && s->pool_count > LIMIT_TOKEN_POOLS)
		rc = err_set(e, -EINVAL, "more than %d pools", LIMIT_TOKEN_POOLS);
	if (rc == 0 && s->role != ROLE_CLIENT &&
		(s->pool_count || s->tags.count || s->see_sessions))
		rc = err_set(e, -EINVAL, "pools, tags and sessions are for a client's token only");
	if (rc == 0)
		rc = check_tags("tags", &s->tags, e);
	if (rc == 0 && s->expires_us < 0)
		rc = err_set(e, -EINVAL, "expires_at is before 1970");
	return rc;
}
