/* SPDX-License-Identifier: ISC */
/*
 * One context for a server. Everything that can be wrong with the two files is found when it is
 * made, and named by file; later handshakes cannot fail for a reason of ours.
 */
#include "base/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define PEM_MAX_BYTES (256 * 1024)

CLEANUP_DEFINE(SSL_CTX *, SSL_CTX_free)
CLEANUP_DEFINE(BIO *, BIO_free_all)
CLEANUP_DEFINE(X509 *, X509_free)
CLEANUP_DEFINE(EVP_PKEY *, EVP_PKEY_free)

const char *tls_reason(char *ret, size_t size)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	if (reason)
		snprintf(ret, size, "%s", reason);
	else if (code)
		snprintf(ret, size, "OpenSSL error %lx", code);
	else
		snprintf(ret, size, "unknown reason");
	ERR_clear_error();
	return ret;
}

/* A PEM file in memory, so that "unreadable" and "not PEM" are told apart. The caller frees
 * *RET_BIO first, then the text, which may be a key: its size comes out so that it can be wiped. */
static int read_pem(
	const char *path, char **ret_text, size_t *ret_len, BIO **ret_bio, struct err *e)
{
	int r = text_read_file(path, PEM_MAX_BYTES, ret_text, ret_len);

	if (r == -EINVAL)
		return err_set(e, r, "could not read \"%s\": not a regular file", path);
	if (r < 0)
		return err_errno(e, r, "could not read \"%s\"", path);
	*ret_bio = BIO_new_mem_buf(*ret_text, (int)*ret_len);
	if (!*ret_bio)
		return err_errno(e, -ENOMEM, "could not read \"%s\"", path);
	return 0;
}

/* Never asks on the terminal: a key with a pass phrase is an error. */
static int no_passphrase(char *text, int size, int writing, void *ctx)
{
	return -1;
}

static int check_dates(const char *path, const X509 *x, struct err *e)
{
	if (X509_cmp_current_time(X509_get0_notAfter(x)) <= 0)
		return err_set(e, -EINVAL, "the certificate in \"%s\" has expired", path);
	if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0)
		return err_set(e, -EINVAL, "the certificate in \"%s\" is not valid yet", path);
	return 0;
}

/* The certificate and the chain behind it. */
static int use_certificate(SSL_CTX *ctx, const char *path, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(BIO_free_allp) BIO *bio = NULL;
	CLEANUP(X509_freep) X509 *x = NULL;
	char reason[128];
	size_t len;
	X509 *next;
	int r = read_pem(path, &text, &len, &bio, e);

	if (r < 0)
		return r;
	x = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);
	if (!x) {
		ERR_clear_error();
		return err_set(e, -EINVAL, "there is no PEM certificate in \"%s\"", path);
	}
	r = check_dates(path, x, e);
	if (r < 0)
		return r;
	if (SSL_CTX_use_certificate(ctx, x) != 1)
		return err_set(e, -EINVAL, "could not use the certificate in \"%s\": %s", path,
			tls_reason(reason, sizeof(reason)));
	while ((next = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)))
		if (SSL_CTX_add0_chain_cert(ctx, next) != 1) {
			X509_free(next);
			return err_set(e, -EINVAL, "could not use the chain in \"%s\": %s", path,
				tls_reason(reason, sizeof(reason)));
		}
	ERR_clear_error(); /* the end of the file is an error to PEM_read_bio */
	return 0;
}

static int use_key_text(
	SSL_CTX *ctx, BIO *bio, const char *certificate, const char *path, struct err *e)
{
	CLEANUP(EVP_PKEY_freep)
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	char reason[128];

	if (!key) {
		ERR_clear_error();
		return err_set(e, -EINVAL,
			"there is no PEM private key without pass phrase in \"%s\"", path);
	}
	if (X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) != 1) {
		ERR_clear_error();
		return err_set(e, -EINVAL,
			"the key in \"%s\" does not belong to the certificate in \"%s\"", path,
			certificate);
	}
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
		return err_set(e, -EINVAL, "could not use the key in \"%s\": %s", path,
			tls_reason(reason, sizeof(reason)));
	return 0;
}

static int use_key(SSL_CTX *ctx, const char *certificate, const char *path, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(BIO_free_allp) BIO *bio = NULL;
	size_t len = 0;
	int r = read_pem(path, &text, &len, &bio, e);

	if (r == 0)
		r = use_key_text(ctx, bio, certificate, path, e);
	if (text)
		explicit_bzero(text, len);
	return r;
}

int tls_server_new(const char *certificate, const char *key, SSL_CTX **ret, struct err *e)
{
	CLEANUP(SSL_CTX_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int r;

	if (!ctx)
		return err_errno(e, -ENOMEM, "could not set up TLS");
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	r = use_certificate(ctx, certificate, e);
	if (r == 0)
		r = use_key(ctx, certificate, key, e);
	if (r < 0)
		return r;
	*ret = STEAL(ctx);
	return 0;
}

int tls_pin_of_file(const char *certificate, char ret[TLS_PIN_SIZE], struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(BIO_free_allp) BIO *bio = NULL;
	CLEANUP(X509_freep) X509 *x = NULL;
	unsigned char hash[SHA256_DIGEST_LENGTH];
	unsigned char *der = NULL;
	size_t text_len;
	int len, r = read_pem(certificate, &text, &text_len, &bio, e);

	if (r < 0)
		return r;
	x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
	if (!x) {
		ERR_clear_error();
		return err_set(e, -EINVAL, "there is no PEM certificate in \"%s\"", certificate);
	}
	len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
	if (len <= 0)
		return err_errno(
			e, -ENOMEM, "could not read the public key in \"%s\"", certificate);
	SHA256(der, (size_t)len, hash);
	OPENSSL_free(der);
	memcpy(ret, "sha256//", 8);
	EVP_EncodeBlock((unsigned char *)ret + 8, hash, sizeof(hash));
	return 0;
}
