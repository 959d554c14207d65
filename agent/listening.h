/* SPDX-License-Identifier: ISC */
/* Whether something listens on the node's RDP port: a node whose RDP server died is idle, and must
 * not look inviting. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sysroot.h"

/* 0 and *ret, or a negative errno with words when neither /proc/net/tcp nor tcp6 can be read. */
int listening_on(const struct sysroot *r, uint16_t port, bool *ret, struct err *e);
