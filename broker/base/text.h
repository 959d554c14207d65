/* SPDX-License-Identifier: ISC */
/* Small string helpers that the C library lacks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies SRC into DST of SIZE bytes with a NUL: 0, or -ENAMETOOLONG (DST is then ""). */
int text_copy(char *dst, size_t size, const char *src);
/* strdup that keeps NULL. */
char *text_dup(const char *s);
/* A decimal within MIN..MAX and nothing else ("010" is ten, "+3" and " 3" are refused). 0, -EINVAL
 * or -ERANGE. */
int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
/* Bytes of the well-formed UTF-8 sequence at P, of which LEFT > 0 bytes may be read; 0 if there is
 * none (NUL is none). */
size_t text_utf8_length(const char *p, size_t left);
/* Writes a code point (no surrogate, below 0x110000); its bytes. */
size_t text_utf8_put(uint32_t c, char ret[4]);
/* Whether LEN bytes are well-formed UTF-8 (no overlong forms, surrogates, or NUL). */
bool text_utf8_valid(const char *s, size_t len);
bool text_equal(const char *a, const char *b); /* NULL equals NULL only */
/* Whole file into a malloc'ed string with a NUL; -EFBIG above MAX bytes, -EISDIR, -errno. */
int text_read_file(const char *path, size_t max, char **ret, size_t *ret_len);
