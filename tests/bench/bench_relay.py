# SPDX-License-Identifier: ISC
"""The relay against a direct connection and against HAProxy, in the same run."""

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Process, Scope, Skip, build_dir, free_port, need_program, wait_until
from harness.broker import Broker

SECONDS = os.environ.get("BENCH_SECONDS", "2")
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SESSIONS = 5000
MANY = 19000
HAPROXY = """global
	maxconn 4000
	nbthread 1
defaults
	mode tcp
	option splice-auto
	timeout connect 5s
	timeout client 1h
	timeout server 1h
frontend rdp
	bind 127.0.0.1:{front}
	tcp-request inspect-delay 5s
	tcp-request content accept if RDP_COOKIE
	default_backend nodes
backend nodes
	balance rdp-cookie
	server node 127.0.0.2:{node}
"""


def peer(*arguments):
    done = subprocess.run([build_dir() / "tests/bench/bench_relay_peer", *map(str, arguments)],
                          capture_output=True, text=True, check=True)
    return float(done.stdout)


class Way:
    """A way to the node: direct, by HAProxy, by the relay."""

    def __init__(self, name, address, port, pid=None):
        self.name, self.address, self.port, self.pid = name, address, port, pid
        self.floods, self.costs, self.rtts, self.rates, self.each = [], [], [], [], []

    def cpu(self):
        if self.pid is None:
            return 0.0
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self):
        before = self.cpu()
        speed = peer("flood", self.address, self.port, SECONDS)
        self.floods.append(speed)
        self.costs.append((self.cpu() - before) / (speed * float(SECONDS) / 1e9))
        self.rtts.append(peer("rtt", self.address, self.port, 5000))
        before = self.cpu()
        rate = peer("rate", self.address, self.port, SECONDS)
        self.rates.append(rate)
        self.each.append((self.cpu() - before) / (rate * float(SECONDS)) * 1e6)


def memory_of(pid):
    fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def slab():
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("Slab:"):
            return int(line.split()[1]) * 1024
    return 0


def pipes_of(pid):
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    return sum(link.startswith("pipe:") for link in links)


def idle(scope, way, node_pid):
    """(resident bytes a session, pipes, kernel bytes a session with both ends)"""
    for pid in (way.pid, node_pid):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (MANY, MANY))
    before, kernel, pipes = memory_of(way.pid), slab(), pipes_of(way.pid)
    clients = Process(scope, ["sh", "-c", f"ulimit -n {MANY}; exec {build_dir()}/tests/bench/bench_relay_peer idle "
                                          f"{way.address} {way.port} {SESSIONS}"],
                      name="idle", expect=None, stdin=subprocess.PIPE)
    wait_until(lambda: clients.out().strip() == "ready", 120, "idle sessions")
    result = ((memory_of(way.pid) - before) / SESSIONS, pipes_of(way.pid) - pipes, (slab() - kernel) / SESSIONS)
    clients.popen.stdin.close()
    clients.popen.wait()
    return result


def median(values):
    return statistics.median(values)


def main():
    scope = Scope("bench-relay")
    try:
        need_program("haproxy")
        door, front, node_port = free_port(), free_port(), free_port()
        node = Process(scope, [build_dir() / "tests/bench/bench_relay_peer", "node", "127.0.0.2", node_port],
                       name="node", expect=None)
        wait_until(lambda: node.out().strip() == "ready", what="the node")
        broker = Broker(scope, stale_after=3600, journal={"file": scope.dir / "journal", "level": "warning"},
                        limits={"door_connections": 20000, "door_connections_per_address": 20000,
                                "door_relayed": 20000, "door_relayed_per_address": 20000},
                        door={"address": "127.0.0.1", "port": door, "mode": "relay", "pool": "office"})
        broker.farm()
        broker.node("node", address="127.0.0.2", port=node_port).session("bench").up(cpu=5)
        config = scope.write("haproxy.cfg", HAPROXY.format(front=front, node=node_port))
        haproxy = Process(scope, ["haproxy", "-db", "-f", config], name="haproxy", expect=None)
        haproxy.wait_socket(front)
        direct = Way("direct", "127.0.0.2", node_port)
        other = Way("haproxy", "127.0.0.1", front, haproxy.pid)
        ours = Way("relay", "127.0.0.1", door, broker.dispatcher.process.pid)
        for _ in range(ROUNDS):
            for way in (direct, other, ours):
                way.measure()
        print(f"one connection, {ROUNDS} rounds of {SECONDS} s, medians")
        print(f"{'':10}{'MB/s':>8}{'CPU s/GB':>10}{'round trip us':>15}{'connections/s':>15}{'CPU us each':>13}")
        for way in (direct, other, ours):
            print(f"{way.name:10}{median(way.floods) / 1e6:8.0f}{median(way.costs):10.3f}{median(way.rtts):15.1f}"
                  f"{median(way.rates):15.0f}{median(way.each):13.1f}")
        print(f"throughput / direct: {median(ours.floods) / median(direct.floods):.2f} (goal: at least 0.55)")
        print(f"CPU per GB / haproxy: {median(ours.costs) / median(other.costs):.2f} (goal: at most 1)")
        print(f"round trip added: {median(ours.rtts) - median(direct.rtts):.1f} us (goal: at most 100)")
        print(f"connections a second / haproxy: {median(ours.rates) / median(other.rates):.2f} (goal: at least 1)")
        resident, pipes, kernel = idle(scope, ours, node.pid)
        print(f"{SESSIONS} idle sessions: {resident:.0f} bytes resident each (goal: at most 4096), "
              f"{pipes} more pipe ends, {kernel:.0f} bytes of kernel memory each (both ends and the test's own)")
    except Skip as skip:
        print(f"skipped: {skip}")
        return 77
    finally:
        scope.close()
    return 0


sys.exit(main())
