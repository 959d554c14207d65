/* SPDX-License-Identifier: ISC */
/*
 * One curl handle, blocking. The token is read from its file, kept in one allocation and wiped.
 * Over TCP only TLS is spoken, except to the machine itself. With a pin and no CA the pin alone is
 * the trust: the key is the dispatcher's, whoever signed the certificate.
 */
#include "cli/client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"

#define RESPONSE_MAX (256u * 1024 * 1024)
#define TOKEN_MAX 4096
#define URL_MAX 8192

struct client {
	const struct settings *settings;
	CURL *curl;
	char *token; /* NULL = none */
	size_t token_size;
};

/* ---- paths ---- */

static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (isalnum(c) || strchr("-._~", c))
			buf_addc(out, (char)c);
		else
			buf_addf(out, "%%%02X", c);
	}
}

void url_add_segment(struct buf *path, const char *text)
{
	buf_addc(path, '/');
	add_escaped(path, text);
}

void url_add_query(struct buf *path, const char *key, const char *value)
{
	buf_addc(path, strchr(buf_str(path), '?') ? '&' : '?');
	buf_addf(path, "%s=", key);
	add_escaped(path, value);
}

/* ---- opening ---- */

static int read_token(struct client *c, struct failure *f)
{
	const char *path = c->settings->token_file;
	struct stat st;
	size_t len;
	int r;

	if (!path)
		return 0;
	r = text_read_file(path, TOKEN_MAX, &c->token, &len);
	if (r < 0)
		return fail(
			f, CLI_FAILED, "could not read token file \"%s\": %s", path, strerror(-r));
	c->token_size = len + 1;
	while (len > 0 && isspace((unsigned char)c->token[len - 1]))
		c->token[--len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)c->token[i]))
			return fail(
				f, CLI_FAILED, "token file \"%s\" holds more than one word", path);
	if (len == 0)
		return fail(f, CLI_FAILED, "token file \"%s\" is empty", path);
	if (stat(path, &st) == 0 && (st.st_mode & 077) != 0 && (st.st_mode & 007) != 0) {
		fail(f, CLI_FAILED, "token file \"%s\" can be read by everyone", path);
		return fail_hint(f, "chmod 600 %s", path);
	}
	return 0;
}

/* "http://" is for this machine only: a token must not cross a network in the clear. */
static int check_url(const char *url, struct failure *f)
{
	static const char *const local[] = {"http://127.0.0.1", "http://[::1]", "http://localhost"};

	if (strncmp(url, "https://", 8) == 0 && url[8])
		return 0;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		size_t len = strlen(local[i]);

		if (strncmp(url, local[i], len) == 0 &&
			(url[len] == '\0' || url[len] == ':' || url[len] == '/'))
			return 0;
	}
	fail(f, CLI_USAGE, "\"%s\" is not the URL of a dispatcher", url);
	return fail_hint(f, "it looks like https://HOST:PORT (http:// only on this machine)");
}

static void set_trust(CURL *curl, const struct settings *s)
{
	bool by_pin_alone = s->pin && !s->ca_file;

	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (s->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, s->ca_file);
	if (s->pin)
		curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, s->pin);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, by_pin_alone ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, by_pin_alone ? 0L : 2L);
}

int client_new(const struct settings *settings, struct client **ret, struct failure *f)
{
	struct client *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(c);
		return fail(f, CLI_FAILED, "out of memory");
	}
	c->settings = settings;
	if (settings->url)
		r = check_url(settings->url, f);
	if (r == 0 && settings->pin && strncmp(settings->pin, "sha256//", 8) != 0)
		r = fail(
			f, CLI_USAGE, "the pin \"%s\" does not begin with sha256//", settings->pin);
	if (r == 0 && settings->url)
		r = read_token(c, f);
	if (r == 0 && !(c->curl = curl_easy_init()))
		r = fail(f, CLI_FAILED, "out of memory");
	if (r != 0) {
		client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->curl)
		curl_easy_cleanup(c->curl);
	if (c->token)
		secret_wipe(c->token, c->token_size);
	free(c->token);
	free(c);
	curl_global_cleanup();
}

/* ---- failures without an answer ---- */

static int socket_failure(struct client *c, long os_error, const char *text, struct failure *f)
{
	const char *path = c->settings->socket;

	if (os_error == EACCES || os_error == EPERM) {
		fail(f, CLI_DENIED, "may not use the admin socket \"%s\"", path);
		return fail_hint(f,
			"be root, or a member of the socket's group (termbroker-admin); "
			"or use --url with a token");
	}
	fail(f, CLI_UNREACHABLE, "no dispatcher answers at \"%s\": %s", path,
		os_error ? strerror((int)os_error) : text);
	return fail_hint(f,
		"is termbrokerd running? \"systemctl status termbrokerd\" tells; --socket PATH "
		"names another socket, --url another machine");
}

static int url_failure(struct client *c, CURLcode code, const char *text, struct failure *f)
{
	const struct settings *s = c->settings;

	fail(f, CLI_UNREACHABLE, "no dispatcher answers at %s: %s", s->url, text);
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return fail_hint(f, "name its CA with --ca FILE, or its key with --pin sha256//… "
				    "(\"termbroker node add\" prints it); an expired certificate "
				    "must be renewed on the dispatcher");
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return fail_hint(f,
			"its key is not the pinned one: the dispatcher has a new key, or "
			"this is not the dispatcher");
	case CURLE_SSL_CACERT_BADFILE:
		return fail_hint(f, "the file of --ca could not be read");
	case CURLE_COULDNT_RESOLVE_HOST:
		return fail_hint(f, "check the host name");
	case CURLE_OPERATION_TIMEDOUT:
		return fail_hint(
			f, "is the port open from here, and is termbrokerd running there?");
	default:
		return fail_hint(f, "is termbrokerd running there? check host and port");
	}
}

static int explain_failure(struct client *c, CURLcode code, const char *text, struct failure *f)
{
	long os_error = 0;

	if (!*text)
		text = curl_easy_strerror(code);
	if (code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY)
		return fail(f, CLI_FAILED, "could not take the answer: %s", text);
	curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &os_error);
	if (c->settings->url)
		return url_failure(c, code, text, f);
	return socket_failure(c, code == CURLE_COULDNT_CONNECT ? os_error : 0, text, f);
}

/* ---- a call ---- */

static size_t take_body(char *data, size_t size, size_t count, void *ctx)
{
	struct buf *b = ctx;

	buf_add(b, data, size * count);
	return buf_error(b) ? 0 : size * count;
}

static int full_url(const struct client *c, const char *path, struct buf *url, struct failure *f)
{
	const char *base = c->settings->url ? c->settings->url : "http://localhost";
	size_t len = strlen(base);

	while (len > 0 && base[len - 1] == '/')
		len--;
	buf_add(url, base, len);
	buf_adds(url, path);
	if (buf_error(url))
		return fail(f, CLI_FAILED, "the address of the call is too long");
	return 0;
}

static void prepare(
	struct client *c, const struct request *request, const char *url, char *error_text)
{
	CURL *curl = c->curl;
	long timeout = request->timeout_s ? request->timeout_s : CLIENT_TIMEOUT_S;

	curl_easy_reset(curl); /* the connection stays */
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "termbroker/" TERMBROKER_VERSION);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, timeout);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	if (c->settings->url) {
		set_trust(curl, c->settings);
	} else {
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->settings->socket);
		curl_easy_setopt(curl, CURLOPT_PROXY, "");
	}
	if (c->token) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, c->token);
	}
}

static struct curl_slist *make_headers(const struct request *request)
{
	struct curl_slist *list = NULL, *longer;
	char accept[128] = "Accept: application/json";

	if (request->accept)
		snprintf(accept, sizeof(accept), "Accept: %s, application/problem+json;q=0.5",
			request->accept);
	list = curl_slist_append(NULL, accept);
	longer = list ? curl_slist_append(list, "Content-Type: application/json") : NULL;
	if (!longer) {
		curl_slist_free_all(list);
		return NULL;
	}
	return longer;
}

int client_call(
	struct client *c, const struct request *request, struct response *ret, struct failure *f)
{
	char error_text[CURL_ERROR_SIZE] = "";
	struct response r = {.body = BUF_INIT(RESPONSE_MAX)};
	struct buf url = BUF_INIT(URL_MAX);
	struct curl_slist *headers = make_headers(request);
	CURLcode code = CURLE_OUT_OF_MEMORY;
	int result = full_url(c, request->path, &url, f);

	if (result == 0 && headers) {
		prepare(c, request, buf_str(&url), error_text);
		curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, &r.body);
		if (request->body)
			curl_easy_setopt(c->curl, CURLOPT_COPYPOSTFIELDS,
				json_object_to_json_string_ext(
					request->body, JSON_C_TO_STRING_NOSLASHESCAPE));
		code = curl_easy_perform(c->curl);
	}
	if (result == 0 && code != CURLE_OK)
		result = explain_failure(c, code, error_text, f);
	curl_slist_free_all(headers);
	buf_deinit(&url);
	if (result != 0) {
		response_deinit(&r);
		return result;
	}
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &r.status);
	*ret = r;
	return 0;
}

void response_deinit(struct response *r)
{
	buf_deinit(&r->body);
}
