/* SPDX-License-Identifier: ISC */
/*
 * Loaded into a program before its other libraries: the wall clock of that program is off by the
 * seconds that stand in the file SHIFT_CLOCK_FILE. All other clocks stay as they are, as they do
 * when someone sets the time of a machine. Written anew, the file makes the clock jump.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
	const char *path = getenv("SHIFT_CLOCK_FILE");
	FILE *f = path ? fopen(path, "re") : NULL;
	long seconds = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%ld", &seconds) != 1)
		seconds = 0;
	fclose(f);
	return seconds;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, id, ret);

	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += shift();
	return (int)r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;
	int r = clock_gettime(CLOCK_REALTIME, &now);

	(void)zone;
	ret->tv_sec = now.tv_sec;
	ret->tv_usec = now.tv_nsec / 1000;
	return r;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
