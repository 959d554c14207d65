/* SPDX-License-Identifier: ISC */
/*
 * Fixed records that any program with group utmp may write, so nothing in them is trusted: names
 * need not end in NUL or be text, and entries of dead processes stay behind.
 *
 * A desktop's line is ":10" or "xrdp:10"; every other line is a terminal, also those that windows
 * inside a desktop open. An entry without a living process is left out.
 */
#include "agent/sessions_utmp.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <utmp.h>

#include "agent/scan.h"
#include "base/cleanup.h"

#define FILE_NAME "run/utmp"
#define RECORDS_MAX 65536

static bool has_process(const struct sysroot *r, pid_t pid)
{
	char path[32];

	if (pid <= 0)
		return false;
	/* The kernel tells it even where /proc is hidden from the service. */
	if (!r->recorded)
		return kill(pid, 0) == 0 || errno == EPERM;
	snprintf(path, sizeof(path), "proc/%d", (int)pid);
	return sysroot_exists(r, path);
}

static int display_of_line(const char line[UT_LINESIZE])
{
	char text[UT_LINESIZE + 1] = {0};
	const char *p = text;
	uint64_t n;

	memcpy(text, line, UT_LINESIZE);
	if (strncmp(p, "xrdp:", 5) == 0)
		p += 4;
	if (*p != ':')
		return SESSION_NO_DISPLAY;
	p++;
	if (!scan_u64(&p, &n) || n > 65535 || (*p && *p != '.'))
		return SESSION_NO_DISPLAY;
	return (int)n;
}

static void make_id(const struct utmp *u, char id[LIMIT_SESSION_ID_SIZE])
{
	int n = snprintf(id, LIMIT_SESSION_ID_SIZE, "utmp-%d-%u-", (int)u->ut_pid,
		(unsigned)u->ut_tv.tv_sec);

	for (size_t i = 0; i < UT_LINESIZE && u->ut_line[i] && n < LIMIT_SESSION_ID_SIZE - 1; i++) {
		char c = u->ut_line[i];

		id[n++] = (char)(c > 0x20 && c < 0x7f ? c : '_');
	}
	id[n] = '\0';
}

static bool have_id(const struct session_list *l, const char *id)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].id, id) == 0)
			return true;
	return false;
}

static int add_entry(const struct sysroot *r, const struct sessions_options *o,
	const struct utmp *u, struct session_list *l)
{
	struct session s = {.uid = (uid_t)-1, .active = true, .pid = u->ut_pid};
	char host[UT_HOSTSIZE + 1] = {0};

	if (u->ut_type != USER_PROCESS || !u->ut_user[0])
		return 0;
	s.display = display_of_line(u->ut_line);
	if (s.display == SESSION_NO_DISPLAY && !o->text_sessions)
		return 0;
	if (!has_process(r, u->ut_pid))
		return 0;
	make_id(u, s.id);
	if (have_id(l, s.id))
		return 0;
	s.mark = (uint64_t)(uint32_t)u->ut_tv.tv_sec;
	s.since_ms = (int64_t)s.mark * 1000 + (u->ut_tv.tv_usec / 1000) % 1000;
	memcpy(host, u->ut_host, UT_HOSTSIZE);
	return session_list_add(
		l, &s, u->ut_user, strnlen(u->ut_user, UT_NAMESIZE), host[0] == ':' ? NULL : host);
}

/* Whole record, 0 at the end; a piece of one at the end is left out. */
static ssize_t read_record(int fd, struct utmp *u)
{
	size_t have = 0;

	while (have < sizeof(*u)) {
		ssize_t n = read(fd, (char *)u + have, sizeof(*u) - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		have += (size_t)n;
	}
	return 1;
}

int sessions_utmp(const struct sysroot *r, const struct sessions_options *o, struct session_list *l,
	struct err *e)
{
	CLEANUP(closep) int fd = sysroot_open_file(r, FILE_NAME);
	struct utmp u;
	ssize_t got = 0;
	int error = 0;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return err_errno(e, fd, "could not open \"/" FILE_NAME "\"");
	for (int i = 0; i < RECORDS_MAX && !error; i++) {
		got = read_record(fd, &u);
		if (got <= 0)
			break;
		error = add_entry(r, o, &u, l);
	}
	if (got < 0)
		return err_errno(e, (int)got, "could not read \"/" FILE_NAME "\"");
	if (got > 0 && !error)
		l->complete = false; /* more records than we are willing to read */
	return error;
}
