/* SPDX-License-Identifier: ISC */
/*
 * /proc/net/unix names every socket of the path /run/xrdp/sockdir/xrdp_display_N (xrdp 0.10 puts a
 * folder UID between). One that listens (flag 00010000) is a session; one of the same path that is
 * connected (state 03) makes it active. A socket file that nobody listens on is left over and no
 * session.
 *
 * The user is the owner of the socket file, which the X server created as the user; the start is
 * the time of its creation. A recorded tree cannot hold either: there the file is a plain one whose
 * text is "UID START" (seconds).
 */
#include "agent/sessions_xrdp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/lines.h"
#include "agent/scan.h"
#include "base/cleanup.h"

#define SOCKDIR "/run/xrdp/sockdir/"
#define PREFIX "xrdp_display_"
#define LISTENS 0x00010000u
#define STATE_CONNECTED 3

struct display {
	int number;
	bool listens, connected;
	char path[64];	  /* below the root, without the first slash */
	uid_t folder_uid; /* (uid_t)-1: the path has no folder */
};

struct displays {
	struct display *items;
	size_t count, cap;
};

enum { REF_COUNT, PROTOCOL, FLAGS, TYPE, STATE, FIELDS };

/* "Num: RefCount Protocol Flags Type St Inode Path", all but Inode in hexadecimal */
static bool parse_line(const char *p, struct display *d, const char **ret_path)
{
	uint64_t fields[FIELDS], number;

	p = strchr(p, ':');
	if (!p)
		return false;
	p++;
	for (int i = 0; i < FIELDS; i++)
		if (!scan_hex(&p, &fields[i]))
			return false;
	if (!scan_u64(&p, &number))
		return false;
	/* The whole path and not its end: anyone may bind a socket below a folder of his own. */
	if (*p++ != ' ' || strncmp(p, SOCKDIR, strlen(SOCKDIR)) != 0 ||
		strlen(p) >= sizeof(d->path))
		return false;
	*ret_path = p;
	p += strlen(SOCKDIR);
	d->folder_uid = (uid_t)-1;
	if (*p >= '0' && *p <= '9') {
		if (!scan_u64(&p, &number) || number >= UINT32_MAX || *p++ != '/')
			return false;
		d->folder_uid = (uid_t)number;
	}
	if (strncmp(p, PREFIX, strlen(PREFIX)) != 0)
		return false;
	p += strlen(PREFIX);
	if (*p < '0' || *p > '9' || !scan_u64(&p, &number) || number > 65535 || *p)
		return false;
	d->number = (int)number;
	d->listens = fields[FLAGS] & LISTENS;
	d->connected = !d->listens && fields[STATE] == STATE_CONNECTED;
	return true;
}

static int note_display(struct displays *all, const struct display *d, const char *path)
{
	for (size_t i = 0; i < all->count; i++) {
		struct display *have = &all->items[i];

		if (strcmp(have->path, path + 1) == 0) {
			have->listens |= d->listens;
			have->connected |= d->connected;
			return 0;
		}
	}
	if (all->count >= LIMIT_SESSIONS)
		return -E2BIG;
	if (all->count == all->cap) {
		size_t cap = all->cap ? all->cap * 2 : 16;
		struct display *items = reallocarray(all->items, cap, sizeof(*items));

		if (!items)
			return -ENOMEM;
		all->items = items;
		all->cap = cap;
	}
	all->items[all->count] = *d;
	memcpy(all->items[all->count].path, path + 1, strlen(path));
	all->count++;
	return 0;
}

static int read_displays(const struct sysroot *r, struct displays *all)
{
	struct lines l;
	const char *line;
	int error = lines_open(&l, r, "proc/net/unix");

	if (error)
		return error;
	while (!error && (line = lines_next(&l))) {
		struct display d = {0};
		const char *path;

		if (strstr(line, PREFIX) && parse_line(line, &d, &path))
			error = note_display(all, &d, path);
	}
	lines_close(&l);
	return error ? error : l.error;
}

static bool recorded_owner(const struct sysroot *r, const char *path, uid_t *uid, int64_t *start_ms)
{
	CLEANUP(buf_deinit) struct buf b = BUF_INIT(128);
	uint64_t number, seconds = 0;
	const char *p;

	if (sysroot_read(r, path, &b) != 0)
		return false;
	p = buf_str(&b);
	if (!scan_u64(&p, &number) || number >= UINT32_MAX)
		return false;
	if (!scan_u64(&p, &seconds) || seconds > INT64_MAX / 1000)
		seconds = 0;
	*uid = (uid_t)number;
	*start_ms = (int64_t)seconds * 1000;
	return true;
}

static bool owner_of(
	const struct sysroot *r, const struct display *d, uid_t *uid, int64_t *start_ms)
{
	struct stat st;

	if (r->recorded && recorded_owner(r, d->path, uid, start_ms))
		return true;
	if (fstatat(r->fd, d->path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		*uid = d->folder_uid != (uid_t)-1 ? d->folder_uid : st.st_uid;
		*start_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		return true;
	}
	*uid = d->folder_uid;
	*start_ms = 0;
	return d->folder_uid != (uid_t)-1;
}

static int add_display(const struct sysroot *r, struct users *users, const struct display *d,
	struct session_list *l, struct err *e)
{
	struct session s = {
		.display = d->number,
		.active = d->connected,
		.from_xrdp = true,
	};
	const char *user;

	if (!owner_of(r, d, &s.uid, &s.since_ms)) {
		int error = -errno;

		/* gone since, or not ours to see */
		return error == -ENOENT ? 0
					: err_errno(e, error, "could not read \"/%s\"", d->path);
	}
	user = users_name(users, s.uid);
	if (!user)
		return -ENOMEM;
	s.mark = (uint64_t)s.since_ms;
	snprintf(s.id, sizeof(s.id), "xrdp-%d-%lld", d->number, (long long)s.since_ms / 1000);
	return session_list_add(l, &s, user, strlen(user), NULL);
}

int sessions_xrdp(
	const struct sysroot *r, struct users *users, struct session_list *l, struct err *e)
{
	struct displays all = {0};
	int first = 0;

	if (!sysroot_exists(r, "run/xrdp"))
		return 0;
	first = read_displays(r, &all);
	if (first)
		err_errno(e, first, "could not read \"/proc/net/unix\"");
	for (size_t i = 0; i < all.count; i++) {
		int error;

		if (!all.items[i].listens)
			continue;
		error = add_display(r, users, &all.items[i], l, first ? NULL : e);
		first = first ? first : error;
	}
	free(all.items);
	return first;
}
