/* SPDX-License-Identifier: ISC */
/*
 * Plain means, rounded half up. All sums fit: at most SAMPLES_MAX samples of at most 2^53 bytes.
 */
#include "agent/sample.h"

#include "agent/window.h"

#define BYTES_MAX (UINT64_C(1) << 53)
_Static_assert(BYTES_MAX *WINDOW_SAMPLES_MAX < UINT64_MAX / 2, "sums of bytes must fit");

bool sample_valid(const struct sample *s)
{
	if (s->has_cpu && (s->cpu_busy > 10000 || s->cpu_count == 0))
		return false;
	if (s->has_memory && (s->memory_total == 0 || s->memory_total > BYTES_MAX ||
				     s->memory_available > s->memory_total))
		return false;
	return !s->has_custom_load || s->custom_load <= 10000;
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
	return (sum + n / 2) / n;
}

static uint64_t window_seconds(const struct sample *samples, size_t n, uint64_t now)
{
	uint64_t oldest = now;

	for (size_t i = 0; i < n; i++)
		if (samples[i].boot_ms < oldest)
			oldest = samples[i].boot_ms;
	return mean(now - oldest, 1000);
}

void sample_average(
	const struct sample *samples, size_t n, uint64_t now_boot_ms, struct heartbeat *ret)
{
	uint64_t cpu = 0, cpus = 0, total = 0, available = 0, memories = 0, custom = 0, customs = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sample *s = &samples[i];

		if (s->has_cpu) {
			cpu += s->cpu_busy;
			cpus++;
			ret->cpu_count = s->cpu_count; /* of the newest */
		}
		if (s->has_memory) {
			total += s->memory_total;
			available += s->memory_available;
			memories++;
		}
		if (s->has_custom_load) {
			custom += s->custom_load;
			customs++;
		}
	}
	ret->window_samples = (uint32_t)n;
	ret->window_seconds = (uint32_t)window_seconds(samples, n, now_boot_ms);
	ret->has_cpu = cpus > 0;
	ret->cpu_busy = cpus ? (uint32_t)mean(cpu, cpus) : 0;
	ret->has_memory = memories > 0;
	ret->memory_total = memories ? mean(total, memories) : 0;
	ret->memory_available = memories ? mean(available, memories) : 0;
	ret->has_custom_load = customs > 0;
	ret->custom_load = customs ? (uint32_t)mean(custom, customs) : 0;
}
