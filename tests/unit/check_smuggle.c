/* SPDX-License-Identifier: ISC */
/*
 * Request framing: every way to cut a request into pieces is the same request, the refusals are
 * told, and no bytes at all upset it. (tests/e2e/test_http_limits.py has the refusals over the
 * wire.)
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/smuggle.h"
#include "lib/tap.h"

/* Feeds the first LEN bytes of DATA, PIECE more at a time, as a connection does. */
static void feed(struct frame *f, const char *data, size_t len, size_t piece)
{
	frame_init(f);
	for (size_t have = piece < len ? piece : len;; have += piece) {
		if (have > len)
			have = len;
		if (f->stage == FRAME_HEAD)
			frame_head(f, data, have);
		if (f->stage == FRAME_BODY && f->chunked && have > f->head + f->fed)
			frame_chunks(f, data + f->head + f->fed, have - f->head - (size_t)f->fed);
		else if (f->stage == FRAME_BODY && !f->chunked && have >= f->head + f->length)
			f->stage = FRAME_WHOLE;
		if (have == len || f->stage == FRAME_WHOLE || f->stage == FRAME_REFUSED)
			return;
	}
}

static bool span_is(const char *data, struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(data + s.at, text, s.len) == 0;
}

START_TEST(a_request_in_any_pieces)
{
	static const char data[] =
		"POST /a?b=c HTTP/1.1\r\nHost: x\r\nAuthorization:  Bearer t \r\n"
		"ACCEPT:\tapplication/x-rdp\r\nTransfer-Encoding: Chunked\r\n\r\n"
		"3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
	size_t whole = (size_t)(strstr(data, "GET") - data);

	for (size_t piece = 1; piece <= sizeof(data) - 1; piece++) {
		struct frame f;

		feed(&f, data, sizeof(data) - 1, piece);
		ck_assert_int_eq(f.stage, FRAME_WHOLE);
		ck_assert_uint_eq(f.head + f.fed, whole);
		ck_assert_uint_eq(f.body, 13);
		ck_assert_int_eq(f.method, METHOD_POST);
		ck_assert(span_is(data, f.target, "/a?b=c"));
		ck_assert(span_is(data, f.authorization, "Bearer t"));
		ck_assert(span_is(data, f.accept, "application/x-rdp"));
	}
}
END_TEST

START_TEST(nothing_less_than_all_is_whole)
{
	static const char data[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
	static const char chunked[] =
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		"5\r\nhello\r\n0\r\n\r\n";
	struct frame f;

	for (size_t len = 0; len < sizeof(data) - 1; len++) {
		feed(&f, data, len, 7);
		ck_assert_int_lt(f.stage, FRAME_WHOLE);
	}
	for (size_t len = 0; len < sizeof(chunked) - 1; len++) {
		feed(&f, chunked, len, 7);
		ck_assert_int_lt(f.stage, FRAME_WHOLE);
	}
}
END_TEST

START_TEST(chunks_become_one_body)
{
	char data[] = "3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n";
	size_t len = frame_unchunk(data, sizeof(data) - 1);

	ck_assert_uint_eq(len, 13);
	ck_assert_int_eq(memcmp(data, "abc0123456789", 13), 0);
	memcpy(data, "0\r\n\r\n", 5);
	ck_assert_uint_eq(frame_unchunk(data, 5), 0);
}
END_TEST

START_TEST(connection_and_expectation)
{
	struct frame f;
	const char *text = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";

	feed(&f, text, strlen(text), 100);
	ck_assert(f.stage == FRAME_WHOLE && f.http10 && f.keep_alive && !f.close);
	text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: CLOSE\r\nExpect: 100-continue\r\n\r\n";
	feed(&f, text, strlen(text), 100);
	ck_assert(f.stage == FRAME_WHOLE && f.close && !f.expects);
	text = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n";
	feed(&f, text, strlen(text), 1000);
	ck_assert(f.stage == FRAME_BODY && f.expects && f.length == 1);
}
END_TEST

static const struct {
	const char *text;
	unsigned status;
	const char *code;
} refused[] = {
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400,
		"content_length_repeated"},
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 1\r\n\r\n", 400, "header_invalid"},
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400, "content_length_invalid"},
	{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551617\r\n\r\n", 413,
		"body_too_large"},
	{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501,
		"transfer_encoding_unsupported"},
	{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
		400, "length_ambiguous"},
	{"HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", 400, "body_unexpected"},
	{"TRACE / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
		"body_unexpected"},
	{"GET / HTTP/1.1\r\n\r\n", 400, "host_missing"},
	{"GET / HTTP/1.1\r\nHost: x\n\r\n", 400, "line_end_invalid"},
	{"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", 400, "header_folded"},
	{"GET / HTTP/1.1\r\n\tHost: x\r\n\r\n", 400, "header_folded"},
	{"GET / HTTP/1.1\r\nHost: x\r\nA\x80: b\r\n\r\n", 400, "header_invalid"},
	{"GET //a HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"},
	{"GE(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request_line_invalid"},
	{"GET / HTTP/1.10\r\nHost: x\r\n\r\n", 400, "request_line_invalid"},
	{"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505, "version_unsupported"},
	{"\n\n", 400, "request_line_invalid"},
};

START_TEST(refusals)
{
	size_t len = strlen(refused[_i].text);

	for (size_t piece = 1; piece <= len; piece += 3) {
		struct frame f;

		feed(&f, refused[_i].text, len, piece);
		ck_assert_int_eq(f.stage, FRAME_REFUSED);
		ck_assert_uint_eq(f.refusal.status, refused[_i].status);
		ck_assert_str_eq(f.refusal.code, refused[_i].code);
	}
}
END_TEST

START_TEST(a_head_without_end_is_bounded)
{
	struct frame f;
	char *text = malloc(FRAME_HEAD_MAX + 100);

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', FRAME_HEAD_MAX + 100);
	feed(&f, text, FRAME_HEAD_MAX - 1, 1000);
	ck_assert_int_eq(f.stage, FRAME_HEAD);
	feed(&f, text, FRAME_HEAD_MAX, 1000);
	ck_assert_int_eq(f.stage, FRAME_REFUSED);
	ck_assert_uint_eq(f.refusal.status, 431);
	free(text);
}
END_TEST

START_TEST(tiny_chunks_are_bounded_with_their_framing)
{
	struct frame f;
	const char *head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
	uint64_t fed = 0;

	feed(&f, head, strlen(head), 1000);
	while (frame_chunks(&f, "1\r\na\r\n", 6) == FRAME_BODY)
		fed += 6;
	ck_assert_int_eq(f.stage, FRAME_REFUSED);
	ck_assert_uint_eq(f.refusal.status, 413);
	ck_assert_uint_le(fed, FRAME_CHUNKED_MAX);
}
END_TEST

/* Damaged requests: whatever is made of them, lengths stay within what was given, and pieces do not
 * matter. */
START_TEST(damage_does_no_harm)
{
	static const char model[] =
		"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAccept: a\r\n\r\n"
		"5\r\nhello\r\n0\r\n\r\n";
	static const char odd[] = "\0\r\n \t:;,+-0123456789aAfF\x7f\x80\xff/?HTP";
	uint64_t state = 12345 + (uint64_t)_i;

	for (int round = 0; round < 2000; round++) {
		char data[sizeof(model)];
		size_t len = sizeof(model) - 1;
		struct frame a, b;

		memcpy(data, model, sizeof(model));
		for (int n = 0; n < 3; n++) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
			data[(state >> 33) % len] = odd[(state >> 20) % (sizeof(odd) - 1)];
		}
		feed(&a, data, len, len);
		feed(&b, data, len, 1 + (state >> 50) % 9);
		ck_assert_int_eq(a.stage, b.stage);
		if (a.stage == FRAME_REFUSED) {
			ck_assert_uint_ge(a.refusal.status, 400);
			continue;
		}
		ck_assert_uint_le(a.head + a.fed, len);
		ck_assert_uint_le((uint64_t)a.target.at + a.target.len, len);
		if (a.stage == FRAME_WHOLE && a.chunked)
			ck_assert_uint_eq(frame_unchunk(data + a.head, (size_t)a.fed), a.body);
	}
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static Suite *make_suite(void)
{
	Suite *s = suite_create("smuggle");
	TCase *t = tcase_create("smuggle");

	tcase_add_test(t, a_request_in_any_pieces);
	tcase_add_test(t, nothing_less_than_all_is_whole);
	tcase_add_test(t, chunks_become_one_body);
	tcase_add_test(t, connection_and_expectation);
	tcase_add_loop_test(t, refusals, 0, COUNT(refused));
	tcase_add_test(t, a_head_without_end_is_bounded);
	tcase_add_test(t, tiny_chunks_are_bounded_with_their_framing);
	tcase_add_loop_test(t, damage_does_no_harm, 0, 10);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
