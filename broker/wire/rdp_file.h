/* SPDX-License-Identifier: ISC */
/*
 * A .rdp file: what a Windows client (and FreeRDP) opens to connect. UTF-16LE with a byte order
 * mark, lines end in CR LF, each `key:type:value`. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/tls.h"

struct rdp_file {
	const char *address; /* IP address or host name; IPv6 is put into brackets */
	const char *fqdn; /* what to connect to instead if not "" or NULL; the address is then the
			     alternate */
	uint16_t port;
	const char *user; /* as it came in; "" or NULL = left out */
	bool prompt_for_credentials;
	unsigned authentication_level; /* 0 connect anyway, 1 refuse, 2 ask when the server is not
					  who it says */
	bool use_redirection_server_name;
	const char *route; /* routing token for a balancer (loadbalanceinfo); "" or NULL = left out */
	SSL_CTX *signer; /* certificate, chain and key that sign the file; NULL = it is not signed */
	const char *extra; /* further lines "key:type:value" separated by \n; they win over those
			      above */
};

/* Appends the file to OUT (whose own errors show in buf_error). -EINVAL for a value that is not
 * UTF-8 or holds a line break or another control character: it could add a line. Nothing is
 * appended then. -EIO, -ENOMEM: it could not be signed. */
int rdp_file_format(const struct rdp_file *f, struct buf *out, struct err *e);
