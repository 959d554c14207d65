/* SPDX-License-Identifier: ISC */
#include "wire/rdp_sign.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/pkcs7.h>
#include <stdlib.h>
#include <string.h>

#include "base/tls.h"
#include "base/utf16.h"

#define SIGNED_MAX 16384    /* bytes of UTF-8 that are signed */
#define SIGNATURE_MAX 32768 /* of the two lines; rdp_file.c has room for as much */
#define HEADER 12

/* What is signed if a file has it, in this order, and its name in the scope. */
static const struct {
	const char *key, *name;
} scope[] = {
	{"full address", "Full Address"},
	{"alternate full address", "Alternate Full Address"},
	{"use redirection server name", "Use Redirection Server Name"},
	{"server port", "Server Port"},
	{"negotiate security layer", "Negotiate Security Layer"},
	{"enablecredsspsupport", "EnableCredSspSupport"},
	{"disableconnectionsharing", "DisableConnectionSharing"},
	{"autoreconnection enabled", "AutoReconnection Enabled"},
	{"gatewayhostname", "GatewayHostname"},
	{"gatewayusagemethod", "GatewayUsageMethod"},
	{"gatewayprofileusagemethod", "GatewayProfileUsageMethod"},
	{"gatewaycredentialssource", "GatewayCredentialsSource"},
	{"promptcredentialonce", "PromptCredentialOnce"},
	{"alternate shell", "Alternate Shell"},
	{"shell working directory", "Shell Working Directory"},
	{"remoteapplicationprogram", "RemoteApplicationProgram"},
	{"remoteapplicationexpandworkingdir", "RemoteApplicationExpandWorkingdir"},
	{"remoteapplicationmode", "RemoteApplicationMode"},
	{"remoteapplicationname", "RemoteApplicationName"},
	{"remoteapplicationicon", "RemoteApplicationIcon"},
	{"remoteapplicationfile", "RemoteApplicationFile"},
	{"remoteapplicationfileextensions", "RemoteApplicationFileExtensions"},
	{"remoteapplicationcmdline", "RemoteApplicationCmdLine"},
	{"remoteapplicationexpandcmdline", "RemoteApplicationExpandCmdLine"},
	{"prompt for credentials", "Prompt For Credentials"},
	{"authentication level", "Authentication Level"},
	{"audiomode", "AudioMode"},
	{"redirectdrives", "RedirectDrives"},
	{"redirectprinters", "RedirectPrinters"},
	{"redirectcomports", "RedirectCOMPorts"},
	{"redirectsmartcards", "RedirectSmartCards"},
	{"redirectposdevices", "RedirectPOSDevices"},
	{"redirectclipboard", "RedirectClipboard"},
	{"devicestoredirect", "DevicesToRedirect"},
	{"drivestoredirect", "DrivesToRedirect"},
	{"loadbalanceinfo", "LoadBalanceInfo"},
	{"redirectdirectx", "RedirectDirectX"},
	{"rdgiskdcproxy", "RDGIsKDCProxy"},
	{"kdcproxyname", "KDCProxyName"},
};

/* The line of KEY in LINES, *RET_LEN bytes with its CR LF, or NULL. */
static const char *find_line(const char *lines, const char *key, size_t *ret_len)
{
	size_t key_len = strlen(key);

	for (const char *end; (end = strstr(lines, "\r\n")); lines = end + 2) {
		if (strncmp(lines, key, key_len) == 0 && lines[key_len] == ':') {
			*ret_len = (size_t)(end + 2 - lines);
			return lines;
		}
	}
	return NULL;
}

/* The signed lines to TEXT, their names to NAMES. */
static void gather(const char *lines, struct buf *text, struct buf *names)
{
	for (size_t i = 0; i < sizeof(scope) / sizeof(scope[0]); i++) {
		size_t len;
		const char *line = find_line(lines, scope[i].key, &len);

		if (!line)
			continue;
		buf_add(text, line, len);
		buf_addf(names, "%s%s", names->len ? "," : "", scope[i].name);
	}
	buf_addf(text, "signscope:s:%s\r\n", buf_str(names));
}

/* *RET: the header and the PKCS#7 in DER; the caller frees. */
static int sign_text(
	SSL_CTX *signer, const struct buf *text, uint8_t **ret, size_t *ret_len, struct err *e)
{
	BIO *bio = BIO_new_mem_buf(text->data, (int)text->len);
	STACK_OF(X509) *chain = NULL;
	unsigned char *der = NULL;
	PKCS7 *p7 = NULL;
	char reason[128];
	int len = -1;

	(void)SSL_CTX_get0_chain_certs(signer, &chain);
	if (bio)
		p7 = PKCS7_sign(SSL_CTX_get0_certificate(signer), SSL_CTX_get0_privatekey(signer),
			chain, bio,
			PKCS7_BINARY | PKCS7_DETACHED | PKCS7_NOATTR | PKCS7_NOSMIMECAP);
	if (p7)
		len = i2d_PKCS7(p7, &der);
	PKCS7_free(p7);
	BIO_free(bio);
	if (len <= 0)
		return err_set(e, -EIO, "could not sign: %s", tls_reason(reason, sizeof(reason)));
	*ret = malloc(HEADER + (size_t)len);
	if (*ret) {
		const uint8_t header[HEADER] = {1, 0, 1, 0, 1, 0, 0, 0, (uint8_t)len,
			(uint8_t)(len >> 8), (uint8_t)(len >> 16), (uint8_t)(len >> 24)};

		memcpy(*ret, header, HEADER);
		memcpy(*ret + HEADER, der, (size_t)len);
		*ret_len = HEADER + (size_t)len;
	}
	OPENSSL_free(der);
	return *ret ? 0 : err_errno(e, -ENOMEM, "could not sign");
}

static int add_signature(const uint8_t *data, size_t len, struct buf *out, struct err *e)
{
	char *text = malloc((len + 2) / 3 * 4 + 1);

	if (!text)
		return err_errno(e, -ENOMEM, "could not sign");
	EVP_EncodeBlock((unsigned char *)text, data, (int)len);
	buf_addf(out, "signature:s:%s\r\n", text);
	free(text);
	return 0;
}

int rdp_sign(SSL_CTX *signer, const char *lines, struct buf *out, struct err *e)
{
	struct buf text = BUF_INIT(SIGNED_MAX), names = BUF_INIT(SIGNED_MAX);
	struct buf wide = BUF_INIT(4 * SIGNED_MAX);
	uint8_t *data = NULL;
	size_t len = 0;
	int r;

	gather(lines, &text, &names);
	utf16_add(&wide, text.data, text.len);
	buf_add(&wide, "\0", 2); /* and the literal's own NUL */
	r = buf_error(&text)	? buf_error(&text)
	    : buf_error(&names) ? buf_error(&names)
				: buf_error(&wide);
	if (r < 0)
		err_errno(e, r, "could not sign");
	else
		r = sign_text(signer, &wide, &data, &len, e);
	if (r == 0) {
		buf_addf(out, "signscope:s:%s\r\n", buf_str(&names));
		r = add_signature(data, len, out, e);
	}
	free(data);
	buf_deinit(&wide);
	buf_deinit(&names);
	buf_deinit(&text);
	return r;
}

int rdp_signer_new(const char *certificate, const char *key, SSL_CTX **ret, struct err *e)
{
	struct buf trial = BUF_INIT(SIGNATURE_MAX);
	SSL_CTX *signer = NULL;
	int r = tls_server_new(certificate, key, &signer, e);

	if (r < 0)
		return r;
	r = rdp_sign(signer, "server port:i:3389\r\n", &trial, e);
	if (r == 0 && buf_error(&trial))
		r = err_set(e, buf_error(&trial), "the certificates are too much for an .rdp file");
	buf_deinit(&trial);
	if (r < 0) {
		SSL_CTX_free(signer);
		return err_prefix(e, r, "\"%s\" with \"%s\"", certificate, key);
	}
	*ret = signer;
	return 0;
}
