/* SPDX-License-Identifier: ISC */
/*
 * Tag requests. A request is a list; what it gives is decided on bits: the farm has given each tag
 * a bit, so a compiled filter matches a node by a few word operations. A tag that no node has, has
 * no bit and matches nothing.
 */
#include "policy/tags.h"

#include <errno.h>
#include <string.h>

#include "wire/names.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Narrows [*START, *END) to what is left without surrounding space. */
static void trim(const char **start, const char **end)
{
	while (*start < *end && is_space(**start))
		(*start)++;
	while (*start < *end && is_space((*end)[-1]))
		(*end)--;
}

/* Adds TAG to a list unless it is there. -E2BIG. */
static int add_item(char list[TAG_REQUEST_ITEMS][LIMIT_NAME_SIZE], uint32_t *count, const char *tag)
{
	for (uint32_t i = 0; i < *count; i++) {
		if (strcmp(list[i], tag) == 0)
			return 0;
	}
	if (*count >= TAG_REQUEST_ITEMS)
		return -E2BIG;
	memcpy(list[(*count)++], tag, strlen(tag) + 1);
	return 0;
}

static int add_word(struct tag_request *r, const char *item, struct err *e)
{
	bool excluded = item[0] == '-';
	const char *tag = excluded ? item + 1 : item;
	int rc;

	if (strcmp(item, "none") == 0) {
		r->none = true;
		return 0;
	}
	if (strcmp(item, "any") == 0) {
		r->any = true;
		return 0;
	}
	if (strchr(item, '!'))
		return err_set(e, -EINVAL, "tags: \"%s\": ! may only end the list", item);
	if (!tag_name_valid(tag))
		return err_set(e, -EINVAL, "tags: \"%s\" is no tag", item);
	rc = excluded ? add_item(r->exclude, &r->exclude_count, tag)
		      : add_item(r->include, &r->include_count, tag);
	if (rc < 0)
		return err_set(e, -EINVAL, "tags: more than %d of a kind", TAG_REQUEST_ITEMS);
	return 0;
}

static int add_text(struct tag_request *r, const char *start, const char *end, struct err *e)
{
	char item[LIMIT_NAME_SIZE + 1]; /* one more for the '-' of an exclusion */

	trim(&start, &end);
	if (start == end)
		return 0;
	if ((size_t)(end - start) >= sizeof(item))
		return err_set(
			e, -EINVAL, "tags: \"%.*s…\" is longer than a tag may be", 32, start);
	memcpy(item, start, (size_t)(end - start));
	item[end - start] = '\0';
	return add_word(r, item, e);
}

int tag_request_parse(const char *text, struct tag_request *ret, struct err *e)
{
	struct tag_request r = {0};
	const char *at = text ? text : "";
	const char *end = at + strlen(at);
	bool required = false;

	trim(&at, &end);
	if (at < end && end[-1] == '!') {
		required = true;
		end--;
	}
	while (at < end) {
		const char *stop = at;
		int rc;

		while (stop < end && *stop != ';' && *stop != ',')
			stop++;
		rc = add_text(&r, at, stop, e);
		if (rc < 0)
			return rc;
		at = stop + (stop < end);
	}
	r.given = r.none || r.any || r.include_count || r.exclude_count;
	r.required = required && r.given;
	*ret = r;
	return 0;
}

static bool asks_only_exclusions(const struct tag_request *r)
{
	return r->given && !r->none && !r->any && r->include_count == 0;
}

const char *tag_request_denied(const struct tag_request *r, const struct tag_set *allowed)
{
	if (allowed->count == 0)
		return NULL;
	for (uint32_t i = 0; i < r->include_count; i++) {
		if (!tag_set_has(allowed, r->include[i]))
			return r->include[i];
	}
	/* Nodes of every tag would be reached without naming one. */
	return r->any || asks_only_exclusions(r) ? "any" : NULL;
}

static void set_bit(uint16_t bits[FARM_TAG_WORDS], const struct farm *farm, const char *tag)
{
	int bit = farm_find_tag(farm, tag);

	if (bit >= 0)
		bits[bit / FARM_TAG_BITS] |= (uint16_t)(1u << bit % FARM_TAG_BITS);
}

void tag_filter_compile(const struct tag_request *r, enum untagged_default untagged_default,
	const struct farm *farm, struct tag_filter *ret)
{
	struct tag_filter filter = {0};
	bool given = r && r->given;
	bool only_excludes = r && asks_only_exclusions(r);

	if (!given) {
		filter.untagged = true;
		filter.tagged = untagged_default == UNTAGGED_ANY;
		*ret = filter;
		return;
	}
	filter.tagged = r->any || only_excludes;
	filter.untagged = filter.tagged || r->none;
	for (uint32_t i = 0; i < r->include_count; i++)
		set_bit(filter.include, farm, r->include[i]);
	for (uint32_t i = 0; i < r->exclude_count; i++)
		set_bit(filter.exclude, farm, r->exclude[i]);
	*ret = filter;
}

bool tag_filter_match(const struct tag_filter *filter, const struct farm *farm, uint32_t slot)
{
	bool match = farm->flags[slot] & FARM_TAGGED ? filter->tagged : filter->untagged;

	for (uint32_t w = 0; w < farm->tag_words; w++) {
		uint16_t bits = farm_tag_word(farm, slot, w);

		if (bits & filter->exclude[w])
			return false;
		if (bits & filter->include[w])
			match = true;
	}
	return match;
}
