/* SPDX-License-Identifier: ISC */
/* Memory of the node: what there is and what a new user could have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sysroot.h"

struct memory_reading {
	uint64_t total;	    /* bytes, above 0 */
	uint64_t available; /* bytes, at most total */
};

/* 0, or a negative errno with words; *ret is untouched then and the sample lacks the metric. */
int memory_read(const struct sysroot *r, struct memory_reading *ret, struct err *e);
