/* SPDX-License-Identifier: ISC */
/* Version 1 is a line of text, version 2 begins with twelve bytes that no other protocol begins
 * with. */
#include "door/proxy_header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "door/pdu.h"

#define V1_MAX 107 /* CR LF included */
#define V2_FIXED 16

static const uint8_t v1_start[] = {'P', 'R', 'O', 'X', 'Y', ' '};
static const uint8_t v2_start[] = "\r\n\r\n\0\r\nQUIT\n"; /* without the NUL that follows */
#define V2_START (sizeof(v2_start) - 1)

static bool begins(const uint8_t *data, size_t len, const uint8_t *start, size_t start_len)
{
	return memcmp(data, start, len < start_len ? len : start_len) == 0;
}

static int want_v1(const uint8_t *data, size_t len, struct err *e)
{
	if (len >= 2 && data[len - 2] == '\r' && data[len - 1] == '\n')
		return 0;
	if (len >= V1_MAX || (len > 0 && data[len - 1] == '\n'))
		return err_set(e, -EINVAL, "a PROXY header that does not end in CR LF");
	return (int)len + 1;
}

static int want_v2(const uint8_t *data, size_t len, struct err *e)
{
	size_t whole;

	if (len < V2_FIXED)
		return V2_FIXED;
	whole = V2_FIXED + (size_t)(data[14] << 8 | data[15]);
	if (whole > PROXY_HEADER_MAX)
		return err_set(e, -EINVAL, "a PROXY header of %zu bytes", whole);
	return len < whole ? (int)whole : 0;
}

int proxy_header_want(const uint8_t *data, size_t len, struct err *e)
{
	if (len == 0)
		return 1; /* which version it is */
	if (begins(data, len, v1_start, sizeof(v1_start)))
		return want_v1(data, len, e);
	if (begins(data, len, v2_start, V2_START))
		return want_v2(data, len, e);
	return err_set(e, -EINVAL, "a PROXY header is due from this address, and it sent none");
}

static int set_address(int family, const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	ret->ss_family = (sa_family_t)family;
	return inet_pton(family, text,
		       family == AF_INET ? (void *)&four->sin_addr : (void *)&six->sin6_addr) == 1
		       ? 0
		       : -EINVAL;
}

/* The next word of a line, *AT behind it and its one blank; "" at the end. */
static char *next_word(char **at)
{
	char *word = *at, *end = strchrnul(word, ' ');

	*at = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static bool is_port(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= 5 && strspn(text, "0123456789") == len &&
	       strtoul(text, NULL, 10) <= 65535;
}

static int parse_v1(const uint8_t *data, size_t len, struct sockaddr_storage *ret, struct err *e)
{
	char line[V1_MAX + 1], *at = line;
	const char *family, *source, *destination, *source_port, *destination_port;
	bool four;

	if (len > V1_MAX || memchr(data, '\0', len))
		return err_set(e, -EINVAL, "a malformed PROXY header");
	memcpy(line, data, len - 2); /* without CR LF */
	line[len - 2] = '\0';
	(void)next_word(&at); /* PROXY */
	family = next_word(&at);
	if (strcmp(family, "UNKNOWN") == 0)
		return -ENOENT;
	source = next_word(&at);
	destination = next_word(&at);
	source_port = next_word(&at);
	destination_port = next_word(&at);
	four = strcmp(family, "TCP4") == 0;
	if ((four || strcmp(family, "TCP6") == 0) && *destination && is_port(source_port) &&
		is_port(destination_port) && *at == '\0' &&
		set_address(four ? AF_INET : AF_INET6, source, ret) == 0)
		return 0;
	return err_set(e, -EINVAL, "a malformed PROXY header");
}

static int parse_v2(const uint8_t *data, size_t len, struct sockaddr_storage *ret, struct err *e)
{
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	const uint8_t *addresses = data + V2_FIXED;
	size_t left = len - V2_FIXED;

	if (data[12] >> 4 != 2 || (data[12] & 0xf) > 1)
		return err_set(e, -EINVAL, "a PROXY header of an unknown version or command");
	if ((data[12] & 0xf) == 0)
		return -ENOENT; /* LOCAL */
	memset(ret, 0, sizeof(*ret));
	switch (data[13]) {
	case 0x11:
		if (left < 12)
			break;
		ret->ss_family = AF_INET;
		memcpy(&four->sin_addr, addresses, 4);
		memcpy(&four->sin_port, addresses + 8, 2);
		return 0;
	case 0x21:
		if (left < 36)
			break;
		ret->ss_family = AF_INET6;
		memcpy(&six->sin6_addr, addresses, 16);
		memcpy(&six->sin6_port, addresses + 32, 2);
		return 0;
	default:
		return -ENOENT; /* UNSPEC, Unix sockets, datagrams */
	}
	return err_set(e, -EINVAL, "a PROXY header that is too short for its addresses");
}

int proxy_header_parse(const uint8_t *data, size_t len, struct sockaddr_storage *ret, struct err *e)
{
	int r = proxy_header_want(data, len, e);

	if (r < 0)
		return r;
	if (r > 0)
		return err_set(e, -EINVAL, "a PROXY header that is not whole");
	return data[0] == 'P' ? parse_v1(data, len, ret, e) : parse_v2(data, len, ret, e);
}

void proxy_header_add(struct buf *out, const struct sockaddr *client, const struct sockaddr *server)
{
	const struct sockaddr_in *c4 = (const void *)client, *s4 = (const void *)server;
	const struct sockaddr_in6 *c6 = (const void *)client, *s6 = (const void *)server;

	buf_add(out, v2_start, V2_START);
	if (client->sa_family != server->sa_family ||
		(client->sa_family != AF_INET && client->sa_family != AF_INET6)) {
		buf_add(out, "\x20\x00\x00\x00", 4); /* LOCAL */
		return;
	}
	pdu_add_u8(out, 0x21); /* version 2, PROXY */
	if (client->sa_family == AF_INET) {
		pdu_add_u8(out, 0x11);
		pdu_add_u16be(out, 12);
		buf_add(out, &c4->sin_addr, 4);
		buf_add(out, &s4->sin_addr, 4);
		buf_add(out, &c4->sin_port, 2);
		buf_add(out, &s4->sin_port, 2);
		return;
	}
	pdu_add_u8(out, 0x21);
	pdu_add_u16be(out, 36);
	buf_add(out, &c6->sin6_addr, 16);
	buf_add(out, &s6->sin6_addr, 16);
	buf_add(out, &c6->sin6_port, 2);
	buf_add(out, &s6->sin6_port, 2);
}
