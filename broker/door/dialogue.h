/* SPDX-License-Identifier: ISC */
/*
 * The server's side of RDP's connection sequence, as far as the client's name: from Connect-Initial
 * inside TLS to the Client Info PDU. No descriptor, no clock, no decision: bytes in, bytes out, so
 * every step is tested on recordings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "door/client_info.h"

#define DIALOGUE_PACKET_MAX 8192 /* of any packet up to the Client Info PDU */

/* What is awaited next; when a handshake fails, the journal tells where. */
enum dialogue_step {
	DIALOGUE_CONNECT, /* Connect-Initial */
	DIALOGUE_ATTACH,  /* erect domain, attach user */
	DIALOGUE_JOIN,	  /* channel joins; then Client Info */
	DIALOGUE_KNOWN,	  /* nothing more: the client has said who it is */
};

struct dialogue {
	enum dialogue_step step;
	uint32_t requested; /* protocols of the first packet */
	unsigned channels;  /* static ones */
	bool can_redirect;
	bool erected;
	uint16_t user;	 /* number of its channel */
	uint64_t joined; /* bits: 0 = user, 1 = input-output, then static ones */
};

void dialogue_init(struct dialogue *d, uint32_t requested);
const char *dialogue_step_name(enum dialogue_step step);

/* Reads as many whole packets as LEN bytes hold, *RET_USED bytes; answers are appended to OUT. 0: more must come; 1:
 * RET is filled, the step is DIALOGUE_KNOWN; -EINVAL with words: the client is to be closed. The caller wipes what
 * was used: it may hold a password. */
int dialogue_feed(struct dialogue *d, const uint8_t *data, size_t len, size_t *ret_used,
	struct buf *out, struct client_info *ret, struct err *e);
