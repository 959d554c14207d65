/* SPDX-License-Identifier: ISC */
/* base/tls: a context from good files, each bad file named, and a real handshake in memory. */
#include "base/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/tap.h"

static char folder[64], cert_path[128], key_path[128];

static EVP_PKEY *new_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	ck_assert_ptr_nonnull(key);
	return key;
}

/* A self-signed certificate, valid from FROM to UNTIL seconds from now. */
static X509 *new_certificate(EVP_PKEY *key, long from, long until)
{
	X509 *x = X509_new();
	X509_NAME *name = X509_get_subject_name(x);

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), from);
	X509_gmtime_adj(X509_getm_notAfter(x), until);
	X509_NAME_add_entry_by_txt(
		name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(x, name);
	X509_set_pubkey(x, key);
	ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
	return x;
}

static void write_certificate(EVP_PKEY *key, long from, long until)
{
	FILE *f = fopen(cert_path, "w");
	X509 *x = new_certificate(key, from, until);

	PEM_write_X509(f, x);
	X509_free(x);
	fclose(f);
}

static void write_key(EVP_PKEY *key, const EVP_CIPHER *cipher)
{
	static unsigned char phrase[] = "phrase";
	FILE *f = fopen(key_path, "w");

	PEM_write_PrivateKey(f, key, cipher, cipher ? phrase : NULL, cipher ? 6 : 0, NULL, NULL);
	fclose(f);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	EVP_PKEY *key = new_key();

	snprintf(folder, sizeof(folder), "/tmp/check_tls.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(cert_path, sizeof(cert_path), "%s/cert.pem", folder);
	snprintf(key_path, sizeof(key_path), "%s/key.pem", folder);
	write_certificate(key, -60, 3600);
	write_key(key, NULL);
	EVP_PKEY_free(key);
}

static void teardown(void)
{
	unlink(cert_path);
	unlink(key_path);
	rmdir(folder);
}

static void refuse(int code, const char *path, const char *what)
{
	struct err e = {""};
	SSL_CTX *ctx = NULL;

	ck_assert_int_eq(tls_server_new(cert_path, key_path, &ctx, &e), code);
	ck_assert_ptr_null(ctx);
	ck_assert_msg(strstr(e.text, path) != NULL, "%s", e.text);
	ck_assert_msg(strstr(e.text, what) != NULL, "%s", e.text);
	ck_assert_uint_eq(ERR_peek_error(), 0);
}

/* Runs a handshake between SERVER and a client of at most VERSION; the version agreed, or 0. */
static int handshake(SSL_CTX *server, int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	BIO *a = NULL, *b = NULL;
	SSL *s = SSL_new(server), *c;
	int done = 0, agreed = 0;

	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(ctx, version);
	c = SSL_new(ctx);
	BIO_new_bio_pair(&a, 0, &b, 0);
	SSL_set_bio(s, a, a);
	SSL_set_bio(c, b, b);
	SSL_set_accept_state(s);
	SSL_set_connect_state(c);
	for (int i = 0; i < 20 && !done; i++)
		done = SSL_do_handshake(c) + SSL_do_handshake(s) == 2;
	if (done)
		agreed = SSL_version(s);
	SSL_free(s);
	SSL_free(c);
	SSL_CTX_free(ctx);
	ERR_clear_error();
	return agreed;
}

START_TEST(a_good_pair_shakes_hands)
{
	struct err e = {""};
	SSL_CTX *ctx = NULL;

	ck_assert_msg(tls_server_new(cert_path, key_path, &ctx, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(ERR_peek_error(), 0);
	ck_assert_int_eq(handshake(ctx, TLS1_3_VERSION), TLS1_3_VERSION);
	ck_assert_int_eq(handshake(ctx, TLS1_2_VERSION), TLS1_2_VERSION);
	ck_assert_int_eq(handshake(ctx, TLS1_1_VERSION), 0);
	ck_assert(SSL_CTX_get_options(ctx) & SSL_OP_NO_RENEGOTIATION);
	ck_assert(SSL_CTX_get_mode(ctx) & SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_free(ctx);
}
END_TEST

START_TEST(unreadable_files_are_named)
{
	unlink(key_path);
	refuse(-ENOENT, key_path, "No such file");
	unlink(cert_path);
	refuse(-ENOENT, cert_path, "No such file");
	strcpy(cert_path, "/dev/null");
	refuse(-EINVAL, "/dev/null", "not a regular file");
	strcpy(cert_path, folder);
	refuse(-EISDIR, folder, "Is a directory");
}
END_TEST

START_TEST(files_of_another_kind_are_named)
{
	write_text(key_path, "no key\n");
	refuse(-EINVAL, key_path, "no PEM private key");
	write_text(cert_path, "");
	refuse(-EINVAL, cert_path, "no PEM certificate");
}
END_TEST

START_TEST(a_key_with_a_pass_phrase_is_refused_without_asking)
{
	EVP_PKEY *key = new_key();

	write_certificate(key, -60, 3600);
	write_key(key, EVP_aes_128_cbc());
	EVP_PKEY_free(key);
	refuse(-EINVAL, key_path, "without pass phrase");
}
END_TEST

START_TEST(a_key_of_another_certificate_is_refused)
{
	EVP_PKEY *key = new_key();

	write_key(key, NULL);
	EVP_PKEY_free(key);
	refuse(-EINVAL, key_path, "does not belong to the certificate");
	refuse(-EINVAL, cert_path, "does not belong to the certificate");
}
END_TEST

START_TEST(dates_are_checked)
{
	EVP_PKEY *key = new_key();

	write_key(key, NULL);
	write_certificate(key, -7200, -3600);
	refuse(-EINVAL, cert_path, "has expired");
	write_certificate(key, 3600, 7200);
	refuse(-EINVAL, cert_path, "is not valid yet");
	EVP_PKEY_free(key);
}
END_TEST

START_TEST(the_pin_is_of_the_public_key)
{
	char pin[TLS_PIN_SIZE], again[TLS_PIN_SIZE], other[TLS_PIN_SIZE];
	EVP_PKEY *key = new_key();
	struct err e = {""};
	unsigned char *der = NULL, hash[32], base64[64];
	int len = i2d_PUBKEY(key, &der);

	EVP_Digest(der, (size_t)len, hash, NULL, EVP_sha256(), NULL);
	EVP_EncodeBlock(base64, hash, 32);
	OPENSSL_free(der);
	ck_assert_int_eq(tls_pin_of_file(cert_path, other, &e), 0);
	write_certificate(key, -60, 3600);
	ck_assert_int_eq(tls_pin_of_file(cert_path, pin, &e), 0);
	write_certificate(key, -7200, -3600);
	ck_assert_int_eq(tls_pin_of_file(cert_path, again, &e), 0);
	EVP_PKEY_free(key);
	ck_assert(strncmp(pin, "sha256//", 8) == 0);
	ck_assert_str_eq(pin + 8, (const char *)base64);
	ck_assert_str_eq(pin, again);
	ck_assert_str_ne(pin, other);
	write_text(cert_path, "nothing\n");
	ck_assert_int_eq(tls_pin_of_file(cert_path, pin, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, cert_path) != NULL, "%s", e.text);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("tls");
	TCase *t = tcase_create("tls");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_good_pair_shakes_hands);
	tcase_add_test(t, unreadable_files_are_named);
	tcase_add_test(t, files_of_another_kind_are_named);
	tcase_add_test(t, a_key_with_a_pass_phrase_is_refused_without_asking);
	tcase_add_test(t, a_key_of_another_certificate_is_refused);
	tcase_add_test(t, dates_are_checked);
	tcase_add_test(t, the_pin_is_of_the_public_key);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
