/* SPDX-License-Identifier: ISC */
/* Who connects, and whether there is room: caps in total and for each address, counted when
 * accepted. */
#include "api/admission.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "api/addresses.h"
#include "api/auth.h"

static void name_peer(struct conn *c, const struct sockaddr *peer)
{
	const void *address =
		peer->sa_family == AF_INET6
			? (const void *)&((const struct sockaddr_in6 *)peer)->sin6_addr
			: (const void *)&((const struct sockaddr_in *)peer)->sin_addr;

	if (c->listener->kind == LISTENER_SOCKET) {
		snprintf(c->address, sizeof(c->address), "local");
		auth_peer_name(c->fd, c->peer, sizeof(c->peer));
	} else if (!inet_ntop(peer->sa_family, address, c->address, sizeof(c->address))) {
		snprintf(c->address, sizeof(c->address), "unknown");
	}
}

/* What is counted as one address: of IPv6 the network of 64 bits that one host may use as it likes.
 */
static void address_key(
	const struct conn *c, const struct sockaddr *peer, char ret[LIMIT_ADDRESS_SIZE])
{
	struct in6_addr net;

	if (peer->sa_family == AF_INET6) {
		net = ((const struct sockaddr_in6 *)peer)->sin6_addr;
		memset(&net.s6_addr[8], 0, 8);
		if (inet_ntop(AF_INET6, &net, ret, LIMIT_ADDRESS_SIZE))
			return;
	}
	snprintf(ret, LIMIT_ADDRESS_SIZE, "%s", c->address);
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
	address_key(c, peer, key);
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
