/* SPDX-License-Identifier: ISC */
/* Texts are cut at their size; they never hold a secret. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/command.h"

int fail(struct failure *f, enum cli_exit code, const char *fmt, ...)
{
	va_list ap;

	f->code = code;
	f->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return (int)code;
}

int fail_hint(struct failure *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->hint, sizeof(f->hint), fmt, ap);
	va_end(ap);
	return (int)f->code;
}
