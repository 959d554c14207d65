# SPDX-License-Identifier: ISC
"""What a rude, slow or clever client gets from the HTTP server, and what it costs."""

import ctypes
import json
import os
import resource
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import (Authority, Client, Skip, Suite, deadline, free_port, http,
                     raw_exchange, wait_until)
from harness.broker import Broker

suite = Suite("http_limits")
LIMITS = {"connections": 60, "connections_per_address": 40, "request_deadline": 2,
          "idle_timeout": 5}


def small(t, **settings):
    """A broker with low limits, one node, and a token of a client."""
    settings.setdefault("stale_after", 60)
    broker = Broker(t, limits={**LIMITS, **settings.pop("limits", {})}, **settings)
    node, = broker.farm("n1")
    node.up()
    broker.token = broker.create("tokens", name="portal", role="client")["token"]
    broker.node_token = node.token
    return broker


def parts(raw):
    """(status, headers as a dict of lower-case names, body) of the first answer in RAW, and what follows."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    assert lines[0].startswith("HTTP/1.1 "), raw[:200]
    headers = {name.lower(): value.strip() for name, _, value in
               (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", 0))
    return int(lines[0].split()[1]), headers, rest[:length], rest[length:]


def problem(raw, status, code):
    """RAW is one problem document and nothing else; the connection was closed."""
    got, headers, body, rest = parts(raw)
    assert got == status, raw[:400]
    assert headers["content-type"] == "application/problem+json", headers
    document = json.loads(body)
    assert document["code"] == code and document["status"] == status, document
    assert document["detail"], document
    assert rest == b"" and headers["connection"] == "close", raw[:400]
    return document


def request(method="GET", path="/healthz", headers="Host: x\r\n", body=b"", version="HTTP/1.1"):
    return f"{method} {path} {version}\r\n{headers}\r\n".encode("latin-1") + body


def heartbeat_head(broker, extra):
    return (f"POST /api/v1/heartbeat HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {broker.node_token}\r\n{extra}\r\n").encode()


def cpu_seconds(broker):
    text = Path(f"/proc/{broker.dispatcher.process.pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


SMUGGLING = [
    ("two lengths", "Content-Length: 3\r\nContent-Length: 3\r\n", 400, "content_length_repeated"),
    ("two lengths that differ", "Content-Length: 3\r\nContent-Length: 4\r\n", 400,
     "content_length_repeated"),
    ("a space before the colon", "Content-Length : 3\r\n", 400, "header_invalid"),
    ("a sign", "Content-Length: +3\r\n", 400, "content_length_invalid"),
    ("a minus", "Content-Length: -3\r\n", 400, "content_length_invalid"),
    ("hexadecimal", "Content-Length: 0x3\r\n", 400, "content_length_invalid"),
    ("a list", "Content-Length: 3, 3\r\n", 400, "content_length_invalid"),
    ("no digits", "Content-Length:\r\n", 400, "content_length_invalid"),
    ("gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n", 501,
     "transfer_encoding_unsupported"),
    ("chunked, identity", "Transfer-Encoding: chunked, identity\r\n", 501,
     "transfer_encoding_unsupported"),
    ("xchunked", "Transfer-Encoding: xchunked\r\n", 501, "transfer_encoding_unsupported"),
    ("two encodings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400,
     "transfer_encoding_repeated"),
    ("length and encoding", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400,
     "length_ambiguous"),
    ("encoding and length", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 400,
     "length_ambiguous"),
    ("a NUL", "X-A: a\0b\r\n", 400, "header_invalid"),
    ("a bare CR", "X-A: a\rContent-Length: 3\r\n", 400, "header_invalid"),
    ("a bare LF", "X-A: a\nContent-Length: 3\r\n", 400, "line_end_invalid"),
    ("a folded header", "X-A: a\r\n b\r\n", 400, "header_folded"),
    ("a folded length", "Content-Length:\r\n 3\r\n", 400, "content_length_invalid"),
    ("no name", ": a\r\n", 400, "header_invalid"),
    ("no colon", "Content-Length 3\r\n", 400, "header_invalid"),
    ("a tab in a name", "Content-Length\t: 3\r\n", 400, "header_invalid"),
    ("two hosts", "Host: y\r\n", 400, "host_repeated"),
    ("two tokens", "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", 400,
     "authorization_repeated"),
    ("another expectation", "Expect: 200-ok\r\n", 417, "expectation_failed"),
    ("a body too large", "Content-Length: 1048577\r\n", 413, "body_too_large"),
    ("a length beyond 64 bits", "Content-Length: 99999999999999999999999\r\n", 413,
     "body_too_large"),
]


@suite.test
def requests_that_two_programs_would_read_differently_are_refused(t):
    broker = small(t)
    hidden = request()
    for name, extra, status, code in SMUGGLING:
        raw = raw_exchange(broker.port, request("POST", "/healthz", "Host: x\r\n" + extra) + hidden)
        try:
            problem(raw, status, code)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
    assert http("GET", "/healthz", port=broker.port).status == 200


FIRST_LINES = [
    (b"GET /healthz HTTP/1.1\r\n\r\n", 400, "host_missing"),
    (b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 505, "version_unsupported"),
    (b"GET /healthz HTTP/0.9\r\nHost: x\r\n\r\n", 505, "version_unsupported"),
    (b"GET /healthz\r\nHost: x\r\n\r\n", 400, "request_line_invalid"),
    (b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"GET //x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"GET //x:bad/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid"),
    (b"BREW /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 501, "method_unknown"),
    (b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 501, "method_unknown"),
    (b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 501, "method_unknown"),
    (b"\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request_line_invalid"),
    (b"GET /healthz HTTP/1.1\nHost: x\n\n", 400, "line_end_invalid"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400, "line_end_invalid"),
    (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "target_too_long"),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 17000 + b"\r\n\r\n", 431,
     "headers_too_large"),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 80 + b"\r\n", 431,
     "too_many_headers"),
    (b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /", 400,
     "body_unexpected"),
    (b"POST /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
     "length_ambiguous"),
]


@suite.test
def bad_first_lines_and_heads_get_a_problem_not_a_page(t):
    broker = small(t)
    for data, status, code in FIRST_LINES:
        raw = raw_exchange(broker.port, data)
        try:
            problem(raw, status, code)
        except AssertionError as error:
            raise AssertionError(f"{data[:60]}: {error}") from error


@suite.test
def odd_paths_never_get_a_page(t):
    broker = small(t)
    for path in ("/", "/?", "/#", "/%", "/%00", "/%zz", "/[", "/]:", "/a:b", "/@", "/;", "/..",
                 "/api/v1/nodes/%2e%2e", "/api/v1/nodes/../tokens", "/api/v1/nodes/%00",
                 "/api/v1/nodes/" + "a" * 200, "/api/v1/nodes/a/b/c/d/e/f/g/h", "/?a=%", "/{}|^`"):
        raw = raw_exchange(broker.port, request("GET", path, "Host: x\r\nConnection: close\r\n"))
        status, headers, body, _ = parts(raw)
        assert status in (401, 404), (path, raw)
        assert headers["content-type"] == "application/problem+json", (path, raw)
        assert json.loads(body)["code"] in ("no_such_path", "token_missing"), (path, raw)


@suite.test
def known_methods_are_told_what_is_allowed(t):
    broker = small(t)
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST"):
        raw = raw_exchange(broker.port,
                           request(method, headers="Host: x\r\nConnection: close\r\n"))
        assert problem(raw, 405, "method_not_allowed")
        assert parts(raw)[1]["allow"] == "GET, HEAD", raw
    answer = broker.admin.request("PUT", "/api/v1/nodes/n1", {})
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, PATCH, DELETE"), answer


@suite.test
def head_tells_the_length_and_sends_no_body(t):
    broker = small(t)
    for path in ("/healthz", "/readyz", "/nothing"):
        get = http("GET", path, port=broker.port)
        raw = raw_exchange(broker.port,
                           request("HEAD", path, "Host: x\r\nConnection: close\r\n"))
        head, _, rest = raw.partition(b"\r\n\r\n")
        assert rest == b"", raw
        assert b"\r\nContent-Length: %d\r\n" % len(get.body) in head + b"\r\n", raw
        assert head.startswith(b"HTTP/1.1 %d " % get.status), raw
    with Client(port=broker.port) as client:
        for _ in range(3):
            assert client.request("HEAD", "/healthz").status == 200
            assert client.get("/healthz").json == {"status": "alive"}


@suite.test
def http_1_0_is_spoken_with_and_without_keep_alive(t):
    broker = small(t)
    raw = raw_exchange(broker.port, request(headers="", version="HTTP/1.0"))
    status, headers, body, _ = parts(raw)
    assert status == 200 and headers["connection"] == "close" and b"alive" in body, raw
    kept = request(headers="Connection: keep-alive\r\n", version="HTTP/1.0")
    raw = raw_exchange(broker.port, kept + request(headers="", version="HTTP/1.0"))
    status, headers, _, rest = parts(raw)
    assert status == 200 and headers["connection"] == "keep-alive", raw
    assert parts(rest)[0] == 200, raw


@suite.test
def pipelined_requests_are_answered_in_order(t):
    broker = small(t)
    body = json.dumps({"pool": "office", "user": "alice"}).encode()
    auth = f"Host: x\r\nAuthorization: Bearer {broker.token}\r\n"
    connect = request("POST", "/api/v1/connections", f"{auth}Content-Length: {len(body)}\r\n", body)
    chunked = request("POST", "/api/v1/connections", f"{auth}Transfer-Encoding: chunked\r\n",
                      b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    wanted = []
    data = b""
    for i in range(200):
        data += (connect, request(), chunked, request(path="/nothing"))[i % 4]
        wanted.append((200, 200, 200, 404)[i % 4])
    data += request(headers="Host: x\r\nConnection: close\r\n")
    rest, got = raw_exchange(broker.port, data), []
    while rest:
        status, _, _, rest = parts(rest)
        got.append(status)
    assert got == wanted + [200], got[:8]


@suite.test
def a_pipelined_bad_request_ends_after_the_good_one(t):
    broker = small(t)
    raw = raw_exchange(broker.port, request() + b"GET /healthz HTTP/1.1\r\n\r\n" + request())
    status, _, _, rest = parts(raw)
    assert status == 200, raw
    problem(rest, 400, "host_missing")
    # half a request behind a whole one, the other half later
    with socket.create_connection(("127.0.0.1", broker.port)) as stream:
        stream.settimeout(deadline(20))
        stream.sendall(request() + request()[:20])
        assert parts(stream.recv(65536))[0] == 200
        stream.sendall(request()[20:])
        assert parts(stream.recv(65536))[0] == 200


@suite.test
def every_split_of_a_request_is_the_same_request(t):
    broker = small(t)
    body = json.dumps({"pool": "office", "user": "alice"}).encode()
    data = request("POST", "/api/v1/connections",
                   f"Host: x\r\nAuthorization: Bearer {broker.token}\r\n"
                   "Transfer-Encoding: chunked\r\n",
                   b"5\r\n%s\r\n%X\r\n%s\r\n0\r\n\r\n" % (body[:5], len(body) - 5, body[5:]))
    with socket.create_connection(("127.0.0.1", broker.port)) as stream:
        stream.settimeout(deadline(20))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(1, len(data)):
            stream.sendall(data[:at])
            os.sched_yield()
            stream.sendall(data[at:])
            status, _, answer, _ = parts(stream.recv(65536))
            assert status == 200 and json.loads(answer)["node"] == "n1", (at, answer)


CHUNKS = [
    (b"+5\r\nhello\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"0x5\r\nhello\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b" 5\r\nhello\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"5 \r\nhello\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"5;a=b\r\nhello\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"5\nhello\n0\n\n", 400, "chunk_invalid"),
    (b"5\r\nhelloX\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"-5\r\nhello\r\n0\r\n\r\n", 400, "chunk_invalid"),
    (b"fffffffff\r\n", 400, "chunk_invalid"),
    (b"ffffffff\r\n", 413, "body_too_large"),
    (b"100001\r\n", 413, "body_too_large"),
    (b"0\r\nAuthorization: Bearer x\r\n\r\n", 400, "trailers_refused"),
]


@suite.test
def chunked_bodies_are_framed_strictly(t):
    broker = small(t)
    for body, status, code in CHUNKS:
        raw = raw_exchange(broker.port, heartbeat_head(broker, "Transfer-Encoding: chunked\r\n")
                           + body)
        try:
            problem(raw, status, code)
        except AssertionError as error:
            raise AssertionError(f"{body}: {error}") from error
    raw = raw_exchange(broker.port, heartbeat_head(broker, "Transfer-Encoding: chunked\r\n")
                       + b"100000\r\n" + b"a" * 0x100000 + b"\r\n1\r\na\r\n0\r\n\r\n")
    problem(raw, 413, "body_too_large")


@suite.test
def slow_headers_and_slow_bodies_end_at_the_deadline(t):
    broker = small(t)
    drips = {
        "headers": (request(headers="Host: x\r\nX-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"), 0),
        "body": (heartbeat_head(broker, "Content-Length: 500\r\n"), 10 ** 6),
        "chunks": (heartbeat_head(broker, "Transfer-Encoding: chunked\r\n") + b"1f4\r\n", 10 ** 6),
    }
    for name, (start, at_once) in drips.items():
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", broker.port)) as stream:
            stream.sendall(start[:at_once] or start[:5])
            left = (start[at_once:] or b"a" * 400)[5:]
            stream.settimeout(0.1)
            got = b""
            for i in range(int(deadline(20) * 10)):
                try:
                    stream.sendall(left[i:i + 1] or b"a")
                    chunk = stream.recv(65536)
                except TimeoutError:
                    continue
                except (BrokenPipeError, ConnectionResetError):
                    break
                if not chunk:
                    break
                got += chunk
        assert parts(got)[0] == 408, (name, got)
        assert json.loads(parts(got)[2])["code"] == "request_timeout", (name, got)
        assert 1.5 < time.monotonic() - begin < deadline(8), name


@suite.test
def an_idle_connection_is_closed_and_a_busy_one_is_not(t):
    broker = small(t, limits={"idle_timeout": 2})
    busy = Client(port=broker.port)
    with socket.create_connection(("127.0.0.1", broker.port)) as idle:
        idle.settimeout(0.2)
        begin = time.monotonic()

        def ended():
            assert busy.get("/healthz").status == 200
            try:
                return idle.recv(1) == b""
            except TimeoutError:
                return False
        wait_until(ended, 15, "the idle connection ends")
        assert time.monotonic() - begin > 1.5
    assert busy.get("/healthz").status == 200


@suite.test
def two_mebibytes_are_refused_at_the_head(t):
    broker = small(t)
    before = broker.dispatcher.resident()
    raw = raw_exchange(broker.port, heartbeat_head(broker, "Content-Length: 2097152\r\n")
                       + b"a" * 2097152)
    problem(raw, 413, "body_too_large")
    raw = raw_exchange(broker.port, heartbeat_head(broker, "Content-Length: 2097152\r\n"
                                                           "Expect: 100-continue\r\n"))
    problem(raw, 413, "body_too_large")
    broker.dispatcher.check_growth(before, 4 * 1024 ** 2)


@suite.test
def expect_continue_is_answered_and_the_body_taken(t):
    broker = small(t)
    body = json.dumps({"pool": "office", "user": "alice"}).encode()
    head = request("POST", "/api/v1/connections",
                   f"Host: x\r\nAuthorization: Bearer {broker.token}\r\n"
                   f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n")
    with socket.create_connection(("127.0.0.1", broker.port)) as stream:
        stream.settimeout(deadline(20))
        for _ in range(3):
            stream.sendall(head)
            assert stream.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            stream.sendall(body)
            status, _, answer, rest = parts(stream.recv(65536))
            assert status == 200 and json.loads(answer)["node"] == "n1" and not rest, answer
        stream.sendall(head + body)  # it need not wait, and then nothing is said
        assert parts(stream.recv(65536))[0] == 200


@suite.test
def a_mebibyte_of_empty_objects_without_a_token_costs_nothing(t):
    broker = small(t)
    body = b"[" + b",".join([b"{}"] * 349000) + b"]"
    assert len(body) < 1024 ** 2
    http("POST", "/api/v1/heartbeat", body, port=broker.port)
    memory, cpu = broker.dispatcher.resident(), cpu_seconds(broker)
    for path in ("/api/v1/heartbeat", "/api/v1/connections", "/api/v1/nodes"):
        for _ in range(10):
            answer = http("POST", path, body, port=broker.port)
            assert (answer.status, answer.code) == (401, "token_missing"), answer
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), answer.headers
    broker.dispatcher.check_growth(memory, 8 * 1024 ** 2)
    assert cpu_seconds(broker) - cpu < deadline(0.5)
    # and with one, the count of values is bounded before anything is built
    answer = http("POST", "/api/v1/heartbeat", body, port=broker.port, token=broker.node_token)
    assert (answer.status, answer.code) == (400, "heartbeat_invalid"), answer
    broker.dispatcher.check_growth(memory, 16 * 1024 ** 2)


@suite.test
def connections_are_counted_per_address_and_in_total(t):
    broker = small(t)
    held = []
    t.defer(lambda: [stream.close() for stream in held])

    def hold(address):
        stream = socket.create_connection(("127.0.0.1", broker.port), source_address=(address, 0))
        stream.settimeout(deadline(20))
        held.append(stream)
        stream.sendall(request())
        return parts(stream.recv(65536))
    for _ in range(40):
        assert hold("127.0.0.2")[0] == 200
    status, headers, body, _ = hold("127.0.0.2")
    assert status == 429 and json.loads(body)["code"] == "too_many_connections_from_address", body
    assert headers["retry-after"], headers
    while len(held) < 60:  # one of these was closed; the admin's connection counts
        assert hold("127.0.0.3")[0] == 200
    status, _, body, _ = hold("127.0.0.4")
    assert status == 503 and json.loads(body)["code"] == "too_many_connections", body
    # the administrator's socket is not locked out
    assert Client(unix=broker.socket).get("/api/v1/status").status == 200
    for stream in held:
        stream.close()
    held.clear()
    wait_until(lambda: http_ok(broker), 10, "connections are taken again")


def http_ok(broker):
    try:
        return http("GET", "/healthz", port=broker.port).status == 200
    except OSError:
        return False


@suite.test
def running_out_of_descriptors_is_survived(t):
    broker = small(t, limits={"connections": 4096, "connections_per_address": 4096})
    pid = broker.dispatcher.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (broker.dispatcher.descriptors() + 20, 4096))
    cpu = cpu_seconds(broker)
    held = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(60)]
    broker.dispatcher.process.wait_log("could not accept a connection")
    begin = time.monotonic()
    wait_until(lambda: time.monotonic() - begin > 1.5, 5)
    assert cpu_seconds(broker) - cpu < deadline(0.5), "it spins"
    assert len(broker.dispatcher.log().splitlines()) < 50
    assert broker.admin.get("/api/v1/status").status == 200
    for stream in held:
        stream.close()
    wait_until(lambda: http_ok(broker), 10, "connections are taken again")


@suite.test
def clients_that_vanish_leave_nothing_behind(t):
    broker = small(t, limits={"connections": 4096, "connections_per_address": 4096})
    auth = f"Host: x\r\nAuthorization: Bearer {broker.token}\r\n"
    stages = [b"", b"GET /heal", request(), request() * 20,
              heartbeat_head(broker, "Content-Length: 500\r\n") + b"{",
              request("POST", "/api/v1/connections", auth + "Expect: 100-continue\r\n"
                                                            "Content-Length: 10\r\n"),
              b"GET / HTTP/1.1\r\n\r\n", request("POST", headers="Content-Length: 99999999\r\n")]

    def vanish(count):
        for i in range(count):
            stream = socket.create_connection(("127.0.0.1", broker.port))
            if i % 2:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.sendall(stages[i % len(stages)])
            stream.close()
    vanish(400)
    idle = wait_until(lambda: settled(broker), 20, "descriptors are closed")

    def wave():
        """More may be open at once than in any wave before; what leaks grows with every wave."""
        memory = broker.dispatcher.resident()
        vanish(4000)
        wait_until(lambda: settled(broker) == idle, 20, "descriptors are closed")
        return broker.dispatcher.grown(memory) < 2 * 1024 ** 2
    assert any(wave() for _ in range(5)), "five times in a row 2 MiB and more"


def settled(broker):
    """The number of descriptors once no connection but the administrator's is open, else None."""
    if broker.admin.get("/api/v1/status").json["connections"] > 1:
        return None
    return broker.dispatcher.descriptors()


@suite.test
def a_poll_ends_when_its_client_goes_and_costs_nothing_meanwhile(t):
    broker = small(t)
    auditor = broker.create("tokens", name="watch", role="auditor")["token"]
    newest = broker.admin.get("/api/v1/events?newest=true&limit=1").json["next"]
    poll = request("GET", f"/api/v1/events?after={newest + 1000}&wait=50",
                   f"Host: x\r\nAuthorization: Bearer {auditor}\r\n")
    wait_until(lambda: settled(broker), 10, "other connections are gone")
    before = broker.dispatcher.descriptors()
    for reset in (False, True):
        streams = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(20)]
        for stream in streams:
            stream.sendall(poll)
        wait_until(lambda: broker.dispatcher.descriptors() >= before + 20, 10, "the polls have come")
        cpu = cpu_seconds(broker)
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() - begin > 1, 5)
        assert cpu_seconds(broker) - cpu < deadline(0.4), "a waiting poll spins"
        for stream in streams:
            if reset:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
        wait_until(lambda: broker.dispatcher.descriptors() <= before, 10, "the polls are gone")
        cpu = cpu_seconds(broker)
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() - begin > 0.5, 5)
        assert cpu_seconds(broker) - cpu < deadline(0.3), "a dead poll spins"
    # the next request, sent ahead, does not end a poll
    soon = poll.replace(b"wait=50", b"wait=1")
    raw = raw_exchange(broker.port, soon + request(headers="Host: x\r\nConnection: close\r\n"))
    status, _, body, rest = parts(raw)
    assert status == 200 and json.loads(body)["items"] == [], raw
    assert parts(rest)[0] == 200, raw


@suite.test
def a_reader_that_does_not_read_is_let_go(t):
    broker = small(t, limits={"idle_timeout": 2})
    for i in range(300):
        broker.create("providers", name=f"p{i}" + "x" * 50)
    auditor = broker.create("tokens", name="watch", role="auditor")["token"]
    get = request("GET", "/api/v1/providers", f"Host: x\r\nAuthorization: Bearer {auditor}\r\n")
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.connect(("127.0.0.1", broker.port))
    stream.setblocking(False)
    memory = broker.dispatcher.resident()
    sent = 0
    begin = time.monotonic()
    while time.monotonic() - begin < 1:
        try:
            sent += stream.send(get * 50)
        except BlockingIOError:
            pass
        except ConnectionError:
            break
    broker.dispatcher.check_growth(memory, 8 * 1024 ** 2)  # it does not read on while nobody reads
    wait_until(lambda: broker.admin.get("/api/v1/status").json["connections"] <= 1, 15,
               "the connection is closed")
    stream.close()


def options_of(broker, port):
    """TCP_NODELAY of the dispatcher's end of each connection to PORT, taken from its descriptors."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = broker.dispatcher.process.pid
    pidfd = os.pidfd_open(pid)
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        fd = libc.syscall(438, pidfd, int(name), 0)  # pidfd_getfd
        if fd < 0:  # a container may forbid it
            raise Skip(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
        if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
            os.close(fd)
            continue
        with socket.socket(fileno=fd) as stream:
            if stream.family == socket.AF_INET and stream.getsockname()[1] == port and \
                    not stream.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.append(stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    os.close(pidfd)
    return found


@suite.test
def no_answer_waits_for_an_acknowledgement(t):
    authority = Authority(t)
    certificate, key = authority.issue()
    port = free_port()
    broker = small(t, **{"listen ": {"address": "127.0.0.1", "port": port, "tls": True,
                                     "certificate": certificate, "key": key}})
    clients = [Client(port=broker.port), Client(port=port, host="localhost",
                                                ca=authority.context())]
    for client in clients:
        assert client.get("/healthz").status == 200
    for number in (broker.port, port):
        options = options_of(broker, number)
        assert options and all(options), (number, options)


@suite.test
def tls_has_the_same_limits(t):
    authority = Authority(t)
    certificate, key = authority.issue()
    port = free_port()
    broker = small(t, **{"listen ": {"address": "127.0.0.1", "port": port, "tls": True,
                                     "certificate": certificate, "key": key}})
    context = authority.context()

    def exchange(data):
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.settimeout(deadline(20))
            with context.wrap_socket(plain, server_hostname="localhost") as stream:
                stream.sendall(data)
                got = b""
                while chunk := stream.recv(65536):
                    got += chunk
                return got
    problem(exchange(b"GET / HTTP/1.1\r\n\r\n"), 400, "host_missing")
    raw = exchange(request() * 30 + request(headers="Host: x\r\nConnection: close\r\n"))
    count = 0
    while raw:
        status, _, _, raw = parts(raw)
        assert status == 200
        count += 1
    assert count == 31
    # not a word in cleartext, and a handshake that never comes is not waited for
    raw = raw_exchange(port, request())
    assert b"HTTP" not in raw, raw
    begin = time.monotonic()
    assert raw_exchange(port, b"") == b""
    assert time.monotonic() - begin < deadline(10)
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as stream:
            stream.settimeout(deadline(20))
            stream.sendall(request()[:20])
            got = b""
            while chunk := stream.recv(65536):
                got += chunk
    problem(got, 408, "request_timeout")
    client = Client(port=port, host="localhost", ca=context, token=broker.token)
    times = []
    for _ in range(50):
        begin = time.monotonic()
        assert client.post("/api/v1/connections", {"pool": "office", "user": "a"}).status == 200
        times.append(time.monotonic() - begin)
    assert sorted(times)[25] < 0.03, "answers wait for an acknowledgement"


suite.main()
