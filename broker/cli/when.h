/* SPDX-License-Identifier: ISC */
/* Points in time as people type and read them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WHEN_AGE_SIZE 24

/* "never" → 0, "12h", "30d", "45min" from NOW_US on, or RFC 3339; wall-clock microseconds. RET may
 * be NULL. 0 or -EINVAL. */
int when_parse(const char *text, int64_t now_us, int64_t *ret);
/* "12 s", "3 min", "5 h", "8 d": how long ago THEN_US is. Returns RET. */
const char *when_age(int64_t then_us, int64_t now_us, char ret[WHEN_AGE_SIZE]);
