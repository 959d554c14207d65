/* SPDX-License-Identifier: ISC */
/*
 * From what a client said to what is asked of the dispatcher: pool, name, endpoint. Pure functions
 * of the configuration and the client's words.
 */
#pragma once

#include "base/err.h"
#include "door/x224.h"
#include "service/config_door.h"
#include "wire/door_message.h"

/* Whether the first packet carries a route token of ours: it says more than the client could. */
bool route_has_ticket(const struct x224_request *r);
/* What the first packet alone tells: a ticket, an endpoint, a hint, or nobody. */
void route_first_packet(
	const struct config_door *d, const struct x224_request *r, struct door_question *ret);
/* What the Client Info PDU tells, behind the first packet R: a user, or nobody. *RET_RENAMED: the
 * name began with a pool ("POOL#user"), and the node must be told the rest. -EINVAL: it is no name,
 * E says why. */
int route_user(const struct config_door *d, const struct x224_request *r, const char *user,
	const char *domain, struct door_question *ret, bool *ret_renamed, struct err *e);
