/* SPDX-License-Identifier: ISC */
/*
 * Two readings make a share; one alone makes none. What is doubtful is left out, never 0: an idle
 * node is the one that gets the next user.
 */
#include "agent/collect_cpu.h"

#include <errno.h>
#include <string.h>

#include "agent/cgroup.h"
#include "agent/scan.h"
#include "base/cleanup.h"

#define STAT_MAX (4 * 1024 * 1024) /* the intr line of a big machine is long */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

/* The "cpu" line of all CPUs. Kernels before 2.6.11 have fewer columns: four are needed. */
static int parse_total(const char *text, struct cpu_reading *ret)
{
	uint64_t v[FIELDS] = {0}, total = 0;
	const char *p = text;
	int n = 0;

	if (strncmp(p, "cpu ", 4) != 0)
		return -EBADMSG;
	p += 4;
	while (n < FIELDS && scan_u64(&p, &v[n]))
		n++;
	if (n <= IDLE)
		return -EBADMSG;
	for (int i = 0; i < FIELDS; i++)
		if (__builtin_add_overflow(total, v[i], &total))
			return -EBADMSG;
	ret->total = total;
	ret->busy = total - v[IDLE] - v[IOWAIT];
	return 0;
}

static uint32_t count_cpus(const char *text)
{
	uint32_t n = 0;

	for (const char *p = text; p && strncmp(p, "cpu", 3) == 0; p = scan_next_line(p))
		if (p[3] >= '0' && p[3] <= '9')
			n++;
	return n > 0 ? n : 1;
}

/* Seconds with a fraction, as proc/uptime has them. */
static bool recorded_uptime(const struct sysroot *r, struct buf *b, int64_t *ret_usec)
{
	uint64_t seconds, hundredths = 0;
	const char *p;

	if (!r->recorded || sysroot_read(r, "proc/uptime", b) != 0)
		return false;
	p = buf_str(b);
	if (!scan_u64(&p, &seconds) || seconds > INT64_MAX / 2000000)
		return false;
	if (*p == '.') {
		p++;
		if (!scan_u64(&p, &hundredths) || hundredths > 99)
			return false;
	}
	*ret_usec = (int64_t)(seconds * 1000000 + hundredths * 10000);
	return true;
}

int cpu_read(const struct sysroot *r, int64_t now_usec, struct cpu_reading *ret, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b = BUF_INIT(STAT_MAX);
	struct cpu_reading c = {.valid = true, .at_usec = now_usec};
	struct cgroup_cpu group;
	int error;

	*ret = (struct cpu_reading){0};
	error = sysroot_read(r, "proc/stat", &b);
	if (error)
		return err_errno(e, error, "could not read \"/proc/stat\"");
	error = parse_total(buf_str(&b), &c);
	if (error)
		return err_set(e, error, "could not read \"/proc/stat\": no line of all CPUs");
	c.count = count_cpus(buf_str(&b));
	recorded_uptime(r, &b, &c.at_usec);

	cgroup_read_cpu(r, c.count, &group);
	if (group.bounded) {
		if (!group.has_usage)
			return err_set(e, -ENODATA,
				"could not read \"/sys/fs/cgroup/cpu.stat\", although the "
				"container has a "
				"CPU limit");
		c.bounded = true;
		c.usage_usec = group.usage_usec;
		c.millicpus = group.millicpus;
		c.count = (uint32_t)((group.millicpus + 999) / 1000);
	}
	*ret = c;
	return 0;
}

static uint32_t share_of(uint64_t part, uint64_t whole)
{
	if (part >= whole)
		return 10000; /* a quota may be overrun a little */
	for (; whole >> 48; whole >>= 1)
		part >>= 1;
	return (uint32_t)((part * 20000 + whole) / (whole * 2));
}

void cpu_share(
	const struct cpu_reading *before, const struct cpu_reading *now, struct cpu_share *ret)
{
	uint64_t capacity, elapsed;

	*ret = (struct cpu_share){.count = now->valid ? now->count : 0};
	if (!before->valid || !now->valid || before->bounded != now->bounded)
		return;
	if (now->bounded) {
		if (now->usage_usec < before->usage_usec || now->at_usec <= before->at_usec ||
			now->millicpus != before->millicpus)
			return;
		elapsed = (uint64_t)(now->at_usec - before->at_usec);
		if (__builtin_mul_overflow(elapsed, now->millicpus, &capacity) || capacity < 1000)
			return;
		ret->busy = share_of(now->usage_usec - before->usage_usec, capacity / 1000);
	} else {
		/* Idle and iowait together: the kernel lets iowait alone fall a little. */
		if (now->total <= before->total || now->busy < before->busy ||
			now->total - now->busy < before->total - before->busy)
			return;
		ret->busy = share_of(now->busy - before->busy, now->total - before->total);
	}
	ret->has_busy = true;
}
