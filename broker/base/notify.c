/* SPDX-License-Identifier: ISC */
/* The one place that knows whether systemd was there at build time. */
#include "base/notify.h"

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>

void notify_state(const char *state)
{
	sd_notify(0, state);
}
#else
void notify_state(const char *state)
{
	(void)state;
}
#endif
