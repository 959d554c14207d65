/* SPDX-License-Identifier: ISC */
/* Connection strings. Lists of host, hostaddr and port are separated by commas as in libpq. */
#include "store/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"

static const char *option(const PQconninfoOption *options, const char *keyword)
{
	for (; options && options->keyword; options++) {
		if (strcmp(options->keyword, keyword) == 0)
			return options->val && *options->val ? options->val : NULL;
	}
	return NULL;
}

static size_t count_items(const char *list)
{
	size_t n = 1;

	if (!list)
		return 0;
	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* Item I of LIST as a new string; NULL when it is empty or LIST is. False: no memory. */
static bool take_item(const char *list, size_t i, char **ret)
{
	size_t len;

	for (; list && i > 0; i--)
		list = strchr(list, ',') + 1;
	len = list ? strcspn(list, ",") : 0;
	if (len == 0)
		return true;
	*ret = strndup(list, len);
	return *ret != NULL;
}

static int make_list(
	struct targets *t, const char *host, const char *hostaddr, const char *port, struct err *e)
{
	size_t hosts = count_items(host), addresses = count_items(hostaddr),
	       ports = count_items(port);
	size_t count = addresses ? addresses : hosts ? hosts : 1;

	if ((addresses && hosts && addresses != hosts) || (ports > 1 && ports != count))
		return err_set(e, -EINVAL,
			"the connection string names %zu hosts, %zu addresses, %zu ports", hosts,
			addresses, ports);
	if (count > TARGETS_MAX)
		return err_set(
			e, -EINVAL, "the connection string names more than %d hosts", TARGETS_MAX);
	t->list = calloc(count, sizeof(*t->list));
	if (!t->list)
		return err_errno(e, -ENOMEM, "could not read the connection string");
	t->count = count;
	for (size_t i = 0; i < count; i++) {
		if (!take_item(host, i, &t->list[i].host) ||
			!take_item(hostaddr, i, &t->list[i].hostaddr) ||
			!take_item(port, ports > 1 ? i : 0, &t->list[i].port))
			return err_errno(e, -ENOMEM, "could not read the connection string");
	}
	return 0;
}

int targets_parse(const char *connection, struct targets *ret, struct err *e)
{
	struct targets t = {0};
	PQconninfoOption *defaults;
	const char *host, *hostaddr, *port;
	int r;

	/* libpq's words about a malformed string quote it. */
	t.options = PQconninfoParse(connection, NULL);
	if (!t.options)
		return err_set(e, -EINVAL,
			"the connection string cannot be read: expected \"host=… dbname=…\" or "
			"postgresql://…");
	if (option(t.options, "service")) {
		targets_deinit(&t);
		return err_set(e, -EINVAL,
			"\"service\" is not supported in the connection string: name host and "
			"dbname");
	}
	defaults = PQconndefaults();
	host = option(t.options, "host");
	hostaddr = option(t.options, "hostaddr");
	port = option(t.options, "port");
	if (!host && !hostaddr) {
		host = option(defaults, "host");
		hostaddr = option(defaults, "hostaddr");
	}
	r = make_list(&t, host, hostaddr, port ? port : option(defaults, "port"), e);
	PQconninfoFree(defaults);
	if (r < 0) {
		targets_deinit(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void targets_deinit(struct targets *t)
{
	for (PQconninfoOption *o = t->options; o && o->keyword; o++) {
		if (o->val)
			secret_wipe(o->val, strlen(o->val));
	}
	PQconninfoFree(t->options);
	for (size_t i = 0; i < t->count; i++) {
		free(t->list[i].host);
		free(t->list[i].hostaddr);
		free(t->list[i].port);
	}
	free(t->list);
	*t = (struct targets){0};
}

int target_needs_name(const struct target *t)
{
	return !t->hostaddr && t->host && t->host[0] != '/' && t->host[0] != '@';
}

#define PARAMS_MAX 96

struct params {
	const char *keywords[PARAMS_MAX + 1], *values[PARAMS_MAX + 1];
	size_t count;
};

static void add(struct params *p, const char *keyword, const char *value)
{
	if (value && p->count < PARAMS_MAX) {
		p->keywords[p->count] = keyword;
		p->values[p->count++] = value;
	}
}

static void add_default(
	struct params *p, const struct targets *t, const char *keyword, const char *value)
{
	if (!option(t->options, keyword))
		add(p, keyword, value);
}

/* What this file or the connector decides. */
static bool is_ours(const char *keyword)
{
	static const char *const ours[] = {"host", "hostaddr", "port", "target_session_attrs",
		"connect_timeout", "client_encoding"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (strcmp(keyword, ours[i]) == 0)
			return true;
	}
	return false;
}

PGconn *targets_connect(const struct targets *t, size_t i, const char *address,
	const char *application, long statement_timeout_ms)
{
	const struct target *target = &t->list[i];
	struct params p = {0};
	char timeout[24];

	snprintf(timeout, sizeof(timeout), "%ld", statement_timeout_ms);
	for (const PQconninfoOption *o = t->options; o->keyword; o++) {
		if (o->val && !is_ours(o->keyword))
			add(&p, o->keyword, o->val);
	}
	add(&p, "host", target->host);
	add(&p, "hostaddr", target->hostaddr ? target->hostaddr : address);
	add(&p, "port", target->port);
	add(&p, "client_encoding", "UTF8");
	add_default(&p, t, "application_name", application);
	/* A peer that vanished without a word is noticed while nothing is under way, too. */
	add_default(&p, t, "keepalives_idle", "10");
	add_default(&p, t, "keepalives_interval", "5");
	add_default(&p, t, "keepalives_count", "3");
	add_default(&p, t, "tcp_user_timeout", timeout);
	/* Looking for Kerberos tickets may block. */
	add_default(&p, t, "gssencmode", "disable");
	return PQconnectStartParams(p.keywords, p.values, 0);
}
