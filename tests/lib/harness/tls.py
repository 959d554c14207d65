# SPDX-License-Identifier: ISC
"""Certificates for tests, made by the openssl program."""

import ssl
import subprocess


def _openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


class Authority:
    """A certificate authority in a folder of SCOPE; `ca_file` is its certificate."""

    def __init__(self, scope, name="ca"):
        self.dir = scope.dir / scope.unique(name)
        self.dir.mkdir()
        self.ca_file = self.dir / "ca.pem"
        self._key = self.dir / "ca.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self._key, "-out", self.ca_file, "-subj", f"/CN=test {name}",
                 "-days", "30", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name="server", hosts=("localhost", "127.0.0.1"), expired=False):
        """The paths (certificate, key) of a new server certificate for HOSTS."""
        key, request = self.dir / f"{name}.key", self.dir / f"{name}.csr"
        certificate = self.dir / f"{name}.pem"
        names = ",".join(("IP:" if host[0].isdigit() or ":" in host else "DNS:") + host
                         for host in hosts)
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", key, "-out", request, "-subj", f"/CN={hosts[0]}",
                 "-addext", f"subjectAltName={names}")
        sign = ["x509", "-req", "-in", request, "-CA", self.ca_file, "-CAkey", self._key,
                "-CAcreateserial", "-copy_extensions", "copy", "-out", certificate]
        if not expired:
            _openssl(*sign, "-days", "30")
            return certificate, key
        try:  # newer OpenSSL wants dates in order, older has no option for them
            _openssl(*sign, "-not_before", "20200101000000Z", "-not_after", "20200102000000Z")
        except RuntimeError:
            _openssl(*sign, "-days", "-1")
        return certificate, key

    def context(self):
        """A client's context that trusts this authority alone."""
        return ssl.create_default_context(cafile=str(self.ca_file))
