/* SPDX-License-Identifier: ISC */
/*
 * uid → name, remembered. On the live system by the name service (which may be a directory server
 * and slow: each uid is asked once while its session lives), in a recorded tree by etc/passwd.
 */
#pragma once

#include <sys/types.h>

#include "agent/sysroot.h"

#define USERS_MAX 8192

struct users;

/* NULL when there is no memory. R must outlive it. */
struct users *users_new(const struct sysroot *r);
void users_free(struct users *u);
/* The name, or "uid-N" for one that has none (asked again next time); valid until the next call.
 * NULL when there is no memory. */
const char *users_name(struct users *u, uid_t uid);
