/* SPDX-License-Identifier: ISC */
/* Tag requests (DESIGN "Tags"): parse, restrict, compile against a farm. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/farm.h"
#include "model/provider.h"

#define TAG_REQUEST_ITEMS 32

struct tag_request {
	bool given;    /* false: nothing was asked ("" and "!" alone too) */
	bool required; /* ended with '!' */
	bool none, any;
	uint32_t include_count, exclude_count;
	char include[TAG_REQUEST_ITEMS][LIMIT_NAME_SIZE];
	char exclude[TAG_REQUEST_ITEMS][LIMIT_NAME_SIZE];
};

/* 0, or -EINVAL with the item and what is wrong with it. TEXT NULL = no request. */
int tag_request_parse(const char *text, struct tag_request *ret, struct err *e);
/* What R asks for that is not in ALLOWED (an empty set allows all): its first such tag, or "any" if
 * it asks for every node, also by exclusions alone; else NULL. */
const char *tag_request_denied(const struct tag_request *r, const struct tag_set *allowed);

/* R compiled for a farm: whether a node matches, from its bits alone. */
struct tag_filter {
	bool untagged; /* untagged nodes match */
	bool tagged;   /* every tagged node matches (any) */
	uint16_t include[FARM_TAG_WORDS], exclude[FARM_TAG_WORDS];
};
/* UNTAGGED_DEFAULT: what no request gives. */
void tag_filter_compile(const struct tag_request *r, enum untagged_default untagged_default,
	const struct farm *farm, struct tag_filter *ret);
bool tag_filter_match(const struct tag_filter *filter, const struct farm *farm, uint32_t slot);
