/* SPDX-License-Identifier: ISC */
/*
 * The local form of RFC 3164, without a host name, which every syslog daemon reads from /dev/log. A
 * daemon that was restarted has another socket under the same name: one new connection is tried for
 * each message.
 */
#include "journal/syslog_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

#define MESSAGE_MAX 8192
#define MESSAGE_SHORT 1024 /* what every receiver must take */

int syslog_socket_init(struct syslog_socket *s, const char *path, struct err *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (text_copy(address.sun_path, sizeof(address.sun_path), path) < 0)
		return err_set(
			e, -ENAMETOOLONG, "name of the syslog socket is too long: \"%s\"", path);
	*s = (struct syslog_socket){.fd = -1, .address = address};
	return 0;
}

void syslog_socket_deinit(struct syslog_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static int connect_now(struct syslog_socket *s)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&s->address, sizeof(s->address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	s->fd = fd;
	return 0;
}

/* At most MAX bytes, not ending within a code point. */
static size_t cut(const char *text, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static int send_now(struct syslog_socket *s, const char *text, size_t len)
{
	ssize_t n = send(s->fd, text, cut(text, len, MESSAGE_MAX), MSG_NOSIGNAL);

	if (n < 0 && errno == EMSGSIZE)
		n = send(s->fd, text, cut(text, len, MESSAGE_SHORT), MSG_NOSIGNAL);
	return n < 0 ? -errno : 0;
}

static void add_header(struct buf *b, int severity, int64_t wall_us, const char *ident)
{
	static const char months[12][4] = {
		"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t seconds = (time_t)(wall_us / 1000000);
	struct tm tm = {0};

	localtime_r(&seconds, &tm);
	buf_addf(b, "<%d>%s %2d %02d:%02d:%02d %s[%ld]: ", LOG_DAEMON | severity,
		months[(unsigned)tm.tm_mon % 12], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		ident, (long)getpid());
}

int syslog_socket_send(struct syslog_socket *s, int severity, int64_t wall_us, const char *ident,
	const char *text, size_t len)
{
	struct buf message = BUF_INIT(MESSAGE_MAX + 512);
	int r;

	add_header(&message, severity, wall_us, ident);
	buf_add(&message, text, cut(text, len, MESSAGE_MAX));
	r = buf_error(&message);
	if (r < 0)
		goto out;
	r = s->fd >= 0 ? send_now(s, buf_str(&message), message.len) : -ENOTCONN;
	if (r < 0 && r != -EAGAIN && r != -ENOBUFS) {
		syslog_socket_deinit(s);
		r = connect_now(s);
		if (r == 0)
			r = send_now(s, buf_str(&message), message.len);
	}
out:
	buf_deinit(&message);
	return r;
}
