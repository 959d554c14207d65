#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""The harness itself: what it promises about failures, deadlines, ports and processes."""

import http.server
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (Authority, Client, Process, ProcessError, Suite, conf_text, free_port,
                     http as fetch, wait_until)

suite = Suite("harness")


def fails(error, function, *arguments, **more):
    """Calls FUNCTION, which must raise ERROR, and returns its text."""
    try:
        function(*arguments, **more)
    except error as caught:
        return str(caught)
    raise AssertionError(f"no {error.__name__}")


def run_program(t, body):
    """Runs a test program whose tests are BODY; returns subprocess.CompletedProcess."""
    lines = ["import sys", f"sys.path.insert(0, {str(Path(__file__).parent)!r})",
             "from harness import *", "suite = Suite('inner', timeout=1)", body, "suite.main()"]
    return subprocess.run([sys.executable, t.write("inner.py", "\n".join(lines))],
                          capture_output=True, text=True, check=False, timeout=60)


@suite.test
def results_are_told_apart(t):
    done = run_program(t, """
@suite.test
def good(t): pass
@suite.test
def bad(t): assert 1 == 2, "numbers differ"
@suite.test
def left_out(t): raise Skip("no such thing here")
@suite.test
def endless(t): wait_until(lambda: False, 600)
""")
    assert done.stdout.splitlines() == [
        "1..4", "ok 1 - good", "not ok 2 - bad", "ok 3 - left out # SKIP no such thing here",
        "not ok 4 - endless"], done.stdout
    assert "numbers differ" in done.stderr and "endless took more than" in done.stderr
    assert done.returncode == 1


@suite.test
def a_process_with_a_bad_end_fails_its_test(t):
    done = run_program(t, """
@suite.test
def a(t):
    Process(t, ["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 1; done"]) \
        .wait_log("up", stream="out")
@suite.test
def b(t):
    Process(t, ["sh", "-c", "echo 'x.c:1: runtime error: overflow' >&2"]).wait()
""")
    assert "not ok 1 - a" in done.stdout and "ended with 7" in done.stderr, done
    assert "not ok 2 - b" in done.stdout and "overflow" in done.stderr, done


@suite.test
def a_name_on_the_command_line_picks_one_test(t):
    inner = t.write("named.py", f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from harness import Suite
suite = Suite("named")
@suite.test
def one(t): assert False
@suite.test
def two(t): pass
suite.main()
""")
    done = subprocess.run([sys.executable, inner, "two"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1..1\nok 1 - two\n"), done
    done = subprocess.run([sys.executable, inner, "three"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and "no such test: three" in done.stderr, done


@suite.test
def a_process_that_ends_early_is_told_with_its_output(t):
    process = Process(t, ["sh", "-c", "echo broken >&2; exit 3"], expect=3)
    text = fails(ProcessError, process.wait_log, "never")
    assert "ended with 3" in text and "broken" in text, text


@suite.test
def a_process_ends_with_the_program_that_started_it(t):
    inner = t.write("parent.py", f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from harness import Process, Scope
scope = Scope("parent")
print(Process(scope, ["sleep", "600"]).pid, scope.dir, flush=True)
sys.stdin.read()
""")
    parent = subprocess.Popen([sys.executable, inner], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    pid, folder = parent.stdout.readline().split()
    os.kill(int(pid), signal.SIGSTOP)
    parent.kill()
    parent.communicate()

    def gone():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True
    wait_until(gone, what="the child's end")
    subprocess.run(["rm", "-rf", folder], check=True)


@suite.test
def ports_are_free_and_not_given_twice(_):
    ports = {free_port() for _ in range(200)}
    assert len(ports) == 200


@suite.test
def wait_until_ends_in_time(_):
    begin = time.monotonic()
    text = fails(AssertionError, wait_until, lambda: False, 0.2, "the impossible", scaled=False)
    assert "the impossible" in text and time.monotonic() - begin < 5


@suite.test
def configuration_is_quoted(_):
    text = conf_text({"a": 1, "b": 'x"\\', "c": ["u", "v"], "off": None, "d": True,
                      "tls": {"key": "k"}, ("pool", "p"): {"x": 2}})
    assert text == ('a = 1\nb = "x\\"\\\\"\nc = {"u", "v"}\nd = true\ntls {\n\tkey = "k"\n}\n'
                    'pool "p" {\n\tx = 2\n}\n'), text


class _Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(418)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def serve(t, certificate=None, key=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), _Echo)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    t.defer(server.server_close)
    t.defer(server.shutdown)
    return server.server_address[1]


@suite.test
def the_client_speaks_json_over_tcp_and_tls(t):
    authority = Authority(t)
    plain, secure = serve(t), serve(t, *authority.issue())
    answer = fetch("POST", "/x", {"code": "teapot"}, port=plain)
    assert (answer.status, answer.code, answer.json) == (418, "teapot", {"code": "teapot"}), answer
    with Client(secure, ca=authority.ca_file) as client:
        assert client.post("/x", {"code": "a"}).code == "a"
        assert client.post("/y", {"code": "b"}).code == "b"


@suite.test
def an_expired_certificate_is_expired(t):
    authority = Authority(t)
    port = serve(t, *authority.issue("old", expired=True))
    text = fails(ssl.SSLCertVerificationError, fetch, "POST", "/", {}, port=port,
                 ca=authority.ca_file)
    assert "expired" in text, text


suite.main()
