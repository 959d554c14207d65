/* SPDX-License-Identifier: ISC */
/*
 * POST /api/v1/connections and /explain: {pool, user, tags?, client?, node?} and the answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/limits.h"

struct connection_request {
	char pool[LIMIT_NAME_SIZE];
	char user[LIMIT_USER_SIZE];     /* checked and trimmed, spelling kept */
	bool has_tags;
	char tags[LIMIT_TAG_TEXT_SIZE]; /* not yet parsed */
	char client[LIMIT_CLIENT_SIZE]; /* "" unknown */
	char node[LIMIT_NAME_SIZE];     /* "" = any; administrators only */
};
/* 0, or -EINVAL naming the member. Unknown members are ignored. */
int connection_request_parse(const char *data, size_t len, struct connection_request *ret,
	struct err *e);
void connection_request_format(const struct connection_request *r, struct buf *out);

/* What a client is told. Strings are borrowed and must live through the formatting. */
struct connection_answer {
	const char *node, *address, *fqdn; /* fqdn "" or NULL = left out */
	uint16_t port;
	const char *reason; /* session, reservation, least_loaded, round_robin, administrator */
	bool has_load_index;
	uint32_t load_index;
	const char *const *tags;
	size_t tag_count;
	const char *session_id; /* NULL = left out (also when the asker may not see it) */
	bool session_active;
};
void connection_answer_format(const struct connection_answer *a, struct buf *out);
