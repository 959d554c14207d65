/* SPDX-License-Identifier: ISC */
/*
 * Runs a fuzz target on every file of a corpus folder, in the order of the names, and prints TAP. A
 * target that aborts or crashes leaves the plan unfulfilled, which the harness takes for a failure;
 * the file is the one behind the last "ok".
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "lib/fuzz.h"

#define FILE_MAX_BYTES (4 * 1024 * 1024)

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The target sees a block of exactly the file's size, so that reading behind its end shows. */
static int run_file(const char *path)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) uint8_t *exact = NULL;
	size_t len = 0;
	int r = text_read_file(path, FILE_MAX_BYTES, &text, &len);

	if (r < 0)
		return r;
	exact = malloc(len ? len : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, text, len);
	LLVMFuzzerTestOneInput(exact, len);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent **names = NULL;
	int failed = 0, n;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 2;
	}
	n = scandir(argv[1], &names, not_hidden, by_name);
	if (n <= 0) {
		printf("Bail out! no file in %s\n", argv[1]);
		return 1;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];
		int r;

		snprintf(path, sizeof(path), "%s/%s", argv[1], names[i]->d_name);
		r = run_file(path);
		printf("%s %d - %s\n", r == 0 ? "ok" : "not ok", i + 1, names[i]->d_name);
		fflush(stdout);
		failed += r != 0;
		free(names[i]);
	}
	free(names);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
