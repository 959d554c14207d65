/* SPDX-License-Identifier: ISC */
/*
 * Inside api/: a request under way and how it is answered.
 *
 * A handler answers once, at once or later. One that answers later calls request_hold first and
 * request_release when it will not touch the request any more; if the client went away meanwhile,
 * request_gone() says so and answering does nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/server.h"
#include "api/smuggle.h"
#include "base/buf.h"
#include "service/service.h"

#define REQUEST_PATH_MAX 6 /* segments */

#define CONTENT_JSON "application/json"
#define CONTENT_PROBLEM "application/problem+json"
#define CONTENT_TEXT "text/plain; charset=utf-8"

struct request {
	struct api *api;
	struct conn *conn;
	bool live; /* neither answered nor is the client gone */
	enum method method;
	/* in the connection's input, until answered */
	const char *path;		    /* undecoded, without the query */
	const char *query;		    /* "" when there is none */
	const char *authorization, *accept; /* header values, or NULL */
	const char *body;
	size_t body_len;
	const char *segment[REQUEST_PATH_MAX]; /* of a path with names in it, decoded */
	unsigned segments;
	struct caller caller;
	char names[REQUEST_PATH_MAX][LIMIT_NAME_SIZE + LIMIT_SESSION_ID_SIZE];
	char headers[256]; /* more lines for the answer */
	unsigned header_bytes;
	/* the object that a change is about */
	char subject[LIMIT_NAME_SIZE];
};

/* A whole request is in the connection's input. */
void request_arrived(struct conn *c);

void request_hold(struct request *r);
void request_release(struct request *r);
bool request_gone(const struct request *r);

bool request_accepts(const struct request *r, const char *type);

/* The scratch for the answer's body, empty. To be filled and sent before returning to the loop. */
struct buf *request_out(struct request *r);
/* A further header of the answer; VALUE must hold no line break. */
void request_add_header(struct request *r, const char *name, const char *value);
/* Answers with what is in request_out. Failures in the text become a 500. */
void request_send(struct request *r, unsigned status, const char *content_type);
/* 204. */
void request_send_empty(struct request *r);
