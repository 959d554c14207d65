/* SPDX-License-Identifier: ISC */
/*
 * The PROXY protocol, versions 1 and 2, of HAProxy's proxy-protocol.txt: who the client behind a
 * balancer is. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"

#define PROXY_HEADER_MAX 536 /* version 2 with the longest addresses and some extensions */

/* How many bytes the header that begins with these LEN bytes has at least: a reader that never has
 * more than that takes nothing behind it. 0: it is whole. -EINVAL: it is none, or longer than
 * PROXY_HEADER_MAX. */
int proxy_header_want(const uint8_t *data, size_t len, struct err *e);
/* Reads a whole header. 0 and *RET, an IPv4 or IPv6 address; -ENOENT: it tells no address (a health
 * check of the balancer's own); -EINVAL. */
int proxy_header_parse(
	const uint8_t *data, size_t len, struct sockaddr_storage *ret, struct err *e);
/* Appends a version 2 header: CLIENT came to SERVER. Addresses of different families, or of others
 * than IP, make the one that tells no address. */
void proxy_header_add(
	struct buf *out, const struct sockaddr *client, const struct sockaddr *server);
