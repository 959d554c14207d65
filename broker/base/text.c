/* SPDX-License-Identifier: ISC */
/* Pure helpers, but for text_read_file, which never blocks on a FIFO or device. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

int text_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (size == 0)
		return -ENAMETOOLONG;
	if (len >= size) {
		dst[0] = '\0';
		return -ENAMETOOLONG;
	}
	memcpy(dst, src, len + 1);
	return 0;
}

char *text_dup(const char *s)
{
	return s ? strdup(s) : NULL;
}

int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!s || !*s)
		return -EINVAL;
	for (const char *p = s; *p; p++)
		if (*p < '0' || *p > '9')
			return -EINVAL;
	for (; *s; s++)
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

size_t text_utf8_length(const char *s, size_t left)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char first = p[0], low = 0x80, high = 0xbf;
	size_t n;

	if (first < 0x80)
		return first ? 1 : 0;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (left < n)
		return 0;
	/* The second byte is where overlong forms, surrogates and values above 10FFFF show. */
	if (first == 0xe0)
		low = 0xa0;
	else if (first == 0xed)
		high = 0x9f;
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

size_t text_utf8_put(uint32_t c, char ret[4])
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 63));
		ret[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 63));
	ret[2] = (char)(0x80 | (c >> 6 & 63));
	ret[3] = (char)(0x80 | (c & 63));
	return 4;
}

bool text_utf8_valid(const char *s, size_t len)
{
	while (len > 0) {
		size_t n = text_utf8_length(s, len);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

bool text_equal(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

/* Reads FD to its end into B; files of /proc tell no size, so the end is what counts. */
static int read_all(int fd, struct buf *b)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		buf_add(b, chunk, (size_t)n);
		if (buf_error(b))
			return buf_error(b) == -EOVERFLOW ? -EFBIG : buf_error(b);
	}
}

int text_read_file(const char *path, size_t max, char **ret, size_t *ret_len)
{
	struct buf b = BUF_INIT(max);
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t len;
	char *text;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = read_all(fd, &b);
	if (r < 0) {
		buf_deinit(&b);
		return r;
	}
	len = b.len;
	text = buf_steal(&b);
	if (!text)
		return -ENOMEM;
	*ret = text;
	if (ret_len)
		*ret_len = len;
	return 0;
}
