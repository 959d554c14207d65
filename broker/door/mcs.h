/* SPDX-License-Identifier: ISC */
/*
 * T.125 (MCS) and T.124 (GCC) as far as RDP's connection sequence goes ([MS-RDPBCGR] 2.2.1.3 to 2.2.1.9): what a
 * client says before it says who it is, and what it must be told.
 *
 * Parsers take the data of one X.224 Data unit (tpkt_data); formatters append whole packets, TPKT
 * header included. Numbers of channels: 1003 is input and output, static channels follow, the user
 * comes behind them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "door/pdu.h"

#define MCS_IO_CHANNEL 1003
#define MCS_CHANNELS_MAX 31 /* static channels of a client */

/* How many bytes the packet at the beginning of LEN bytes has, its header included: 0 and *RET_SIZE; -EAGAIN:
 * fewer than 4 bytes have come; -EINVAL: no TPKT, or longer than MAX. */
int tpkt_size(const uint8_t *data, size_t len, size_t max, size_t *ret_size, struct err *e);
/* What an X.224 Data unit in a whole packet carries. -EINVAL. */
int tpkt_data(const uint8_t *packet, size_t size, struct pdu *ret, struct err *e);

struct mcs_client {
	unsigned channels;   /* static channels asked for */
	bool can_redirect;   /* its cluster block says that it follows a redirection */
	uint32_t selected;   /* the protocol that it was told to use, as it repeats it */
};

/* Connect-Initial. -EINVAL. */
int mcs_parse_connect(struct pdu data, struct mcs_client *ret, struct err *e);
/* Connect-Response: accepted. REQUESTED: the protocols of the client's first packet. */
void mcs_add_connect_response(struct buf *out, unsigned channels, uint32_t requested);

enum mcs_request { MCS_ERECT, MCS_ATTACH, MCS_JOIN, MCS_DATA, MCS_DISCONNECT };

struct mcs_domain_request {
	enum mcs_request kind;
	uint16_t user;	  /* of JOIN and DATA: number of the user channel */
	uint16_t channel; /* of JOIN and DATA */
	struct pdu data;  /* of DATA */
};

/* Anything after Connect-Initial. -EINVAL. */
int mcs_parse_request(struct pdu data, struct mcs_domain_request *ret, struct err *e);
void mcs_add_attach_confirm(struct buf *out, uint16_t user);
void mcs_add_join_confirm(struct buf *out, uint16_t user, uint16_t channel);
/* A Send Data Indication of the server on the input-output channel with LEN bytes of DATA. */
void mcs_add_data(struct buf *out, const void *data, size_t len);
