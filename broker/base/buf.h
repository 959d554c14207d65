/* SPDX-License-Identifier: ISC */
/*
 * The one bounded buffer for strings.
 *
 * A buffer grows on the heap up to MAX bytes of text. The first failure (no memory: -ENOMEM, too
 * long: -EOVERFLOW) sticks: later additions do nothing and buf_error() tells it, so a caller checks
 * once at the end. The text is always NUL-terminated.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;  /* owned; NULL while nothing was added */
	size_t len;  /* bytes of text, without the NUL */
	size_t cap;
	size_t max;  /* bound on len */
	int error;   /* 0, -ENOMEM or -EOVERFLOW */
};

#define BUF_INIT(max_len) ((struct buf){.max = (max_len)})

void buf_init(struct buf *b, size_t max);
/* Frees the text; the buffer may be used again. */
void buf_deinit(struct buf *b);
/* Forgets text and error, keeps the memory. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *text);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_addfv(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* The unsigned decimal of V, faster than buf_addf. */
void buf_addu(struct buf *b, uint64_t v);

/* The text, "" when empty; valid until the next change. */
const char *buf_str(const struct buf *b);
int buf_error(const struct buf *b);
/* The text as a string that the caller frees; NULL if the buffer is in error. Leaves it empty. */
char *buf_steal(struct buf *b);
