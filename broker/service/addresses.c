/* SPDX-License-Identifier: ISC */
/* An entry lives while its address has a connection, so there are never more than connections. */
#include "model/hash.h"

#include "service/addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct address_count {
	uint32_t count;
	UT_hash_handle hh;
	char address[];
};

struct address_count *addresses_take(struct address_count **all, const char *address, uint32_t *ret)
{
	struct address_count *a;
	size_t len = strlen(address);

	HASH_FIND(hh, *all, address, len, a);
	if (!a) {
		a = calloc(1, sizeof(*a) + len + 1);
		if (!a)
			return NULL;
		memcpy(a->address, address, len);
		HASH_ADD_KEYPTR(hh, *all, a->address, len, a);
		if (!a->hh.tbl) {
			free(a);
			return NULL;
		}
	}
	*ret = ++a->count;
	return a;
}

void addresses_drop(struct address_count **all, struct address_count *a)
{
	if (--a->count > 0)
		return;
	HASH_DEL(*all, a);
	free(a);
}

void addresses_text(const struct sockaddr *peer, char ret[LIMIT_ADDRESS_SIZE])
{
	const void *address = NULL;

	if (peer->sa_family == AF_INET6)
		address = &((const struct sockaddr_in6 *)peer)->sin6_addr;
	else if (peer->sa_family == AF_INET)
		address = &((const struct sockaddr_in *)peer)->sin_addr;
	if (!address || !inet_ntop(peer->sa_family, address, ret, LIMIT_ADDRESS_SIZE))
		snprintf(ret, LIMIT_ADDRESS_SIZE, "unknown");
}

void addresses_key(const struct sockaddr *peer, char ret[LIMIT_ADDRESS_SIZE])
{
	struct sockaddr_in6 net;

	if (peer->sa_family != AF_INET6) {
		addresses_text(peer, ret);
		return;
	}
	memcpy(&net, peer, sizeof(net));
	memset(&net.sin6_addr.s6_addr[8], 0, 8);
	addresses_text((const struct sockaddr *)&net, ret);
}
