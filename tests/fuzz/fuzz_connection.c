/* SPDX-License-Identifier: ISC */
/* A request that is accepted has names that are names, and comes back the same after it was
 * written. */
#include "lib/fuzz.h"

#include <string.h>

#include "wire/connection.h"
#include "wire/names.h"
#include "wire/user_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connection_request r, again;
	struct buf written = BUF_INIT(1 << 20);
	struct err e = {""};

	if (connection_request_parse((const char *)data, size, &r, &e) < 0) {
		FUZZ_CHECK(e.text[0]);
		return 0;
	}
	FUZZ_CHECK(name_valid(r.pool));
	FUZZ_CHECK(!r.node[0] || name_valid(r.node));
	FUZZ_CHECK(user_name_check(r.user, strlen(r.user), NULL) == 0);
	FUZZ_CHECK(!strpbrk(r.tags, "\r\n") && !strpbrk(r.client, "\r\n"));
	connection_request_format(&r, &written);
	FUZZ_CHECK(connection_request_parse(buf_str(&written), written.len, &again, &e) == 0);
	FUZZ_CHECK(strcmp(r.pool, again.pool) == 0 && strcmp(r.user, again.user) == 0);
	FUZZ_CHECK(r.has_tags == again.has_tags && strcmp(r.tags, again.tags) == 0);
	FUZZ_CHECK(strcmp(r.client, again.client) == 0 && strcmp(r.node, again.node) == 0);
	buf_deinit(&written);
	return 0;
}
