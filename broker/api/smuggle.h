/* SPDX-License-Identifier: ISC */
/*
 * Where one HTTP request ends and the next begins, decided by hand and strictly. What two programs
 * may read differently is refused (two Content-Length, "Content-Length :", "+3",
 * "Transfer-Encoding: gzip, chunked", bare line feeds, a body behind HEAD …): whoever disagrees
 * with a proxy in front about the end of a request can be made to answer the wrong one. Pure: no
 * I/O, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/limits.h"

#define FRAME_HEAD_MAX (16 * 1024) /* request line and headers */
#define FRAME_TARGET_MAX (8 * 1024)
#define FRAME_HEADERS_MAX 64
#define FRAME_CHUNKED_MAX (2 * LIMIT_BODY) /* a chunked body with its framing */

enum frame_stage { FRAME_HEAD, FRAME_BODY, FRAME_WHOLE, FRAME_REFUSED };

enum method {
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_PUT,
	METHOD_PATCH,
	METHOD_DELETE,
	METHOD_OTHER
};

/* A part of the head: offset and length. */
struct span {
	uint32_t at, len;
};

/* Why a request is refused. Strings are static. */
struct refusal {
	unsigned status;
	const char *code, *detail;
};

enum chunk_step {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_END_CR,
	CHUNK_END_LF
};

struct frame {
	enum frame_stage stage;
	size_t scanned;	 /* bytes of the head that hold no end of it */
	size_t head;	 /* length of the head with its empty line, once known */
	uint64_t length; /* body by Content-Length */
	bool chunked;
	bool expects; /* 100-continue is waited for */
	bool http10, close, keep_alive;
	enum method method;
	struct span target;		   /* path and query */
	struct span authorization, accept; /* values; at 0: there is none */
	enum chunk_step step;
	unsigned digits;
	uint64_t chunk, body; /* left of this chunk; all chunks so far */
	uint64_t fed;	      /* bytes of the chunked body looked at */
	struct refusal refusal;
};

void frame_init(struct frame *f);
/* DATA is what has come since the request began, at least its head (never more of it is needed).
 * Moves on from FRAME_HEAD when the head is whole. A body by length is whole when HEAD + LENGTH
 * bytes are there. */
enum frame_stage frame_head(struct frame *f, const char *data, size_t len);
/* Moves the data of a whole chunked body (FED bytes behind the head, where DATA points) together in
 * place; returns its length. */
size_t frame_unchunk(char *data, size_t len);
/* The next LEN bytes of a chunked body, each byte once. Ignores what follows the end. */
enum frame_stage frame_chunks(struct frame *f, const char *data, size_t len);
