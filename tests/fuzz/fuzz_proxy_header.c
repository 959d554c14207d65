/* SPDX-License-Identifier: ISC */
/* However a header is cut, what is wanted grows with what has come, and nothing behind it is read.
 */
#include "lib/fuzz.h"

#include <errno.h>
#include <string.h>

#include "door/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_storage from;
	struct err e = {""};
	size_t have = 0;

	for (;;) {
		uint8_t *exact = malloc(have ? have : 1);
		int want, r;

		FUZZ_CHECK(exact);
		memcpy(exact, data, have);
		want = proxy_header_want(exact, have, &e);
		FUZZ_CHECK(want <= PROXY_HEADER_MAX);
		r = want == 0 ? proxy_header_parse(exact, have, &from, &e) : 0;
		free(exact);
		if (want < 0)
			FUZZ_CHECK(want == -EINVAL && e.text[0]);
		if (want == 0)
			FUZZ_CHECK((r == 0 && (from.ss_family == AF_INET ||
						      from.ss_family == AF_INET6)) ||
				   r == -ENOENT || (r == -EINVAL && e.text[0]));
		if (want <= 0 || (size_t)want > size)
			return 0;
		FUZZ_CHECK((size_t)want > have);
		have = (size_t)want;
	}
}
