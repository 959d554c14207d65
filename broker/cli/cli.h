/* SPDX-License-Identifier: ISC */
/* One run of the command line. */
#pragma once

#include "cli/client.h"
#include "cli/command.h"
#include "cli/settings.h"

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct cli {
	struct invocation inv;
	enum format format;
	struct settings settings;
	struct client *client; /* NULL for commands that ask no dispatcher */
};

/* The whole program: returns the exit status. */
int cli_main(int argc, char *const argv[]);
