/* SPDX-License-Identifier: ISC */
/* Route tokens: made for who was given a node, opened for who comes to a door with one. */
#include <errno.h>

#include "base/clock.h"
#include "base/text.h"
#include "service/state.h"

int service_route_mint(const struct service *s, const struct caller *caller,
	const struct pool *pool, const char *user, const char *tags, char ret[ROUTE_TOKEN_SIZE],
	struct err *e)
{
	struct route_ticket t = {.pool_id = pool->spec.id};

	if (text_copy(t.user, sizeof(t.user), user) < 0 ||
		text_copy(t.tags, sizeof(t.tags), tags) < 0)
		return err_set(e, -EMSGSIZE,
			"user name and tags are longer than the %d bytes that fit into a route "
			"token",
			ROUTE_TOKEN_USER_MAX);
	t.ends_s = clock_wall_us() / 1000000 + s->config->rdp_lifetime_s;
	if (caller->token && caller->token->expires_us &&
		caller->token->expires_us / 1000000 < t.ends_s)
		t.ends_s = caller->token->expires_us / 1000000;
	return route_token_seal(s->route_key, &t, ret, e);
}

int service_route_open(const struct service *s, const char *text, const struct pool **ret_pool,
	struct route_ticket *ret, struct err *e)
{
	struct route_ticket t;
	int r = route_token_open(s->route_key, text, clock_wall_us() / 1000000, &t, e);

	if (r < 0)
		return r;
	*ret_pool = fleet_pool_by_id(s->fleet, t.pool_id);
	if (!*ret_pool)
		return err_set(e, -ENOENT, "the pool of the route token is gone");
	*ret = t;
	return 0;
}
