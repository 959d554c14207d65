/* SPDX-License-Identifier: ISC */
/* Inside api/: the member `counts` of a refusal. */
#pragma once

#include "base/buf.h"
#include "policy/choose.h"

void counts_format(struct buf *b, const struct choice_counts *c);
