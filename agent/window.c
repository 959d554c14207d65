/* SPDX-License-Identifier: ISC */
/*
 * A ring of samples in memory (oldest first, `count` of `cap`), the login tables, and a file that
 * is either in step or `behind`. While behind, the next write replaces the whole content, so no
 * failure leaves a gap; a warning tells when it falls behind and a line when it is back.
 *
 * Ages are measured on the clock since boot: no jump of the wall clock makes a sample old or young.
 */
#include "agent/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/window_db.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

struct window {
	char *path; /* NULL: memory only */
	char *dir;
	char boot_id[LIMIT_BOOT_ID_SIZE];
	struct sample *samples;
	size_t count, cap;
	uint64_t taken; /* samples since the beginning: numbers the rows */
	uint64_t max_age_ms;
	struct logins logins;
	struct window_db *db;
	bool behind;
	bool warned;
	bool lost_said;
};

static uint64_t max_age(size_t cache_size, uint32_t interval)
{
	return (uint64_t)cache_size * interval * 2 * 1000;
}

static void set_aside(struct window *w, const struct err *why)
{
	struct err e;

	log_warning("\"%s\" is damaged: %s; it is set aside and begun anew", w->path, why->text);
	if (window_db_set_aside(w->path, &e) != 0)
		log_warning("%s", e.text);
}

/* Opens the file and reads it into memory when LOAD; a damaged one is set aside once. */
static int open_file(struct window *w, bool load, struct err *e)
{
	int error = 0;

	if (mkdir(w->dir, 0700) != 0 && errno != EEXIST)
		return err_errno(e, -errno, "could not create folder \"%s\"", w->dir);
	for (int attempt = 0; attempt < 2; attempt++) {
		struct window_loaded loaded = {.samples = w->samples, .sample_cap = w->cap};

		error = window_db_open(w->path, &w->db, e);
		if (!error && load)
			error = window_db_load(w->db, w->boot_id, &loaded, e);
		if (!error && load) {
			w->count = w->taken = loaded.sample_count;
			w->logins = loaded.logins;
		}
		if (!error)
			return 0;
		logins_deinit(&loaded.logins);
		window_db_close(w->db);
		w->db = NULL;
		if (error != WINDOW_DB_DAMAGED)
			break;
		set_aside(w, e);
	}
	return err_prefix(e, error, "could not open \"%s\"", w->path);
}

static void note_failure(struct window *w, const struct err *e)
{
	w->behind = true;
	if (!w->warned)
		log_warning(
			"%s; samples are kept in memory until it can be written again", e->text);
	w->warned = true;
}

static void fill_whole(const struct window *w, struct window_write *write)
{
	write->all = true;
	write->samples = w->samples;
	write->sample_count = w->count;
	write->first_sample = w->taken - w->count;
	write->waiting = w->logins.waiting;
	write->waiting_count = w->logins.waiting_count;
	write->acknowledged = 0;
}

/* One transaction: WRITE's part, or everything if the file is behind. */
static void store(struct window *w, struct window_write write)
{
	struct err e;
	int error = 0;

	if (!w->path)
		return;
	for (int attempt = 0; attempt < 2; attempt++) {
		if (!w->db)
			error = open_file(w, false, &e);
		write.boot_id = w->boot_id;
		write.baseline = w->logins.have_baseline;
		write.sample_cap = w->cap;
		write.known = w->logins.known;
		write.known_count = w->logins.known_count;
		if (w->behind)
			fill_whole(w, &write);
		if (!error) {
			error = window_db_store(w->db, &write, &e);
			if (error)
				err_prefix(&e, error, "could not write \"%s\"", w->path);
		}
		if (error != WINDOW_DB_DAMAGED)
			break;
		window_db_close(w->db);
		w->db = NULL;
		w->behind = true;
		set_aside(w, &e);
		error = 0;
	}
	if (error) {
		note_failure(w, &e);
		return;
	}
	if (w->warned)
		log_info("\"%s\" is written again", w->path);
	w->warned = false;
	w->behind = false;
}

static struct window *window_alloc(const struct window_options *o)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->cap = o->cache_size;
	w->samples = calloc(w->cap, sizeof(*w->samples));
	w->max_age_ms = max_age(o->cache_size, o->collect_interval);
	text_copy(w->boot_id, sizeof(w->boot_id), o->boot_id);
	if (o->dir) {
		w->dir = strdup(o->dir);
		if (asprintf(&w->path, "%s/window.db", o->dir) < 0)
			w->path = NULL;
	}
	if (!w->samples || (o->dir && (!w->dir || !w->path))) {
		window_free(w);
		return NULL;
	}
	return w;
}

int window_new(const struct window_options *o, struct window **ret, struct err *e)
{
	struct window *w = window_alloc(o);
	int error = 0;

	if (!w)
		return err_errno(e, -ENOMEM, "could not keep samples");
	if (w->path)
		error = open_file(w, true, e);
	if (error == WINDOW_DB_BUSY) {
		window_free(w);
		return err_prefix(e, -EBUSY, "another agent runs on this state folder");
	}
	if (error)
		note_failure(w, e);
	/* Rows of another boot or another cache size go. */
	w->behind = true;
	if (!error)
		store(w, (struct window_write){0});
	*ret = w;
	return 0;
}

void window_free(struct window *w)
{
	if (!w)
		return;
	window_db_close(w->db);
	logins_deinit(&w->logins);
	free(w->samples);
	free(w->path);
	free(w->dir);
	free(w);
}

int window_resize(struct window *w, size_t cache_size, uint32_t collect_interval)
{
	if (cache_size != w->cap) {
		size_t keep = w->count < cache_size ? w->count : cache_size;
		struct sample *samples = calloc(cache_size, sizeof(*samples));

		if (!samples)
			return -ENOMEM;
		if (keep > 0)
			memcpy(samples, w->samples + w->count - keep, keep * sizeof(*samples));
		free(w->samples);
		w->samples = samples;
		w->count = keep;
		w->cap = cache_size;
		w->behind = true;
	}
	w->max_age_ms = max_age(cache_size, collect_interval);
	return 0;
}

static void push_sample(struct window *w, const struct sample *s)
{
	if (w->count == w->cap) {
		memmove(w->samples, w->samples + 1, (w->cap - 1) * sizeof(*w->samples));
		w->count--;
	}
	w->samples[w->count++] = *s;
	w->taken++;
}

void window_add(struct window *w, const struct sample *s, const struct session_list *seen)
{
	struct window_write write = {.samples = s, .sample_count = 1};
	struct logins_change change = {0};

	write.first_sample = w->taken;
	push_sample(w, s);
	if (logins_update(&w->logins, seen, &change) != 0)
		log_warning("could not compare sessions: out of memory");
	write.known_changed = change.known_changed;
	if (change.new_waiting > 0)
		write.waiting = w->logins.waiting + w->logins.waiting_count - change.new_waiting;
	write.waiting_count = change.new_waiting;
	if (w->logins.lost > 0 && !w->lost_said)
		log_warning("more than %d logins wait for a dispatcher; the oldest are given up",
			LOGINS_MAX);
	w->lost_said = w->logins.lost > 0;
	if (w->logins.waiting_count == LOGINS_MAX) /* the file has no more than memory */
		write.acknowledged = w->logins.waiting[0].serial - 1;
	store(w, write);
}

void window_average(const struct window *w, uint64_t now_boot_ms, struct heartbeat *h)
{
	size_t first = 0, end = w->count;

	while (first < end && w->samples[first].boot_ms + w->max_age_ms < now_boot_ms)
		first++;
	while (end > first && w->samples[end - 1].boot_ms > now_boot_ms)
		end--;
	sample_average(w->samples + first, end - first, now_boot_ms, h);
}

const struct login *window_logins(const struct window *w, size_t *ret_count)
{
	*ret_count = w->logins.waiting_count;
	return w->logins.waiting;
}

void window_acknowledge(struct window *w, uint64_t serial)
{
	if (logins_acknowledge(&w->logins, serial))
		store(w, (struct window_write){.acknowledged = serial});
}

bool window_is_stored(const struct window *w)
{
	return w->db && !w->behind;
}
