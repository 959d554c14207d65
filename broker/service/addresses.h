/* SPDX-License-Identifier: ISC */
/* How many connections each peer address has, for caps that one peer cannot use up. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "wire/limits.h"

struct address_count;

/* Counts one more connection of ADDRESS; NULL: no memory. *RET is what it has now, this one
 * included. */
struct address_count *addresses_take(
	struct address_count **all, const char *address, uint32_t *ret);
void addresses_drop(struct address_count **all, struct address_count *a);

/* The peer's address as text: "unknown" for another family than IP. */
void addresses_text(const struct sockaddr *peer, char ret[LIMIT_ADDRESS_SIZE]);
/* What is counted as one address: of IPv6 the network of 64 bits that one host may use as it
 * likes. */
void addresses_key(const struct sockaddr *peer, char ret[LIMIT_ADDRESS_SIZE]);
