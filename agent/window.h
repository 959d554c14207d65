/* SPDX-License-Identifier: ISC */
/*
 * The last samples and the logins that wait for a push. The truth is in memory; the file follows so
 * that a restart goes on where the agent was. Trouble with the file is logged and never stops the
 * agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/logins.h"
#include "agent/sample.h"

#define WINDOW_SAMPLES_MAX 1000

struct window_options {
	const char *dir;	   /* state folder; made if missing. NULL: memory only */
	const char *boot_id;	   /* of this boot */
	size_t cache_size;	   /* samples averaged, 1..WINDOW_SAMPLES_MAX */
	uint32_t collect_interval; /* seconds */
};

struct window;

/* 0; -EBUSY when another agent has the file, -ENOMEM; with words. */
int window_new(const struct window_options *o, struct window **ret, struct err *e);
void window_free(struct window *w);
/* Takes other figures on a reload. 0 or -ENOMEM (nothing changed). */
int window_resize(struct window *w, size_t cache_size, uint32_t collect_interval);

/* Takes in what was collected now and writes it to the file in one transaction. */
void window_add(struct window *w, const struct sample *s, const struct session_list *seen);
/* Writes the average of the fresh samples into H. */
void window_average(const struct window *w, uint64_t now_boot_ms, struct heartbeat *h);
/* The logins waiting, oldest first; valid until the next change. */
const struct login *window_logins(const struct window *w, size_t *ret_count);
/* Those up to SERIAL reached the dispatcher. */
void window_acknowledge(struct window *w, uint64_t serial);
/* Whether the file has all that memory has. */
bool window_is_stored(const struct window *w);
