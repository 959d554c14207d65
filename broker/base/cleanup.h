/* SPDX-License-Identifier: ISC */
/*
 * Cleanup attributes for locals: `CLEANUP(freep) char *text = NULL;`.
 * CLEANUP_DEFINE makes NAMEp(T *) out of a free function that takes NULL.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(f) __attribute__((cleanup(f)))

#define CLEANUP_DEFINE(type, free_function)                                                        \
	static inline void free_function##p(type *p)                                               \
	{                                                                                          \
		if (*p)                                                                            \
			free_function(*p);                                                         \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Hands the value of a pointer out of a cleanup local: `*ret = STEAL(text);`. */
#define STEAL(p)                                                                                   \
	__extension__({                                                                            \
		__typeof__(p) stolen_ = (p);                                                       \
		(p) = NULL;                                                                        \
		stolen_;                                                                           \
	})
