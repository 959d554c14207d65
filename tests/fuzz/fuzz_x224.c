/* SPDX-License-Identifier: ISC */
/* However a packet is cut, the answer is the same: more, until it is whole or shown to be wrong. */
#include "lib/fuzz.h"

#include <errno.h>
#include <string.h>

#include "door/x224.h"

static int parse(const uint8_t *data, size_t len, struct x224_request *ret, struct err *e)
{
	uint8_t *exact = calloc(1, len ? len : 1);
	int r;

	FUZZ_CHECK(exact);
	if (len)
		memcpy(exact, data, len);
	r = x224_parse(exact, len, ret, e);
	free(exact);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct x224_request whole, cut;
	struct err e = {""};
	uint32_t address;
	uint16_t port;
	int r = parse(data, size, &whole, &e);

	FUZZ_CHECK(r == 0 || r == -EAGAIN || (r == -EINVAL && e.text[0]));
	for (size_t len = 0; len < size && len < X224_REQUEST_MAX + 2; len++) {
		int piece = parse(data, len, &cut, &e);

		FUZZ_CHECK(piece == -EAGAIN || piece == r);
		FUZZ_CHECK(piece != 0 || memcmp(&cut, &whole, sizeof(cut)) == 0);
	}
	if (r < 0)
		return 0;
	FUZZ_CHECK(whole.size >= X224_REQUEST_MIN && whole.size <= X224_REQUEST_MAX);
	FUZZ_CHECK(whole.size <= size && strlen(whole.text) < sizeof(whole.text));
	for (const char *p = whole.text; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
	if (whole.kind == X224_ROUTE) {
		x224_route_pool(whole.text);
		r = x224_route_address(whole.text, &address, &port);
		FUZZ_CHECK(r == -ENOENT || r == -EINVAL || (r == 0 && port > 0));
	}
	return 0;
}
