# SPDX-License-Identifier: ISC
"""Redirections a second against a bare TLS accept-and-close, and their latency at half of capacity."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Process, Scope, build_dir, free_port, wait_until
from harness.broker import Broker
from harness.rdp import recorded_connect_initial

SECONDS = os.environ.get("BENCH_SECONDS", "2")
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))


def certificate(scope):
    """A self-signed one on the curve P-256, as most are."""
    pem, key = scope.dir / "p256.pem", scope.dir / "p256.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", key, "-out", pem, "-subj", "/CN=door", "-days", "2"],
                   check=True, capture_output=True)
    return pem, key


def load(what, port, rate=0):
    """(a second, bad, p50 us, p99 us)"""
    done = subprocess.run([build_dir() / "tests/bench/bench_door_load", what, str(port), SECONDS, str(rate),
                           recorded_connect_initial().hex()], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(what, port, pid, into):
    before = cpu(pid)
    figures = load(what, port)
    into.append((figures[0], (cpu(pid) - before) / (figures[0] * float(SECONDS)) * 1e6, figures[1]))


def main():
    scope = Scope("bench-door")
    try:
        pem, key = certificate(scope)
        door = free_port()
        floor = Process(scope, [build_dir() / "tests/bench/bench_tls_floor", pem, key], name="floor", expect=None)
        floor_port = int(wait_until(lambda: floor.out().strip(), what="the floor's port"))
        broker = Broker(scope, stale_after=3600, journal={"file": scope.dir / "journal", "level": "warning"},
                        limits={"door_connections": 20000, "door_connections_per_address": 20000},
                        door={"address": "127.0.0.1", "port": door, "pool": "office", "certificate": pem, "key": key})
        broker.farm()
        broker.node("node", address="127.0.0.2", port=door).session("alice").up(cpu=5)
        pid = broker.dispatcher.process.pid
        floors, ours = [], []
        for _ in range(ROUNDS):
            measure("handshake", floor_port, floor.pid, floors)
            measure("dialogue", door, pid, ours)
        middle = [[statistics.median(column) for column in zip(*rows)] for rows in (floors, ours)]
        print(f"16 clients at a time, full handshakes with P-256, {ROUNDS} rounds of {SECONDS} s, medians")
        print(f"{'':24}{'a second':>10}{'CPU us each':>13}{'bad':>6}")
        for name, row in zip(("TLS accept and close", "redirection"), middle):
            print(f"{name:24}{row[0]:10.0f}{row[1]:13.1f}{row[2]:6.0f}")
        print(f"redirections / floor: {middle[1][0] / middle[0][0]:.2f} (goal: at least 0.60)")
        _, bad, p50, p99 = load("dialogue", door, middle[1][0] / 2)
        print(f"at half of that in an open loop: p50 {p50:.0f} us, p99 {p99:.0f} us, p99 / p50 {p99 / p50:.1f} "
              f"(goal: at most 5), bad {bad:.0f}")
    finally:
        scope.close()
    return 0


sys.exit(main())
