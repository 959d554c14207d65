/* SPDX-License-Identifier: ISC */
/*
 * A run is a pipe and a process. What it prints waits in the pipe until the process ends (SIGCHLD),
 * which ends the run even if a grandchild keeps the pipe open; one that prints more than a pipe
 * holds hangs and is killed like any other that hangs. The group is killed before the process is
 * reaped, so that its number cannot be another's by then.
 */
#include "agent/load_script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/scan.h"
#include "base/log.h"
#include "base/loop.h"

#define OUTPUT_MAX 64

struct load_script {
	struct event_base *base;
	char *path;
	int64_t timeout_ms;
	struct loop_timer *timer;
	struct loop_signal *child_ended;
	pid_t pid; /* 0: no run */
	int fd;
	char output[OUTPUT_MAX + 1];
	size_t length;
	bool too_long, timed_out;
	bool has_value;
	uint32_t value;
	bool failed; /* the last run did; said once */
};

bool load_script_parse(const char *text, uint32_t *ret)
{
	uint64_t whole, hundredths = 0;
	const char *p = text + strspn(text, " \t\r\n");

	if (!scan_u64(&p, &whole) || whole > 100)
		return false;
	if (*p == '.') {
		unsigned weight = 10;

		p++;
		if (*p < '0' || *p > '9')
			return false;
		for (; *p >= '0' && *p <= '9'; p++, weight /= 10)
			hundredths += (uint64_t)(*p - '0') * weight;
	}
	p += strspn(p, " \t\r\n");
	if (*p || whole * 100 + hundredths > 10000)
		return false;
	*ret = (uint32_t)(whole * 100 + hundredths);
	return true;
}

static void note_failure(struct load_script *s, const char *why)
{
	if (!s->failed)
		log_warning("load script \"%s\" %s; its value is left out until it works again",
			s->path, why);
	s->failed = true;
}

static void read_output(struct load_script *s)
{
	for (;;) {
		char more[256];
		ssize_t n = read(s->fd, more, sizeof(more));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (s->length + (size_t)n > OUTPUT_MAX) {
			s->too_long = true;
			n = (ssize_t)(OUTPUT_MAX - s->length);
		}
		memcpy(s->output + s->length, more, (size_t)n);
		s->length += (size_t)n;
	}
}

static void judge(struct load_script *s, int status)
{
	char why[128];
	uint32_t value;

	s->output[s->length] = '\0';
	if (s->timed_out) {
		snprintf(why, sizeof(why), "was killed after %lld seconds",
			(long long)(s->timeout_ms / 1000));
	} else if (WIFSIGNALED(status)) {
		snprintf(why, sizeof(why), "was ended by signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(why, sizeof(why), "ended with status %d", WEXITSTATUS(status));
	} else if (s->too_long || strlen(s->output) != s->length ||
		   !load_script_parse(s->output, &value)) {
		snprintf(why, sizeof(why), "did not print a number from 0 to 100");
	} else {
		if (s->failed)
			log_info("load script \"%s\" works again", s->path);
		s->failed = false;
		s->has_value = true;
		s->value = value;
		return;
	}
	note_failure(s, why);
}

/* Kills what is left of the group, reaps the process if it has ended. */
static bool reap(struct load_script *s, bool wait, int *ret_status)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG)) != 0 ||
		info.si_pid == 0)
		return false;
	kill(-s->pid, SIGKILL);
	while (waitpid(s->pid, ret_status, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	loop_timer_disarm(s->timer);
	return true;
}

static void close_pipe(struct load_script *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void child_ended(void *ctx)
{
	struct load_script *s = ctx;
	int status = 0;

	if (s->pid == 0 || !reap(s, false, &status))
		return;
	read_output(s);
	close_pipe(s);
	judge(s, status);
}

static void timed_out(void *ctx)
{
	struct load_script *s = ctx;

	s->timed_out = true;
	if (s->pid > 0)
		kill(-s->pid, SIGKILL);
}

struct load_script *load_script_new(struct event_base *base, const char *path, int64_t timeout_ms)
{
	struct load_script *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base = base;
	s->fd = -1;
	s->timeout_ms = timeout_ms;
	s->path = strdup(path);
	s->timer = loop_timer_new(base, timed_out, s);
	s->child_ended = loop_signal_new(base, SIGCHLD, child_ended, s);
	if (!s->path || !s->timer || !s->child_ended) {
		load_script_free(s);
		return NULL;
	}
	return s;
}

void load_script_free(struct load_script *s)
{
	int status;

	if (!s)
		return;
	if (s->pid > 0) {
		kill(-s->pid, SIGKILL);
		reap(s, true, &status);
	}
	close_pipe(s);
	loop_timer_free(s->timer);
	loop_signal_free(s->child_ended);
	free(s->path);
	free(s);
}

bool load_script_running(const struct load_script *s)
{
	return s->pid > 0;
}

/* A process with a clean start: own group, no signal blocked or ignored, nothing of ours open
 * (every descriptor of the agent closes on exec), no variable of ours set. */
static int spawn(struct load_script *s, int out)
{
	char *argv[] = {s->path, NULL};
	char *envp[] = {(char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		(char *)"LC_ALL=C", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int error;

	if (posix_spawn_file_actions_init(&files) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&files);
		return -ENOMEM;
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (!error)
		error = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	if (!error)
		error = posix_spawn(&s->pid, s->path, &files, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (error)
		s->pid = 0;
	return -error;
}

void load_script_start(struct load_script *s)
{
	char why[128];
	int fds[2], error;

	if (s->pid > 0)
		return;
	s->length = 0;
	s->too_long = s->timed_out = false;
	if (pipe2(fds, O_CLOEXEC) != 0) {
		snprintf(why, sizeof(why), "could not be run: %s", strerror(errno));
		note_failure(s, why);
		return;
	}
	error = spawn(s, fds[1]);
	close(fds[1]);
	if (error) {
		close(fds[0]);
		snprintf(why, sizeof(why), "could not be run: %s", strerror(-error));
		note_failure(s, why);
		return;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	s->fd = fds[0];
	loop_timer_arm(s->timer, s->timeout_ms);
}

bool load_script_take(struct load_script *s, uint32_t *ret)
{
	if (!s->has_value)
		return false;
	s->has_value = false;
	*ret = s->value;
	return true;
}
