/* SPDX-License-Identifier: ISC */
/* One section: its keys, their checks, and what belongs together. */
#include "service/config_door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/conf.h"
#include "service/config_private.h"
#include "wire/names.h"

/* ---- keys ---- */

static int check_word(cfg_t *cfg, cfg_opt_t *opt, const char *a, const char *b)
{
	const char *text = cfg_opt_getstr(opt);

	if (strcmp(text, a) == 0 || strcmp(text, b) == 0)
		return 0;
	cfg_error(cfg, "%s: \"%s\" is neither %s nor %s", cfg_opt_name(opt), text, a, b);
	return -1;
}

static int check_nobody(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, "place", "refuse");
}

static int check_mode(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, "redirect", "relay");
}

static int check_redirect(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_word(cfg, opt, "node", "relay");
}

static cfg_opt_t domain_opts[] = {
	CFG_STR("pool", "", CFGF_NONE),
	CFG_END(),
};
static cfg_opt_t door_opts[] = {
	CFG_STR("address", "::", CFGF_NONE),
	CFG_INT("port", 3389, CFGF_NONE),
	CFG_STR("mode", "redirect", CFGF_NONE),
	CFG_STR("redirect_to", "node", CFGF_NONE),
	CFG_STR("pool", "", CFGF_NONE),
	CFG_STR_LIST("pools", NULL, CFGF_NONE),
	CFG_SEC("domain", domain_opts, CFGF_MULTI | CFGF_TITLE),
	CFG_STR("certificate", "", CFGF_NONE),
	CFG_STR("key", "", CFGF_NONE),
	CFG_STR("unknown_user", "place", CFGF_NONE),
	CFG_STR_LIST("proxy_from", NULL, CFGF_NONE),
	CFG_BOOL("proxy_to_node", cfg_false, CFGF_NONE),
	CFG_END(),
};

cfg_opt_t *config_door_keys(void)
{
	config_validate(door_opts, "address", config_check_address);
	config_validate(door_opts, "port", config_check_port);
	config_validate(door_opts, "mode", check_mode);
	config_validate(door_opts, "redirect_to", check_redirect);
	config_validate(door_opts, "pool", config_check_name);
	config_validate(door_opts, "unknown_user", check_nobody);
	config_validate(domain_opts, "pool", config_check_name);
	return door_opts;
}

/* ---- lists ---- */

static int take_pools(cfg_t *sec, struct config_door *d, const char *where, struct err *e)
{
	unsigned count = cfg_size(sec, "pools");
	bool failed = false;

	if (count > CONFIG_DOOR_POOLS_MAX)
		return err_set(e, -E2BIG, "%s: more than %d pools", where, CONFIG_DOOR_POOLS_MAX);
	for (unsigned i = 0; i < count; i++) {
		const char *name = cfg_getnstr(sec, "pools", i);

		if (!name_valid(name))
			return err_set(
				e, -EINVAL, "%s: pools: \"%.80s\" is no valid name", where, name);
		d->pools[d->pool_count++] = config_take(name, &failed);
	}
	return failed ? err_errno(e, -ENOMEM, "%s", where) : 0;
}

static int take_domains(cfg_t *sec, struct config_door *d, const char *where, struct err *e)
{
	unsigned count = cfg_size(sec, "domain");
	bool failed = false;

	if (count > CONFIG_DOOR_DOMAINS_MAX)
		return err_set(
			e, -E2BIG, "%s: more than %d domains", where, CONFIG_DOOR_DOMAINS_MAX);
	for (unsigned i = 0; i < count; i++) {
		cfg_t *domain = cfg_getnsec(sec, "domain", i);
		struct config_domain *ret = &d->domains[d->domain_count++];

		ret->domain = config_take(cfg_title(domain), &failed);
		ret->pool = config_take(cfg_getstr(domain, "pool"), &failed);
		if (!failed && !ret->pool[0])
			return err_set(e, -EINVAL, "%s: domain \"%.80s\": pool must be set", where,
				ret->domain);
	}
	return failed ? err_errno(e, -ENOMEM, "%s", where) : 0;
}

/* "ADDRESS" or "ADDRESS/BITS". */
static int parse_network(const char *text, struct config_network *ret)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN] = "", *end;
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned long bits;

	if (len >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, len);
	ret->ipv6 = strchr(address, ':') != NULL;
	if (inet_pton(ret->ipv6 ? AF_INET6 : AF_INET, address, ret->address) != 1)
		return -EINVAL;
	bits = ret->ipv6 ? 128 : 32;
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9' || strtoul(slash + 1, &end, 10) > bits || *end)
			return -EINVAL;
		bits = strtoul(slash + 1, NULL, 10);
	}
	ret->bits = (uint8_t)bits;
	return 0;
}

static int take_proxies(cfg_t *sec, struct config_door *d, const char *where, struct err *e)
{
	unsigned count = cfg_size(sec, "proxy_from");

	if (count > CONFIG_DOOR_PROXIES_MAX)
		return err_set(e, -E2BIG, "%s: proxy_from: more than %d networks", where,
			CONFIG_DOOR_PROXIES_MAX);
	for (unsigned i = 0; i < count; i++) {
		const char *text = cfg_getnstr(sec, "proxy_from", i);

		if (parse_network(text, &d->proxies[d->proxy_count++]) < 0)
			return err_set(e, -EINVAL,
				"%s: proxy_from: \"%.80s\" is no IP address or network", where,
				text);
	}
	return 0;
}

/* ---- the section ---- */

static int check_whole(const struct config_door *d, const char *where, struct err *e)
{
	bool relay = d->mode == DOOR_MODE_RELAY;

	if (!d->pool[0])
		return err_set(e, -EINVAL, "%s: pool must be set", where);
	if (!d->certificate[0] != !d->key[0] || (!relay && !d->certificate[0]))
		return err_set(e, -EINVAL, "%s: certificate and key must be set", where);
	if (relay && d->redirect_to == REDIRECT_TO_RELAY)
		return err_set(
			e, -EINVAL, "%s: redirect_to has no meaning with mode = \"relay\"", where);
	return 0;
}

int config_door_take(cfg_t *sec, const char *file, struct config_door *ret, struct err *e)
{
	bool failed = false;
	char where[600];
	int r;

	snprintf(where, sizeof(where), "%s:%d: door \"%s\"", sec->filename ? sec->filename : file,
		sec->line, cfg_getstr(sec, "address"));
	ret->address = config_take(cfg_getstr(sec, "address"), &failed);
	ret->port = (uint16_t)cfg_getint(sec, "port");
	ret->mode = strcmp(cfg_getstr(sec, "mode"), "relay") == 0 ? DOOR_MODE_RELAY
								  : DOOR_MODE_REDIRECT;
	ret->redirect_to = strcmp(cfg_getstr(sec, "redirect_to"), "relay") == 0 ? REDIRECT_TO_RELAY
										: REDIRECT_TO_NODE;
	ret->pool = config_take(cfg_getstr(sec, "pool"), &failed);
	ret->certificate = config_take(cfg_getstr(sec, "certificate"), &failed);
	ret->key = config_take(cfg_getstr(sec, "key"), &failed);
	ret->nobody = strcmp(cfg_getstr(sec, "unknown_user"), "refuse") == 0 ? NOBODY_REFUSE
									     : NOBODY_PLACE;
	ret->proxy_to_node = cfg_getbool(sec, "proxy_to_node");
	if (failed)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	r = take_pools(sec, ret, where, e);
	if (r == 0)
		r = take_domains(sec, ret, where, e);
	if (r == 0)
		r = take_proxies(sec, ret, where, e);
	return r == 0 ? check_whole(ret, where, e) : r;
}

void config_door_deinit(struct config_door *d)
{
	free(d->address);
	free(d->pool);
	free(d->certificate);
	free(d->key);
	for (unsigned i = 0; i < d->pool_count; i++)
		free(d->pools[i]);
	for (unsigned i = 0; i < d->domain_count; i++) {
		free(d->domains[i].domain);
		free(d->domains[i].pool);
	}
	*d = (struct config_door){0};
}

int config_door_copy(const struct config_door *from, struct config_door *ret)
{
	bool failed = false;

	*ret = *from;
	ret->address = config_take(from->address, &failed);
	ret->pool = config_take(from->pool, &failed);
	ret->certificate = config_take(from->certificate, &failed);
	ret->key = config_take(from->key, &failed);
	for (unsigned i = 0; i < from->pool_count; i++)
		ret->pools[i] = config_take(from->pools[i], &failed);
	for (unsigned i = 0; i < from->domain_count; i++) {
		ret->domains[i].domain = config_take(from->domains[i].domain, &failed);
		ret->domains[i].pool = config_take(from->domains[i].pool, &failed);
	}
	return failed ? -ENOMEM : 0;
}

const char *config_door_pool(const struct config_door *d, const char *name)
{
	if (strcasecmp(name, d->pool) == 0)
		return d->pool;
	for (unsigned i = 0; i < d->pool_count; i++) {
		if (strcasecmp(name, d->pools[i]) == 0)
			return d->pools[i];
	}
	return NULL;
}

static bool same_network(const struct config_network *n, const uint8_t *address)
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;
	uint8_t mask = (uint8_t)(0xff00 >> rest);

	if (memcmp(n->address, address, whole) != 0)
		return false;
	return rest == 0 || (n->address[whole] & mask) == (address[whole] & mask);
}

bool config_door_is_proxy(const struct config_door *d, const struct sockaddr *peer)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
	const uint8_t *address = six->s6_addr;
	bool ipv6 = peer->sa_family == AF_INET6;

	if (peer->sa_family == AF_INET)
		address = (const uint8_t *)&((const struct sockaddr_in *)(const void *)peer)
				  ->sin_addr;
	else if (!ipv6)
		return false;
	if (ipv6 && IN6_IS_ADDR_V4MAPPED(six)) {
		ipv6 = false;
		address += 12;
	}
	for (unsigned i = 0; i < d->proxy_count; i++) {
		if (d->proxies[i].ipv6 == ipv6 && same_network(&d->proxies[i], address))
			return true;
	}
	return false;
}
