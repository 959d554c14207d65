/* SPDX-License-Identifier: ISC */
/*
 * db migrate: the dispatcher's own program does it, since it alone speaks to PostgreSQL. It is
 * looked for beside this program (installed, or in the build folder), then in PATH.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run.h"

#define PATH_MAX_BYTES 4096

static const char *const places[] = {"termbrokerd", "../termbrokerd", "../sbin/termbrokerd",
	"../libexec/termbroker/termbrokerd"};

/* Puts the folder of this program into RET, with a slash at its end. */
static int own_folder(char ret[PATH_MAX_BYTES])
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX_BYTES - 1);
	char *slash;

	if (n <= 0)
		return -ENOENT;
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	if (!slash)
		return -ENOENT;
	slash[1] = '\0';
	return 0;
}

int run_db_migrate(struct cli *c, struct failure *f)
{
	const char *config = invocation_option(&c->inv, "config");
	const char *words[] = {
		"termbrokerd", "--migrate", config ? "--config" : NULL, config, NULL};
	char *const *argv = (char *const *)(uintptr_t)words; /* exec writes to none of them */
	char folder[PATH_MAX_BYTES], path[PATH_MAX_BYTES + 64];

	fflush(NULL);
	if (own_folder(folder) == 0) {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			snprintf(path, sizeof(path), "%s%s", folder, places[i]);
			execv(path, argv);
		}
	}
	execvp(argv[0], argv);
	fail(f, CLI_FAILED, "could not run termbrokerd: %s", strerror(errno));
	return fail_hint(f, "db migrate runs where the dispatcher is installed");
}
