/* SPDX-License-Identifier: ISC */
/* Runs a Check suite and prints TAP on standard output (Check's own report goes to standard error,
 * because "ERROR" on standard output would be read by the harness as a result). */
#pragma once

#include <check.h>

/* The program's exit status. Honours CK_FORK=no and CK_RUN_CASE. */
int tap_run(Suite *suite);
