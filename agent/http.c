/* SPDX-License-Identifier: ISC */
/*
 * libcurl tells us which descriptors and which timer it wants watched; we tell it what happened.
 * The easy handle is used again and again, so the connection and the TLS session live from push to
 * push. Results are handed out between calls of curl, never from inside one.
 */
#include "agent/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/trust.h"
#include "base/buf.h"
#include "base/loop.h"
#include "base/secret.h"

struct http {
	struct event_base *base;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct loop_timer *timer;
	http_callback *callback;
	void *ctx;
	struct buf answer;
	char error[CURL_ERROR_SIZE];
	char *url;
	bool busy;
};

static void finish(struct http *h);

static void socket_ready(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	int running, action = 0;

	if (what & EV_READ)
		action |= CURL_CSELECT_IN;
	if (what & EV_WRITE)
		action |= CURL_CSELECT_OUT;
	curl_multi_socket_action(h->multi, fd, action, &running);
	finish(h);
}

static void timer_fired(void *ctx)
{
	struct http *h = ctx;
	int running;

	curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	finish(h);
}

/* SOCKETP is the event that we gave for this descriptor before. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socketp)
{
	struct http *h = ctx;
	struct event *event = socketp;
	short want = EV_PERSIST;

	if (event)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		if (what & CURL_POLL_IN)
			want |= EV_READ;
		if (what & CURL_POLL_OUT)
			want |= EV_WRITE;
		event = event_new(h->base, fd, want, socket_ready, h);
		if (event && event_add(event, NULL) != 0) {
			event_free(event);
			event = NULL;
		}
	}
	curl_multi_assign(h->multi, fd, event);
	return 0;
}

static int watch_timer(CURLM *multi, long timeout_ms, void *ctx)
{
	struct http *h = ctx;

	if (timeout_ms < 0)
		loop_timer_disarm(h->timer);
	else
		loop_timer_arm(h->timer, timeout_ms);
	return 0;
}

static size_t take_answer(char *data, size_t size, size_t count, void *ctx)
{
	struct http *h = ctx;

	buf_add(&h->answer, data, size * count);
	return buf_error(&h->answer) ? 0 : size * count;
}

static void describe(struct http *h, CURLcode code, struct http_result *r)
{
	long verify = 0, connects = 0;
	curl_off_t retry = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &r->status);
	curl_easy_getinfo(h->easy, CURLINFO_SSL_VERIFYRESULT, &verify);
	curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &retry);
	curl_easy_getinfo(h->easy, CURLINFO_NUM_CONNECTS, &connects);
	r->connected = connects > 0;
	r->retry_after = retry > 3600 ? 3600 : (long)retry;
	r->answered = code == CURLE_OK;
	if (!r->answered)
		r->distrust = trust_explain(code, verify, h->error, r->error, sizeof(r->error));
	r->body = buf_str(&h->answer);
	r->length = h->answer.len;
}

static void finish(struct http *h)
{
	struct http_result r = {0};
	CURLMsg *m;
	int left;

	m = curl_multi_info_read(h->multi, &left);
	if (!m || m->msg != CURLMSG_DONE)
		return;
	describe(h, m->data.result, &r);
	curl_multi_remove_handle(h->multi, h->easy);
	h->busy = false;
	h->callback(h->ctx, &r);
}

bool http_busy(const struct http *h)
{
	return h->busy;
}

/* The header line with the token, wiped at the end because curl's lists only free. */
static void free_headers(struct curl_slist *list)
{
	for (struct curl_slist *p = list; p; p = p->next)
		secret_wipe(p->data, strlen(p->data));
	curl_slist_free_all(list);
}

static bool add_header(struct http *h, const char *line)
{
	struct curl_slist *longer = curl_slist_append(h->headers, line);

	if (longer)
		h->headers = longer;
	return longer != NULL;
}

static bool make_headers(struct http *h, const char *token)
{
	char *line = NULL;
	bool ok = add_header(h, "Content-Type: application/json") &&
		  add_header(h, "Accept: application/json, application/problem+json") &&
		  add_header(h, "Expect:");

	if (!ok || !token)
		return ok;
	if (asprintf(&line, "Authorization: Bearer %s", token) < 0)
		return false;
	ok = add_header(h, line);
	secret_wipe(line, strlen(line));
	free(line);
	return ok;
}

/* A pin alone is proof enough: then the certificate's dates, names and issuer do not matter. */
static void set_trust(struct http *h, const struct http_options *o)
{
	bool pinned = o->pins && o->pins[0];
	if (pinned)
		curl_easy_setopt(h->easy, CURLOPT_PINNEDPUBLICKEY, o->pins);
	if (pinned && !o->ca_file) {
		curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYHOST, 0L);
		curl_easy_setopt(h->easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(h->easy, CURLOPT_CAPATH, NULL);
		return;
	}
	curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYHOST, 2L);
	if (o->ca_file) {
		curl_easy_setopt(h->easy, CURLOPT_CAINFO, o->ca_file);
		curl_easy_setopt(h->easy, CURLOPT_CAPATH, NULL);
	}
}

static void set_easy(struct http *h, const struct http_options *o)
{
	CURL *c = h->easy;

	curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "termbroker-agent/" TERMBROKER_VERSION);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)HTTP_CONNECT_SECONDS);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)HTTP_TOTAL_SECONDS);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");		 /* also no variable of the environment */
	curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, 7200L); /* longer than any push interval */
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 16384L);
	set_trust(h, o);
}

int http_new(struct event_base *base, const struct http_options *o, http_callback *callback,
	void *ctx, struct http **ret, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return err_errno(e, -ENOMEM, "could not set up HTTPS");
	h->base = base;
	h->callback = callback;
	h->ctx = ctx;
	buf_init(&h->answer, HTTP_ANSWER_MAX);
	h->timer = loop_timer_new(base, timer_fired, h);
	h->multi = curl_multi_init();
	h->easy = curl_easy_init();
	if (!h->timer || !h->multi || !h->easy || !make_headers(h, o->token)) {
		http_free(h);
		return err_errno(e, -ENOMEM, "could not set up HTTPS");
	}
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, watch_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L);
	set_easy(h, o);
	*ret = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	if (h->busy)
		curl_multi_remove_handle(h->multi, h->easy);
	curl_easy_cleanup(h->easy);
	curl_multi_cleanup(h->multi);
	free_headers(h->headers);
	loop_timer_free(h->timer);
	buf_deinit(&h->answer);
	free(h->url);
	free(h);
}

int http_send(struct http *h, const char *url, const char *body, size_t length)
{
	char *copy = strdup(url);

	if (!copy)
		return -ENOMEM;
	free(h->url);
	h->url = copy;
	buf_reset(&h->answer);
	h->error[0] = '\0';
	curl_easy_setopt(h->easy, CURLOPT_URL, h->url);
	if (body) {
		curl_easy_setopt(h->easy, CURLOPT_POST, 1L);
		curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
		curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body);
	} else {
		curl_easy_setopt(h->easy, CURLOPT_HTTPGET, 1L);
	}
	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
		return -ENOMEM;
	h->busy = true;
	return 0;
}
