/* SPDX-License-Identifier: ISC */
/*
 * The Client Info PDU ([MS-RDPBCGR] 2.2.1.11): who the client says it is. Its password is passed
 * over and copied nowhere; the caller wipes the bytes it came in.
 */
#pragma once

#include "base/err.h"
#include "door/pdu.h"
#include "wire/limits.h"

struct client_info {
	char domain[LIMIT_USER_SIZE]; /* UTF-8; "" none */
	char user[LIMIT_USER_SIZE];   /* UTF-8, as it was typed, unchecked; "" none was given */
};

/* DATA of an MCS Send Data request: security header and info packet. -EINVAL, and RET is untouched; E names the
 * field, never a value. */
int client_info_parse(struct pdu data, struct client_info *ret, struct err *e);
