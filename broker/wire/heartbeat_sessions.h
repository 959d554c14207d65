/* SPDX-License-Identifier: ISC */
/* The sessions of a heartbeat; called by heartbeat_parse alone. */
#pragma once

#include "wire/heartbeat.h"

/* Reads the array in LEN bytes of scanned JSON into sessions, session_count and sessions_dropped of
 * H. *RET_STRINGS holds what the sessions point to (caller: free), also after a failure. 0, -E2BIG,
 * -ENOMEM. */
int heartbeat_parse_sessions(
	const char *json, size_t len, struct heartbeat *h, char **ret_strings, struct err *e);
