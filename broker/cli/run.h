/* SPDX-License-Identifier: ISC */
/* What each command does. 0, or an exit status with F filled. */
#pragma once

#include "cli/command.h"

int run_kind_list(struct cli *c, struct failure *f);
int run_kind_show(struct cli *c, struct failure *f);
int run_kind_add(struct cli *c, struct failure *f);
int run_kind_set(struct cli *c, struct failure *f);
int run_kind_remove(struct cli *c, struct failure *f);
int run_kind_maintenance(struct cli *c, struct failure *f);
int run_node_add(struct cli *c, struct failure *f);
int run_node_set(struct cli *c, struct failure *f);
int run_session_list(struct cli *c, struct failure *f);
int run_session_forget(struct cli *c, struct failure *f);
int run_connect(struct cli *c, struct failure *f);
int run_explain(struct cli *c, struct failure *f);
int run_log(struct cli *c, struct failure *f);
int run_token_add(struct cli *c, struct failure *f);
int run_token_revoke(struct cli *c, struct failure *f);
int run_status(struct cli *c, struct failure *f);
int run_db_migrate(struct cli *c, struct failure *f);
