/* SPDX-License-Identifier: ISC */
/* Sessions that are recorded in /run/utmp. */
#pragma once

#include "agent/sessions.h"

/* Appends to L. 0 (also where there is no utmp), or a negative errno with words. */
int sessions_utmp(const struct sysroot *r, const struct sessions_options *o, struct session_list *l,
	struct err *e);
