/* SPDX-License-Identifier: ISC */
#include "tap.h"

#include <stdlib.h>

int tap_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
