#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""HAProxy beside us, with the configuration that we ship: the agents tell it what the dispatcher knows."""

import csv
import re
import socket
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import SOURCE, Process, Suite, deadline, need_program, wait_until
from harness.chain import Chain, Tree
from harness.rdp import first_packet, user_line

suite = Suite("haproxy")
LISTENING = "  sl  local_address rem_address   st\n   0: 00000000:0D3D 00000000:0000 0A " \
            "00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"


class Farm:
    """Two nodes, RDP servers of the test's own, with agents; HAProxy in front."""

    def __init__(self, t):
        need_program("haproxy")
        self.t = t
        self.chain = Chain(t)
        self.trees, self.servers, self.checks = {}, {}, {}
        for name, address, busy in (("node1", "127.0.0.7", 20), ("node2", "127.0.0.8", 70)):
            server = socket.create_server((address, 0))
            server.settimeout(deadline(20))
            t.defer(server.close)
            self.servers[name] = server
            self.trees[name] = Tree(t, name, busy, 10)
            agent = self.chain.agent(
                name, self.trees[name], address=address, node={"port": server.getsockname()[1]},
                agent_check={"address": address, "port": 0})
            found = agent.process.wait_log(rf"check this node at {re.escape(address)} port (\d+)")
            self.checks[name] = int(found.group(1))
        self.chain.wait_ok("node1", "node2")
        self.start()

    def start(self):
        """The shipped file with the test's addresses, ports and a stats socket."""
        text = (SOURCE / "packaging/etc/haproxy.cfg").read_text(encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.stats = self.t.dir / "stats.sock"
        text = text.replace("global\n", f"global\n\tstats socket {self.stats} level admin\n")
        text = text.replace("maxconn 10000", "maxconn 100")  # the test's descriptors are few
        text = text.replace("192.0.2.1:3389", f"127.0.0.1:{self.port}")
        text = text.replace("agent-inter 5s", "agent-inter 200ms")
        for name, server in self.servers.items():
            address, port = server.getsockname()
            text = re.sub(rf"server {name} \S+ (.*) agent-port \d+",
                          rf"server {name} {address}:{port} \1 agent-addr {address} agent-port {self.checks[name]}",
                          text)
        config = self.t.write("haproxy.cfg", text)
        self.process = Process(self.t, ["haproxy", "-db", "-f", config], name="haproxy", expect=None)
        wait_until(self.stats.exists, what="HAProxy's stats socket")
        wait_until(lambda: self.state("node1")["status"] == "UP", what="node1 up")

    def state(self, name):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(deadline(10))
            s.connect(str(self.stats))
            s.sendall(b"show stat\n")
            got = b""
            while more := s.recv(65536):
                got += more
        rows = csv.DictReader(got.decode()[2:].splitlines())
        return next(row for row in rows if row["svname"] == name)

    def wait(self, name, status, weights=range(0, 101)):
        def look():
            row = self.state(name)
            return row["status"].startswith(status) and int(row["weight"] or 0) in weights
        wait_until(look, 30, what=f"{name} {status} {weights}")

    def lands(self, line):
        """The node to which HAProxy leads a client with LINE."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=deadline(20)) as client:
            client.sendall(first_packet(line))
            return wait_until(self._who, 20, what="a client at a node")

    def _who(self):
        for name, server in self.servers.items():
            server.setblocking(False)
            try:
                while True:
                    connection = server.accept()[0]
                    connection.settimeout(1)
                    with connection:
                        if connection.recv(4096):  # else one that only checks
                            return name
            except (BlockingIOError, TimeoutError, ConnectionError):
                pass
        return None

    def msts(self, name):
        address, port = self.servers[name].getsockname()
        number = struct.unpack("<I", socket.inet_aton(address))[0]
        return f"Cookie: msts={number}.{socket.htons(port)}.0000\r\n".encode()


@suite.test
def haproxy_follows_what_the_dispatcher_knows(t):
    farm = Farm(t)
    # the load index
    indices = {name: farm.chain.broker.admin.get(f"/api/v1/nodes/{name}").json["load_index"]
               for name in farm.servers}
    assert 1500 < indices["node1"] < 3000 and 6500 < indices["node2"] < 8000, indices
    for name, index in indices.items():
        farm.wait(name, "UP", range((10000 - index) // 100 - 2, (10000 - index) // 100 + 3))
    # where a client is led to
    for name in ("node2", "node1", "node2"):
        assert farm.lands(farm.msts(name)) == name
    assert farm.lands(user_line("alice")) in farm.servers
    # an administrator's drain: nobody new, but who belongs there still gets in
    farm.chain.broker.maintenance("nodes", "node1", "drain")
    farm.wait("node1", "DRAIN")
    assert {farm.lands(user_line(f"user{i}")) for i in range(6)} == {"node2"}
    assert farm.lands(farm.msts("node1")) == "node1"
    farm.chain.broker.maintenance("nodes", "node1", "enabled")
    farm.wait("node1", "UP", range(1, 101))
    # nothing listens on the RDP port any more
    farm.trees["node2"].write("proc/net/tcp", LISTENING.splitlines(True)[0])
    farm.wait("node2", "DOWN")
    assert {farm.lands(user_line(f"user{i}")) for i in range(6)} == {"node1"}
    farm.trees["node2"].write("proc/net/tcp", LISTENING)
    farm.wait("node2", "UP")


@suite.test
def haproxy_goes_on_without_any_dispatcher(t):
    farm = Farm(t)
    farm.chain.broker.maintenance("nodes", "node1", "drain")
    farm.wait("node1", "DRAIN")
    farm.chain.broker.dispatcher.kill()
    # by the node's own measure: 20 % busy, and nobody knows of the drain
    farm.wait("node1", "UP", range(78, 83))
    farm.wait("node2", "UP", range(28, 33))
    assert farm.lands(user_line("alice")) in farm.servers


@suite.test
def one_that_asks_too_much_is_bounded(t):
    farm = Farm(t)
    address, port = "127.0.0.7", farm.checks["node1"]
    agent = farm.chain.agents["node1"]
    before = agent.descriptors()
    crowd = [socket.create_connection((address, port), timeout=deadline(10)) for _ in range(100)]
    for one in crowd:
        one.close()

    def calm():
        return agent.descriptors() <= before + 2  # HAProxy asks meanwhile
    wait_until(calm, what="the old count of descriptors")
    with socket.create_connection((address, port), timeout=deadline(10)) as slow:
        slow.sendall(b"state please\n" * 100)
        got = b""
        while more := slow.recv(100):
            got += more
        assert re.fullmatch(rb"ready up \d+%\n", got), got
        wait_until(calm, what="the old count of descriptors")


suite.main()
