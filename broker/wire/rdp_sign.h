/* SPDX-License-Identifier: ISC */
/*
 * The signature of an .rdp file, by which Windows shows who made it. Microsoft has not published the format; what is
 * known comes from rdpsign.exe's output (github.com/nfedera/rdpsign, README): the lines that matter, each ended by CR
 * LF, then the line "signscope:s:" with their names, then a NUL, as UTF-16LE, are signed by a detached PKCS#7 without
 * attributes; "signature:s:" has the base64 of three little-endian words (0x00010001, 1, length) and its DER.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/err.h"

/* LINES: the file's, UTF-8, each ended by CR LF. Appends the lines signscope and signature to OUT, which may be the
 * buffer that LINES lies in. SIGNER has certificate, chain and key (tls_server_new). -EIO: OpenSSL cannot; -ENOMEM. */
int rdp_sign(SSL_CTX *signer, const char *lines, struct buf *out, struct err *e);
