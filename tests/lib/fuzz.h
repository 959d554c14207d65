/* SPDX-License-Identifier: ISC */
/* What a fuzz target gives. The name is libFuzzer's. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Always 0; a broken promise aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Like assert, but never compiled out. */
#define FUZZ_CHECK(condition)                                                                   \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)
