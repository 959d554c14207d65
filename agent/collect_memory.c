/* SPDX-License-Identifier: ISC */
/*
 * MemTotal and MemAvailable of /proc/meminfo, bounded by the container's limits.
 *
 * Kernels before 3.14 have no MemAvailable. It is then computed as the kernel came to define it:
 * free memory above the low watermark, plus that part of page cache and reclaimable slab which can
 * go without thrashing (all but the smaller of one half and the watermark). The watermark is
 * 5/4 of vm.min_free_kbytes. When a part of this is missing too, so is the metric.
 */
#include "agent/collect_memory.h"

#include <errno.h>

#include "agent/cgroup.h"
#include "agent/scan.h"
#include "base/cleanup.h"

#define MEMINFO_MAX (64 * 1024)

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool estimate_available(
	const struct sysroot *r, const char *meminfo, struct buf *scratch, uint64_t *ret_kib)
{
	uint64_t memfree, active, inactive, slab, min_free, low, cache, sum;
	const char *p;

	if (!scan_key_u64(meminfo, "MemFree:", &memfree) ||
		!scan_key_u64(meminfo, "Active(file):", &active) ||
		!scan_key_u64(meminfo, "Inactive(file):", &inactive) ||
		!scan_key_u64(meminfo, "SReclaimable:", &slab))
		return false;
	if (sysroot_read(r, "proc/sys/vm/min_free_kbytes", scratch) != 0)
		return false;
	p = buf_str(scratch);
	if (!scan_u64(&p, &min_free))
		return false;
	if ((memfree | active | inactive | slab | min_free) >> 48)
		return false;
	low = min_free * 5 / 4;
	cache = active + inactive;
	sum = memfree + cache - min_u64(cache / 2, low) + slab - min_u64(slab / 2, low);
	*ret_kib = sum > low ? sum - low : 0;
	return true;
}

static int bound_by_cgroup(const struct sysroot *r, struct memory_reading *m, struct err *e)
{
	struct cgroup_memory group;
	uint64_t left;

	cgroup_read_memory(r, &group);
	if (!group.bounded || group.limit >= m->total)
		return 0;
	if (group.limit == 0)
		return err_set(e, -ENODATA, "the container's memory limit is 0");
	if (!group.has_used)
		return err_set(e, -ENODATA,
			"could not read \"/sys/fs/cgroup/memory.current\" and \"memory.stat\", "
			"although "
			"the container has a memory limit");
	left = group.limit > group.used ? group.limit - group.used : 0;
	m->total = group.limit;
	m->available = min_u64(m->available, left);
	return 0;
}

int memory_read(const struct sysroot *r, struct memory_reading *ret, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b = BUF_INIT(MEMINFO_MAX);
	CLEANUP(buf_deinit) struct buf scratch = BUF_INIT(4096);
	struct memory_reading m;
	uint64_t total, available;
	int error = sysroot_read(r, "proc/meminfo", &b);

	if (error)
		return err_errno(e, error, "could not read \"/proc/meminfo\"");
	if (!scan_key_u64(buf_str(&b), "MemTotal:", &total) || total == 0 || total >> 48)
		return err_set(e, -EBADMSG, "could not read \"/proc/meminfo\": no usable MemTotal");
	if (!scan_key_u64(buf_str(&b), "MemAvailable:", &available) &&
		!estimate_available(r, buf_str(&b), &scratch, &available))
		return err_set(e, -EBADMSG,
			"could not read \"/proc/meminfo\": no MemAvailable, and too little to "
			"compute it");
	m.total = total * 1024;
	m.available = min_u64(available, total) * 1024;
	error = bound_by_cgroup(r, &m, e);
	if (error)
		return error;
	*ret = m;
	return 0;
}
