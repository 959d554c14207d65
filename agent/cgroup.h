/* SPDX-License-Identifier: ISC */
/*
 * The bounds of the container that the node lives in (cgroup v2).
 *
 * Read at the root of the mounted hierarchy only. On a machine of its own that is the real root,
 * which has no cpu.max and no memory.max: nothing bounds it. In a container it is the container's
 * own group. The group of the agent's service lies below and says nothing about the node.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sysroot.h"

struct cgroup_cpu {
	bool bounded;	    /* a quota, or fewer CPUs than the machine has */
	uint64_t millicpus; /* what the node may use: 500 = half a CPU */
	bool has_usage;
	uint64_t usage_usec; /* CPU time used since the group began */
};

struct cgroup_memory {
	bool bounded;
	uint64_t limit; /* bytes: the smaller of memory.max and memory.high */
	bool has_used;
	uint64_t used; /* bytes that cannot be given back: current − inactive_file */
};

/* MACHINE_CPUS: what /proc/stat counts. Never fails: what cannot be read is left out. */
void cgroup_read_cpu(const struct sysroot *r, uint32_t machine_cpus, struct cgroup_cpu *ret);
void cgroup_read_memory(const struct sysroot *r, struct cgroup_memory *ret);
