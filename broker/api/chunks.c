/* SPDX-License-Identifier: ISC */
/*
 * The framing of a chunked body, byte by byte: hexadecimal size, CR LF, data, CR LF, until a size
 * of 0 and an empty line. No signs, spaces, extensions or trailers, each of which somebody reads
 * differently.
 */
#include "api/smuggle.h"

#include <string.h>

static void refuse(struct frame *f, unsigned status, const char *code, const char *detail)
{
	f->refusal = (struct refusal){.status = status, .code = code, .detail = detail};
	f->stage = FRAME_REFUSED;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One byte of framing; data of chunks is skipped by the caller. */
static void chunk_byte(struct frame *f, char c)
{
	int v;

	if (f->step == CHUNK_SIZE && (v = hex_value(c)) >= 0 && f->digits < 8) {
		f->chunk = f->chunk * 16 + (uint64_t)v;
		f->digits++;
	} else if (f->step == CHUNK_SIZE && c == '\r' && f->digits) {
		f->step = CHUNK_SIZE_LF;
	} else if (f->step == CHUNK_SIZE_LF && c == '\n') {
		f->step = f->chunk ? CHUNK_DATA : CHUNK_END_CR;
		f->body += f->chunk;
		f->digits = 0;
		if (f->body > LIMIT_BODY)
			refuse(f, 413, "body_too_large", "the body is larger than 1 MiB");
	} else if (f->step == CHUNK_DATA_CR && c == '\r') {
		f->step = CHUNK_DATA_LF;
	} else if (f->step == CHUNK_DATA_LF && c == '\n') {
		f->step = CHUNK_SIZE;
	} else if (f->step == CHUNK_END_CR && c == '\r') {
		f->step = CHUNK_END_LF;
	} else if (f->step == CHUNK_END_LF && c == '\n') {
		f->stage = FRAME_WHOLE;
	} else if (f->step == CHUNK_END_CR) {
		refuse(f, 400, "trailers_refused", "trailers behind a chunked body are not taken");
	} else {
		refuse(f, 400, "chunk_invalid",
			"a chunk is not: hexadecimal size, CR LF, data, CR LF (no extensions)");
	}
}

enum frame_stage frame_chunks(struct frame *f, const char *data, size_t len)
{
	for (size_t i = 0; i < len && f->stage == FRAME_BODY;) {
		size_t n = 1;

		if (f->step == CHUNK_DATA) {
			n = len - i < f->chunk ? len - i : (size_t)f->chunk;
			f->chunk -= n;
			if (f->chunk == 0)
				f->step = CHUNK_DATA_CR;
		} else {
			chunk_byte(f, data[i]);
		}
		i += n;
		f->fed += n;
		if (f->fed > FRAME_CHUNKED_MAX)
			refuse(f, 413, "body_too_large",
				"the chunked body is larger than 2 MiB with its framing");
	}
	return f->stage;
}

size_t frame_unchunk(char *data, size_t len)
{
	size_t at = 0, out = 0;

	while (at < len) {
		size_t chunk = 0;

		for (; hex_value(data[at]) >= 0; at++)
			chunk = chunk * 16 + (size_t)hex_value(data[at]);
		at += 2;
		if (chunk == 0)
			break;
		memmove(data + out, data + at, chunk);
		out += chunk;
		at += chunk + 2;
	}
	return out;
}
