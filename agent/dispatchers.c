/* SPDX-License-Identifier: ISC */
/* Pure: a list, an index and a count of failures. The index runs over topology, then configured. */
#include "agent/dispatchers.h"

#include <string.h>

static size_t total(const struct dispatchers *d)
{
	return d->topology.count + d->configured_count;
}

static const char *url_at(const struct dispatchers *d, size_t i)
{
	return i < d->topology.count ? d->topology.dispatchers[i].url
				     : d->configured[i - d->topology.count];
}

void dispatchers_init(
	struct dispatchers *d, const char (*urls)[CONFIG_URL_SIZE], size_t count, uint64_t pick)
{
	memset(d, 0, sizeof(*d));
	memcpy(d->configured, urls, count * sizeof(*urls));
	d->configured_count = count;
	d->at = count ? pick % count : 0;
}

const char *dispatchers_current(const struct dispatchers *d)
{
	return url_at(d, d->at);
}

void dispatchers_succeeded(struct dispatchers *d)
{
	d->tried = 0;
}

/* Whether the list has the same URL at an earlier place. */
static bool is_repeated(const struct dispatchers *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(url_at(d, k), url_at(d, i)) == 0)
			return true;
	return false;
}

bool dispatchers_failed(struct dispatchers *d)
{
	do {
		d->at = (d->at + 1) % total(d);
		d->tried++;
	} while (d->tried < total(d) && is_repeated(d, d->at));
	if (d->tried < total(d))
		return true;
	d->tried = 0;
	if (is_repeated(d, d->at))
		d->at = 0;
	return false;
}

static bool same_urls(const struct topology *a, const struct topology *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->dispatchers[i].url, b->dispatchers[i].url) != 0)
			return false;
	return true;
}

/* Those with a URL that we would accept in the configuration. */
static void keep_usable(const struct topology *from, struct topology *to)
{
	*to = *from;
	to->count = 0;
	for (size_t i = 0; i < from->count; i++) {
		struct topology_dispatcher *p = &to->dispatchers[to->count];

		memcpy(p->name, from->dispatchers[i].name, sizeof(p->name));
		if (config_url_valid(from->dispatchers[i].url, p->url))
			to->count++;
	}
}

enum dispatchers_news dispatchers_learn(
	struct dispatchers *d, const struct topology *t, uint64_t pick)
{
	struct topology usable;
	char current[CONFIG_URL_SIZE];

	if (d->topology.count > 0) {
		if (strcmp(d->topology.cluster_id, t->cluster_id) != 0)
			return DISPATCHERS_FOREIGN;
		if (t->version <= d->topology.version)
			return DISPATCHERS_SAME;
	}
	keep_usable(t, &usable);
	if (usable.count == 0)
		return DISPATCHERS_EMPTY;
	if (same_urls(&usable, &d->topology)) {
		d->topology = usable;
		return DISPATCHERS_SAME;
	}
	memcpy(current, dispatchers_current(d), sizeof(current));
	d->topology = usable;
	d->tried = 0;
	d->at = pick % usable.count;
	/* The only one there is may be the one we talk to: keep its connection. */
	if (usable.count == 1 && strcmp(usable.dispatchers[0].url, current) == 0)
		d->at = 0;
	return DISPATCHERS_NEW;
}
