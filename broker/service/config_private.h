/* SPDX-License-Identifier: ISC */
/* Shared by config.c, which reads a configuration, and config_reload.c, which compares two. */
#pragma once

#include "service/config.h"

/* strdup ("" for NULL) that remembers its failure, so that one check at the end is enough. */
char *config_take(const char *text, bool *failed);
/* Frees the sections; there are none afterwards. */
void config_free_listeners(struct config *c);
void config_free_doors(struct config *c);
