/* SPDX-License-Identifier: ISC */
/* Whatever the scan passes, json-c builds, with and without a hole; what json-c then writes passes
 * again. */
#include "lib/fuzz.h"

#include <string.h>

#include "wire/json.h"
#include "wire/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *again;
	struct json_object *whole = NULL, *holed = NULL;
	struct json_hole hole = {0};
	struct err e = {""};

	if (json_scan(text, size, &e) < 0) {
		FUZZ_CHECK(e.text[0]);
		FUZZ_CHECK(json_parse(text, size, &whole, NULL) < 0);
		return 0;
	}
	FUZZ_CHECK(json_parse(text, size, &whole, &e) == 0);
	FUZZ_CHECK(json_scan_hole(text, size, "sessions", &hole, &e) == 0);
	FUZZ_CHECK(json_build(text, size, &hole, &holed, &e) == 0);
	if (hole.len) {
		struct json_object *array = json_object_object_get(whole, "sessions");

		FUZZ_CHECK(text[hole.at] == '[' && text[hole.at + hole.len - 1] == ']');
		FUZZ_CHECK(json_object_is_type(array, json_type_array));
		FUZZ_CHECK(
			json_object_array_length(json_object_object_get(holed, "sessions")) == 0);
		json_object_object_del(whole, "sessions");
		json_object_object_del(holed, "sessions");
	}
	FUZZ_CHECK(json_object_equal(whole, holed));
	again = json_object_to_json_string(whole);
	FUZZ_CHECK(json_scan(again, strlen(again), &e) == 0);
	json_object_put(whole);
	json_object_put(holed);
	return 0;
}
