/* SPDX-License-Identifier: ISC */
/* Error texts are cut at the size of struct err and always end in NUL. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

int(err_set)(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

int(err_prefix)(struct err *e, int code, const char *fmt, ...)
{
	struct err old;
	va_list ap;
	size_t len;

	if (!e)
		return code;
	old = *e;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	len = strlen(e->text);
	snprintf(e->text + len, sizeof(e->text) - len, ": %s", old.text);
	return code;
}

int(err_errno)(struct err *e, int code, const char *fmt, ...)
{
	char reason[128];
	va_list ap;
	size_t len;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	len = strlen(e->text);
	snprintf(e->text + len, sizeof(e->text) - len, ": %s",
		strerror_r(code < 0 ? -code : code, reason, sizeof(reason)));
	return code;
}
