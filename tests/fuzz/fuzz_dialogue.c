/* SPDX-License-Identifier: ISC */
/* Whatever a client says inside TLS is refused or answered, the same however it is cut. */
#include "lib/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "door/dialogue.h"

/* Says all in pieces of PIECE bytes; the result of the last. */
static int say(const uint8_t *data, size_t size, size_t piece, struct dialogue *d, struct buf *out,
	struct client_info *info)
{
	struct err e = {""};
	size_t at = 0, have = 0, used;
	int r = 0;

	dialogue_init(d, 1);
	while (r == 0 && have < size) {
		uint8_t *exact;

		have = have + piece < size ? have + piece : size;
		exact = malloc(have - at + 1);
		FUZZ_CHECK(exact);
		memcpy(exact + 1, data + at, have - at);
		r = dialogue_feed(d, exact + 1, have - at, &used, out, info, &e);
		free(exact);
		FUZZ_CHECK(used <= have - at && (r >= 0 || e.text[0]));
		at += used;
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
	struct client_info info, again;
	struct dialogue d, e;
	int r = say(data, size, size ? size : 1, &d, &whole, &info);
	int s = say(data, size, size > 512 ? 97 : 3, &e, &cut, &again);

	FUZZ_CHECK(r == s && (r == 0 || r == 1 || r == -EINVAL));
	FUZZ_CHECK(d.step == e.step && (r == 1) == (d.step == DIALOGUE_KNOWN));
	FUZZ_CHECK(whole.len == cut.len && whole.error == 0);
	FUZZ_CHECK(whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0);
	if (r == 1) {
		FUZZ_CHECK(text_utf8_valid(info.user, strlen(info.user)));
		FUZZ_CHECK(text_utf8_valid(info.domain, strlen(info.domain)));
		FUZZ_CHECK(strcmp(info.user, again.user) == 0);
	}
	buf_deinit(&whole);
	buf_deinit(&cut);
	return 0;
}
