/* SPDX-License-Identifier: ISC */
/* Whatever the scan passes, json-c builds; what json-c then writes passes again. The members of an
 * object that is read in place are those that json-c has. */
#include "lib/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "wire/json_member.h"

#define KEY "n" /* what the corpus often has */

/* One member as each kind, by both readers, which must agree. */
static void compare_member(struct json_object *tree, const char *text, size_t size)
{
	struct json_member m = JSON_MEMBER(KEY);
	const char *string = "-", *string2 = "-";
	double number = -1, number2 = -1;
	uint64_t integer = 77, integer2 = 77;
	bool flag = true, flag2 = true, found = false;
	struct json_object *o = NULL;
	struct err e, e2;
	char *copy = malloc(size + 1), *p;

	FUZZ_CHECK(copy);
	memcpy(copy, text, size);
	copy[size] = '\0';
	p = copy + strspn(copy, " \t\r\n");
	json_members_read(p, &m, 1);
#define AGREE(a, b)                                                          \
	do {                                                                 \
		e.text[0] = e2.text[0] = '\0';                               \
		FUZZ_CHECK((a) == (b));                                      \
		FUZZ_CHECK(strcmp(e.text, e2.text) == 0 && found == !!m.at); \
	} while (0)
	AGREE(json_get_u64(tree, KEY, 3, UINT64_MAX / 2, &integer, &found, &e),
		json_member_u64(&m, 3, UINT64_MAX / 2, &integer2, &e2));
	AGREE(json_get_number(tree, KEY, -1e9, 1e9, &number, &found, &e),
		json_member_number(&m, -1e9, 1e9, &number2, &e2));
	AGREE(json_get_bool(tree, KEY, &flag, &found, &e), json_member_bool(&m, &flag2, &e2));
	AGREE(json_get_array(tree, KEY, SIZE_MAX, &o, &found, &e), json_member_array(&m, &e2));
	AGREE(json_get_object(tree, KEY, &o, &found, &e), json_member_object(&m, &e2));
	AGREE(json_get_string(tree, KEY, 9, &string, &found, &e),
		json_member_string(&m, 9, &string2, &e2));
#undef AGREE
	FUZZ_CHECK(integer == integer2 && flag == flag2 && number == number2);
	FUZZ_CHECK(strcmp(string, string2) == 0);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *again;
	struct json_object *whole = NULL;
	struct err e = {""};

	if (json_scan(text, size, &e) < 0) {
		FUZZ_CHECK(e.text[0]);
		FUZZ_CHECK(json_parse(text, size, &whole, NULL) < 0);
		return 0;
	}
	FUZZ_CHECK(json_parse(text, size, &whole, &e) == 0);
	if (json_object_is_type(whole, json_type_object))
		compare_member(whole, text, size);
	again = json_object_to_json_string(whole);
	FUZZ_CHECK(json_scan(again, strlen(again), &e) == 0);
	json_object_put(whole);
	return 0;
}
