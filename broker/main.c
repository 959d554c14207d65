/* SPDX-License-Identifier: ISC */
/*
 * termbrokerd: options, and the order in which things start and stop.
 *
 * Start: configuration → journal → service (store) → API and door; ready when the fleet was loaded.
 * Stop, on SIGTERM or SIGINT: API and door accept no more, the service writes what is queued,
 * everything is freed in the reverse order. SIGHUP reloads all or nothing and reopens the log file.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/notify.h"
#include "base/text.h"
#include "base/tls.h"
#include "door/door.h"
#include "journal/journal.h"
#include "service/config.h"
#include "service/service.h"
#include "store/store.h"
#include "wire/rdp_sign.h"

#define DEFAULT_CONFIG "/etc/termbroker/termbrokerd.conf"

enum mode { MODE_RUN, MODE_CHECK, MODE_MIGRATE };

struct options {
	enum mode mode;
	const char *config;
};

struct daemon {
	const struct options *options;
	struct config *config;
	struct event_base *base;
	struct journal *journal;
	struct service *service;
	struct api *api;
	struct door *door;
	struct loop_signal *signals[3];
	bool stopping;
	int status;
};

static const char usage[] =
	"Usage: termbrokerd [OPTION]...\n"
	"The dispatcher of termbroker: tells RDP clients which terminal server to use.\n"
	"\n"
	"  -c, --config FILE   configuration (default " DEFAULT_CONFIG ");\n"
	"                      FILE.d/*.conf is read behind it\n"
	"      --check-config  check the configuration and exit\n"
	"      --migrate       bring the database's schema up to date and exit\n"
	"      --version       print the version and exit\n"
	"  -h, --help          print this and exit\n";

/* ---- configuration ---- */

static int load_config(const char *file, struct config **ret, struct err *e)
{
	CLEANUP(freep) char *conf_d = NULL;

	if (asprintf(&conf_d, "%s.d", file) < 0) {
		conf_d = NULL;
		return err_errno(e, -ENOMEM, "could not read \"%s\"", file);
	}
	return config_load(file, conf_d, ret, e);
}

static int check_certificates(const struct config *c, const char *file, struct err *e)
{
	for (unsigned i = 0; i < c->listener_count; i++) {
		const struct config_listener *l = &c->listeners[i];
		SSL_CTX *tls = NULL;
		int r = l->tls ? tls_server_new(l->certificate, l->key, &tls, e) : 0;

		if (r < 0)
			return err_prefix(e, r, "%s: listen \"%s\"", file, l->address);
		SSL_CTX_free(tls);
	}
	if (c->rdp_certificate[0]) {
		SSL_CTX *tls = NULL;
		int r = rdp_signer_new(c->rdp_certificate, c->rdp_key, &tls, e);

		if (r < 0)
			return err_prefix(e, r, "%s: rdp_file", file);
		SSL_CTX_free(tls);
	}
	for (unsigned i = 0; i < c->door_count; i++) {
		const struct config_door *door = &c->doors[i];
		SSL_CTX *tls = NULL;
		int r = door->certificate[0] ? tls_server_new(door->certificate, door->key, &tls, e)
					     : 0;

		if (r < 0)
			return err_prefix(e, r, "%s: door \"%s\"", file, door->address);
		SSL_CTX_free(tls);
	}
	return 0;
}

static int run_check(const struct options *o)
{
	struct config *c = NULL;
	struct err e = {""};
	int r = load_config(o->config, &c, &e);

	if (r == 0)
		r = check_certificates(c, o->config, &e);
	if (r < 0)
		fprintf(stderr, "termbrokerd: %s\n", e.text);
	else
		printf("%s: the configuration is valid\n", o->config);
	config_free(c);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void report_migration(void *ctx, const char *name)
{
	(void)ctx;
	printf("applied %s\n", name);
}

static int run_migrate(const struct options *o)
{
	struct config *c = NULL;
	struct err e = {""};
	int r = load_config(o->config, &c, &e);

	if (r == 0)
		r = store_migrate(c->migration_database[0] ? c->migration_database : c->database,
			report_migration, NULL, &e);
	if (r < 0)
		fprintf(stderr, "termbrokerd: %s\n", e.text);
	else
		printf("the schema is up to date\n");
	config_free(c);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- running ---- */

static void on_fatal(void *ctx, const char *reason)
{
	struct daemon *d = ctx;

	log_error("%s", reason);
	d->status = EXIT_FAILURE;
	event_base_loopbreak(d->base);
}

static void on_ready(void *ctx, bool ready)
{
	struct daemon *d = ctx;
	struct fleet_counts counts;

	if (!ready)
		return;
	fleet_counts(service_fleet(d->service), &counts);
	log_info("ready: %zu providers, %zu pools, %zu nodes, %zu sessions", counts.providers,
		counts.pools, counts.nodes, counts.sessions);
	notify_state("READY=1");
}

static void on_stopped(void *ctx)
{
	struct daemon *d = ctx;

	event_base_loopbreak(d->base);
}

/* Behind the door nobody is left: now the rest may stop. */
static void on_drained(void *ctx)
{
	struct daemon *d = ctx;

	door_cut(d->door);
	api_stop(d->api);
	service_stop(d->service, on_stopped, d);
}

static void on_stop_signal(void *ctx)
{
	struct daemon *d = ctx;

	if (d->stopping) {
		event_base_loopbreak(d->base);
		return;
	}
	d->stopping = true;
	log_info("stopping");
	notify_state("STOPPING=1");
	door_drain(d->door, on_drained, d);
}

static bool has_port(const char *url)
{
	const char *host = strstr(url, "://"), *colon = strrchr(url, ':');

	return host && colon > host && strchr(colon, ']') == NULL;
}

/* The URL that agents are told: this host's, or what the configuration names; the first listener's
 * port where none is given. */
static int set_advertise(struct config *c, const struct api *api)
{
	char host[256] = "localhost", *url = NULL;
	int r;

	if (c->listener_count == 0 || has_port(c->advertise))
		return 0;
	gethostname(host, sizeof(host) - 1);
	if (c->advertise[0])
		r = asprintf(&url, "%s:%u", c->advertise, api_port(api, 0));
	else
		r = asprintf(&url, "%s://%s:%u", c->listeners[0].tls ? "https" : "http", host,
			api_port(api, 0));
	if (r < 0)
		return -ENOMEM;
	free(c->advertise);
	c->advertise = url;
	return 0;
}

static void journal_reloaded(struct daemon *d, const char *result)
{
	struct event ev;

	event_start(&ev, EVENT_RELOADED, clock_wall_us());
	event_param(&ev, "result", result);
	journal_write(d->journal, &ev);
}

/* All or nothing: what may fail is prepared first, the journal's own step is all or nothing too. */
static int reload(struct daemon *d, struct config *fresh, struct err *e)
{
	int r = api_prepare(d->api, fresh, e);

	if (r == 0)
		r = door_prepare(d->door, fresh, e);
	if (r == 0)
		r = journal_configure(d->journal, &fresh->journal, e);
	if (r < 0) {
		api_leave(d->api);
		door_leave(d->door);
		return r;
	}
	api_take(d->api, fresh);
	door_take(d->door, fresh);
	return 0;
}

static void on_reload_signal(void *ctx)
{
	struct daemon *d = ctx;
	struct config *fresh = NULL;
	char fixed[128] = "";
	struct err e = {""};
	int r = load_config(d->options->config, &fresh, &e);

	notify_state("RELOADING=1");
	if (r == 0) {
		r = config_keep_fixed(fresh, d->config, fixed, sizeof(fixed));
		if (r == 0)
			r = set_advertise(fresh, d->api);
		if (r < 0)
			err_errno(&e, r, "could not reload");
		else
			r = reload(d, fresh, &e);
	}
	if (r < 0) {
		log_error("not reloaded, the old configuration stays: %s", e.text);
		journal_reloaded(d, e.text);
		config_free(fresh);
		journal_reopen(d->journal, &e);
	} else {
		if (fixed[0])
			log_warning("changed, but only the next start can take it: %s", fixed);
		log_set_level(fresh->log_level);
		service_reload(d->service, fresh);
		config_free(d->config);
		d->config = fresh;
		log_info("reloaded");
		journal_reloaded(d, "ok");
	}
	notify_state("READY=1");
}

static void ask_service(
	void *ctx, const struct door_question *q, door_answered *done, void *done_ctx)
{
	struct daemon *d = ctx;

	service_door_ask(d->service, q, done, done_ctx);
}

static void tell_service(void *ctx, const struct door_report *r)
{
	struct daemon *d = ctx;

	service_door_tell(d->service, r);
}

static int start(struct daemon *d, struct err *e)
{
	const struct door_broker broker = {ask_service, tell_service, d};
	int r;

	d->base = loop_new();
	if (!d->base)
		return err_errno(e, -ENOMEM, "could not start the event loop");
	r = journal_new(&d->config->journal, &d->journal, e);
	if (r < 0)
		return r;
	r = service_new(d->base, d->config, d->journal, on_fatal, d, &d->service, e);
	if (r < 0)
		return r;
	service_on_ready(d->service, on_ready, d);
	r = api_new(d->base, d->config, d->service, &d->api, e);
	if (r < 0)
		return r;
	r = set_advertise(d->config, d->api);
	if (r < 0)
		return err_errno(e, r, "could not start");
	r = door_new(d->base, d->config, &broker, &d->door, e);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < d->config->listener_count; i++)
		log_info("listening on %s port %u%s", d->config->listeners[i].address,
			api_port(d->api, i), d->config->listeners[i].tls ? "" : " without TLS");
	d->signals[0] = loop_signal_new(d->base, SIGTERM, on_stop_signal, d);
	d->signals[1] = loop_signal_new(d->base, SIGINT, on_stop_signal, d);
	d->signals[2] = loop_signal_new(d->base, SIGHUP, on_reload_signal, d);
	if (!d->signals[0] || !d->signals[1] || !d->signals[2])
		return err_errno(e, -ENOMEM, "could not start");
	service_start(d->service);
	return 0;
}

static void stop(struct daemon *d)
{
	for (size_t i = 0; i < sizeof(d->signals) / sizeof(d->signals[0]); i++)
		loop_signal_free(d->signals[i]);
	if (d->api)
		api_stop(d->api);
	if (d->door)
		door_stop(d->door);
	service_free(d->service);
	api_free(d->api);
	door_free(d->door);
	journal_free(d->journal);
	if (d->base)
		event_base_free(d->base);
	config_free(d->config);
}

static int run(const struct options *o)
{
	struct daemon d = {.options = o, .status = EXIT_SUCCESS};
	struct err e = {""};
	int r;

	signal(SIGPIPE, SIG_IGN);
	r = load_config(o->config, &d.config, &e);
	if (r == 0) {
		log_set_level(d.config->log_level);
		log_info("termbrokerd " TERMBROKER_VERSION " starting as \"%s\"", d.config->name);
		r = start(&d, &e);
	}
	if (r < 0) {
		log_error("%s", e.text);
		d.status = EXIT_FAILURE;
	} else {
		event_base_dispatch(d.base);
	}
	stop(&d);
	if (d.status == EXIT_SUCCESS)
		log_info("stopped");
	return d.status;
}

/* -1: go on; else the exit status. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, 'k'},
		{"migrate", no_argument, NULL, 'm'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) >= 0) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 'k':
			o->mode = MODE_CHECK;
			break;
		case 'm':
			o->mode = MODE_MIGRATE;
			break;
		case 'v':
			puts("termbrokerd " TERMBROKER_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs("Try 'termbrokerd --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"termbrokerd: unexpected argument \"%s\"\nTry 'termbrokerd --help'.\n",
			argv[optind]);
		return 2;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct options o = {.mode = MODE_RUN, .config = DEFAULT_CONFIG};
	int status = parse_options(argc, argv, &o);

	if (status >= 0)
		return status;
	if (o.mode == MODE_CHECK)
		return run_check(&o);
	if (o.mode == MODE_MIGRATE)
		return run_migrate(&o);
	return run(&o);
}
