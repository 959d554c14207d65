/* SPDX-License-Identifier: ISC */
/* Inside api/: errors as RFC 9457 problem documents with a `code`. */
#pragma once

#include "api/request.h"

/* "Bad Request" and so on. */
const char *status_text(unsigned status);
/* Appends the document up to its closing brace, so that members can be added. */
void problem_open(struct buf *b, unsigned status, const char *code, const char *detail);
void problem_format(struct buf *b, unsigned status, const char *code, const char *detail);

/* Answers R. */
void request_fail(struct request *r, unsigned status, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The status that an error of the service has in HTTP. */
unsigned service_http_status(const struct service_error *error);
void request_fail_service(struct request *r, const struct service_error *error);
