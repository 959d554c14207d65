/* SPDX-License-Identifier: ISC */
/* Inside journal/: event_render with a choice of how values are escaped. */
#pragma once

#include "journal/escape.h"
#include "journal/event.h"

void render_event(const struct event *ev, enum event_language language, enum escape_style style,
	struct buf *out);
