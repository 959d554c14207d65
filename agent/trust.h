/* SPDX-License-Identifier: ISC */
/* Why a request failed, in words that say what to do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* CODE and DETAIL are curl's, VERIFY is OpenSSL's X509_V_… of the certificate. Writes into RET.
 * True if the cause is that the server could not prove who it is. */
bool trust_explain(int code, long verify, const char *detail, char *ret, size_t size);
