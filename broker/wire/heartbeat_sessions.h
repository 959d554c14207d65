/* SPDX-License-Identifier: ISC */
/* The list of sessions of a heartbeat; called by heartbeat_parse alone. */
#pragma once

#include "wire/heartbeat.h"

/* Fills sessions, session_count and sessions_dropped of H from "sessions" of O. No list at all cannot be
 * complete: sessions_complete is then cleared. 0, -EINVAL, -E2BIG or -ENOMEM. */
int heartbeat_parse_sessions(struct json_object *o, struct heartbeat *h, struct err *e);
