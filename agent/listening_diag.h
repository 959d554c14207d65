/* SPDX-License-Identifier: ISC */
/* The kernel asked directly which sockets listen: microseconds, where reading /proc/net/tcp makes
 * it walk its whole table of connections, which takes milliseconds on a large machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 0 and *ret, or a negative errno where the kernel has no such interface or it is shut off. */
int listening_diag(uint16_t port, bool *ret);
