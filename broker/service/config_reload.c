/* SPDX-License-Identifier: ISC */
/*
 * What a running dispatcher cannot change is kept from the old configuration, so that one struct
 * always tells what is in force.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "service/config_private.h"

static void note_changed(char *changed, size_t size, const char *what)
{
	size_t len = strlen(changed);

	snprintf(changed + len, size - len, "%s%s", len ? ", " : "", what);
}

/* FRESH becomes a copy of RUNNING. */
static int keep_string(
	char **fresh, const char *running, const char *what, char *changed, size_t size)
{
	bool failed = false;
	char *copy;

	if (strcmp(*fresh, running) == 0)
		return 0;
	copy = config_take(running, &failed);
	if (failed)
		return -ENOMEM;
	secret_wipe(*fresh, strlen(*fresh));
	free(*fresh);
	*fresh = copy;
	note_changed(changed, size, what);
	return 0;
}

static bool same_listeners(const struct config *a, const struct config *b)
{
	if (a->listener_count != b->listener_count)
		return false;
	for (unsigned i = 0; i < a->listener_count; i++) {
		const struct config_listener *x = &a->listeners[i], *y = &b->listeners[i];

		if (strcmp(x->address, y->address) != 0 || x->port != y->port || x->tls != y->tls)
			return false;
	}
	return true;
}

static int keep_listeners(
	struct config *fresh, const struct config *running, char *changed, size_t size)
{
	bool failed = false;

	if (same_listeners(fresh, running))
		return 0;
	config_free_listeners(fresh);
	for (unsigned i = 0; i < running->listener_count; i++) {
		const struct config_listener *from = &running->listeners[i];

		fresh->listeners[fresh->listener_count++] = (struct config_listener){
			.address = config_take(from->address, &failed),
			.port = from->port,
			.tls = from->tls,
			.certificate = config_take(from->certificate, &failed),
			.key = config_take(from->key, &failed),
		};
	}
	note_changed(changed, size, "listen");
	return failed ? -ENOMEM : 0;
}

static bool same_doors(const struct config *a, const struct config *b)
{
	if (a->door_count != b->door_count)
		return false;
	for (unsigned i = 0; i < a->door_count; i++)
		if (strcmp(a->doors[i].address, b->doors[i].address) != 0 ||
			a->doors[i].port != b->doors[i].port)
			return false;
	return true;
}

static int keep_doors(
	struct config *fresh, const struct config *running, char *changed, size_t size)
{
	bool failed = false;

	if (same_doors(fresh, running))
		return 0;
	config_free_doors(fresh);
	for (unsigned i = 0; i < running->door_count; i++) {
		fresh->door_count++;
		if (config_door_copy(&running->doors[i], &fresh->doors[i]) < 0)
			failed = true;
	}
	note_changed(changed, size, "door");
	return failed ? -ENOMEM : 0;
}

int config_keep_fixed(
	struct config *fresh, const struct config *running, char *changed, size_t size)
{
	int r;

	changed[0] = '\0';
	r = keep_string(&fresh->name, running->name, "name", changed, size);
	if (r == 0)
		r = keep_listeners(fresh, running, changed, size);
	if (r == 0)
		r = keep_doors(fresh, running, changed, size);
	if (r == 0)
		r = keep_string(&fresh->socket_path, running->socket_path, "admin_socket.path",
			changed, size);
	if (r == 0)
		r = keep_string(&fresh->socket_group, running->socket_group, "admin_socket.group",
			changed, size);
	if (r == 0)
		r = keep_string(
			&fresh->database, running->database, "database.connection", changed, size);
	return r;
}
