/* SPDX-License-Identifier: ISC */
/*
 * RDP clients that ask a door, each with a full TLS handshake, up to the redirection.
 *
 *   bench_door_load dialogue|handshake PORT SECONDS RATE CONNECT-INITIAL
 *
 * RATE 0: 16 clients, each asks anew at once. Else an open loop: RATE begin each second, late or
 * not; latency counts from when one should have begun. "handshake" only does TLS and waits for the
 * end: against the floor. CONNECT-INITIAL is the packet in hexadecimal. Prints: done a second, bad,
 * p50 and p99 in microseconds.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 16
#define KEPT 1000000

static SSL_CTX *tls;
static uint16_t port;
static bool whole;
static double seconds, rate, began;
static unsigned char initial[2048];
static size_t initial_len;
static atomic_ulong bad, done, turn;
static double *latency;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int new_socket(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	const struct timeval patience = {.tv_sec = 10};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A whole TPKT packet. */
static int read_packet(SSL *ssl, unsigned char *ret, size_t size)
{
	size_t have = 0, want = 4;

	while (have < want) {
		int n = SSL_read(ssl, ret + have, (int)(want - have));

		if (n <= 0)
			return -1;
		have += (size_t)n;
		if (have == 4)
			want = (size_t)(ret[2] << 8 | ret[3]);
		if (want > size || want < 4)
			return -1;
	}
	return (int)have;
}

static bool join(SSL *ssl, unsigned user, unsigned channel)
{
	unsigned char packet[12] = {3, 0, 0, 12, 2, 0xf0, 0x80, 0x38, (unsigned char)(user >> 8),
		(unsigned char)user, (unsigned char)(channel >> 8), (unsigned char)channel};
	unsigned char answer[64];

	return SSL_write(ssl, packet, sizeof(packet)) > 0 &&
	       read_packet(ssl, answer, sizeof(answer)) == 15 && answer[7] == 0x3e;
}

static bool say_who(SSL *ssl, unsigned user)
{
	static const char info[] = "\x40\x00\x00\x00\x09\x04\x00\x00\x10\x00\x00\x00"
				   "\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00"
				   "\x00\x00"
				   "a\0l\0i\0c\0e\0\0\0"
				   "\0\0\0\0\0\0";
	const size_t len = sizeof(info) - 1;
	unsigned char packet[128] = {3, 0, 0, (unsigned char)(15 + len), 2, 0xf0, 0x80, 0x64,
		(unsigned char)(user >> 8), (unsigned char)user, 3, 0xeb, 0x70,
		(unsigned char)(0x80 | len >> 8), (unsigned char)len};

	memcpy(packet + 15, info, len);
	return SSL_write(ssl, packet, (int)(15 + len)) > 0;
}

static bool talk(SSL *ssl)
{
	static const unsigned char attach[] = {
		3, 0, 0, 12, 2, 0xf0, 0x80, 4, 1, 0, 1, 0, 3, 0, 0, 8, 2, 0xf0, 0x80, 0x28};
	unsigned char answer[8192];
	unsigned user;

	if (SSL_write(ssl, initial, (int)initial_len) <= 0 ||
		read_packet(ssl, answer, sizeof(answer)) < 0 ||
		SSL_write(ssl, attach, sizeof(attach)) <= 0 ||
		read_packet(ssl, answer, sizeof(answer)) < 11)
		return false;
	user = (unsigned)(answer[9] << 8 | answer[10]);
	if (!join(ssl, user, user + 1001))
		return false;
	for (unsigned channel = 1003; channel <= 1007; channel++) {
		if (!join(ssl, user, channel))
			return false;
	}
	return say_who(ssl, user) && read_packet(ssl, answer, sizeof(answer)) > 0 &&
	       read_packet(ssl, answer, sizeof(answer)) > 0 && answer[17] == 0x1a;
}

static bool ask(int fd)
{
	static const unsigned char first[] = {
		3, 0, 0, 19, 14, 0xe0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 1, 0, 0, 0};
	unsigned char answer[64];
	SSL *ssl;
	bool ok;

	if (whole && (send(fd, first, sizeof(first), MSG_NOSIGNAL) < 0 ||
			     recv(fd, answer, 19, MSG_WAITALL) != 19 || answer[11] != 2))
		return false;
	ssl = SSL_new(tls);
	SSL_set_fd(ssl, fd);
	ok = SSL_connect(ssl) == 1 && (!whole || talk(ssl));
	if (ok)
		ok = SSL_read(ssl, answer, sizeof(answer)) <= 0; /* the server ends it */
	SSL_free(ssl);
	return ok;
}

static void *client(void *arg)
{
	(void)arg;
	for (;;) {
		unsigned long n = atomic_fetch_add(&turn, 1);
		double due = rate > 0 ? began + (double)n / rate : now();
		int fd;
		bool ok;

		if (due >= began + seconds)
			return NULL;
		while (now() < due)
			usleep((unsigned)((due - now()) * 1e6) + 1);
		fd = new_socket();
		ok = fd >= 0 && ask(fd);
		if (fd >= 0)
			close(fd);
		if (!ok)
			atomic_fetch_add(&bad, 1);
		else if ((n = atomic_fetch_add(&done, 1)) < KEPT)
			latency[n] = now() - due;
	}
}

static int compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

int main(int argc, char **argv)
{
	pthread_t threads[CLIENTS];
	double took;
	size_t kept;

	if (argc != 6)
		return 2;
	whole = strcmp(argv[1], "dialogue") == 0;
	port = (uint16_t)atoi(argv[2]);
	seconds = atof(argv[3]);
	rate = atof(argv[4]);
	for (const char *p = argv[5]; p[0] && p[1] && initial_len < sizeof(initial); p += 2) {
		const char two[3] = {p[0], p[1], '\0'};

		initial[initial_len++] = (unsigned char)strtoul(two, NULL, 16);
	}
	latency = calloc(KEPT, sizeof(*latency));
	tls = SSL_CTX_new(TLS_client_method());
	if (!latency || !tls)
		return 1;
	SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
	began = now();
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&threads[i], NULL, client, NULL);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	took = now() - began;
	kept = done < KEPT ? done : KEPT;
	qsort(latency, kept, sizeof(*latency), compare);
	printf("%.1f %lu %.0f %.0f\n", (double)done / took, (unsigned long)bad,
		kept ? latency[kept / 2] * 1e6 : 0, kept ? latency[kept * 99 / 100] * 1e6 : 0);
	return 0;
}
