/* SPDX-License-Identifier: ISC */
/*
 * termbroker-agent: options, start and stop. Exit status: 0 done, 1 failed, 2 wrong usage.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/config.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/notify.h"

#define REPORT_MAX (8 * 1024 * 1024)

struct options {
	const char *config_path;
	bool config_given;
	const char *root; /* overrides the file's */
	bool once, check;
};

struct program {
	struct options options;
	struct event_base *base;
	struct agent *agent;
};

static const char usage[] =
	"Usage: termbroker-agent [OPTION…]\n"
	"Samples this node's CPU, memory and sessions and pushes averages to a dispatcher.\n"
	"\n"
	"  -c, --config FILE   read FILE instead of " CONFIG_PATH "\n"
	"      --root DIR      read /proc, /sys and /run below DIR, a recorded tree\n"
	"      --once          collect, print one heartbeat as JSON, and exit\n"
	"      --check-config  check the configuration and the files it names, and exit\n"
	"  -V, --version       print the version and exit\n"
	"  -h, --help          print this and exit\n";

/* Returns an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct options *o)
{
	enum { ROOT = 256, ONCE, CHECK };
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"root", required_argument, NULL, ROOT},
		{"once", no_argument, NULL, ONCE},
		{"check-config", no_argument, NULL, CHECK},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	*o = (struct options){.config_path = CONFIG_PATH};
	while ((c = getopt_long(argc, argv, "c:Vh", known, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->config_path = optarg;
			o->config_given = true;
			break;
		case ROOT:
			o->root = optarg;
			break;
		case ONCE:
			o->once = true;
			break;
		case CHECK:
			o->check = true;
			break;
		case 'V':
			puts("termbroker-agent " TERMBROKER_VERSION);
			return 0;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs("Try \"termbroker-agent --help\".\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "termbroker-agent: unexpected argument \"%s\"\n", argv[optind]);
		return 2;
	}
	return -1;
}

/* The configuration with --root applied; the files it names too unless only one report is wanted.
 */
static int read_config(const struct options *o, struct config **ret, struct err *e)
{
	struct config *c = NULL;
	int error;

	if (o->once && !o->config_given && access(o->config_path, F_OK) != 0)
		error = config_default(&c, e);
	else
		error = config_load(o->config_path, &c, e);
	if (error)
		return error;
	if (o->root) {
		free(c->root);
		c->root = strdup(o->root);
		if (!c->root)
			error = err_set(e, -1, "out of memory");
	}
	if (!error && !o->once) {
		error = config_load_files(c, e);
		if (error)
			err_prefix(e, error, "%s", o->config_path);
	}
	if (error) {
		config_free(c);
		return error;
	}
	*ret = c;
	return 0;
}

static void stop(void *ctx)
{
	struct program *p = ctx;

	event_base_loopbreak(p->base);
}

static void reload(void *ctx)
{
	struct program *p = ctx;
	struct config *c = NULL;
	struct err e;
	int error;

	notify_state("RELOADING=1");
	error = read_config(&p->options, &c, &e);
	if (!error) {
		error = agent_reload(p->agent, c, &e);
		if (error)
			config_free(c);
	}
	if (error) {
		log_error("%s; nothing was changed", e.text);
	} else {
		log_set_level(c->log_level);
		log_info("configuration reloaded");
	}
	notify_state("READY=1");
}

static int run_service(struct program *p)
{
	struct loop_signal *signals[] = {
		loop_signal_new(p->base, SIGTERM, stop, p),
		loop_signal_new(p->base, SIGINT, stop, p),
		loop_signal_new(p->base, SIGHUP, reload, p),
	};
	size_t n = sizeof(signals) / sizeof(signals[0]);
	int status = EXIT_SUCCESS;

	for (size_t i = 0; i < n; i++)
		if (!signals[i])
			status = EXIT_FAILURE;
	if (status == EXIT_SUCCESS) {
		agent_start(p->agent);
		malloc_trim(0);
		notify_state("READY=1");
		log_info("started");
		event_base_dispatch(p->base);
		notify_state("STOPPING=1");
		log_info("stopped");
	}
	for (size_t i = 0; i < n; i++)
		loop_signal_free(signals[i]);
	return status;
}

static int run_once(struct program *p)
{
	struct buf out = BUF_INIT(REPORT_MAX);
	int status = EXIT_FAILURE;

	agent_collect_once(p->agent, stop, p);
	event_base_dispatch(p->base);
	if (agent_report(p->agent, &out) != 0)
		log_error("could not make a heartbeat: out of memory");
	else if (puts(buf_str(&out)) == EOF || fflush(stdout) != 0)
		log_error("could not write the heartbeat");
	else
		status = EXIT_SUCCESS;
	buf_deinit(&out);
	return status;
}

static int run(struct program *p, struct config *c)
{
	struct err e;
	int status;

	p->base = event_base_new(); /* no changelist: the descriptors are libcurl's */
	if (!p->base || agent_new(p->base, c, !p->options.once, &p->agent, &e) != 0) {
		log_error("%s", p->base ? e.text : "could not start: no event loop");
		config_free(c);
		if (p->base)
			event_base_free(p->base);
		return EXIT_FAILURE;
	}
	status = p->options.once ? run_once(p) : run_service(p);
	agent_free(p->agent);
	event_base_free(p->base);
	return status;
}

int main(int argc, char **argv)
{
	struct program p = {0};
	struct config *c = NULL;
	struct err e;
	int status = parse_options(argc, argv, &p.options);

	if (status >= 0)
		return status;
	/* One arena: the resolver's threads must not each have their own. */
	mallopt(M_ARENA_MAX, 1);
	umask(0077);
	signal(SIGPIPE, SIG_IGN);
	if (read_config(&p.options, &c, &e) != 0) {
		log_error("%s", e.text);
		return EXIT_FAILURE;
	}
	if (p.options.check) {
		config_free(c);
		puts("the configuration is valid");
		return EXIT_SUCCESS;
	}
	log_set_level(c->log_level);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		log_error("could not start: libcurl does not work here");
		config_free(c);
		return EXIT_FAILURE;
	}
	status = run(&p, c);
	curl_global_cleanup();
	libevent_global_shutdown();
	return status;
}
