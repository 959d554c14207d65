# SPDX-License-Identifier: ISC
"""An HTTP client over TCP, TLS or a Unix socket, and a raw one for requests no client sends."""

import json
import os
import socket
import ssl
from http.client import HTTPConnection, HTTPSConnection

from .scope import deadline


class Response:
    """status, headers (case-insensitive), body (bytes)."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The `code` of a problem+json answer; None if it is none."""
        if not self.headers.get("Content-Type", "").startswith("application/problem+json"):
            return None
        return self.json.get("code")

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class _UnixConnection(HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """One connection, kept alive. Give PORT, or UNIX (a socket's path); CA (a file) means TLS."""

    def __init__(self, port=None, host="127.0.0.1", unix=None, ca=None, token=None, timeout=20):
        seconds = deadline(timeout)
        if unix is not None:
            self.connection = _UnixConnection(unix, seconds)
        elif ca is not None:
            context = ca if isinstance(ca, ssl.SSLContext) else \
                ssl.create_default_context(cafile=os.fspath(ca))
            self.connection = HTTPSConnection(host, port, timeout=seconds,
                                                          context=context)
        else:
            self.connection = HTTPConnection(host, port, timeout=seconds)
        self.token = token

    def request(self, method, path, body=None, headers=None, token=None):
        """BODY: bytes or str as it is, anything else as JSON. Returns a Response."""
        fields = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        if isinstance(body, str):
            body = body.encode("utf-8")
        token = token or self.token
        if token is not None:
            fields.setdefault("Authorization", f"Bearer {token}")
        self.connection.request(method, path, body=body, headers=fields)
        answer = self.connection.getresponse()
        return Response(answer.status, answer.headers, answer.read())

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def put(self, path, body, **more):
        return self.request("PUT", path, body, **more)

    def patch(self, path, body, **more):
        return self.request("PATCH", path, body, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def http(method, path, body=None, headers=None, **where):
    """One request on a connection of its own; WHERE as for Client."""
    with Client(**where) as client:
        return client.request(method, path, body, headers)


def raw_exchange(address, data, seconds=20, half_close=False):
    """Sends DATA (bytes) as it is to ADDRESS (a port, or a Unix socket's path) and returns all
    that comes until the other side closes."""
    unix = not isinstance(address, int)
    family = socket.AF_UNIX if unix else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as stream:
        stream.settimeout(deadline(seconds))
        stream.connect(os.fspath(address) if unix else ("127.0.0.1", address))
        got = b""
        try:
            stream.sendall(data)
            if half_close:
                stream.shutdown(socket.SHUT_WR)
            while chunk := stream.recv(65536):
                got += chunk
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent: what came is the answer
        return got
