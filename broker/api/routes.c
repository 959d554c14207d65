/* SPDX-License-Identifier: ISC */
/*
 * One table: method, pattern, roles, handler. A pattern is a path in which '*' stands for one
 * segment, a name. HEAD goes where GET does. Rows of one pattern stand together.
 */
#include "api/routes.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "api/auth.h"
#include "api/connection.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/server.h"

#define OPEN 0u
#define ADMIN ROLE_BIT(ROLE_ADMIN)
#define METRICS (1u << 30) /* open by setting, else for readers */

#define KIND_ROUTES(kind)                                                    \
	{METHOD_GET, "/api/v1/" kind, ROLES_READ, handle_list},              \
		{METHOD_POST, "/api/v1/" kind, ADMIN, handle_create},        \
		{METHOD_GET, "/api/v1/" kind "/*", ROLES_READ, handle_show}, \
		{METHOD_PATCH, "/api/v1/" kind "/*", ADMIN, handle_change},  \
	{                                                                    \
		METHOD_DELETE, "/api/v1/" kind "/*", ADMIN, handle_remove    \
	}
#define MAINTENANCE_ROUTE(kind)                                                         \
	{                                                                               \
		METHOD_PUT, "/api/v1/" kind "/*/maintenance", ADMIN, handle_maintenance \
	}

static const struct route {
	enum method method;
	const char *pattern;
	unsigned roles;
	void (*handler)(struct request *r);
} routes[] = {
	{METHOD_POST, "/api/v1/connections", ROLE_BIT(ROLE_CLIENT) | ROLE_BIT(ROLE_ADMIN),
		handle_connect},
	{METHOD_POST, "/api/v1/heartbeat", ROLE_BIT(ROLE_AGENT), handle_heartbeat},
	{METHOD_POST, "/api/v1/explain", ROLES_READ, handle_explain},
	{METHOD_GET, "/api/v1/topology", ROLES_ANY, handle_topology},
	{METHOD_GET, "/api/v1/status", ROLES_READ, handle_status},
	{METHOD_GET, "/api/v1/sessions", ROLES_READ, handle_sessions},
	{METHOD_DELETE, "/api/v1/sessions/*", ADMIN, handle_session_forget},
	{METHOD_GET, "/api/v1/events", ROLES_READ, handle_events},
	KIND_ROUTES("providers"),
	MAINTENANCE_ROUTE("providers"),
	KIND_ROUTES("pools"),
	MAINTENANCE_ROUTE("pools"),
	KIND_ROUTES("nodes"),
	MAINTENANCE_ROUTE("nodes"),
	KIND_ROUTES("tokens"),
	{METHOD_GET, "/healthz", OPEN, handle_healthz},
	{METHOD_GET, "/readyz", OPEN, handle_readyz},
	{METHOD_GET, "/metrics", METRICS, handle_metrics},
};

static const char *const method_names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};

/* Takes one percent-decoded segment of PATH. False: it is longer than any name, or holds a NUL. */
static bool take_segment(struct request *r, const char *from, size_t len)
{
	size_t decoded_len;
	char *decoded;
	char raw[3 * sizeof(r->names[0])];
	bool ok;

	if (r->segments >= REQUEST_PATH_MAX || len >= sizeof(raw))
		return false;
	memcpy(raw, from, len);
	raw[len] = '\0';
	decoded = evhttp_uridecode(raw, 0, &decoded_len);
	ok = decoded && decoded_len < sizeof(r->names[0]) && strlen(decoded) == decoded_len;
	if (ok) {
		memcpy(r->names[r->segments], decoded, decoded_len + 1);
		r->segment[r->segments] = r->names[r->segments];
		r->segments++;
	}
	free(decoded);
	return ok;
}

static bool matches(struct request *r, const char *pattern)
{
	const char *path = r->path;

	r->segments = 0;
	while (*pattern) {
		if (*pattern == '*') {
			size_t len = strcspn(path, "/");

			if (len == 0 || !take_segment(r, path, len))
				return false;
			path += len;
			pattern++;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return *path == '\0';
}

static void method_not_allowed(struct request *r, unsigned allowed)
{
	char allow[64] = "";
	size_t len = 0;

	if (allowed & 1u << METHOD_GET)
		allowed |= 1u << METHOD_HEAD;
	for (unsigned m = 0; m < METHOD_OTHER; m++)
		if (allowed & 1u << m)
			len += (size_t)snprintf(allow + len, sizeof(allow) - len, "%s%s",
				len ? ", " : "", method_names[m]);
	request_add_header(r, "Allow", allow);
	request_fail(r, 405, "method_not_allowed", "%s takes %s", r->path, allow);
}

/* Before the database was read no token is known and every list is empty: that is not the asker's
 * fault. Who comes by the socket may at least see how it goes. */
static bool too_early(struct request *r, const struct route *route)
{
	bool looks = route->handler == handle_status || route->handler == handle_metrics;

	if (service_is_loaded(r->api->service) ||
		(looks && r->conn->listener->kind == LISTENER_SOCKET))
		return false;
	request_add_header(r, "Retry-After", "2");
	request_fail(r, 503, "starting", "the dispatcher has not yet read its database");
	return true;
}

void routes_dispatch(struct request *r)
{
	enum method method = r->method == METHOD_HEAD ? METHOD_GET : r->method;
	unsigned allowed = 0;

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *route = &routes[i];
		unsigned roles = route->roles;

		if (!matches(r, route->pattern))
			continue;
		allowed |= 1u << route->method;
		if (route->method != method)
			continue;
		if (roles == METRICS)
			roles = r->api->config->open_metrics ? OPEN : ROLES_READ;
		if (roles == OPEN || (!too_early(r, route) && auth_check(r, roles, route->pattern)))
			route->handler(r);
		return;
	}
	if (allowed)
		method_not_allowed(r, allowed);
	else
		request_fail(r, 404, "no_such_path", "there is nothing at this path");
}
