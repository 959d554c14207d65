/* SPDX-License-Identifier: ISC */
/*
 * The signature of an .rdp file, by which Windows shows who made it. Microsoft has not published
 * the format; what is known comes from rdpsign.exe's output (github.com/nfedera/rdpsign, README):
 * the lines that matter, each ended by CR LF, then the line "signscope:s:" with their names, then a
 * NUL, as UTF-16LE, are signed by a detached PKCS#7 without attributes; "signature:s:" has the
 * base64 of three little-endian words (0x00010001, 1, length) and its DER.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/err.h"

/* What rdp_sign takes, from PEM files: the certificate, with the chain behind it, and its key;
 * after a signature on trial, for not every key that TLS takes can make one (Ed25519 cannot).
 * Errors name the file. The caller frees with SSL_CTX_free. 0 or a negative errno. */
int rdp_signer_new(const char *certificate, const char *key, SSL_CTX **ret, struct err *e);
/* LINES: the file's, UTF-8, each ended by CR LF. Appends the lines signscope and signature to OUT,
 * which may be the buffer that LINES lies in. -EIO: OpenSSL cannot; -ENOMEM. */
int rdp_sign(SSL_CTX *signer, const char *lines, struct buf *out, struct err *e);
