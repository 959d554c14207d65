/* SPDX-License-Identifier: ISC */
/*
 * The pool: of the listener; or by the domain, if the listener has a rule for it; or, stronger,
 * what the client names itself, in a tsv:// token or as POOL#user, if it is one of the listener's.
 */
#include "door/route.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "wire/user_key.h"

bool route_has_ticket(const struct x224_request *r)
{
	return r->kind == X224_ROUTE &&
	       strncmp(r->text, ROUTE_TOKEN_PREFIX, strlen(ROUTE_TOKEN_PREFIX)) == 0;
}

static void use_pool(struct door_question *q, const char *pool)
{
	text_copy(q->pool, sizeof(q->pool), pool);
}

/* The pool of DOMAIN (LEN bytes), if there is a rule. */
static const char *pool_of_domain(const struct config_door *d, const char *domain, size_t len)
{
	for (unsigned i = 0; i < d->domain_count; i++) {
		const char *known = d->domains[i].domain;

		if (strlen(known) == len && strncasecmp(known, domain, len) == 0)
			return d->domains[i].pool;
	}
	return NULL;
}

/* DOMAIN\user or user@domain, if NAME is one. */
static const char *pool_of_name(const struct config_door *d, const char *name)
{
	const char *end = strchr(name, '\\'), *at = strrchr(name, '@');

	if (end)
		return pool_of_domain(d, name, (size_t)(end - name));
	return at ? pool_of_domain(d, at + 1, strlen(at + 1)) : NULL;
}

/* "POOL#rest" with a pool that may be named: the rest, and the pool; else NAME and NULL. */
static const char *split_pool(const struct config_door *d, const char *name, const char **ret_pool)
{
	const char *end = strchr(name, '#');
	char pool[LIMIT_NAME_SIZE];

	*ret_pool = NULL;
	if (!end || (size_t)(end - name) >= sizeof(pool))
		return name;
	memcpy(pool, name, (size_t)(end - name));
	pool[end - name] = '\0';
	*ret_pool = config_door_pool(d, pool);
	return *ret_pool ? end + 1 : name;
}

/* What a routing token says of pool and endpoint. */
static void use_token(
	const struct config_door *d, const struct x224_request *r, struct door_question *q)
{
	const char *named = x224_route_pool(r->text), *pool;
	struct in_addr address;

	if (named) {
		pool = config_door_pool(d, named);
		if (pool)
			use_pool(q, pool);
	} else if (x224_route_address(r->text, &address.s_addr, &q->endpoint_port) == 0) {
		inet_ntop(AF_INET, &address, q->endpoint, sizeof(q->endpoint));
	}
}

void route_first_packet(
	const struct config_door *d, const struct x224_request *r, struct door_question *ret)
{
	const char *name, *pool;
	struct err e;

	use_pool(ret, d->pool);
	ret->who = DOOR_NOBODY;
	if (route_has_ticket(r)) {
		ret->who = DOOR_TICKET;
		text_copy(ret->name, sizeof(ret->name), r->text);
		return;
	}
	if (r->kind == X224_ROUTE) {
		use_token(d, r, ret);
		return;
	}
	if (r->kind != X224_USER)
		return;
	name = split_pool(d, r->text, &pool);
	if (!pool)
		pool = pool_of_name(d, name);
	if (pool)
		use_pool(ret, pool);
	if (user_name_display(name, strlen(name), ret->name, &e) == 0)
		ret->who = DOOR_HINT;
	else
		ret->name[0] = '\0';
}

int route_user(const struct config_door *d, const struct x224_request *r, const char *user,
	const char *domain, struct door_question *ret, bool *ret_renamed, struct err *e)
{
	const char *pool, *rest = split_pool(d, user, &pool);
	bool alone = !domain[0] || strpbrk(rest, "\\@");
	char name[2 * LIMIT_USER_SIZE];

	use_pool(ret, d->pool);
	*ret_renamed = pool != NULL;
	snprintf(name, sizeof(name), "%s%s%s", alone ? "" : domain, alone ? "" : "\\", rest);
	if (pool || (pool = pool_of_name(d, name)))
		use_pool(ret, pool);
	if (r->kind == X224_ROUTE)
		use_token(d, r, ret);
	ret->who = rest[0] ? DOOR_USER : DOOR_NOBODY;
	if (ret->who == DOOR_NOBODY)
		return 0;
	return user_name_display(name, strlen(name), ret->name, e);
}
