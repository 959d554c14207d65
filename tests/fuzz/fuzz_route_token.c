/* SPDX-License-Identifier: ISC */
/* A token that opens is the one that was sealed: nothing else has the tag. */
#include "lib/fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/route_token.h"

static const uint8_t key[ROUTE_KEY_SIZE] = "a key that the corpus is sealed";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), again[ROUTE_TOKEN_SIZE];
	struct route_ticket t, back;
	struct err e = {""};
	int r;

	FUZZ_CHECK(text);
	memcpy(text, data, size);
	text[size] = '\0';
	r = route_token_open(key, text, 0, &t, &e);
	FUZZ_CHECK(r == 0 || ((r == -EINVAL || r == -ETIME) && e.text[0]));
	if (r == 0) {
		FUZZ_CHECK(route_token_seal(key, &t, again, &e) == 0);
		FUZZ_CHECK(route_token_open(key, again, 0, &back, &e) == 0);
		FUZZ_CHECK(strcmp(t.user, back.user) == 0 && t.pool_id == back.pool_id);
	}
	free(text);
	return 0;
}
