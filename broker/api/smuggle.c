/* SPDX-License-Identifier: ISC */
/*
 * Model: a frame is fed the bytes of one request. Once FRAME_WHOLE or FRAME_REFUSED it stays so
 * until frame_init. Rules are those of RFC 9112 without its leniencies: a line ends in CR LF,
 * nothing is folded, a name touches its colon, each header that decides about length or identity
 * comes once.
 */
#include "api/smuggle.h"

#include <string.h>
#include <strings.h>

#define REFUSE(f, s, c, d)                                                           \
	((f)->refusal = (struct refusal){.status = (s), .code = (c), .detail = (d)}, \
		(f)->stage = FRAME_REFUSED)

/* What was seen in one head. */
struct head {
	const char *base;
	unsigned headers, hosts, lengths, encodings, authorizations, connections, expects;
	bool has_body_method;
};

static const struct {
	const char *name;
	enum method method;
	bool no_body;
} methods[] = {
	{"GET", METHOD_GET, false},
	{"POST", METHOD_POST, false},
	{"PUT", METHOD_PUT, false},
	{"PATCH", METHOD_PATCH, false},
	{"DELETE", METHOD_DELETE, false},
	{"HEAD", METHOD_HEAD, true},
	{"OPTIONS", METHOD_OTHER, false},
	{"TRACE", METHOD_OTHER, true},
};

void frame_init(struct frame *f)
{
	*f = (struct frame){.stage = FRAME_HEAD};
}

/* RFC 9110 token: what a method or a header name is made of, as a set of bits. */
static bool is_token_char(unsigned char c)
{
	static const uint64_t set[2] = {UINT64_C(0x03ff6cfa00000000), UINT64_C(0x57ffffffc7fffffe)};

	return c < 128 && (set[c >> 6] >> (c & 63) & 1);
}

static bool text_is_n(const char *s, size_t len, const char *word, size_t word_len)
{
	return word_len == len && strncasecmp(s, word, len) == 0;
}
#define text_is(s, len, word) text_is_n(s, len, word, sizeof(word) - 1)

static void check_method(struct frame *f, const char *s, size_t len, struct head *head)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strlen(methods[i].name) == len && memcmp(methods[i].name, s, len) == 0) {
			head->has_body_method = !methods[i].no_body;
			f->method = methods[i].method;
			return;
		}
	}
	for (size_t i = 0; i < len; i++)
		if (!is_token_char((unsigned char)s[i])) {
			REFUSE(f, 400, "request_line_invalid", "the request line has no method");
			return;
		}
	REFUSE(f, 501, "method_unknown", "the method is not known here");
}

static void check_version(struct frame *f, const char *s, size_t len)
{
	if (len == 8 && memcmp(s, "HTTP/1.1", 8) == 0)
		return;
	if (len == 8 && memcmp(s, "HTTP/1.0", 8) == 0)
		f->http10 = true;
	else if (len == 8 && memcmp(s, "HTTP/", 5) == 0)
		REFUSE(f, 505, "version_unsupported", "HTTP/1.1 and HTTP/1.0 are spoken here");
	else
		REFUSE(f, 400, "request_line_invalid", "the request line does not end in HTTP/1.1");
}

/* METHOD SP /target SP VERSION. "//" is refused because some read an authority there. */
static void check_request_line(struct frame *f, const char *s, size_t len, struct head *head)
{
	const char *first = memchr(s, ' ', len);
	const char *last = memrchr(s, ' ', len);
	size_t target;

	if (!first || first == s || last == first) {
		REFUSE(f, 400, "request_line_invalid",
			"the request line is not: method, space, path, space, HTTP/1.1");
		return;
	}
	check_method(f, s, (size_t)(first - s), head);
	if (f->stage == FRAME_REFUSED)
		return;
	first++;
	target = (size_t)(last - first);
	if (target > FRAME_TARGET_MAX) {
		REFUSE(f, 414, "target_too_long", "the path is longer than 8 KiB");
		return;
	}
	for (size_t i = 0; i < target; i++)
		if ((unsigned char)first[i] <= ' ' || (unsigned char)first[i] > '~') {
			REFUSE(f, 400, "target_invalid",
				"the path holds a space, a control character or a byte beyond "
				"ASCII");
			return;
		}
	if (target == 0 || first[0] != '/' || (target > 1 && first[1] == '/')) {
		REFUSE(f, 400, "target_invalid", "the path must begin with one slash");
		return;
	}
	f->target = (struct span){(uint32_t)(first - s), (uint32_t)target};
	check_version(f, last + 1, len - (size_t)(last + 1 - s));
}

static void take_length(struct frame *f, const char *s, size_t len)
{
	uint64_t v = 0;

	if (len == 0) {
		REFUSE(f, 400, "content_length_invalid", "Content-Length is empty");
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9') {
			REFUSE(f, 400, "content_length_invalid",
				"Content-Length is not a plain number");
			return;
		}
		if (v <= LIMIT_BODY)
			v = v * 10 + (uint64_t)(s[i] - '0');
	}
	if (v > LIMIT_BODY)
		REFUSE(f, 413, "body_too_large", "the body is larger than 1 MiB");
	else
		f->length = v;
}

static void take_connection(struct frame *f, const char *s, size_t len)
{
	f->close = text_is(s, len, "close");
	f->keep_alive = len >= 10 && strncasecmp(s, "keep-alive", 10) == 0;
}

/* One header whose name and value are known to be clean. */
static void take_header(struct frame *f, const char *name, size_t name_len, const char *value,
	size_t len, struct head *head)
{
	if (text_is(name, name_len, "Content-Length")) {
		if (head->lengths++)
			REFUSE(f, 400, "content_length_repeated", "Content-Length comes twice");
		else
			take_length(f, value, len);
	} else if (text_is(name, name_len, "Transfer-Encoding")) {
		if (head->encodings++)
			REFUSE(f, 400, "transfer_encoding_repeated",
				"Transfer-Encoding comes twice");
		else if (!text_is(value, len, "chunked"))
			REFUSE(f, 501, "transfer_encoding_unsupported",
				"the only Transfer-Encoding is chunked");
		f->chunked = true;
	} else if (text_is(name, name_len, "Host")) {
		if (head->hosts++)
			REFUSE(f, 400, "host_repeated", "Host comes twice");
	} else if (text_is(name, name_len, "Authorization")) {
		if (head->authorizations++)
			REFUSE(f, 400, "authorization_repeated", "Authorization comes twice");
		f->authorization = (struct span){(uint32_t)(value - head->base), (uint32_t)len};
	} else if (text_is(name, name_len, "Accept")) {
		f->accept = (struct span){(uint32_t)(value - head->base), (uint32_t)len};
	} else if (text_is(name, name_len, "Connection")) {
		if (!head->connections++)
			take_connection(f, value, len);
	} else if (text_is(name, name_len, "Expect")) {
		if (head->expects++ || !text_is(value, len, "100-continue"))
			REFUSE(f, 417, "expectation_failed", "the only Expect is 100-continue");
		f->expects = true;
	}
}

static void check_header(struct frame *f, const char *s, size_t len, struct head *head)
{
	const char *colon = memchr(s, ':', len), *value;
	size_t name = colon ? (size_t)(colon - s) : 0, left;

	if (++head->headers > FRAME_HEADERS_MAX) {
		REFUSE(f, 431, "too_many_headers", "there are more than 64 headers");
		return;
	}
	if (name == 0) {
		REFUSE(f, 400, "header_invalid", "a header line has no name and colon");
		return;
	}
	for (size_t i = 0; i < name; i++)
		if (!is_token_char((unsigned char)s[i])) {
			REFUSE(f, 400, "header_invalid",
				"a header name holds a space or another character that no name "
				"has");
			return;
		}
	value = colon + 1;
	left = len - name - 1;
	for (size_t i = 0; i < left; i++) {
		unsigned char c = (unsigned char)value[i];

		if ((c < ' ' && c != '\t') || c == 0x7f) {
			REFUSE(f, 400, "header_invalid", "a header holds a control character");
			return;
		}
	}
	for (; left && (*value == ' ' || *value == '\t'); value++)
		left--;
	while (left && (value[left - 1] == ' ' || value[left - 1] == '\t'))
		left--;
	take_header(f, s, name, value, left, head);
}

/* What the headers say together. */
static void conclude(struct frame *f, const struct head *head)
{
	if (!head->hosts && !f->http10)
		REFUSE(f, 400, "host_missing", "there is no Host");
	else if (f->chunked && head->lengths)
		REFUSE(f, 400, "length_ambiguous",
			"Content-Length and Transfer-Encoding exclude each other");
	else if (f->chunked && f->http10)
		REFUSE(f, 400, "length_ambiguous", "HTTP/1.0 has no Transfer-Encoding");
	else if (!head->has_body_method && (f->chunked || f->length))
		REFUSE(f, 400, "body_unexpected", "this method has no body");
	else
		f->stage = f->chunked || f->length ? FRAME_BODY : FRAME_WHOLE;
	if (f->http10 || f->stage != FRAME_BODY)
		f->expects = false;
}

/* The offset behind the next CR LF; 0 if the line is not ended or ends badly (then F is refused).
 */
static size_t line_end(struct frame *f, const char *data, size_t at, size_t len)
{
	const char *lf = memchr(data + at, '\n', len - at);
	size_t end;

	if (!lf)
		return 0;
	end = (size_t)(lf - data);
	if (end == at || data[end - 1] != '\r') {
		REFUSE(f, 400, "line_end_invalid", "a line does not end in CR LF");
		return 0;
	}
	return end + 1;
}

static void parse_head(struct frame *f, const char *data)
{
	struct head head = {.base = data};
	size_t at = 0;

	while (f->stage == FRAME_HEAD) {
		size_t next = line_end(f, data, at, f->head);
		size_t line = next ? next - at - 2 : 0;

		if (!next)
			return;
		if (memchr(data + at, '\0', line) || memchr(data + at, '\r', line)) {
			REFUSE(f, 400, "header_invalid", "the head holds a NUL or a bare CR");
			return;
		}
		if (at == 0)
			check_request_line(f, data, line, &head);
		else if (line == 0)
			conclude(f, &head);
		else if (data[at] == ' ' || data[at] == '\t')
			REFUSE(f, 400, "header_folded", "a header is folded over two lines");
		else
			check_header(f, data + at, line, &head);
		at = next;
	}
}

/* The end of the head: an empty line, however its line breaks are written (parse_head is strict).
 */
static size_t find_end(const struct frame *f, const char *data, size_t len)
{
	size_t at = f->scanned;

	for (;;) {
		const char *lf = memchr(data + at, '\n', len - at);

		if (!lf)
			return 0;
		at = (size_t)(lf - data) + 1;
		if (at < len && data[at] == '\n')
			return at + 1;
		if (at + 1 < len && data[at] == '\r' && data[at + 1] == '\n')
			return at + 2;
		if (at >= len)
			return 0;
	}
}

enum frame_stage frame_head(struct frame *f, const char *data, size_t len)
{
	if (f->stage != FRAME_HEAD)
		return f->stage;
	if (len > 0 && (data[0] == '\r' || data[0] == '\n'))
		return REFUSE(f, 400, "request_line_invalid",
			"there is an empty line before the request");
	f->head = find_end(f, data, len < FRAME_HEAD_MAX ? len : FRAME_HEAD_MAX);
	if (f->head)
		parse_head(f, data);
	else if (len >= FRAME_HEAD_MAX)
		REFUSE(f, 431, "headers_too_large",
			"the request line and headers are larger than 16 KiB");
	else
		f->scanned = len > 3 ? len - 3 : 0;
	return f->stage;
}
