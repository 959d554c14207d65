/* SPDX-License-Identifier: ISC */
/*
 * Who logged in since the last acknowledged push.
 *
 * A login is a session that the whole enumeration before did not have. The sessions of the very
 * first enumeration are the state of affairs, not logins; whether there was an earlier one is what
 * the file of the window remembers over a restart of the agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sessions.h"

#define LOGINS_MAX LIMIT_LOGINS /* waiting at most; the oldest go first */
#define LOGINS_KNOWN_MAX (2 * LIMIT_SESSIONS)

struct known_session {
	char *id;
	char *user;
	uint64_t mark;
};

struct login {
	uint64_t serial; /* ascending from 1 */
	char *user;
};

struct logins {
	bool have_baseline;
	struct known_session *known; /* sorted by id */
	size_t known_count, known_cap;
	struct login *waiting; /* ascending by serial */
	size_t waiting_count, waiting_cap;
	uint64_t last_serial;
	uint64_t lost; /* beyond LOGINS_MAX */
};

/* What a list changed, for the file. */
struct logins_change {
	bool known_changed;
	size_t new_waiting; /* the last so many of `waiting` are new */
};

void logins_deinit(struct logins *l);

/* Takes over what L saw. An incomplete list adds sessions and ends none. 0 or -ENOMEM (then L is as
 * before). */
int logins_update(struct logins *l, const struct session_list *seen, struct logins_change *ret);
/* The dispatcher has every login up to SERIAL. True if that took away any. */
bool logins_acknowledge(struct logins *l, uint64_t serial);

/* For reading back from the file, in ascending order of id and serial. 0, -EINVAL, or -ENOMEM. */
int logins_restore_known(struct logins *l, const char *id, const char *user, uint64_t mark);
int logins_restore_waiting(struct logins *l, uint64_t serial, const char *user);
/* Another boot: no session of the former one lives, so every session now is new. */
void logins_forget_known(struct logins *l);
