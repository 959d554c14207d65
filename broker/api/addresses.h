/* SPDX-License-Identifier: ISC */
/* Inside api/: how many connections each peer address has. */
#pragma once

#include <stdint.h>

struct address_count;

/* Counts one more connection of ADDRESS; NULL: no memory. *RET is what it has now, this one
 * included. */
struct address_count *addresses_take(
	struct address_count **all, const char *address, uint32_t *ret);
void addresses_drop(struct address_count **all, struct address_count *a);
