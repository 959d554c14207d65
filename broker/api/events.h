/* SPDX-License-Identifier: ISC */
/* Inside api/: those who wait for events (long polls). */
#pragma once

#include "api/server.h"

struct event_polls;

/* NULL: no memory. */
struct event_polls *event_polls_new(struct api *a);
/* Answers all that wait. */
void event_polls_end(struct event_polls *p);
void event_polls_free(struct event_polls *p);
