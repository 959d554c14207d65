/* SPDX-License-Identifier: ISC */
/* Only the two strings that a decision needs are decoded; the rest is measured and left alone. */
#include "door/client_info.h"

#include <errno.h>
#include <string.h>

#include "base/utf16.h"

#define SEC_INFO_PKT 0x0040
#define INFO_UNICODE 0x0010

enum { DOMAIN, USER, PASSWORD, SHELL, FOLDER, STRINGS };

/* An old client's string. What is beyond ASCII depends on its code page: better no answer than one
 * for somebody else. */
static int decode_ansi(const struct pdu *text, char *ret, size_t size)
{
	size_t len = pdu_left(text);

	if (len >= size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < len; i++)
		if (text->p[i] == 0 || text->p[i] >= 0x80)
			return -EINVAL;
	memcpy(ret, text->p, len);
	ret[len] = '\0';
	return 0;
}

static int decode(const struct pdu *text, bool unicode, const char *what, char *ret, size_t size,
	struct err *e)
{
	int r = unicode ? utf16_to_utf8(text->p, pdu_left(text), ret, size)
			: decode_ansi(text, ret, size);

	if (r == -ENAMETOOLONG)
		return err_set(e, -EINVAL, "the client's %s is too long", what);
	if (r < 0)
		return err_set(e, -EINVAL, "the client's %s is not %s", what,
			unicode ? "UTF-16" : "ASCII, and the client is too old for Unicode");
	return 0;
}

int client_info_parse(struct pdu data, struct client_info *ret, struct err *e)
{
	struct pdu strings[STRINGS] = {{0}};
	struct client_info info;
	uint16_t lengths[STRINGS];
	uint16_t security = pdu_u16le(&data);
	uint32_t flags;
	bool unicode;
	int r;

	pdu_u16le(&data); /* flagsHi */
	if (!data.bad && !(security & SEC_INFO_PKT))
		return err_set(e, -EINVAL, "no Client Info PDU");
	pdu_u32le(&data); /* code page, or language */
	flags = pdu_u32le(&data);
	unicode = flags & INFO_UNICODE;
	for (int i = 0; i < STRINGS; i++)
		lengths[i] = pdu_u16le(&data);
	/* Lengths do not count the terminators. */
	for (int i = 0; i < STRINGS; i++) {
		strings[i] = pdu_take(&data, lengths[i]);
		pdu_take(&data, unicode ? 2 : 1);
	}
	if (data.bad)
		return err_set(e, -EINVAL, "a Client Info PDU that is cut short");
	r = decode(&strings[DOMAIN], unicode, "domain", info.domain, sizeof(info.domain), e);
	if (r == 0)
		r = decode(&strings[USER], unicode, "user name", info.user, sizeof(info.user), e);
	if (r == 0)
		*ret = info;
	return r;
}
