/* SPDX-License-Identifier: ISC */
/*
 * A cursor walks over the bytes; each step takes what it needs or says that more must come. A step
 * judges what it sees before it asks for more, so what is no RDP is refused at once and not after
 * a deadline.
 */
#include "door/x224.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TPKT_SIZE 4
#define FIXED_SIZE X224_REQUEST_MIN /* up to the class octet */
#define CONNECTION_REQUEST 0xe0
#define NEGOTIATION_REQUEST 1
#define NEGOTIATION_SIZE 8
#define CORRELATION_INFO 6
#define CORRELATION_BLOCK_SIZE 36
#define MSTSHASH "Cookie: mstshash="
#define MSTS "Cookie: msts="
#define PLUGIN "tsv://MS Terminal Services Plugin.1."

_Static_assert(X224_TEXT_SIZE == X224_REQUEST_MAX - FIXED_SIZE - 2 + 1, "the longest line fits");

struct cursor {
	const uint8_t *data;
	size_t at, len; /* LEN: of the packet as far as it has come */
	size_t size;	/* of the packet */
	struct err *e;
};

static int refuse(const struct cursor *c, const char *what)
{
	return err_set(c->e, -EINVAL, "no RDP connection request: %s at byte %zu", what, c->at);
}

/* The byte at AT must be WANTED, if it has come. */
static int expect(struct cursor *c, size_t at, uint8_t wanted, const char *what)
{
	if (at >= c->len)
		return -EAGAIN;
	c->at = at;
	return c->data[at] == wanted ? 0 : refuse(c, what);
}

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
	return le16(p) | (uint32_t)le16(p + 2) << 16;
}

/* TPKT's header and X.224's fixed part. */
static int read_header(struct cursor *c, size_t have)
{
	int r = expect(c, 0, 3, "not TPKT version 3");

	if (r == 0)
		r = expect(c, 1, 0, "TPKT's reserved octet is not 0");
	if (r < 0)
		return r;
	if (have < TPKT_SIZE)
		return -EAGAIN;
	c->size = (size_t)(c->data[2] << 8 | c->data[3]);
	c->at = 2;
	if (c->size < X224_REQUEST_MIN || c->size > X224_REQUEST_MAX)
		return refuse(c, "a length that no request has");
	if (c->len > c->size)
		c->len = c->size;
	r = expect(c, 4, (uint8_t)(c->size - 5), "X.224's length is not TPKT's less 5");
	if (r == 0)
		r = expect(c, 5, CONNECTION_REQUEST, "not an X.224 connection request");
	for (size_t i = 6; i < 8 && r == 0; i++)
		r = expect(c, i, 0, "X.224's destination is not 0");
	if (r == 0) /* behind the source reference, which may be anything */
		r = expect(c, 10, 0, "not X.224 class 0");
	c->at = FIXED_SIZE;
	return r;
}

/* A line up to CRLF: its length, or -EAGAIN, -EINVAL. */
static int line_length(struct cursor *c)
{
	size_t start = c->at;

	for (; c->at < c->len; c->at++) {
		uint8_t b = c->data[c->at];

		if (b == '\r') {
			if (c->at + 1 == c->len)
				break;
			if (c->data[c->at + 1] != '\n')
				return refuse(c, "a carriage return without line feed");
			return (int)(c->at - start);
		}
		if (b < ' ' || b == 0x7f)
			return refuse(c, "a control character in the cookie");
	}
	return c->len < c->size ? -EAGAIN : refuse(c, "the cookie has no end");
}

/* The cookie or token, if there is one. */
static int read_line(struct cursor *c, struct x224_request *ret)
{
	size_t start = c->at, prefix = strlen(MSTSHASH), len;
	const char *line = (const char *)c->data + start;
	int n;

	if (c->at == c->size || (c->at < c->len && c->data[c->at] == NEGOTIATION_REQUEST))
		return 0;
	n = line_length(c);
	if (n < 0)
		return n;
	len = (size_t)n;
	ret->kind = X224_ROUTE;
	if (len >= prefix && memcmp(line, MSTSHASH, prefix) == 0) {
		ret->kind = X224_USER;
		line += prefix;
		len -= prefix;
	}
	/* It fits: X224_TEXT_SIZE is the longest packet less the fixed part and CRLF, and a NUL. */
	memcpy(ret->text, line, len);
	ret->text[len] = '\0';
	c->at = start + (size_t)n + 2;
	return 0;
}

/* Type, flags, and the length of a block of SIZE bytes at the cursor, all of which must have come.
 */
static int read_block(struct cursor *c, uint8_t type, size_t size, const char *what)
{
	size_t at = c->at;
	int r;

	if (c->size - at < size)
		return refuse(c, what);
	r = expect(c, at, type, what);
	if (r < 0)
		return r;
	if (c->len < at + 4)
		return -EAGAIN;
	c->at = at + 2;
	if (le16(c->data + at + 2) != size)
		return refuse(c, what);
	c->at = at;
	return c->len < at + size ? -EAGAIN : 0;
}

static int read_correlation(struct cursor *c, struct x224_request *ret)
{
	int r = read_block(c, CORRELATION_INFO, CORRELATION_BLOCK_SIZE, "no correlation block");

	if (r < 0)
		return r;
	ret->has_correlation = true;
	memcpy(ret->correlation, c->data + c->at + 4, sizeof(ret->correlation));
	c->at += CORRELATION_BLOCK_SIZE;
	return 0;
}

static int read_negotiation(struct cursor *c, struct x224_request *ret)
{
	int r;

	if (c->at == c->size)
		return 0;
	r = read_block(c, NEGOTIATION_REQUEST, NEGOTIATION_SIZE, "no negotiation request");
	if (r < 0)
		return r;
	ret->negotiates = true;
	ret->flags = c->data[c->at + 1];
	ret->protocols = le32(c->data + c->at + 4);
	c->at += NEGOTIATION_SIZE;
	if (ret->flags & X224_CORRELATION)
		r = read_correlation(c, ret);
	if (r == 0 && c->at != c->size)
		return refuse(c, "something follows");
	return r;
}

int x224_parse(const uint8_t *data, size_t len, struct x224_request *ret, struct err *e)
{
	struct cursor c = {.data = data, .len = len, .e = e};
	struct x224_request request = {0};
	int r = read_header(&c, len);

	if (r == 0)
		r = read_line(&c, &request);
	if (r == 0)
		r = read_negotiation(&c, &request);
	if (r < 0)
		return r;
	request.size = c.size;
	*ret = request;
	return 0;
}

const char *x224_route_pool(const char *token)
{
	size_t len = strlen(PLUGIN);

	return strncmp(token, PLUGIN, len) == 0 && token[len] ? token + len : NULL;
}

/* Decimal digits at *P up to '.', at most MAX; moves behind the point. */
static bool read_number(const char **p, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	const char *start = *p;

	for (; **p >= '0' && **p <= '9'; (*p)++) {
		v = v * 10 + (uint64_t)(**p - '0');
		if (v > max)
			return false;
	}
	if (*p == start || **p != '.')
		return false;
	(*p)++;
	*ret = v;
	return true;
}

int x224_route_address(const char *token, uint32_t *ret_address, uint16_t *ret_port)
{
	const char *p = token + strlen(MSTS);
	uint64_t address, port;
	uint8_t octets[4];

	if (strncmp(token, MSTS, strlen(MSTS)) != 0 || *p < '0' || *p > '9' || !strchr(p, '.'))
		return -ENOENT; /* a token of our own, or of another broker */
	if (!read_number(&p, UINT32_MAX, &address) || !read_number(&p, UINT16_MAX, &port) ||
		port == 0 || strcmp(p, "0000") != 0)
		return -EINVAL;
	/* The first octet is the lowest; in memory it comes first whatever the machine. */
	for (int i = 0; i < 4; i++)
		octets[i] = (uint8_t)(address >> 8 * i);
	memcpy(ret_address, octets, sizeof(octets));
	*ret_port = (uint16_t)(port >> 8 | (port & 0xff) << 8);
	return 0;
}
