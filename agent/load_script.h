/* SPDX-License-Identifier: ISC */
/*
 * The load script: a program of the administrator's that prints how loaded the node is, 0..100.
 * One run at a time, in a process group of its own that is killed after ten seconds. A run that
 * fails or prints anything else gives no value.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#define LOAD_SCRIPT_SECONDS 10

struct load_script;

/* NULL when there is no memory. TIMEOUT_MS: LOAD_SCRIPT_SECONDS in life. PATH is copied. */
struct load_script *load_script_new(struct event_base *base, const char *path, int64_t timeout_ms);
/* Ends a run that is under way. */
void load_script_free(struct load_script *s);
/* Starts a run unless one is under way. */
void load_script_start(struct load_script *s);
bool load_script_running(const struct load_script *s);
/* Takes the value of a run that ended since the last call, in hundredths of a percent. */
bool load_script_take(struct load_script *s, uint32_t *ret);

/* "37.5\n" → 3750. Digits, at most one point, 0..100, white space around it; nothing else. */
bool load_script_parse(const char *text, uint32_t *ret);
