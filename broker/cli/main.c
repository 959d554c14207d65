/* SPDX-License-Identifier: ISC */
/* The program termbroker. */
#include "cli/cli.h"

int main(int argc, char *argv[])
{
	return cli_main(argc, argv);
}
