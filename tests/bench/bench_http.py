# SPDX-License-Identifier: ISC
"""Requests a second and CPU of the dispatcher, as ratios to a bare evhttp handler in the same run."""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import (Authority, Client, Process, Scope, Skip, build_dir, free_port, need_program,
                     wait_until)
from harness.broker import Broker

HERE = Path(__file__).resolve().parent
NODES = 256
SESSIONS = 20
CONNECTIONS = 64
SECONDS = int(os.environ.get("BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
# At debug each reconnect is an event: a line, and later a row. That is measured by BENCH_LEVEL=debug.
LEVEL = os.environ.get("BENCH_LEVEL", "warning")


class Target:
    """A server under measurement: rates and CPU microseconds a request, one of each for a round."""

    def __init__(self, name, url, pid, script, arguments):
        self.name, self.url, self.pid, self.script = name, url, pid, script
        self.arguments = arguments
        self.rates, self.costs, self.bad = [], [], 0

    def cpu(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self):
        before = self.cpu()
        done = subprocess.run(
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", HERE / self.script, self.url,
             "--", *map(str, self.arguments())], capture_output=True, text=True, check=True)
        cpu = self.cpu() - before
        count = int(re.search(r"(\d+) requests in", done.stdout).group(1))
        self.rates.append(float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout).group(1)))
        self.costs.append(cpu / count * 1e6)
        bad = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
        self.bad += int(bad.group(1)) if bad else 0

    @property
    def rate(self):
        return statistics.median(self.rates)

    @property
    def cost(self):
        return statistics.median(self.costs)


def floor(scope, size):
    process = Process(scope, [build_dir() / "tests/bench/bench_evhttp_floor", size],
                      name=f"floor-{size}", stdin=subprocess.PIPE, expect=None)
    port = int(wait_until(process.out, what="the floor's port"))
    return process.pid, f"http://127.0.0.1:{port}"


def prepare(scope):
    """A dispatcher with NODES nodes of SESSIONS sessions; the file for heartbeat.lua."""
    certificate, key = Authority(scope).issue()
    tls = free_port()
    everything = {"connections": 4096, "connections_per_address": 4096}
    broker = Broker(scope, fsync="on", stale_after=3600, limits=everything,
                    journal={"file": scope.dir / "journal.log", "level": LEVEL},
                    **{"listen ": {"address": "127.0.0.1", "port": tls, "tls": True,
                                   "certificate": certificate, "key": key}})
    nodes = broker.farm(*(f"n{i}" for i in range(NODES)))
    lines = []
    for at, node in enumerate(nodes):
        for i in range(SESSIONS):
            node.session(f"user-{at * SESSIONS + i}", number=i, since=1700000000000)
        text = json.dumps(node.message(), separators=(",", ":"))
        head, tail = re.match(r'(.*"seq":)\d+(.*)$', text).groups()
        lines.append(f"{node.token}\t{head}\t{tail}\n")
        node.up()
    broker.nodes = nodes
    broker.tls = tls
    broker.lines = scope.write("nodes.tsv", "".join(lines))
    broker.token = broker.create("tokens", name="portal", role="client")["token"]
    return broker


def sizes(broker):
    client = Client(port=broker.port, token=broker.token)
    connect = client.post("/api/v1/connections", {"pool": "office", "user": "user-7"})
    assert connect.json["reason"] == "session", connect
    node = broker.nodes[7]
    beat = client.post("/api/v1/heartbeat", node.message(), token=node.token)
    assert beat.status == 200, beat
    return len(connect.body), len(beat.body)


def show(label, base, target, goal):
    print(f"{label:<28} {base.rate:>9.0f} {target.rate:>9.0f} {target.rate / base.rate:>7.2f} "
          f"{goal:>7} {base.cost:>9.1f} {target.cost:>9.1f} {target.bad:>6}")


def main():
    scope = Scope("bench-http")
    try:
        need_program("wrk")
        broker = prepare(scope)
        connect_size, beat_size = sizes(broker)
        pid, plain = broker.dispatcher.process.pid, f"http://127.0.0.1:{broker.port}"
        sequence = iter(range(10 ** 12, 10 ** 15, 10 ** 7))

        def users():
            return [broker.token, NODES * SESSIONS]

        def beats():
            return [broker.lines, next(sequence)]
        targets = [Target("floor", *reversed(floor(scope, connect_size)), "connect.lua", users),
                   Target("connect", plain, pid, "connect.lua", users),
                   Target("floor", *reversed(floor(scope, beat_size)), "heartbeat.lua", beats),
                   Target("heartbeat", plain, pid, "heartbeat.lua", beats),
                   Target("tls", f"https://127.0.0.1:{broker.tls}", pid, "connect.lua", users)]
        for _ in range(ROUNDS):
            for target in targets:
                target.measure()
        base, connect, beat_base, beat, tls = targets
        print(f"{CONNECTIONS} connections kept alive, {ROUNDS} rounds of {SECONDS} s, medians")
        print(f"{'':<28} {'floor/s':>9} {'ours/s':>9} {'ratio':>7} {'goal':>7} {'floor us':>9} "
              f"{'ours us':>9} {'bad':>6}")
        show("connect to a live session", base, connect, ">= 0.75")
        show(f"heartbeat, {SESSIONS} sessions", beat_base, beat, ">= 0.60")
        show("connect over TLS", base, tls, "")
        print(f"TLS adds {tls.cost - connect.cost:.1f} us of CPU a request (goal: at most 15)")
    except Skip as skip:
        print(f"skipped: {skip}")
        return 77
    finally:
        scope.close()
    return 0


sys.exit(main())
