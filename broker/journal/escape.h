/* SPDX-License-Identifier: ISC */
/* Makes text of unknown origin safe to stand in one line. */
#pragma once

#include "base/buf.h"

enum escape_style {
	ESCAPE_TEXT, /* for a human: what could break or reorder a line, nothing else */
	ESCAPE_LINE, /* in a log line's text: quotes too, so that no key="value" can be imitated */
	ESCAPE_QUOTED, /* between double quotes: \" and \\ */
	ESCAPE_WORD,   /* one word: spaces and quotes too */
};

/* A value longer than this (escaped, in bytes) is cut and ends in "…". */
#define ESCAPE_VALUE_MAX 4096

/*
 * Adds TEXT (NULL = ""). Escaped as \n, \r, \t or byte by byte as \xNN: control characters (C0,
 * DEL, C1), line and paragraph separators, marks that change the direction of text, and bytes that
 * are not well-formed UTF-8. What comes out is always well-formed UTF-8 of one line.
 */
void escape_add(struct buf *out, const char *text, enum escape_style style);
