/* SPDX-License-Identifier: ISC */
/* The phrase of a status is the title of its problem; the code is what programs go by. */
#include "api/problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "wire/json.h"

const char *status_text(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} texts[] = {
		{200, "OK"},
		{201, "Created"},
		{204, "No Content"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{417, "Expectation Failed"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Error";
}

void problem_open(struct buf *b, unsigned status, const char *code, const char *detail)
{
	buf_adds(b, "{");
	json_add_member_string(b, "type", "about:blank");
	json_add_member_string(b, "title", status_text(status));
	json_add_member_u64(b, "status", status);
	json_add_member_string(b, "code", code);
	json_add_member_string(b, "detail", detail);
}

void problem_format(struct buf *b, unsigned status, const char *code, const char *detail)
{
	problem_open(b, status, code, detail);
	buf_adds(b, "}");
}

void request_fail(struct request *r, unsigned status, const char *code, const char *fmt, ...)
{
	char detail[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	problem_format(request_out(r), status, code, detail);
	request_send(r, status, CONTENT_PROBLEM);
}

unsigned service_http_status(const struct service_error *error)
{
	switch (error->status) {
	case SERVICE_OK:
		return 200;
	case SERVICE_INVALID:
		return 400;
	case SERVICE_DENIED:
		return 403;
	case SERVICE_NOT_FOUND:
		return 404;
	case SERVICE_CONFLICT:
		return 409;
	case SERVICE_REFUSED:
	case SERVICE_UNAVAILABLE:
		return 503;
	case SERVICE_FAILED:
		break;
	}
	return 500;
}

void request_fail_service(struct request *r, const struct service_error *error)
{
	unsigned status = service_http_status(error);
	char seconds[16];

	if (error->retry_after_s > 0) {
		snprintf(seconds, sizeof(seconds), "%u", (unsigned)error->retry_after_s);
		request_add_header(r, "Retry-After", seconds);
	}
	problem_format(request_out(r), status, error->code ? error->code : "failed", error->detail);
	request_send(r, status, CONTENT_PROBLEM);
}
