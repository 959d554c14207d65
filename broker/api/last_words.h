/* SPDX-License-Identifier: ISC */
/* Inside api/: answers to what is no request, each the last of its connection. */
#pragma once

#include "api/connection.h"

/* Answers with WHY, reads on for a while so that the peer is not cut off before it has read that,
 * and closes. */
void last_words(struct conn *c, const struct refusal *why);
/* One attempt to send, before the caller closes. */
void last_words_now(struct conn *c, const struct refusal *why);
