/* SPDX-License-Identifier: ISC */
/*
 * The sessions of the node, from logind, xrdp's sockets and utmp, merged.
 *
 * A session is a desktop of a user. Text logins (ssh, consoles) count only when asked for. A source
 * that does not exist has no sessions; one that exists and cannot be read whole makes the list
 * incomplete, and an incomplete list never says that a session has ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/sysroot.h"
#include "agent/users.h"
#include "wire/limits.h"

#define SESSION_NO_DISPLAY (-1)

struct session {
	char id[LIMIT_SESSION_ID_SIZE]; /* "c1" (logind), "xrdp-10-…", "utmp-…"; unique in a list */
	char *user;			/* owned; checked and trimmed, spelling kept */
	char *client;			/* owned; NULL unknown */
	int64_t since_ms;		/* Unix time; 0 unknown */
	uint64_t mark; /* constant in a session's life, differs when an id is used again */
	bool active;
	/* What merging goes by: */
	uid_t uid; /* (uid_t)-1 unknown */
	int display;
	pid_t pid; /* leader, 0 unknown */
	bool from_xrdp;
	bool matched;
};

struct session_list {
	struct session *items; /* owned */
	size_t count, cap;
	bool complete;
	size_t dropped; /* entries left out: bad user name, more than LIMIT_SESSIONS */
};

struct sessions_options {
	bool text_sessions; /* ssh and console logins too */
};

/* Fills RET, ordered by id (initialised here; session_list_deinit also after an error). 0, -ENOMEM, or the error
 * of the source that could not be read, with words; then ret->complete is false and the rest is
 * there. */
int sessions_collect(const struct sysroot *r, struct users *users, const struct sessions_options *o,
	struct session_list *ret, struct err *e);
void session_list_deinit(struct session_list *l);

/* For the sources. Adds a copy of S with USER (LEN bytes, checked here) and CLIENT (may be NULL).
 * An entry with a bad name, or one too many, is counted in `dropped`: 0 then too. -ENOMEM. */
int session_list_add(struct session_list *l, const struct session *s, const char *user, size_t len,
	const char *client);
/* The first N bytes of CLIENT into a new string if they make sense in a message, else NULL. */
char *session_client_dup(const char *client, size_t n);
