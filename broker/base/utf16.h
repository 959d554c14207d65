/* SPDX-License-Identifier: ISC */
/* UTF-16 in little endian, as Windows writes it, and UTF-8. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends LEN bytes of valid UTF-8 as UTF-16LE, without a terminator. Failure shows in buf_error. */
void utf16_add(struct buf *out, const char *text, size_t len);

/* LEN bytes of UTF-16LE as UTF-8 with a NUL into RET of SIZE bytes. 0; -EINVAL: an odd number of bytes, half of
 * a surrogate pair, or U+0000; -ENAMETOOLONG. RET is "" then. */
int utf16_to_utf8(const uint8_t *data, size_t len, char *ret, size_t size);
