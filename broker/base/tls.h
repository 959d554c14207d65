/* SPDX-License-Identifier: ISC */
/*
 * Server TLS: TLS 1.2 and 1.3, no renegotiation, buffers released while idle.
 */
#pragma once

#include <openssl/ssl.h>

#include "base/err.h"

#define TLS_PIN_SIZE 64 /* "sha256//" + 44 characters of base64 + NUL, curl's format */

/* A server context from PEM files. Errors name the file: unreadable, no match, expired. The caller
 * frees with SSL_CTX_free. 0 or a negative errno. */
int tls_server_new(const char *certificate, const char *key, SSL_CTX **ret, struct err *e);
/* "sha256//BASE64" of the SubjectPublicKeyInfo of the first certificate in the PEM file. */
int tls_pin_of_file(const char *certificate, char ret[TLS_PIN_SIZE], struct err *e);
/* The last OpenSSL error as words, into a static-size buffer of the caller; clears the queue. */
const char *tls_reason(char *ret, size_t size);
