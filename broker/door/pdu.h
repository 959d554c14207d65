/* SPDX-License-Identifier: ISC */
/*
 * Reading and writing the numbers of which RDP's protocol data units are made.
 *
 * A reader walks over bytes it does not own. What goes beyond their end, or is no length, makes it
 * bad: from then on every number is 0 and every piece empty, so a parser checks once, at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct pdu {
	const uint8_t *p, *end;
	bool bad;
};

struct pdu pdu_of(const void *data, size_t len);
size_t pdu_left(const struct pdu *r);
uint8_t pdu_u8(struct pdu *r);
uint16_t pdu_u16le(struct pdu *r);
uint16_t pdu_u16be(struct pdu *r);
uint32_t pdu_u32le(struct pdu *r);
/* The next N bytes as a reader of their own, bad like R if there are not so many. */
struct pdu pdu_take(struct pdu *r, size_t n);
/* Passes over bytes that must be these. */
void pdu_expect(struct pdu *r, const void *bytes, size_t n);
/* A length in BER's definite form (X.690 8.1.3), up to 65535. */
size_t pdu_ber_length(struct pdu *r);
/* The content of a BER element of TAG. */
struct pdu pdu_ber(struct pdu *r, uint8_t tag);
/* A length determinant of aligned PER (X.691 11.9), up to 16383. */
size_t pdu_per_length(struct pdu *r);

void pdu_add_u8(struct buf *b, uint8_t v);
void pdu_add_u16le(struct buf *b, uint16_t v);
void pdu_add_u16be(struct buf *b, uint16_t v);
void pdu_add_u32le(struct buf *b, uint32_t v);
void pdu_add_ber_length(struct buf *b, size_t len);
/* LEN is at most 16383. */
void pdu_add_per_length(struct buf *b, size_t len);
