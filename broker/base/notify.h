/* SPDX-License-Identifier: ISC */
/* sd_notify when built with libsystemd, nothing otherwise. */
#pragma once

/* STATE as in sd_notify(3), e.g. "READY=1". */
void notify_state(const char *state);
