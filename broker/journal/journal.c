/* SPDX-License-Identifier: ISC */
/*
 * The local sinks. `missing` counts the lines since the last one that reached the file: before the
 * next line a journal-gap line tells their number, and only when that one is written is `missing`
 * forgotten. The two sinks are independent: trouble with one never keeps a line from the other.
 */
#include "journal/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/text.h"
#include "journal/line_file.h"
#include "journal/render.h"
#include "journal/syslog_socket.h"

/* Every value twice (text and pair), and room for the rest. */
#define LINE_MAX_BYTES ((size_t)(EVENT_PARAMS_MAX + 1) * 2 * (ESCAPE_VALUE_MAX + 64))

struct journal {
	char *path; /* NULL = no file */
	char *ident;
	enum event_level level;
	enum event_language language;
	bool use_syslog;
	struct line_file file;
	struct syslog_socket syslog;
	struct buf line;  /* kept from event to event */
	uint64_t missing; /* lines not written since the last that was */
	int reason;	  /* why the last of them was not, -errno */
	uint64_t lost, syslog_lost;
};

static void deinit(struct journal *j)
{
	line_file_close(&j->file);
	syslog_socket_deinit(&j->syslog);
	buf_deinit(&j->line);
	free(j->path);
	free(j->ident);
}

static int init(struct journal *j, const struct journal_config *c, struct err *e)
{
	bool file = c->file && *c->file;
	int r;

	*j = (struct journal){.level = c->level,
		.language = c->language,
		.use_syslog = c->syslog,
		.file = LINE_FILE_NONE,
		.syslog = {.fd = -1},
		.line = BUF_INIT(LINE_MAX_BYTES)};
	j->path = file ? text_dup(c->file) : NULL;
	j->ident = text_dup(c->ident ? c->ident : "termbrokerd");
	if ((file && !j->path) || !j->ident)
		r = err_errno(e, -ENOMEM, "could not set up the journal");
	else
		r = syslog_socket_init(
			&j->syslog, c->syslog_socket ? c->syslog_socket : "/dev/log", e);
	if (r == 0 && file)
		r = line_file_open(j->path, &j->file, e);
	if (r < 0)
		deinit(j);
	return r;
}

int journal_new(const struct journal_config *config, struct journal **ret, struct err *e)
{
	struct journal *j = malloc(sizeof(*j));
	int r;

	if (!j)
		return err_errno(e, -ENOMEM, "could not set up the journal");
	r = init(j, config, e);
	if (r < 0) {
		free(j);
		return r;
	}
	*ret = j;
	return 0;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	deinit(j);
	free(j);
}

int journal_reopen(struct journal *j, struct err *e)
{
	struct line_file file = LINE_FILE_NONE;
	int r;

	if (!j->path)
		return 0;
	r = line_file_open(j->path, &file, e);
	if (r < 0)
		return r;
	line_file_close(&j->file);
	j->file = file;
	return 0;
}

int journal_configure(struct journal *j, const struct journal_config *config, struct err *e)
{
	struct journal next;
	int r = init(&next, config, e);

	if (r < 0)
		return r;
	next.missing = j->missing;
	next.reason = j->reason;
	next.lost = j->lost;
	next.syslog_lost = j->syslog_lost;
	deinit(j);
	*j = next;
	return 0;
}

/* "LEVEL id pool text key="value"…": the part that both sinks have. */
static void add_line(struct buf *b, const struct event *ev, enum event_language language)
{
	buf_addf(b, "%s %s ", event_level_name(event_level_of(ev->id)), event_name(ev->id));
	escape_add(b, ev->pool && *ev->pool ? ev->pool : "-", ESCAPE_WORD);
	buf_addc(b, ' ');
	render_event(ev, language, ESCAPE_LINE, b);
	for (size_t i = 0; i < ev->count; i++) {
		buf_addf(b, " %s=\"", ev->params[i].key);
		escape_add(b, ev->params[i].value, ESCAPE_QUOTED);
		buf_addc(b, '"');
	}
}

/* Writes EV to the file. 0 or -errno. */
static int write_line(struct journal *j, const struct event *ev)
{
	char time[CLOCK_RFC3339_SIZE];
	int r;

	buf_reset(&j->line);
	buf_adds(&j->line, clock_rfc3339(ev->time_us, time));
	buf_addc(&j->line, ' ');
	add_line(&j->line, ev, j->language);
	buf_addc(&j->line, '\n');
	r = buf_error(&j->line);
	return r < 0 ? r : line_file_write(&j->file, buf_str(&j->line), j->line.len);
}

static int write_gap(struct journal *j, int64_t time_us)
{
	struct event gap;
	char lines[32];

	event_start(&gap, EVENT_JOURNAL_GAP, time_us);
	snprintf(lines, sizeof(lines), "%llu", (unsigned long long)j->missing);
	event_param(&gap, "lines", lines);
	event_param(&gap, "reason", strerror(-j->reason));
	return write_line(j, &gap);
}

static void to_file(struct journal *j, const struct event *ev)
{
	int r = 0;

	if (j->missing > 0)
		r = write_gap(j, ev->time_us);
	if (r == 0) {
		j->missing = 0;
		r = write_line(j, ev);
	}
	if (r < 0) {
		j->missing++;
		j->lost++;
		j->reason = r;
	}
}

static int severity_of(enum event_level level)
{
	static const int severities[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};

	return severities[level];
}

static void to_syslog(struct journal *j, const struct event *ev)
{
	int r;

	buf_reset(&j->line);
	add_line(&j->line, ev, j->language);
	r = buf_error(&j->line);
	if (r == 0)
		r = syslog_socket_send(&j->syslog, severity_of(event_level_of(ev->id)), ev->time_us,
			j->ident, buf_str(&j->line), j->line.len);
	if (r < 0)
		j->syslog_lost++;
}

void journal_write(struct journal *j, const struct event *ev)
{
	if (event_level_of(ev->id) < j->level)
		return;
	if (j->file.fd >= 0)
		to_file(j, ev);
	if (j->use_syslog)
		to_syslog(j, ev);
}

uint64_t journal_lost(const struct journal *j)
{
	return j->lost;
}

uint64_t journal_syslog_lost(const struct journal *j)
{
	return j->syslog_lost;
}
