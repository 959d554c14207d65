/* SPDX-License-Identifier: ISC */
/* A heartbeat out of what was collected, small enough for a dispatcher to take. */
#pragma once

#include <stdint.h>

#include "agent/sessions.h"
#include "agent/window.h"
#include "base/buf.h"

struct report {
	const char *node, *boot_id;
	uint64_t now_boot_ms; /* ages of samples */
	uint64_t seq;
	bool accepting;
	const struct session_list *sessions;
	const struct window *window;
};

/* Appends the JSON text to OUT, whose max bounds it: logins that do not fit wait for the next one;
 * if sessions do not fit the list is cut and marked incomplete. *ret_serial: the last login that is
 * in it, 0 none. 0, -ENOMEM, -EOVERFLOW (OUT is too small for anything). */
int report_format(const struct report *r, struct buf *out, uint64_t *ret_serial);
