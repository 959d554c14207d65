/* SPDX-License-Identifier: ISC */
/*
 * Some forty libraries come with libcurl. Their start-up and a handshake touch more than half of
 * what is resident then, and leave it so until the machine is short of memory; where no other
 * program uses these libraries, all of it is this process's own share. A page of a segment that was
 * never writable holds what the file holds, so it can be let go at any time. Relocated data lies in
 * segments that were writable: those are not touched.
 */
#include "agent/shed.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGMENTS_MAX 8

struct segment {
	uintptr_t start, end;
};

/* Text that was relocated differs from the file. */
static bool has_text_relocations(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (; d->d_tag != DT_NULL; d++) {
			if (d->d_tag == DT_TEXTREL ||
				(d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
				return true;
		}
	}
	return false;
}

/* The program headers are read to the end first: they lie in a page that goes. */
static int shed_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uintptr_t mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	struct segment segments[SEGMENTS_MAX];
	size_t count = 0;

	if (has_text_relocations(info))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && count < SEGMENTS_MAX; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && p->p_filesz > 0)
			segments[count++] = (struct segment){
				start & mask, (start + p->p_filesz + ~mask) & mask};
	}
	for (size_t i = 0; i < count; i++)
		(void)madvise((void *)segments[i].start, segments[i].end - segments[i].start,
			MADV_DONTNEED);
	return 0;
}

void shed(void)
{
	malloc_trim(0);
	dl_iterate_phdr(shed_object, NULL);
}
