/* SPDX-License-Identifier: ISC */
/* One table of causes; whoever reads the line shall not have to know what "error 20" is. */
#include "agent/trust.h"

#include <curl/curl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

#include "base/clock.h"

static const char *certificate_fault(long verify)
{
	switch (verify) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return "the dispatcher's certificate has expired: renew it there, or correct this "
		       "machine's clock";
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return "the dispatcher's certificate is not valid yet: correct the clock of this "
		       "machine "
		       "or of the dispatcher";
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_UNTRUSTED:
		return "the dispatcher's certificate is not signed by a CA that this agent trusts: "
		       "set "
		       "ca_file to the CA's certificate, or pin to what \"termbroker node add\" "
		       "printed";
	case X509_V_ERR_CERT_REVOKED:
		return "the dispatcher's certificate is revoked: replace it there";
	case X509_V_OK:
	case X509_V_ERR_UNSPECIFIED: /* curl's word for "the chain is good, not yet the name" */
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return "the dispatcher's certificate is for another name: put the name that is in "
		       "it "
		       "into dispatchers, or have it issued for this one";
	default:
		return "the dispatcher's certificate is not acceptable";
	}
}

bool trust_explain(int code, long verify, const char *detail, char *ret, size_t size)
{
	char now[CLOCK_RFC3339_SIZE];

	if (!detail[0])
		detail = curl_easy_strerror((CURLcode)code);
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		snprintf(ret, size, "%s (%s; this machine's time is %s)", certificate_fault(verify),
			detail, clock_rfc3339(clock_wall_us(), now));
		return true;
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		snprintf(ret, size,
			"the dispatcher's key is not the pinned one: if it got a new key, set pin "
			"to "
			"what \"termbroker node add\" prints; if not, something answers in its "
			"place");
		return true;
	case CURLE_SSL_CACERT_BADFILE:
		snprintf(ret, size, "ca_file could not be used: %s", detail);
		return true;
	default:
		snprintf(ret, size, "%s", detail);
		return false;
	}
}
