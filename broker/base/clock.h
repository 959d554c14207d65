/* SPDX-License-Identifier: ISC */
/*
 * Time. Monotonic milliseconds for every interval and deadline; wall-clock microseconds since the
 * Unix epoch (UTC) only for what a human reads. Modules take `now` as a parameter; only the edge
 * (service, agent main) reads a clock.
 */
#pragma once

#include <stdint.h>

#define CLOCK_RFC3339_SIZE 32 /* "2026-11-30T23:19:57.123456Z" and the NUL */

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_wall_us(void);
/* Milliseconds since boot, suspended time included (CLOCK_BOOTTIME). */
uint64_t clock_boot_ms(void);

/* UTC with milliseconds: "2026-11-30T23:19:57.123Z". Returns RET. */
char *clock_rfc3339(int64_t wall_us, char ret[CLOCK_RFC3339_SIZE]);
/* Accepts what clock_rfc3339 writes, offsets, and no or up to 9 fractional digits. 0 or -EINVAL. */
int clock_parse_rfc3339(const char *text, int64_t *ret_wall_us);
