/* SPDX-License-Identifier: ISC */
/* Sessions as systemd-logind records them in /run/systemd/sessions, read without logind's help. */
#pragma once

#include "agent/sessions.h"

/* Appends to L. 0 (also where there is no logind), or a negative errno with words. */
int sessions_logind(const struct sysroot *r, const struct sessions_options *o,
	struct session_list *l, struct err *e);
