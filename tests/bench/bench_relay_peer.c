/* SPDX-License-Identifier: ISC */
/*
 * Both ends of a relay under measurement.
 *
 *   bench_relay_peer node ADDRESS PORT          an RDP server as far as a relay sees one: answers
 * the first packet, then obeys one letter: 's' send without end, 'e' echo what comes
 *   bench_relay_peer flood ADDRESS PORT SECONDS one client: bytes a second, from the node
 *   bench_relay_peer rtt ADDRESS PORT COUNT     one client: the median round trip of one byte, in
 * microseconds bench_relay_peer rate ADDRESS PORT SECONDS  32 at a time: connections a second, each
 * until the node's answer bench_relay_peer idle ADDRESS PORT COUNT    COUNT clients that do
 * nothing, until standard input ends
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FDS 20000
#define AT_ONCE 32
#define BLOCK (256 * 1024)

static const char request[] = "\x03\x00\x00\x2b\x26\xe0\x00\x00\x00\x00\x00"
			      "Cookie: mstshash=bench\r\n\x01\x00\x08\x00\x01\x00\x00\x00";
#define REQUEST_LEN (sizeof(request) - 1)
#define ANSWER_LEN 19
static const char answer[ANSWER_LEN] = "\x03\x00\x00\x13\x0e\xd0\x00\x00\x12\x34";
static char block[BLOCK];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sockaddr_in address_of(const char *address, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		die("address");
	return a;
}

static int new_socket(int flags)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		die("socket");
	return fd;
}

static void add(int epoll, int fd, uint32_t events, int op)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (epoll_ctl(epoll, op, fd, &ev) < 0)
		die("epoll_ctl");
}

/* ---- the node ---- */

enum task { TASK_FIRST, TASK_LETTER, TASK_SEND, TASK_ECHO };
static unsigned char tasks[FDS];

/* False: the connection is over. */
static bool serve(int epoll, int fd, uint32_t events)
{
	char data[4096];
	ssize_t n;

	if (tasks[fd] == TASK_SEND) {
		n = send(fd, block, sizeof(block), MSG_NOSIGNAL | MSG_DONTWAIT);
		return n > 0 || errno == EAGAIN;
	}
	if (!(events & EPOLLIN))
		return false;
	n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (tasks[fd] == TASK_FIRST) {
		tasks[fd] = TASK_LETTER;
		return send(fd, answer, ANSWER_LEN, MSG_NOSIGNAL) == ANSWER_LEN;
	}
	if (tasks[fd] == TASK_ECHO)
		return send(fd, data, (size_t)n, MSG_NOSIGNAL) == n;
	tasks[fd] = data[0] == 's' ? TASK_SEND : TASK_ECHO;
	if (tasks[fd] == TASK_SEND)
		add(epoll, fd, EPOLLOUT, EPOLL_CTL_MOD);
	return true;
}

static void take_client(int epoll, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	const int on = 1;

	if (fd < 0)
		return;
	if (fd >= FDS) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	tasks[fd] = TASK_FIRST;
	add(epoll, fd, EPOLLIN, EPOLL_CTL_ADD);
}

static _Noreturn void node(const char *host, const char *port)
{
	struct sockaddr_in a = address_of(host, port);
	int listener = new_socket(SOCK_NONBLOCK), epoll = epoll_create1(0);
	struct epoll_event ready[64];
	const int on = 1;

	(void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 4096) < 0)
		die("listen");
	add(epoll, listener, EPOLLIN, EPOLL_CTL_ADD);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int count = epoll_wait(epoll, ready, 64, -1);

		for (int i = 0; i < count; i++) {
			int fd = ready[i].data.fd;

			if (fd == listener)
				take_client(epoll, listener);
			else if (!serve(epoll, fd, ready[i].events))
				close(fd);
		}
	}
}

/* ---- clients ---- */

static void read_answer(int fd)
{
	char data[ANSWER_LEN];

	if (recv(fd, data, sizeof(data), MSG_WAITALL) != ANSWER_LEN ||
		memcmp(data, answer, ANSWER_LEN) != 0)
		die("no answer");
}

static int connect_through(const struct sockaddr_in *a)
{
	int fd = new_socket(0);

	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0)
		die("connect");
	if (send(fd, request, REQUEST_LEN, MSG_NOSIGNAL) != REQUEST_LEN)
		die("send");
	read_answer(fd);
	return fd;
}

static int flood(const struct sockaddr_in *a, double seconds)
{
	int fd = connect_through(a);
	double began, bytes = 0;
	ssize_t n;

	if (send(fd, "s", 1, 0) != 1)
		die("send");
	began = now();
	while (now() - began < seconds) {
		n = recv(fd, block, sizeof(block), 0);
		if (n <= 0)
			die("the end");
		bytes += (double)n;
	}
	printf("%.0f\n", bytes / (now() - began));
	return 0;
}

static int compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static int rtt(const struct sockaddr_in *a, int count)
{
	double *times = calloc((size_t)count, sizeof(*times));
	int fd = connect_through(a);
	char byte = 'e';

	if (!times || send(fd, &byte, 1, 0) != 1)
		die("rtt");
	usleep(100000); /* the letter must not come together with the first byte */
	for (int i = 0; i < count; i++) {
		double began = now();

		if (send(fd, "x", 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
			die("rtt");
		times[i] = (now() - began) * 1e6;
	}
	qsort(times, (size_t)count, sizeof(*times), compare);
	printf("%.2f\n", times[count / 2]);
	free(times);
	return 0;
}

static int begin_one(const struct sockaddr_in *a, int epoll)
{
	int fd = new_socket(SOCK_NONBLOCK);

	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 && errno != EINPROGRESS)
		die("connect");
	add(epoll, fd, EPOLLOUT, EPOLL_CTL_ADD);
	return fd;
}

/* Closes with a reset, so that no port stays in TIME_WAIT. */
static void end_one(int fd)
{
	const struct linger reset = {1, 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

static int rate(const struct sockaddr_in *a, double seconds)
{
	struct epoll_event ready[AT_ONCE];
	int epoll = epoll_create1(0);
	double began = now();
	unsigned long done = 0;
	char data[ANSWER_LEN];

	for (int i = 0; i < AT_ONCE; i++)
		begin_one(a, epoll);
	while (now() - began < seconds) {
		int count = epoll_wait(epoll, ready, AT_ONCE, 1000);

		for (int i = 0; i < count; i++) {
			int fd = ready[i].data.fd;

			if (ready[i].events & EPOLLIN) {
				if (recv(fd, data, sizeof(data), 0) != ANSWER_LEN)
					die("answer");
				done++;
				end_one(fd);
				begin_one(a, epoll);
			} else if (ready[i].events & EPOLLOUT) {
				if (send(fd, request, REQUEST_LEN, MSG_NOSIGNAL) != REQUEST_LEN)
					die("send");
				add(epoll, fd, EPOLLIN, EPOLL_CTL_MOD);
			} else {
				die("connection");
			}
		}
	}
	printf("%.1f\n", (double)done / (now() - began));
	return 0;
}

static int idle(const struct sockaddr_in *a, int count)
{
	char byte;

	for (int i = 0; i < count; i++)
		connect_through(a);
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a;

	if (argc == 4 && strcmp(argv[1], "node") == 0)
		node(argv[2], argv[3]);
	if (argc != 5)
		return 2;
	a = address_of(argv[2], argv[3]);
	if (strcmp(argv[1], "flood") == 0)
		return flood(&a, atof(argv[4]));
	if (strcmp(argv[1], "rtt") == 0)
		return rtt(&a, atoi(argv[4]));
	if (strcmp(argv[1], "rate") == 0)
		return rate(&a, atof(argv[4]));
	if (strcmp(argv[1], "idle") == 0)
		return idle(&a, atoi(argv[4]));
	return 2;
}
