/* SPDX-License-Identifier: ISC */
/*
 * One key for one person (DESIGN "User keys").
 *
 * `DOMAIN\user`, `user@realm` and `user` fold to one key: surrounding space trimmed, well-formed
 * UTF-8, at most LIMIT_USER_CHARS code points, no control or bidirectional format characters; NFD
 * then NFC with case folding by utf8proc, the same in every locale; the domain mapped by the alias
 * table; no domain = default_domain. `.\user` and `NODE\user` (NODE = the node that reports it, or
 * any node name when a client asks) are local: key "\node\user", never shared between nodes.
 * Form of a key: "user" if the domain is empty, else "domain\user", all folded.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "wire/limits.h"

struct user_names; /* default domain and alias table, folded */

/* NULL when there is no memory. */
struct user_names *user_names_new(void);
void user_names_free(struct user_names *n);
/* -EINVAL for a name that cannot be a domain. "" unsets. */
int user_names_set_default(struct user_names *n, const char *domain, struct err *e);
/* Makes ALIAS another spelling of DOMAIN: "CORP" for "corp.example.com". -EEXIST if ALIAS already
 * stands for another domain; -EINVAL. */
int user_names_add_alias(struct user_names *n, const char *alias, const char *domain, struct err *e);

/* Makes the key of INPUT (LEN bytes, need not end in NUL). LOCAL_NODE: the node that reported the
 * name, or NULL when a client gave it: then `.\user` is -EINVAL. NAMES may be NULL: no aliases, no default.
 * 0, or -EINVAL with the reason in E (empty, too long, control character, invalid UTF-8). */
int user_key_make(const struct user_names *names, const char *input, size_t len, const char *local_node,
	char ret[LIMIT_USER_KEY_SIZE], struct err *e);
/* The input trimmed and checked the same way, spelling kept: for display. */
int user_name_display(const char *input, size_t len, char ret[LIMIT_USER_SIZE], struct err *e);
/* The check alone: 0 or -EINVAL. */
int user_name_check(const char *input, size_t len, struct err *e);
