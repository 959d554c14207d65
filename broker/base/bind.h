/* SPDX-License-Identifier: ISC */
/* Inside api/: listening sockets, with errors that name what could not be had. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* A listening, non-blocking descriptor, or a negative errno. *RET_PORT is the port it got. */
int bind_tcp(const char *address, uint16_t port, uint16_t *ret_port, struct err *e);
/* The same on a Unix socket of mode 0660 and GROUP ("" or NULL = the daemon's own). A socket that
 * nobody listens on any more is replaced. */
int bind_unix(const char *path, const char *group, struct err *e);
