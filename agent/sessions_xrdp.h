/* SPDX-License-Identifier: ISC */
/*
 * Sessions of xrdp by the sockets that its X servers listen on: works without logind and tells what
 * nothing else does, whether somebody is connected.
 */
#pragma once

#include "agent/sessions.h"

/* Appends to L. 0 (also where there is no xrdp), or a negative errno with words. */
int sessions_xrdp(
	const struct sysroot *r, struct users *users, struct session_list *l, struct err *e);
