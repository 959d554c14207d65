/* SPDX-License-Identifier: ISC */
/* Inside api/: answers that evhttp has no part in, each the last of its connection. */
#pragma once

#include "api/connection.h"

/* Takes C away from evhttp, answers with WHY, reads on for a while so that the peer is not cut off
 * before it has read that, and closes. */
void last_words(struct conn *c, const struct refusal *why);
/* One attempt to send, before the caller closes. */
void last_words_now(struct conn *c, const struct refusal *why);
