/* SPDX-License-Identifier: ISC */
/* Shared by config.c, which reads a configuration, and config_reload.c, which compares two. */
#pragma once

#include <confuse.h>

#include "service/config.h"

/* strdup ("" for NULL) that remembers its failure, so that one check at the end is enough. */
char *config_take(const char *text, bool *failed);
/* Frees the sections; there are none afterwards. */
void config_free_listeners(struct config *c);
void config_free_doors(struct config *c);

/* Checks of single values, for libconfuse. */
int config_check_port(cfg_t *cfg, cfg_opt_t *opt);
int config_check_name(cfg_t *cfg, cfg_opt_t *opt); /* "" or a valid name */
int config_check_address(cfg_t *cfg, cfg_opt_t *opt);
/* Makes CHECK the one of the key NAME in TABLE. */
void config_validate(cfg_opt_t *table, const char *name, cfg_validate_callback_t check);

/* ---- config_door.c ---- */
/* The keys of the section, with their checks. */
cfg_opt_t *config_door_keys(void);
/* One section; config_door_deinit frees what was taken, also after an error. -EINVAL, -E2BIG, -ENOMEM. */
int config_door_take(cfg_t *sec, const char *file, struct config_door *ret, struct err *e);
