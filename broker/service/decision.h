/* SPDX-License-Identifier: ISC */
/* From a request to the input of choose(): what connecting and explaining have in common. */
#pragma once

#include "service/state.h"

#define DECISION_PROBES_MAX 8

struct decision {
	char key[LIMIT_USER_KEY_SIZE];
	struct tag_request tags, forced;
	struct choose_probe probes[DECISION_PROBES_MAX];
	struct choose_input input;
	struct choice choice;
};

enum decision_step { DECISION_READY, DECISION_WAIT, DECISION_ERROR };

/* READY: d->choice is made. WAIT: a probe is under way, ask again when it ended. ERROR: told in
 * ERROR; with an unknown pool d->choice says so, too. */
enum decision_step decision_make(struct service *s, const struct caller *caller,
	const struct connection_request *request, struct decision *d, struct service_error *error);
/* The refusal in D as an error for the asker: what and what to do next. */
void decision_refusal(const struct decision *d, const struct connection_request *request,
	struct service_error *ret);
