/* SPDX-License-Identifier: ISC */
/*
 * Refuses, before libconfuse reads a file, what it would take silently: a NUL or a broken UTF-8
 * sequence, ${ENVIRONMENT}, a scalar set twice in one section, two sections of one title, numbers
 * such as 010, 0x10, nan or 1e999, a section, string or comment that is not closed.
 */
#pragma once

#include <confuse.h>
#include <stddef.h>

#include "base/err.h"

/* TEXT ends in NUL behind LEN bytes; PATH is for messages, "PATH:LINE: …". 0, -EINVAL or -ENOMEM.
 * What libconfuse reports well itself (unknown keys, wrong types, grammar) is left to it. */
int conf_scan(const char *text, size_t len, const char *path, const cfg_opt_t *opts, struct err *e);
