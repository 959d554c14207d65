/* SPDX-License-Identifier: ISC */
/* Inside api/: whether a new connection may stay. */
#pragma once

#include "api/connection.h"

/* Notes who C comes from, counts it for its address, and says why it is one too many; NULL: it may
 * stay. */
const struct refusal *admission_check(struct conn *c, const struct sockaddr *peer);
