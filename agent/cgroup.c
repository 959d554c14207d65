/* SPDX-License-Identifier: ISC */
/*
 * cgroup v2 files: "max" or a number; "QUOTA PERIOD"; "key value" lines; CPU lists "0-3,8".
 *
 * Where a bound is there but the usage is not readable, `bounded` is still set and the usage
 * missing: the caller then leaves the metric out, because the machine's figure would be a wrong
 * one.
 */
#include "agent/cgroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/scan.h"
#include "base/cleanup.h"

#define ROOT "sys/fs/cgroup/"
#define FILE_MAX (64 * 1024)

/* "max" or bytes. False: no such file or no bound. */
static bool read_limit(const struct sysroot *r, const char *file, struct buf *b, uint64_t *ret)
{
	const char *p;

	if (sysroot_read(r, file, b) != 0)
		return false;
	p = buf_str(b);
	return scan_u64(&p, ret);
}

/* Counts the CPUs of a list such as "0-3,8,10-11"; 0 if it is not one. */
static uint32_t count_cpu_list(const char *p)
{
	uint32_t n = 0;

	for (;;) {
		uint64_t first, last;

		if (!scan_u64(&p, &first))
			return 0;
		last = first;
		if (*p == '-') {
			p++;
			if (!scan_u64(&p, &last))
				return 0;
		}
		if (last < first || last - first > 65536 || n > 65536)
			return 0;
		n += (uint32_t)(last - first + 1);
		if (*p != ',')
			return *p == '\n' || *p == '\0' ? n : 0;
		p++;
	}
}

void cgroup_read_cpu(const struct sysroot *r, uint32_t machine_cpus, struct cgroup_cpu *ret)
{
	CLEANUP(buf_deinit) struct buf b = BUF_INIT(FILE_MAX);
	uint64_t quota, period, cpus;
	const char *p;

	*ret = (struct cgroup_cpu){0};
	if (sysroot_read(r, ROOT "cpu.max", &b) != 0)
		return;
	ret->millicpus = (uint64_t)machine_cpus * 1000;
	p = buf_str(&b);
	if (scan_u64(&p, &quota) && scan_u64(&p, &period) && quota > 0 && period > 0 &&
		quota <= UINT64_MAX / 1000 && quota * 1000 / period < ret->millicpus) {
		ret->bounded = true;
		ret->millicpus = quota * 1000 / period;
	}
	if (sysroot_read(r, ROOT "cpuset.cpus.effective", &b) == 0) {
		cpus = count_cpu_list(buf_str(&b));
		if (cpus > 0 && cpus * 1000 < ret->millicpus) {
			ret->bounded = true;
			ret->millicpus = cpus * 1000;
		}
	}
	if (ret->millicpus == 0)
		ret->millicpus = 1;
	if (sysroot_read(r, ROOT "cpu.stat", &b) == 0)
		ret->has_usage = scan_key_u64(buf_str(&b), "usage_usec", &ret->usage_usec);
}

void cgroup_read_memory(const struct sysroot *r, struct cgroup_memory *ret)
{
	CLEANUP(buf_deinit) struct buf b = BUF_INIT(FILE_MAX);
	uint64_t limit, current, inactive;

	*ret = (struct cgroup_memory){.limit = UINT64_MAX};
	if (read_limit(r, ROOT "memory.max", &b, &limit)) {
		ret->bounded = true;
		ret->limit = limit;
	}
	/* Above memory.high every allocation is slowed down: for a new user the node is full. */
	if (read_limit(r, ROOT "memory.high", &b, &limit) && limit < ret->limit) {
		ret->bounded = true;
		ret->limit = limit;
	}
	if (!ret->bounded || !read_limit(r, ROOT "memory.current", &b, &current))
		return;
	if (sysroot_read(r, ROOT "memory.stat", &b) != 0 ||
		!scan_key_u64(buf_str(&b), "inactive_file", &inactive))
		return;
	ret->has_used = true;
	ret->used = current > inactive ? current - inactive : 0;
}
