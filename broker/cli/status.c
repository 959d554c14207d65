/* SPDX-License-Identifier: ISC */
/* How the dispatcher and its fleet are doing. */
#include "cli/api_call.h"
#include "cli/output.h"
#include "cli/run.h"
#include "wire/json.h"

int run_status(struct cli *c, struct failure *f)
{
	AUTO_JSON struct json_object *answer = NULL;
	int r = api_call(c, "GET", "/api/v1/status", NULL, &answer, f);

	return r == 0 ? output_object(c, answer, f) : r;
}
