# SPDX-License-Identifier: ISC
"""A small TLS server that stands in for a dispatcher where a test must decide what it answers:
refusals, silence, foreign topologies. The real dispatcher meets the real agent in other tests."""

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Request:
    """One request as it came in: `body` is the JSON, `connection` counts accepted connections."""

    def __init__(self, handler, body):
        self.at = time.monotonic()
        self.method = handler.command
        self.path = handler.path
        self.headers = handler.headers
        self.connection = handler.number
        self.body = json.loads(body) if body else None


def reply(**members):
    """What a dispatcher answers to a heartbeat."""
    answer = {"load_index": 100, "maintenance": False, "push_interval": 1}
    answer.update(members)
    return 200, answer


def problem(status, code, detail):
    return status, {"type": "about:blank", "status": status, "code": code, "detail": detail}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.lock:
            self.server.connections += 1
            self.number = self.server.connections

    def _answer(self):
        length = int(self.headers.get("Content-Length", "0"))
        request = Request(self, self.rfile.read(length))
        with self.server.lock:
            status, answer = self.server.decide(request)
            self.server.requests.append((request, status))
        data = json.dumps(answer).encode()
        self.send_response(status)
        kind = "application/json" if status == 200 else "application/problem+json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET = _answer

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_):  # pylint: disable=arguments-differ
        pass  # handshakes that clients break off are what some tests are about

    def finish_request(self, request, client_address):
        request.settimeout(20)
        request.do_handshake()
        self.open.append(request)
        super().finish_request(request, client_address)


class FakeDispatcher:
    """Serves on `url` until closed. DECIDE(request) gives (status, JSON); change `decide` any time."""

    def __init__(self, certificate, key, decide=lambda request: reply(), port=0):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(certificate), str(key))
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._server.lock = threading.Lock()
        self._server.connections = 0
        self._server.requests = []
        self._server.open = []
        self._server.decide = decide
        self.port = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def decide(self):
        return self._server.decide

    @decide.setter
    def decide(self, function):
        with self._server.lock:
            self._server.decide = function

    @property
    def connections(self):
        return self._server.connections

    def requests(self, status=None, path="/api/v1/heartbeat"):
        """Those answered so far (with STATUS)."""
        with self._server.lock:
            return [r for r, s in self._server.requests
                    if r.path == path and status in (None, s)]

    def accepted(self):
        return self.requests(200)

    def close(self):
        """Stops listening and breaks off what is open."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in self._server.open:
            try:
                connection.shutdown(2)
            except OSError:
                pass
            connection.close()
