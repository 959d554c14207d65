/* SPDX-License-Identifier: ISC */
/*
 * One file a session, named by its id, KEY=VALUE lines, replaced whole by logind. Used keys: UID
 * USER STATE CLASS TYPE SERVICE DISPLAY REMOTE_HOST LEADER REALTIME. Of class "user" only; a
 * session that is closing has ended for its user. A file that goes away while we read is no
 * fault.
 */
#include "agent/sessions_logind.h"

#include <errno.h>
#include <string.h>

#include "agent/scan.h"
#include "base/cleanup.h"
#include "base/text.h"

#define DIRECTORY "run/systemd/sessions"
#define FILE_MAX (64 * 1024)
#define FILES_MAX 65536

/* Borrowed from the text that was parsed; "" where absent. */
struct record {
	const char *uid, *user, *state, *class, *type, *service, *display, *remote_host, *leader,
		*realtime;
};

/* Undoes logind's quoting in place: "…" with a backslash before what a shell would read. */
static char *unquote(char *v)
{
	char *out, *p;

	if (*v != '"')
		return v;
	out = p = v + 1;
	v = out;
	while (*p && *p != '"') {
		if (*p == '\\' && p[1])
			p++;
		*out++ = *p++;
	}
	*out = '\0';
	return v;
}

static void parse_record(char *text, struct record *ret)
{
	const struct {
		const char *key;
		const char **value;
	} keys[] = {
		{"UID", &ret->uid},
		{"USER", &ret->user},
		{"STATE", &ret->state},
		{"CLASS", &ret->class},
		{"TYPE", &ret->type},
		{"SERVICE", &ret->service},
		{"DISPLAY", &ret->display},
		{"REMOTE_HOST", &ret->remote_host},
		{"LEADER", &ret->leader},
		{"REALTIME", &ret->realtime},
	};
	char *save = NULL;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		*keys[i].value = "";
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *eq = strchr(line, '=');

		if (!eq)
			continue;
		*eq = '\0';
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (strcmp(line, keys[i].key) == 0)
				*keys[i].value = unquote(eq + 1);
	}
}

static bool is_graphical(const struct record *f)
{
	return text_equal(f->type, "x11") || text_equal(f->type, "wayland") ||
	       text_equal(f->type, "mir");
}

/* xrdp's sesman does not always name a type. */
static bool is_xrdp(const struct record *f)
{
	return strncmp(f->service, "xrdp", 4) == 0;
}

static bool is_wanted(const struct record *f, const struct sessions_options *o)
{
	if (!f->user[0] || text_equal(f->state, "closing"))
		return false;
	if (f->class[0] && strncmp(f->class, "user", 4) != 0)
		return false;
	if (text_equal(f->class, "user-early") || text_equal(f->class, "user-incomplete"))
		return false;
	return is_graphical(f) || is_xrdp(f) || (o->text_sessions && text_equal(f->type, "tty"));
}

static uint64_t number_or(const char *text, uint64_t max, uint64_t otherwise)
{
	uint64_t v;

	return text_parse_u64(text, 0, max, &v) == 0 ? v : otherwise;
}

static int add_record(struct session_list *l, const char *id, const struct record *f)
{
	struct session s = {.display = SESSION_NO_DISPLAY};
	const char *p = f->display + 1;
	uint64_t display;

	/* Ids are logind's: short and printable. Another one is dropped for its empty id. */
	text_copy(s.id, sizeof(s.id), id);
	for (const char *c = s.id; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f)
			s.id[0] = '\0';
	s.uid = (uid_t)number_or(f->uid, UINT32_MAX, (uid_t)-1);
	s.pid = (pid_t)number_or(f->leader, INT32_MAX, 0);
	s.mark = number_or(f->realtime, INT64_MAX, 0);
	s.since_ms = (int64_t)(s.mark / 1000);
	s.active = !text_equal(f->state, "online");
	s.from_xrdp = is_xrdp(f);
	if (f->display[0] == ':' && scan_u64(&p, &display) && display <= INT32_MAX)
		s.display = (int)display;
	return session_list_add(l, &s, f->user, strlen(f->user), f->remote_host);
}

static int read_session(const struct sysroot *r, const char *id, const struct sessions_options *o,
	struct buf *b, struct session_list *l, struct err *e)
{
	char path[sizeof(DIRECTORY) + 256];
	struct record f;
	int error;

	snprintf(path, sizeof(path), DIRECTORY "/%s", id);
	error = sysroot_read(r, path, b);
	if (error == -ENOENT)
		return 0;
	if (error)
		return err_errno(e, error, "could not read \"/%s\"", path);
	if (b->len == 0 || strlen(b->data) != b->len) { /* a NUL inside is not logind's writing */
		l->dropped += b->len > 0;
		return 0;
	}
	parse_record(b->data, &f);
	return is_wanted(&f, o) ? add_record(l, id, &f) : 0;
}

int sessions_logind(const struct sysroot *r, const struct sessions_options *o,
	struct session_list *l, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b = BUF_INIT(FILE_MAX);
	DIR *d = sysroot_open_dir(r, DIRECTORY);
	unsigned files = 0;
	int first = 0;

	if (!d && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!d)
		return err_errno(e, -errno, "could not open \"/" DIRECTORY "\"");
	for (;;) {
		const struct dirent *entry;
		int error;

		errno = 0;
		/* cppcheck-suppress readdirCalled; the folder is ours alone */
		entry = readdir(d);
		if (!entry)
			break;
		/* "c1.ref" is a FIFO, ".#c1XXXX" a file not finished */
		if (strchr(entry->d_name, '.') || entry->d_name[0] == '#')
			continue;
		if (++files > FILES_MAX) {
			l->complete = false;
			break;
		}
		error = read_session(r, entry->d_name, o, &b, l, first ? NULL : e);
		first = first ? first : error;
	}
	if (errno != 0 && !first)
		first = err_errno(e, -errno, "could not read \"/" DIRECTORY "\"");
	closedir(d);
	return first;
}
