/* SPDX-License-Identifier: ISC */
/* What a server says to an RDP client before and instead of a desktop: formatters of whole packets. */
#pragma once

#include "base/buf.h"

/* Codes of a negotiation failure ([MS-RDPBCGR] 2.2.1.2.2). */
enum {
	FAILURE_SSL_REQUIRED = 1,
	FAILURE_SSL_NOT_ALLOWED = 2,
	FAILURE_SSL_CERT_NOT_ON_SERVER = 3,
	FAILURE_INCONSISTENT_FLAGS = 4,
	FAILURE_HYBRID_REQUIRED = 5,
};

/* X.224 Connection Confirm that selects PROTOCOL, one bit of those requested. */
void redirection_add_confirm(struct buf *out, uint32_t protocol);
/* X.224 Connection Confirm with a negotiation failure. */
void redirection_add_failure(struct buf *out, uint32_t code);
/* "Valid client": the end of licensing, without which clients take nothing more. */
void redirection_add_licence(struct buf *out);

/* Codes of Set Error Info, which a client shows in words of its own ([MS-RDPBCGR] 2.2.5.1.1). */
enum {
	ERRINFO_DENIED = 0x7,		/* the server denied the connection */
	ERRINFO_POOL_NOT_FREE = 0x408,	/* no computer of the pool is available */
};
/* The Set Error Info PDU, then MCS' Disconnect Provider Ultimatum: nothing follows. */
void redirection_add_errinfo(struct buf *out, uint32_t code);

/* Where to go. Strings are valid UTF-8; NULL or "" is left out. */
struct redirection {
	const char *address; /* numeric; clients try FQDN first */
	const char *fqdn;
	const char *token; /* routing token without CRLF: the client comes back to us with it, and
			      ignores the others */
	const char *user, *domain;
};

/* The Server Redirection PDU ([MS-RDPBCGR] 2.2.13.2.1, enhanced security). A string that is too
 * long for the packet shows in buf_error: -EOVERFLOW. */
void redirection_add(struct buf *out, const struct redirection *to);
