/* SPDX-License-Identifier: ISC */
/* SQLSTATE → meaning. A class is the first two characters of the code. */
#include "store/sqlstate.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"

static bool in_class(const char *sqlstate, const char *class)
{
	return strncmp(sqlstate, class, 2) == 0;
}

static bool is(const char *sqlstate, const char *code)
{
	return strcmp(sqlstate, code) == 0;
}

static void field(char *ret, size_t size, const PGresult *result, int code)
{
	const char *text = PQresultErrorField(result, code);

	if (text_copy(ret, size, text ? text : "") < 0)
		ret[0] = '\0';
}

static void first_line(struct err *ret, const char *text)
{
	err_set(ret, 0, "%.*s", (int)strcspn(text, "\r\n"), text);
}

void fault_from(struct fault *f, const PGresult *result, const PGconn *conn)
{
	const char *primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	memset(f, 0, sizeof(*f));
	if (!primary) {
		const char *text = result ? PQresultErrorMessage(result) : PQerrorMessage(conn);

		first_line(&f->message, *text ? text : "the connection was closed");
		return;
	}
	field(f->sqlstate, sizeof(f->sqlstate), result, PG_DIAG_SQLSTATE);
	field(f->constraint, sizeof(f->constraint), result, PG_DIAG_CONSTRAINT_NAME);
	field(f->table, sizeof(f->table), result, PG_DIAG_TABLE_NAME);
	first_line(&f->message, primary);
}

enum fault_kind fault_kind_of(const char *sqlstate)
{
	if (is(sqlstate, "40001") || is(sqlstate, "40P01"))
		return FAULT_RETRY;
	/* data exception, constraint violation, limit of a row or an index, raised by a trigger */
	if (in_class(sqlstate, "22") || in_class(sqlstate, "23") || in_class(sqlstate, "54") ||
		in_class(sqlstate, "P0"))
		return FAULT_ROW;
	return FAULT_LOST;
}

bool fault_is_unusable(const char *sqlstate)
{
	return in_class(sqlstate, "28") || in_class(sqlstate, "42") || in_class(sqlstate, "3D") ||
	       in_class(sqlstate, "3F");
}

int fault_result(const char *sqlstate)
{
	if (is(sqlstate, "23505"))
		return -EEXIST;
	if (is(sqlstate, "23503"))
		return -EBUSY;
	if (fault_kind_of(sqlstate) == FAULT_ROW)
		return -EINVAL;
	if (is(sqlstate, "57014") || is(sqlstate, "55P03"))
		return -ETIMEDOUT;
	if (sqlstate[0] == '\0' || in_class(sqlstate, "08") || in_class(sqlstate, "57") ||
		in_class(sqlstate, "25"))
		return -ENOTCONN;
	return -EIO;
}

/* The verbose form reads "…SEVERITY:  CODE: message"; two spaces precede nothing else of that
 * shape. */
void fault_from_text(const char *text, char ret_sqlstate[6], struct err *ret)
{
	size_t line = strcspn(text, "\r\n");

	ret_sqlstate[0] = '\0';
	for (size_t i = 0; i + 9 < line; i++) {
		size_t n = 0;

		if (strncmp(text + i, ":  ", 3) != 0)
			continue;
		while (n < 5 && (isupper((unsigned char)text[i + 3 + n]) ||
					isdigit((unsigned char)text[i + 3 + n])))
			n++;
		if (n < 5 || text[i + 8] != ':' || text[i + 9] != ' ')
			continue;
		memcpy(ret_sqlstate, text + i + 3, 5);
		ret_sqlstate[5] = '\0';
		err_set(ret, 0, "%.*s:  %.*s", (int)i, text, (int)(line - i - 10), text + i + 10);
		return;
	}
	err_set(ret, 0, "%.*s", (int)line, text);
}
