/* SPDX-License-Identifier: ISC */
/*
 * The daemon's own log lines, on standard error (systemd adds time and unit; elsewhere we add the
 * time). Only services, doors and main programs log; libraries return errors. Wording is PostgreSQL's:
 * lower case, no full stop, "could not …: reason", names quoted. Control characters in what is
 * printed are escaped, so that no value can forge a line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Sets what is printed; the default is INFO. Call once at start and on reload. */
void log_set_level(enum log_level level);
/* "error", "warning", "info" or "debug"; -EINVAL for others. */
int log_level_parse(const char *text, enum log_level *ret);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* For what a peer can cause: true at most BURST times in each INTERVAL_MS; when it turns true again
 * *ret_suppressed says how many were left out. Zero-initialise it. */
struct log_limit {
	int64_t window_start_ms;
	unsigned used;
	unsigned suppressed;
};
bool log_limit_ok(struct log_limit *l, unsigned burst, int64_t interval_ms, int64_t now_ms,
	unsigned *ret_suppressed);
