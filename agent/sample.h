/* SPDX-License-Identifier: ISC */
/* One look at the node's metrics, and the average of several. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/heartbeat.h"

struct sample {
	uint64_t boot_ms; /* milliseconds since boot, suspended time included */
	bool has_cpu;
	uint32_t cpu_busy; /* hundredths of a percent */
	uint32_t cpu_count;
	bool has_memory;
	uint64_t memory_total, memory_available; /* bytes */
	bool has_custom_load;
	uint32_t custom_load; /* hundredths of a percent */
};

/* Whether every figure is one that a collector could have given: for samples read back from a file.
 */
bool sample_valid(const struct sample *s);

/* Writes the average of the N samples into the metric and window members of RET, each metric over
 * those samples that have it; a metric that none has is missing. */
void sample_average(
	const struct sample *samples, size_t n, uint64_t now_boot_ms, struct heartbeat *ret);
