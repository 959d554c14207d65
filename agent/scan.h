/* SPDX-License-Identifier: ISC */
/* Reading numbers out of the kernel's text files. Nothing here trusts the text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Skips blanks and takes a decimal number; false (and *P where it was) if there is none or it does
 * not fit. */
bool scan_u64(const char **p, uint64_t *ret);
/* The same for hexadecimal digits without a prefix. */
bool scan_hex(const char **p, uint64_t *ret);
/* Skips blanks, then one word. False at the end of the line. */
bool scan_skip_word(const char **p);
/* The number behind KEY at the beginning of a line ("MemFree:" or "usage_usec"). */
bool scan_key_u64(const char *text, const char *key, uint64_t *ret);
/* The beginning of the next line, or NULL behind the last. */
const char *scan_next_line(const char *p);
