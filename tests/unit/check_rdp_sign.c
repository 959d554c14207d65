/* SPDX-License-Identifier: ISC */
/* Signatures of .rdp files: OpenSSL verifies them over what Windows takes for the signed text. */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/pkcs7.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf16.h"
#include "lib/tap.h"
#include "wire/rdp_sign.h"

static char folder[] = "/tmp/check-rdp-sign-XXXXXX";
static char cert_file[64], key_file[64];
static struct err e;

static X509 *make_certificate(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key)
{
	X509 *x = X509_new();

	ck_assert_ptr_nonnull(x);
	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), issuer ? 2 : 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
		(const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
	ck_assert_int_gt(X509_sign(x, issuer_key, EVP_sha256()), 0);
	return x;
}

static EVP_PKEY *make_key(const char *type)
{
	EVP_PKEY *key = strcmp(type, "RSA") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, type, (size_t)2048)
			: strcmp(type, "EC") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, type, "P-256")
						  : EVP_PKEY_Q_keygen(NULL, NULL, type);

	ck_assert_ptr_nonnull(key);
	return key;
}

/* A signer of TYPE: its certificate, by an authority that comes along in the file COPIES times. */
static int make_signer(const char *type, int copies, SSL_CTX **ret)
{
	EVP_PKEY *ca_key = make_key("EC"), *key = make_key(type);
	X509 *ca = make_certificate(ca_key, "authority", NULL, ca_key);
	X509 *x = make_certificate(key, "signer", ca, ca_key);
	FILE *f = fopen(cert_file, "we");

	ck_assert_ptr_nonnull(f);
	PEM_write_X509(f, x);
	for (int i = 0; i < copies; i++)
		PEM_write_X509(f, ca);
	fclose(f);
	f = fopen(key_file, "we");
	ck_assert_ptr_nonnull(f);
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_free(x);
	X509_free(ca);
	EVP_PKEY_free(key);
	EVP_PKEY_free(ca_key);
	return rdp_signer_new(cert_file, key_file, ret, &e);
}

static void set_up(void)
{
	memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(cert_file, sizeof(cert_file), "%s/cert.pem", folder);
	snprintf(key_file, sizeof(key_file), "%s/key.pem", folder);
}

static void tear_down(void)
{
	unlink(cert_file);
	unlink(key_file);
	rmdir(folder);
}

/* The lines that rdp_sign adds to LINES, in RET. */
static void sign(SSL_CTX *signer, const char *lines, char *ret, size_t size)
{
	struct buf out = BUF_INIT(65536);

	buf_adds(&out, lines);
	ck_assert_int_eq(rdp_sign(signer, buf_str(&out), &out, &e), 0);
	ck_assert_int_eq(buf_error(&out), 0);
	ck_assert_int_eq(strncmp(buf_str(&out), lines, strlen(lines)), 0);
	ck_assert_uint_lt(out.len - strlen(lines), size);
	snprintf(ret, size, "%s", buf_str(&out) + strlen(lines));
	buf_deinit(&out);
}

/* The PKCS#7 of the line "signature", after its header. */
static PKCS7 *parse_signature(const char *added)
{
	const char *base64 = strstr(added, "\r\nsignature:s:");
	static uint8_t data[65536];
	const uint8_t *at = data + 12;
	size_t len;
	PKCS7 *p7;
	int n;

	ck_assert_ptr_nonnull(base64);
	base64 += 14;
	len = strcspn(base64, "\r");
	ck_assert_str_eq(base64 + len, "\r\n");
	n = EVP_DecodeBlock(data, (const unsigned char *)base64, (int)len);
	ck_assert_int_gt(n, 12);
	n -= (base64[len - 1] == '=') + (base64[len - 2] == '=');
	ck_assert_mem_eq(data, "\1\0\1\0\1\0\0\0", 8);
	ck_assert_int_eq(data[8] | data[9] << 8 | data[10] << 16 | data[11] << 24, n - 12);
	p7 = d2i_PKCS7(NULL, &at, n - 12);
	ck_assert_ptr_nonnull(p7);
	ck_assert_ptr_eq(at, data + n);
	return p7;
}

/* Whether ADDED is the signature of TEXT: the signed lines, the scope's line, a NUL. */
static bool verifies(const char *added, const char *text)
{
	struct buf wide = BUF_INIT(65536);
	PKCS7 *p7 = parse_signature(added);
	BIO *bio;
	int r;

	utf16_add(&wide, text, strlen(text));
	buf_add(&wide, "\0", 2);
	bio = BIO_new_mem_buf(wide.data, (int)wide.len);
	r = PKCS7_verify(p7, NULL, NULL, bio, NULL, PKCS7_BINARY | PKCS7_NOVERIFY);
	BIO_free(bio);
	PKCS7_free(p7);
	buf_deinit(&wide);
	return r == 1;
}

static const char lines[] = "username:s:alice\r\n"
			    "loadbalanceinfo:s:tb1.xyz\r\n"
			    "server port:i:3389\r\n"
			    "full address:s:\xd0\xb4\xd0\xbe\xd0\xbc\r\n"
			    "screen mode id:i:2\r\n"
			    "audiomode:i:0\r\n";
static const char signed_lines[] =
	"full address:s:\xd0\xb4\xd0\xbe\xd0\xbc\r\n"
	"server port:i:3389\r\n"
	"audiomode:i:0\r\n"
	"loadbalanceinfo:s:tb1.xyz\r\n"
	"signscope:s:Full Address,Server Port,AudioMode,LoadBalanceInfo\r\n";

START_TEST(signs_with_every_key_of_windows)
{
	static const char *const types[] = {"RSA", "EC"};
	char added[16384], changed[512];
	SSL_CTX *signer;
	PKCS7 *p7;

	ck_assert_int_eq(make_signer(types[_i], 1, &signer), 0);
	sign(signer, lines, added, sizeof(added));
	ck_assert_int_eq(strncmp(added, strstr(signed_lines, "signscope"),
				 strlen(strstr(signed_lines, "signscope"))),
		0);
	ck_assert(verifies(added, signed_lines));
	for (size_t i = 0; signed_lines[i]; i++) {
		snprintf(changed, sizeof(changed), "%s", signed_lines);
		if ((unsigned char)changed[i] < 0x80) {
			changed[i] ^= 1;
			ck_assert(!verifies(added, changed));
		}
	}
	p7 = parse_signature(added);
	ck_assert(PKCS7_is_detached(p7));
	ck_assert_int_eq(sk_X509_num(p7->d.sign->cert), 2); /* the authority comes along */
	PKCS7_free(p7);
	SSL_CTX_free(signer);
}
END_TEST

START_TEST(a_key_that_cannot_sign_is_found_at_the_start)
{
	SSL_CTX *signer = NULL;

	ck_assert_int_lt(make_signer("ED25519", 0, &signer), 0);
	ck_assert_ptr_null(signer);
	ck_assert_ptr_nonnull(strstr(e.text, "key.pem"));
	ck_assert_ptr_nonnull(strstr(e.text, "could not sign"));
}
END_TEST

START_TEST(a_chain_too_long_for_a_file)
{
	SSL_CTX *signer = NULL;

	ck_assert_int_eq(make_signer("EC", 100, &signer), -EOVERFLOW);
	ck_assert_ptr_null(signer);
	ck_assert_ptr_nonnull(strstr(e.text, "too much"));
}
END_TEST

START_TEST(files_are_named)
{
	SSL_CTX *signer = NULL;

	ck_assert_int_eq(rdp_signer_new("/nowhere.pem", "/nowhere.key", &signer, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/nowhere.pem"));
	ck_assert_int_eq(make_signer("EC", 0, &signer), 0);
	SSL_CTX_free(signer);
	signer = NULL;
	ck_assert_int_eq(rdp_signer_new(cert_file, cert_file, &signer, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, cert_file));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *s = suite_create("rdp_sign");
	TCase *t = tcase_create("rdp_sign");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, signs_with_every_key_of_windows, 0, 2);
	tcase_add_test(t, a_key_that_cannot_sign_is_found_at_the_start);
	tcase_add_test(t, a_chain_too_long_for_a_file);
	tcase_add_test(t, files_are_named);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(make_suite());
}
