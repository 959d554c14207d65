/* SPDX-License-Identifier: ISC */
/* RFC 4180: fields by commas, records by CR LF, quotes where they are needed. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* Adds one field; FIRST of its record or not. */
void csv_field(struct buf *out, bool first, const char *text);
void csv_end(struct buf *out);
