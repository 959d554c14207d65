/* SPDX-License-Identifier: ISC */
/* An entry lives while its address has a connection, so there are never more than connections. */
#include "model/hash.h"

#include "api/addresses.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "wire/limits.h"

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
