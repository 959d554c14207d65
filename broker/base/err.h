/* SPDX-License-Identifier: ISC */
/*
 * Errors in words.
 *
 * A function that can fail for a reason a human must read takes a `struct err *` and fills it
 * together with the non-zero value it returns (a negative errno, or a positive code of its module).
 * The text is lower case, without a full stop, and names what and where. It never holds a secret.
 */
#pragma once

#include <stdarg.h>

struct err {
	char text[480];
};

/* Writes the text into E (may be NULL; cut at its size) and returns CODE. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the text that E holds (E may be NULL) and returns CODE. */
int err_prefix(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* err_set with ": REASON" appended, the reason being strerror(-CODE). CODE is a negative errno. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time: this shows it that CODE comes back. */
#define err_set(e, code, ...) ((void)(err_set)(e, code, __VA_ARGS__), (code))
#define err_prefix(e, code, ...) ((void)(err_prefix)(e, code, __VA_ARGS__), (code))
#define err_errno(e, code, ...) ((void)(err_errno)(e, code, __VA_ARGS__), (code))
#endif
