/* SPDX-License-Identifier: ISC */
/* Inside api/: who asks. */
#pragma once

#include "api/request.h"

#define ROLE_BIT(role) (1u << (role))
#define ROLES_ANY                                                                \
	(ROLE_BIT(ROLE_AGENT) | ROLE_BIT(ROLE_CLIENT) | ROLE_BIT(ROLE_AUDITOR) | \
		ROLE_BIT(ROLE_ADMIN))
#define ROLES_READ (ROLE_BIT(ROLE_AUDITOR) | ROLE_BIT(ROLE_ADMIN))

/* Fills r->caller and checks its role against ROLES. False: R was answered with 401 or 403. Looks
 * at nothing but headers, so a body costs nothing before. */
bool auth_check(struct request *r, unsigned roles, const char *call);
/* "uid 1000 (alice)" of the process at the other end of the Unix socket FD. */
void auth_peer_name(int fd, char *ret, size_t size);
