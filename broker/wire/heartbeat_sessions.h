/* SPDX-License-Identifier: ISC */
/* The sessions of a heartbeat; called by heartbeat_parse alone. */
#pragma once

#include "wire/heartbeat.h"

/* Reads the array at the cursor, which moves behind it whatever happens, into sessions,
 * session_count and sessions_dropped of H; strings stay where they are. 0, -E2BIG, -ENOMEM. */
int heartbeat_parse_sessions(char **p, struct heartbeat *h);
