/* SPDX-License-Identifier: ISC */
/*
 * A user's session on a node, as the node's agent reports it. One allocation each, strings behind the
 * struct: at most 160 bytes with its share of the indexes for a 17-character name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;

struct session {
	struct session *user_next; /* other sessions of the same user key */
	struct node *node;
	int64_t first_seen_ms; /* wall clock of this dispatcher (or of the database row): the order */
	int64_t since_ms;      /* as reported, clamped to first sight; 0 unknown */
	uint32_t key_hash;
	uint16_t key_len, display_len; /* display_len 0: same as the key */
	uint16_t client_len;
	uint8_t id_len;        /* strings: id, user key, display name, client; each with a NUL */
	bool active;
	char text[];
};

const char *session_id(const struct session *s);
const char *session_key(const struct session *s);
const char *session_display(const struct session *s);
const char *session_client(const struct session *s);
