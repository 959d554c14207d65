/* SPDX-License-Identifier: ISC */
/* The key of a key is the key; a display name is its own; no name that a client gives makes a local
 * key. */
#include "lib/fuzz.h"

#include <string.h>

#include "base/text.h"
#include "wire/user_key.h"

static struct user_names *make_names(void)
{
	struct user_names *n = user_names_new();

	FUZZ_CHECK(n && user_names_add_alias(n, "CORP", "corp.example.com", NULL) == 0);
	FUZZ_CHECK(user_names_set_default(n, "corp", NULL) == 0);
	return n;
}

static void try_names(const struct user_names *n, const char *input, size_t size)
{
	char key[LIMIT_USER_KEY_SIZE], again[LIMIT_USER_KEY_SIZE];

	if (user_key_make(n, input, size, NULL, key, NULL) == 0) {
		FUZZ_CHECK(key[0] != '\\');
		FUZZ_CHECK(text_utf8_valid(key, strlen(key)));
		FUZZ_CHECK(user_name_check(input, size, NULL) == 0);
		/* A folded name can be longer than what may come in. */
		if (user_key_make(n, key, strlen(key), NULL, again, NULL) == 0)
			FUZZ_CHECK(strcmp(key, again) == 0);
	}
	if (user_key_make(n, input, size, "ts-1", key, NULL) == 0 && key[0] == '\\')
		FUZZ_CHECK(strncmp(key, "\\ts-1\\", 6) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *input = (const char *)data;
	char display[LIMIT_USER_SIZE], again[LIMIT_USER_SIZE];
	struct user_names *n = make_names();
	struct err e = {""};

	try_names(NULL, input, size);
	try_names(n, input, size);
	if (user_name_display(input, size, display, &e) == 0) {
		FUZZ_CHECK(user_name_display(display, strlen(display), again, &e) == 0);
		FUZZ_CHECK(strcmp(display, again) == 0);
	} else {
		FUZZ_CHECK(e.text[0]);
	}
	if (size < 100 && !memchr(input, 0, size)) {
		memcpy(display, input, size);
		display[size] = '\0';
		(void)user_names_add_alias(n, display, "CORP", NULL);
		(void)user_names_add_alias(n, "corp.example.com", display, NULL);
		try_names(n, "alice@CORP", 10);
	}
	user_names_free(n);
	return 0;
}
