/* SPDX-License-Identifier: ISC */
/*
 * A token is compared by its hash, so neither time nor answer tells how much of it was right, and
 * the answer is the same for an unknown, a revoked and an expired one; the journal has the reason.
 */
#include "api/auth.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/connection.h"
#include "api/problem.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define BEARER "Bearer "

/* The local file alone: a directory service could block the loop. */
static void add_user_name(uid_t uid, char *ret, size_t size)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	if (!f)
		return;
	while ((pw = fgetpwent(f)))
		if (pw->pw_uid == uid) {
			size_t len = strlen(ret);

			snprintf(ret + len, size - len, " (%.40s)", pw->pw_name);
			break;
		}
	fclose(f);
}

void auth_peer_name(int fd, char *ret, size_t size)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid == (uid_t)-1) {
		snprintf(ret, size, "unknown uid");
		return;
	}
	snprintf(ret, size, "uid %lu", (unsigned long)peer.uid);
	add_user_name(peer.uid, ret, size);
}

static void deny(struct request *r, unsigned status, const char *code, const char *detail,
	const char *call, const char *reason)
{
	service_denied(r->api->service, &r->caller, call, reason);
	if (status == 401)
		request_add_header(r, "WWW-Authenticate", "Bearer realm=\"termbroker\"");
	request_fail(r, status, code, "%s", detail);
}

static bool check_bearer(struct request *r, const char *call)
{
	const char *text = r->authorization;
	const struct token *token;
	const char *why = "unknown token";

	if (!text || strncasecmp(text, BEARER, sizeof(BEARER) - 1) != 0) {
		deny(r, 401, "token_missing",
			"this call needs a token: Authorization: Bearer TOKEN", call, "no token");
		return false;
	}
	text += sizeof(BEARER) - 1;
	text += strspn(text, " ");
	if (service_authenticate(
		    r->api->service, text, strlen(text), clock_wall_us(), &token, &why) < 0) {
		deny(r, 401, "token_invalid",
			"the token is not valid (unknown, revoked or expired)", call, why);
		return false;
	}
	r->caller.token = &token->spec;
	r->caller.role = token->spec.role;
	text_copy(r->caller.actor, sizeof(r->caller.actor), token->spec.name);
	return true;
}

bool auth_check(struct request *r, unsigned roles, const char *call)
{
	struct conn *c = r->conn;
	char detail[160];

	r->caller.token = NULL;
	r->caller.role = ROLE_CLIENT;
	text_copy(r->caller.address, sizeof(r->caller.address), c->address);
	if (c->listener->kind == LISTENER_SOCKET) {
		r->caller.role = ROLE_ADMIN;
		text_copy(r->caller.actor, sizeof(r->caller.actor), c->peer);
	} else {
		text_copy(r->caller.actor, sizeof(r->caller.actor), "unknown");
		if (!check_bearer(r, call))
			return false;
	}
	if (roles & ROLE_BIT(r->caller.role))
		return true;
	snprintf(detail, sizeof(detail), "a token of role %s may not do this",
		role_name(r->caller.role));
	deny(r, 403, "role_denied", detail, call, "wrong role");
	return false;
}
