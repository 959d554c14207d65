/* SPDX-License-Identifier: ISC */
/*
 * One timer collects. Each look reads everything, makes a sample of it and hands it with the
 * sessions to the window; pushing asks for a report whenever it wants one. A collector's trouble is
 * said when it begins and when it is over.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_check.h"
#include "agent/collect_cpu.h"
#include "agent/collect_memory.h"
#include "agent/listening.h"
#include "agent/load_script.h"
#include "agent/push.h"
#include "agent/report.h"
#include "agent/sessions.h"
#include "agent/sysroot.h"
#include "agent/users.h"
#include "agent/window.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/notify.h"
#include "base/secret.h"
#include "base/text.h"

#define FIRST_LOOK_MS 1000 /* after the CPU counters were read for the first time */

enum collector { CPU, MEMORY, SESSIONS, PORT, COLLECTORS };

struct agent {
	struct event_base *base;
	struct config *config;
	struct sysroot root;
	struct users *users;
	char boot_id[LIMIT_BOOT_ID_SIZE];
	uint64_t seq;
	struct cpu_reading cpu;
	struct session_list sessions; /* as of the last look */
	bool accepting;
	size_t dropped_said;
	bool trouble[COLLECTORS];
	struct window *window;
	struct agent_check *check; /* NULL: none configured */
	struct said {
		int64_t at_ms; /* monotonic; 0 = never */
		uint32_t push_interval;
		bool maintenance, has_load_index;
		uint32_t load_index;
	} said;			    /* by a dispatcher, the last time */
	struct load_script *script; /* NULL: none configured */
	struct push *push;
	struct loop_timer *timer;
	void (*once_done)(void *ctx);
	void *once_ctx;
};

static void note(struct agent *a, enum collector which, int error, const struct err *e)
{
	static const struct {
		const char *what, *then;
	} names[] = {
		[CPU] = {"CPU use", "heartbeats go without CPU use"},
		[MEMORY] = {"memory", "heartbeats go without memory"},
		[SESSIONS] = {"the whole list of sessions", "the list of sessions is incomplete"},
		[PORT] = {"the RDP port", "the node takes no new users"},
	};

	if (error && !a->trouble[which])
		log_warning("%s; %s", e->text, names[which].then);
	if (!error && a->trouble[which])
		log_info("%s can be read again", names[which].what);
	a->trouble[which] = error != 0;
}

static void look_at_cpu(struct agent *a, struct sample *s)
{
	struct cpu_reading now;
	struct cpu_share share;
	struct err e;

	note(a, CPU, cpu_read(&a->root, clock_mono_us(), &now, &e), &e);
	cpu_share(&a->cpu, &now, &share);
	a->cpu = now;
	s->has_cpu = share.has_busy;
	s->cpu_busy = share.busy;
	s->cpu_count = share.count;
}

static void look_at_memory(struct agent *a, struct sample *s)
{
	struct memory_reading m;
	struct err e;
	int error = memory_read(&a->root, &m, &e);

	note(a, MEMORY, error, &e);
	if (error)
		return;
	s->has_memory = true;
	s->memory_total = m.total;
	s->memory_available = m.available;
}

static void look_at_sessions(struct agent *a)
{
	struct sessions_options o = {.text_sessions = a->config->text_sessions};
	struct session_list seen;
	struct err e;

	note(a, SESSIONS, sessions_collect(&a->root, a->users, &o, &seen, &e), &e);
	if (seen.dropped > 0 && seen.dropped != a->dropped_said)
		log_warning(
			"%zu session entries are left out: no acceptable user name, or beyond %d",
			seen.dropped, LIMIT_SESSIONS);
	a->dropped_said = seen.dropped;
	session_list_deinit(&a->sessions);
	a->sessions = seen;
}

static void look_at_port(struct agent *a)
{
	bool was = a->accepting;
	struct err e;
	int error = listening_on(&a->root, a->config->port, &a->accepting, &e);

	note(a, PORT, error, &e);
	if (error)
		a->accepting = false;
	if (was && !a->accepting)
		log_warning("nothing listens on port %u any more: the node takes no new users",
			a->config->port);
}

static void collect(struct agent *a)
{
	struct sample s = {0};

	sysroot_advance(&a->root);
	look_at_cpu(a, &s);
	look_at_memory(a, &s);
	look_at_sessions(a);
	look_at_port(a);
	if (a->script) {
		s.has_custom_load = load_script_take(a->script, &s.custom_load);
		load_script_start(a->script);
	}
	s.boot_ms = clock_boot_ms();
	window_add(a->window, &s, &a->sessions);
}

static void tick(void *ctx)
{
	struct agent *a = ctx;

	loop_timer_arm(a->timer, (int64_t)a->config->collect_interval * 1000);
	collect(a);
	notify_state("WATCHDOG=1");
}

/* The UUID of this boot: 36 characters. */
static int read_boot_id(struct agent *a, struct err *e)
{
	struct buf b = BUF_INIT(128);
	int error = sysroot_read(&a->root, "proc/sys/kernel/random/boot_id", &b);
	size_t len = strspn(buf_str(&b), "0123456789abcdefABCDEF-");

	if (error)
		err_errno(e, error, "could not read \"/proc/sys/kernel/random/boot_id\"");
	else if (len != LIMIT_BOOT_ID_SIZE - 1)
		error = err_set(e, -EBADMSG,
			"could not read \"/proc/sys/kernel/random/boot_id\": not a UUID");
	else
		memcpy(a->boot_id, buf_str(&b), len);
	buf_deinit(&b);
	return error;
}

/* Without a boot id this run of the agent stands for the boot. */
static void invent_boot_id(struct agent *a)
{
	uint64_t r[2] = {secret_random_u64(), secret_random_u64()};

	snprintf(a->boot_id, sizeof(a->boot_id), "%08x-%04x-4%03x-8%03x-%012llx",
		(unsigned)(r[0] >> 32), (unsigned)(r[0] >> 16) & 0xffff, (unsigned)r[0] & 0xfff,
		(unsigned)(r[1] >> 48) & 0xfff, (unsigned long long)r[1] & 0xffffffffffff);
}

static int build(void *ctx, struct buf *out, uint64_t *ret_serial)
{
	struct agent *a = ctx;
	uint64_t now = clock_boot_ms();
	struct report r = {
		.node = a->config->node,
		.boot_id = a->boot_id,
		.now_boot_ms = now,
		.accepting = a->accepting,
		.sessions = &a->sessions,
		.window = a->window,
	};

	a->seq = now > a->seq ? now : a->seq + 1;
	r.seq = a->seq;
	return report_format(&r, out, ret_serial);
}

int agent_report(struct agent *a, struct buf *out)
{
	uint64_t serial;

	return build(a, out, &serial);
}

static void acknowledged(void *ctx, uint64_t serial)
{
	struct agent *a = ctx;

	window_acknowledge(a->window, serial);
}

static void answered(void *ctx, const struct heartbeat_reply *reply)
{
	struct agent *a = ctx;

	a->said = (struct said){
		.at_ms = clock_mono_ms(),
		.push_interval = reply->push_interval,
		.maintenance = reply->maintenance,
		.has_load_index = reply->has_load_index,
		.load_index = reply->load_index,
	};
}

/* A dispatcher's word counts for three pushes; then the node's own averages must do, so that a
 * balancer goes on balancing when all dispatchers are away. */
static void check_facts(void *ctx, struct check_facts *ret)
{
	struct agent *a = ctx;
	int64_t good_ms = (int64_t)a->said.push_interval * 3000;
	struct heartbeat average = {0};
	uint64_t memory = 0;

	window_average(a->window, clock_boot_ms(), &average);
	if (average.has_memory && average.memory_total > 0)
		memory = (average.memory_total - average.memory_available) * 10000 /
			 average.memory_total;
	*ret = (struct check_facts){
		.accepting = a->accepting,
		.answered = a->said.at_ms > 0 && clock_mono_ms() - a->said.at_ms <= good_ms,
		.maintenance = a->said.maintenance,
		.has_load_index = a->said.has_load_index,
		.load_index = a->said.load_index,
		.has_busy = average.has_cpu || average.has_memory,
		.busy = average.has_cpu && average.cpu_busy > memory ? average.cpu_busy
								     : (uint32_t)memory,
	};
}

/* The parts that a reload makes anew. */
static int make_parts(struct agent *a, const struct config *c, struct load_script **script,
	struct push **push, struct err *e)
{
	struct push_source source = {a, build, acknowledged, answered};

	if (c->load_script) {
		*script = load_script_new(a->base, c->load_script, LOAD_SCRIPT_SECONDS * 1000);
		if (!*script)
			return err_errno(e, -ENOMEM, "could not set up the load script");
	}
	return push ? push_new(a->base, c, &source, push, e) : 0;
}

static int set_up(struct agent *a, struct config *c, bool pushing, struct err *e)
{
	struct window_options w = {
		.dir = pushing ? c->state_dir : NULL,
		.boot_id = a->boot_id,
		.cache_size = c->cache_size,
		.collect_interval = c->collect_interval,
	};
	int error = sysroot_open(&a->root, c->root, e);

	if (error)
		return error;
	if (read_boot_id(a, e) != 0) {
		log_warning("%s; a random one is used", e->text);
		invent_boot_id(a);
	}
	a->users = users_new(&a->root);
	a->timer = loop_timer_new(a->base, tick, a);
	if (!a->users || !a->timer)
		return err_errno(e, -ENOMEM, "could not start");
	error = window_new(&w, &a->window, e);
	if (!error && pushing && c->check_address)
		error = agent_check_new(
			a->base, c->check_address, c->check_port, check_facts, a, &a->check, e);
	if (!error)
		error = make_parts(a, c, &a->script, pushing ? &a->push : NULL, e);
	return error;
}

int agent_new(
	struct event_base *base, struct config *c, bool pushing, struct agent **ret, struct err *e)
{
	struct agent *a = calloc(1, sizeof(*a));
	int error;

	if (!a)
		return err_errno(e, -ENOMEM, "could not start");
	a->base = base;
	a->root.fd = -1;
	error = set_up(a, c, pushing, e);
	if (error) {
		agent_free(a);
		return error;
	}
	a->config = c;
	*ret = a;
	return 0;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	agent_check_free(a->check);
	push_free(a->push);
	load_script_free(a->script);
	window_free(a->window);
	loop_timer_free(a->timer);
	users_free(a->users);
	session_list_deinit(&a->sessions);
	sysroot_close(&a->root);
	config_free(a->config);
	free(a);
}

static void first_reading(struct agent *a)
{
	struct err e;

	note(a, CPU, cpu_read(&a->root, clock_mono_us(), &a->cpu, &e), &e);
	if (a->script)
		load_script_start(a->script);
}

/* Sessions are reported only once they were looked at: the first look is due before the first push.
 */
void agent_start(struct agent *a)
{
	int64_t first = (int64_t)a->config->collect_interval * 1000;

	if (first > FIRST_LOOK_MS || a->root.recorded)
		first = a->root.recorded ? 0 : FIRST_LOOK_MS;
	first_reading(a);
	loop_timer_arm(a->timer, first);
	push_start(a->push, first + 50);
}

int agent_reload(struct agent *a, struct config *c, struct err *e)
{
	struct load_script *script = NULL;
	struct push *push = NULL;
	int error;

	if (!text_equal(c->root, a->config->root) ||
		!text_equal(c->state_dir, a->config->state_dir))
		return err_set(e, -EINVAL, "\"root\" and \"state_dir\" change only with a restart");
	if (!text_equal(c->check_address, a->config->check_address) ||
		c->check_port != a->config->check_port)
		return err_set(e, -EINVAL, "\"agent_check\" changes only with a restart");
	error = make_parts(a, c, &script, &push, e);
	if (!error && window_resize(a->window, c->cache_size, c->collect_interval) != 0)
		error = err_errno(e, -ENOMEM, "could not change the cache size");
	if (error) {
		load_script_free(script);
		push_free(push);
		return error;
	}
	push_free(a->push);
	load_script_free(a->script);
	config_free(a->config);
	a->push = push;
	a->script = script;
	a->config = c;
	loop_timer_arm(a->timer, (int64_t)c->collect_interval * 1000);
	push_start(a->push, 0);
	return 0;
}

static void once_collected(void *ctx)
{
	struct agent *a = ctx;

	collect(a);
	a->once_done(a->once_ctx);
}

static void once_tick(void *ctx)
{
	struct agent *a = ctx;

	/* The script has its ten seconds; it is looked at ten times a second. */
	if (a->script && load_script_running(a->script))
		loop_timer_arm(a->timer, 100);
	else
		once_collected(a);
}

void agent_collect_once(struct agent *a, void (*done)(void *ctx), void *ctx)
{
	a->once_done = done;
	a->once_ctx = ctx;
	loop_timer_free(a->timer);
	a->timer = loop_timer_new(a->base, once_tick, a);
	first_reading(a);
	if (a->timer)
		loop_timer_arm(a->timer, a->root.recorded ? 0 : FIRST_LOOK_MS);
	else
		done(ctx);
}
