/* SPDX-License-Identifier: ISC */
/* base/loop and base/notify: timers and signals on the loop, and what the service manager is told.
 */
#include "base/loop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/notify.h"
#include "lib/tap.h"

static struct event_base *base;

static void open_loop(void)
{
	base = loop_new();
	ck_assert_ptr_nonnull(base);
}

static void close_loop(void)
{
	event_base_free(base);
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

/* Turns the loop until *N is at least LEAST; false after ten seconds. */
static bool await(const int *n, int least)
{
	int64_t end = clock_mono_ms() + 10000;

	while (*n < least && clock_mono_ms() < end)
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	return *n >= least;
}

START_TEST(a_timer_fires_once)
{
	int fired = 0, later = 0;
	struct loop_timer *t = loop_timer_new(base, count, &fired);
	struct loop_timer *end = loop_timer_new(base, count, &later);

	loop_timer_arm(t, -5); /* what is overdue is due */
	ck_assert(await(&fired, 1));
	loop_timer_arm(end, 30);
	ck_assert(await(&later, 1));
	ck_assert_int_eq(fired, 1);
	loop_timer_arm(t, 0);
	ck_assert(await(&fired, 2));
	loop_timer_free(t);
	loop_timer_free(end);
	loop_timer_free(NULL);
}
END_TEST

START_TEST(arming_again_moves_a_timer)
{
	int moved = 0, later = 0;
	struct loop_timer *t = loop_timer_new(base, count, &moved);
	struct loop_timer *end = loop_timer_new(base, count, &later);

	loop_timer_arm(t, 3600000);
	loop_timer_arm(t, 20);
	ck_assert(await(&moved, 1));
	loop_timer_arm(t, 0);
	loop_timer_arm(t, 3600000);
	loop_timer_arm(end, 5);
	ck_assert(await(&later, 1));
	ck_assert_int_eq(moved, 1);
	loop_timer_arm(t, 1);
	loop_timer_disarm(t);
	loop_timer_disarm(t);
	loop_timer_arm(end, 30);
	ck_assert(await(&later, 2));
	ck_assert_int_eq(moved, 1);
	loop_timer_free(t);
	loop_timer_free(end);
}
END_TEST

START_TEST(a_signal_is_told_on_the_loop)
{
	int got = 0, other = 0;
	struct loop_signal *s = loop_signal_new(base, SIGUSR1, count, &got);
	struct loop_signal *o = loop_signal_new(base, SIGUSR2, count, &other);

	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_nonnull(o);
	raise(SIGUSR1);
	ck_assert_int_eq(got, 0); /* not in the handler */
	ck_assert(await(&got, 1));
	raise(SIGUSR1);
	ck_assert(await(&got, 2));
	ck_assert_int_eq(other, 0);
	loop_signal_free(s);
	loop_signal_free(o);
	loop_signal_free(NULL);
}
END_TEST

/* The protocol of sd_notify: a datagram to the socket that the environment names. */
START_TEST(the_service_manager_is_told)
{
	char folder[] = "/tmp/tb-notify-XXXXXX", text[64];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	ssize_t n;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", folder);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", at.sun_path, 1), 0);
	notify_state("READY=1");
	n = recv(fd, text, sizeof(text), 0);
	unlink(at.sun_path);
	rmdir(folder);
	close(fd);
#ifdef HAVE_LIBSYSTEMD
	ck_assert_int_eq(n, 7);
	ck_assert_int_eq(memcmp(text, "READY=1", 7), 0);
#else
	ck_assert_int_eq(n, -1);
#endif
	unsetenv("NOTIFY_SOCKET");
	notify_state("READY=1"); /* nobody listens: nothing happens */
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("loop");
	TCase *t = tcase_create("loop");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, open_loop, close_loop);
	tcase_add_test(t, a_timer_fires_once);
	tcase_add_test(t, arming_again_moves_a_timer);
	tcase_add_test(t, a_signal_is_told_on_the_loop);
	tcase_add_test(t, the_service_manager_is_told);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
