/* SPDX-License-Identifier: ISC */
/*
 * Lines on standard error. One line is one write(2), so that lines of several processes do not mix.
 * Under systemd a "<N>" prefix gives the priority; elsewhere time and level are spelled out.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define LINE_MAX_BYTES 4096

static enum log_level highest = LOG_LEVEL_INFO;

static const char *const level_names[] = {"error", "warning", "info", "debug"};
/* syslog's priorities of the levels */
static const char level_priority[] = {'3', '4', '6', '7'};

void log_set_level(enum log_level level)
{
	highest = level;
}

int log_level_parse(const char *text, enum log_level *ret)
{
	for (int i = 0; i <= LOG_LEVEL_DEBUG; i++) {
		if (text && strcmp(text, level_names[i]) == 0) {
			*ret = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void add_prefix(struct buf *b, enum log_level level)
{
	char when[CLOCK_RFC3339_SIZE];

	if (getenv("JOURNAL_STREAM"))
		buf_addf(b, "<%c>", level_priority[level]);
	else
		buf_addf(b, "%s %s: ", clock_rfc3339(clock_wall_us(), when), level_names[level]);
}

/* The length of a control character at P (C0, DEL, C1, line and paragraph separator, bidirectional
 * marks); 0 if it is none. All of them can make a line look like something else. */
static size_t control_length(const unsigned char *p)
{
	if (p[0] < 0x20 || p[0] == 0x7f)
		return 1;
	if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
		return 2;
	if (p[0] == 0xe2 && p[1] == 0x80 &&
		((p[2] >= 0x8e && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae)))
		return 3;
	if (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)
		return 3;
	return 0;
}

static void add_escaped(struct buf *b, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		size_t n = control_length(p);

		if (n == 0) {
			buf_addc(b, (char)*p++);
			continue;
		}
		for (; n > 0; n--, p++)
			buf_addf(b, "\\x%02x", *p);
	}
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES / 4 - 64]; /* an escape is four bytes: the line always fits */
	struct buf line = BUF_INIT(LINE_MAX_BYTES);
	int saved = errno;
	ssize_t n;
	va_list ap;

	if (level > highest)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_prefix(&line, level);
	add_escaped(&line, text);
	buf_addc(&line, '\n');
	/* Nobody is left to tell when this fails. */
	do
		n = write(STDERR_FILENO, buf_str(&line), line.len);
	while (n < 0 && errno == EINTR);
	buf_deinit(&line);
	errno = saved;
}

bool log_limit_ok(struct log_limit *l, unsigned burst, int64_t interval_ms, int64_t now_ms,
	unsigned *ret_suppressed)
{
	if (l->used == 0 || now_ms - l->window_start_ms >= interval_ms) {
		l->window_start_ms = now_ms;
		l->used = 0;
	}
	if (l->used >= burst) {
		l->suppressed++;
		return false;
	}
	l->used++;
	if (ret_suppressed)
		*ret_suppressed = l->suppressed;
	l->suppressed = 0;
	return true;
}
