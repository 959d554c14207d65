/* SPDX-License-Identifier: ISC */
/*
 * The floor that the dispatcher's HTTP is measured against: a bare evhttp handler on the same event
 * loop that answers every request with the same text. Prints its port; ends with its standard
 * input.
 *
 * Usage: bench_evhttp_floor BYTES
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"

#define BYTES_MAX 65536

struct answer {
	char *text;
	size_t len;
};

static void handle(struct evhttp_request *req, void *ctx)
{
	const struct answer *a = ctx;
	struct evbuffer *out = evhttp_request_get_output_buffer(req);

	evhttp_add_header(
		evhttp_request_get_output_headers(req), "Content-Type", "application/json");
	evbuffer_add(out, a->text, a->len);
	evhttp_send_reply(req, 200, "OK", NULL);
}

static void input_ended(evutil_socket_t fd, short what, void *base)
{
	char c;

	if (read(fd, &c, 1) <= 0)
		event_base_loopbreak(base);
}

static int port_of(struct evhttp_bound_socket *bound)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&at, &len) < 0)
		return -1;
	return ntohs(at.sin_port);
}

static int serve(const struct answer *answer)
{
	struct event_base *base = loop_new();
	struct evhttp *http = base ? evhttp_new(base) : NULL;
	struct event *input =
		base ? event_new(base, 0, EV_READ | EV_PERSIST, input_ended, base) : NULL;
	struct evhttp_bound_socket *bound;

	if (!http || !input || event_add(input, NULL) < 0)
		return EXIT_FAILURE;
	evhttp_set_gencb(http, handle, (void *)answer);
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	if (!bound) {
		fprintf(stderr, "could not listen: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	printf("%d\n", port_of(bound));
	fflush(stdout);
	event_base_dispatch(base);
	event_free(input);
	evhttp_free(http);
	event_base_free(base);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct answer answer = {0};
	long bytes = argc == 2 ? atol(argv[1]) : 0;
	int status;

	if (bytes < 1 || bytes > BYTES_MAX) {
		fprintf(stderr, "usage: bench_evhttp_floor BYTES (1..%d)\n", BYTES_MAX);
		return 2;
	}
	answer.len = (size_t)bytes;
	answer.text = malloc(answer.len);
	if (!answer.text)
		return EXIT_FAILURE;
	memset(answer.text, 'a', answer.len);
	status = serve(&answer);
	free(answer.text);
	return status;
}
