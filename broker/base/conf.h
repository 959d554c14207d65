/* SPDX-License-Identifier: ISC */
/*
 * Configuration files by libconfuse, made safe.
 *
 * conf_load reads PATH and then DIR_D/NAME.conf in the order of their names (DIR_D may be NULL or
 * absent), each at most 1 MiB and a regular file. Every error names file and line. Refused: an
 * unknown key, a wrong type, a scalar set twice in one file, a file that ends inside a section.
 * A key set in a later file wins; lists of a later file replace, titled sections add up.
 */
#pragma once

#include <confuse.h>
#include <stdint.h>

#include "base/err.h"

/* 0 and *ret_cfg (caller: cfg_free), or a negative errno. OPTS must outlive the result. */
int conf_load(cfg_opt_t *opts, const char *path, const char *dir_d, cfg_t **ret_cfg, struct err *e);

/* Range checks for cfg_set_validate_func users: report through cfg_error and return -1. */
int conf_check_range(cfg_t *cfg, cfg_opt_t *opt, long min, long max);
