/* SPDX-License-Identifier: ISC */
/*
 * /proc/net/tcp and tcp6: "sl: ADDRESS:PORT REMOTE STATE …" in hexadecimal; state 0A is LISTEN. The
 * kernel prints listening sockets first, so a hit ends the reading early. On the live system the
 * kernel is asked for its listening sockets alone, and the files are what is left where it will not
 * say.
 */
#include "agent/listening.h"

#include <errno.h>
#include <string.h>

#include "agent/lines.h"
#include "agent/listening_diag.h"
#include "agent/scan.h"

#define STATE_LISTEN 0x0A

static bool line_listens(const char *p, uint16_t port)
{
	uint64_t number, state;

	if (!scan_skip_word(&p)) /* "0:" */
		return false;
	p = strchr(p, ':');
	if (!p)
		return false;
	p++;
	if (!scan_hex(&p, &number) || number != port)
		return false;
	return scan_skip_word(&p) && scan_hex(&p, &state) && state == STATE_LISTEN;
}

static int table_listens(const struct sysroot *r, const char *file, uint16_t port, bool *found)
{
	struct lines l;
	int error = lines_open(&l, r, file);
	const char *line;

	if (error)
		return error;
	while (!*found && (line = lines_next(&l)))
		*found = line_listens(line, port);
	lines_close(&l);
	return l.error;
}

int listening_on(const struct sysroot *r, uint16_t port, bool *ret, struct err *e)
{
	bool found = false;
	int v4, v6;

	if (!r->recorded && listening_diag(port, ret) == 0)
		return 0;
	v4 = table_listens(r, "proc/net/tcp", port, &found);
	v6 = found ? 0 : table_listens(r, "proc/net/tcp6", port, &found);

	if (v4 && v6)
		return err_errno(e, v4, "could not read \"/proc/net/tcp\" and \"/proc/net/tcp6\"");
	*ret = found;
	return 0;
}
