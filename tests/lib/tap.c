/* SPDX-License-Identifier: ISC */
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static void print_result(TestResult *result, int number)
{
	const char *name = tr_tcname(result);

	if (tr_rtype(result) == CK_PASS) {
		printf("ok %d - %s\n", number, name);
		return;
	}
	printf("not ok %d - %s\n", number, name);
	fprintf(stderr, "# %s: %s:%d: %s\n", name, tr_lfile(result), tr_lno(result), tr_msg(result));
}

int tap_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int total, failed;

	srunner_run_all(runner, CK_SILENT);
	total = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);

	TestResult **results = srunner_results(runner);
	printf("1..%d\n", total);
	for (int i = 0; i < total; i++)
		print_result(results[i], i + 1);
	free(results);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
