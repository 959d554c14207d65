/* SPDX-License-Identifier: ISC */
/*
 * A route token: what an .rdp file carries as loadbalanceinfo, so that the door knows whom the file
 * was made for. It names user, pool and tags and when it ends, sealed with AES-256-GCM by a key
 * that all dispatchers of a cluster share: no list is kept, and one made by any of them is good at
 * every other, with or without database.
 *
 * Text: "tb1." and base64url without padding of nonce (12 bytes), sealed body, tag (16 bytes).
 * Body: version 1 (1 byte), end (8 bytes, seconds since 1970, little endian), pool id (4 bytes,
 * little endian), user name as it came in; and where tags were asked for, NUL and these.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "wire/limits.h"

#define ROUTE_TOKEN_PREFIX "tb1."
/* With NUL. A client sends it in its first packet, whose length octet counts at most 254: 6 of a
 * header, CR LF, 8 of the negotiation, 36 of a correlation identifier; 202 are left. */
#define ROUTE_TOKEN_SIZE 201
#define ROUTE_TOKEN_USER_MAX 106 /* bytes that fit in: of a user name, and of NUL and tags */
#define ROUTE_KEY_SIZE 32

struct route_ticket {
	int64_t ends_s; /* wall clock, seconds since 1970 */
	uint32_t pool_id;
	char user[ROUTE_TOKEN_USER_MAX + 1]; /* UTF-8 */
	char tags[ROUTE_TOKEN_USER_MAX + 1]; /* as they came in; "" = none asked for */
};

/* 0; -EMSGSIZE: user name and tags are too long; -EIO: OpenSSL cannot. E says so. */
int route_token_seal(const uint8_t key[ROUTE_KEY_SIZE], const struct route_ticket *t,
	char ret[ROUTE_TOKEN_SIZE], struct err *e);
/* 0; -EINVAL: no token, or one of another key, or altered; -ETIME: its end has come. E says which,
 * never a part of TEXT. */
int route_token_open(const uint8_t key[ROUTE_KEY_SIZE], const char *text, int64_t now_s,
	struct route_ticket *ret, struct err *e);
/* The address form that other balancers know, too: "Cookie: msts=ADDRESS.PORT.0000", both numbers
 * in network byte order read as little endian ([MS-RDPBCGR] 3.2.5.3.1 and the session broker's
 * cookie). ADDRESS is IPv4 text: -EINVAL for another. */
#define ROUTE_ADDRESS_SIZE 48
int route_address_format(const char *address, uint16_t port, char ret[ROUTE_ADDRESS_SIZE]);
