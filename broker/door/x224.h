/* SPDX-License-Identifier: ISC */
/*
 * The first packet of an RDP client: TPKT (RFC 1006, RFC 2126), X.224 Connection Request (X.224 class 0), a cookie or a
 * routing token, negotiation request, correlation block ([MS-RDPBCGR] 2.2.1.1).
 *
 * Pure functions of the bytes that have come so far: nothing is kept between calls, nothing behind
 * them is read, nothing is allocated. X.224's length octet bounds the packet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define X224_REQUEST_MIN 11
#define X224_REQUEST_MAX 259 /* TPKT header, length octet, 254 octets that it counts */
#define X224_TEXT_SIZE 247   /* cookie or token without CRLF, and NUL */
#define X224_CORRELATION_SIZE 16

/* Protocols that a client offers ([MS-RDPBCGR] 2.2.1.1.1); none of them is standard RDP security. */
enum {
	X224_TLS = 1,
	X224_NLA = 2, /* CredSSP */
	X224_RDSTLS = 4,
	X224_NLA_EX = 8, /* CredSSP with early user authorization result */
};

/* Flags of the negotiation request. */
enum {
	X224_RESTRICTED_ADMIN = 1,
	X224_REDIRECTED_AUTHENTICATION = 2,
	X224_CORRELATION = 8,
};

enum x224_kind {
	X224_NOTHING, /* neither cookie nor token */
	X224_USER,    /* "Cookie: mstshash=NAME": TEXT is NAME, a hint that anyone can write */
	X224_ROUTE,   /* any other line: TEXT is the whole routing token, without its CRLF */
};

struct x224_request {
	size_t size; /* bytes of the packet */
	enum x224_kind kind;
	char text[X224_TEXT_SIZE]; /* printable ASCII or bytes above 127; may be "" for a user */
	bool negotiates;	   /* false: an old client, standard RDP security only */
	uint8_t flags;
	uint32_t protocols;
	bool has_correlation;
	uint8_t correlation[X224_CORRELATION_SIZE];
};

/* Reads a request from the LEN bytes that have come. 0: whole, *RET filled; more may follow it. -EAGAIN: so far
 * right, more must come. -EINVAL: it can be no request, whatever comes, and E says why; told at the
 * first byte that shows it. */
int x224_parse(const uint8_t *data, size_t len, struct x224_request *ret, struct err *e);

/* What a routing token of Terminal Services' plug-in names, "tsv://MS Terminal Services Plugin.1.POOL":
 * POOL within TOKEN, or NULL. */
const char *x224_route_pool(const char *token);

/* "Cookie: msts=ADDRESS.PORT.0000", both numbers decimal, of network byte order read as little
 * endian. 0 and *RET_ADDRESS (as in_addr.s_addr: network order), *RET_PORT (host order, not 0);
 * -ENOENT if TOKEN is something else; -EINVAL if its numbers are out of range. */
int x224_route_address(const char *token, uint32_t *ret_address, uint16_t *ret_port);
