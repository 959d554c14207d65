/* SPDX-License-Identifier: ISC */
/* Who connects, and whether there is room: caps in total and for each address, counted when
 * accepted. */
#include "api/admission.h"

#include <stdio.h>
#include <sys/socket.h>

#include "api/auth.h"
#include "service/addresses.h"

static void name_peer(struct conn *c, const struct sockaddr *peer)
{
	if (c->listener->kind == LISTENER_SOCKET) {
		snprintf(c->address, sizeof(c->address), "local");
		auth_peer_name(c->fd, c->peer, sizeof(c->peer));
	} else {
		addresses_text(peer, c->address);
	}
}

/* Whether the caps allow one more; the admin socket is never locked out by the network's load. */
static const struct refusal *over_cap(struct conn *c, const struct sockaddr *peer)
{
	static const struct refusal total = {503, "too_many_connections",
		"this dispatcher has as many connections as it takes; try again later"};
	static const struct refusal one = {429, "too_many_connections_from_address",
		"your address has as many connections as one address may have"};
	const struct config *config = c->api->config;
	char key[LIMIT_ADDRESS_SIZE];
	uint32_t count = 0;

	if (c->listener->kind == LISTENER_SOCKET)
		return NULL;
	addresses_key(peer, key);
	c->counted = addresses_take(&c->api->addresses, key, &count);
	if (!c->counted || c->api->connections > config->max_connections ||
		c->api->connections > c->api->descriptor_limit)
		return &total;
	return count > config->max_connections_per_address ? &one : NULL;
}

const struct refusal *admission_check(struct conn *c, const struct sockaddr *peer)
{
	name_peer(c, peer);
	return over_cap(c, peer);
}
