/* SPDX-License-Identifier: ISC */
/* Octet by octet: alignment and the machine's byte order have no say. */
#include "door/pdu.h"

#include <string.h>

struct pdu pdu_of(const void *data, size_t len)
{
	return (struct pdu){.p = data, .end = (const uint8_t *)data + len};
}

size_t pdu_left(const struct pdu *r)
{
	return (size_t)(r->end - r->p);
}

/* N octets, or NULL. */
static const uint8_t *octets(struct pdu *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->bad || pdu_left(r) < n) {
		r->bad = true;
		r->p = r->end;
		return NULL;
	}
	r->p += n;
	return at;
}

uint8_t pdu_u8(struct pdu *r)
{
	const uint8_t *at = octets(r, 1);

	return at ? at[0] : 0;
}

uint16_t pdu_u16le(struct pdu *r)
{
	const uint8_t *at = octets(r, 2);

	return at ? (uint16_t)(at[0] | at[1] << 8) : 0;
}

uint16_t pdu_u16be(struct pdu *r)
{
	const uint8_t *at = octets(r, 2);

	return at ? (uint16_t)(at[0] << 8 | at[1]) : 0;
}

uint32_t pdu_u32le(struct pdu *r)
{
	uint32_t low = pdu_u16le(r);

	return low | (uint32_t)pdu_u16le(r) << 16;
}

struct pdu pdu_take(struct pdu *r, size_t n)
{
	const uint8_t *at = octets(r, n);

	return at ? pdu_of(at, n) : (struct pdu){.p = r->end, .end = r->end, .bad = true};
}

void pdu_expect(struct pdu *r, const void *bytes, size_t n)
{
	const uint8_t *at = octets(r, n);

	if (at && memcmp(at, bytes, n) != 0) {
		r->bad = true;
		r->p = r->end;
	}
}

size_t pdu_ber_length(struct pdu *r)
{
	uint8_t first = pdu_u8(r);

	if (first < 0x80)
		return first;
	if (first == 0x81)
		return pdu_u8(r);
	if (first == 0x82)
		return pdu_u16be(r);
	r->bad = true;
	r->p = r->end;
	return 0;
}

struct pdu pdu_ber(struct pdu *r, uint8_t tag)
{
	pdu_expect(r, &tag, 1);
	return pdu_take(r, pdu_ber_length(r));
}

size_t pdu_per_length(struct pdu *r)
{
	uint8_t first = pdu_u8(r);

	if (first < 0x80)
		return first;
	if (first < 0xc0)
		return (size_t)(first & 0x3f) << 8 | pdu_u8(r);
	r->bad = true; /* fragments: nothing here is so long */
	r->p = r->end;
	return 0;
}

void pdu_add_u8(struct buf *b, uint8_t v)
{
	buf_addc(b, (char)v);
}

void pdu_add_u16le(struct buf *b, uint16_t v)
{
	pdu_add_u8(b, (uint8_t)v);
	pdu_add_u8(b, (uint8_t)(v >> 8));
}

void pdu_add_u16be(struct buf *b, uint16_t v)
{
	pdu_add_u8(b, (uint8_t)(v >> 8));
	pdu_add_u8(b, (uint8_t)v);
}

void pdu_add_u32le(struct buf *b, uint32_t v)
{
	pdu_add_u16le(b, (uint16_t)v);
	pdu_add_u16le(b, (uint16_t)(v >> 16));
}

void pdu_add_ber_length(struct buf *b, size_t len)
{
	if (len >= 0x100) {
		pdu_add_u8(b, 0x82);
		pdu_add_u16be(b, (uint16_t)len);
	} else {
		if (len >= 0x80)
			pdu_add_u8(b, 0x81);
		pdu_add_u8(b, (uint8_t)len);
	}
}

void pdu_add_per_length(struct buf *b, size_t len)
{
	if (len < 0x80)
		pdu_add_u8(b, (uint8_t)len);
	else
		pdu_add_u16be(b, (uint16_t)(0x8000 | len));
}
