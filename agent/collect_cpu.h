/* SPDX-License-Identifier: ISC */
/*
 * CPU busy share since the reading before.
 *
 * busy = all − idle − iowait; stolen time is busy, guest time is inside user and nice already. In a
 * container with a quota the share is that of the quota (cgroup.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sysroot.h"

/* One reading of the counters. Zero-initialised: nothing read yet. */
struct cpu_reading {
	bool valid;
	bool bounded;	/* usage_usec against millicpus; else busy and total */
	uint64_t busy;	/* ticks */
	uint64_t total; /* ticks */
	uint64_t usage_usec;
	uint64_t millicpus;
	int64_t at_usec; /* when it was read, on the clock that the counters follow */
	uint32_t count;	 /* CPUs, at least 1 */
};

struct cpu_share {
	bool has_busy;
	uint32_t busy; /* hundredths of a percent */
	uint32_t count;
};

/* NOW_USEC: a monotonic clock; a recorded tree's own proc/uptime goes first. 0, or a negative errno
 * with words (then *ret is invalid). */
int cpu_read(const struct sysroot *r, int64_t now_usec, struct cpu_reading *ret, struct err *e);

/* The share between two readings. Missing when either is invalid, the interval is not positive, or
 * a counter ran backwards. */
void cpu_share(
	const struct cpu_reading *before, const struct cpu_reading *now, struct cpu_share *ret);
