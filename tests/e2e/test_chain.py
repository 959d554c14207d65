# SPDX-License-Identifier: ISC
"""Real agents on recorded trees → the dispatcher over TLS → PostgreSQL → answers."""

import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Agent, Suite, wait_until
from harness.chain import Chain, Tree

suite = Suite("chain")


@suite.test
def from_a_machine_to_an_answer(t):
    chain = Chain(t)
    east, west = Tree(t, "east", 15, 30), Tree(t, "west", 60, 50)
    chain.agent("east", east)
    chain.agent("west", west)
    chain.wait_ok("east", "west")
    # 15 % and 30 of 95 %: worst 3158, other 1500; 60 % and 50 of 95 %: worst 6000, other 5263
    wait_until(lambda: chain.broker.pg.psql(
        "SELECT name, load_index FROM node JOIN node_load ON id = node_id ORDER BY name",
        "termbroker") == "east|3233\nwest|6263", what="the indices in the database")
    assert chain.broker.goes_to("alice") == ("east", "least_loaded")
    west.login("alice")
    wait_until(lambda: chain.broker.goes_to("alice") == ("west", "session"))
    assert chain.broker.goes_to("bob") == ("east", "least_loaded")
    west.logout()
    wait_until(lambda: chain.broker.goes_to("alice") == ("east", "least_loaded"))
    chain.broker.wait_event("user-logout")
    names = [row["event"] for row in chain.broker.events()]
    assert names.count("user-login") == 1 and names.count("user-logout") == 1, names


@suite.test
def an_agent_that_is_killed_goes_on_where_it_was(t):
    chain = Chain(t)
    tree = Tree(t, "east", 15, 30)
    agent = chain.agent("east", tree)
    chain.wait_ok("east")
    tree.login("alice")  # who was there before the first start has not just logged in
    wait_until(lambda: chain.broker.goes_to("alice") == ("east", "session"))
    chain.broker.wait_event("user-login")
    for _ in range(3):
        agent.kill()
        agent.start()
        before = chain.broker.admin.get("/api/v1/nodes/east").json["heard_at"]
        wait_until(lambda b=before: chain.broker.admin.get("/api/v1/nodes/east").json["heard_at"]
                   > b)
    agent.kill()
    tree.login("bob", 2)  # while nobody looks
    wait_until(lambda: chain.state("east") == "silent")
    agent.start()
    chain.wait_ok("east")
    names = [(e["event"], e["params"].get("user")) for e in chain.broker.events()]
    assert names.count(("user-login", "alice")) == 1, names
    assert names.count(("user-login", "bob")) == 1, names


class Wire:
    """A TCP proxy that can be cut: what is under way stays open, and nothing passes."""

    def __init__(self, scope):
        self.target, self.cut = None, threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        scope.defer(self._server.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                if not self.cut.is_set():
                    sink.sendall(data)
        except OSError:
            pass
        source.close()
        sink.close()


@suite.test
def a_cut_network_is_silence_and_heals(t):
    wire = Wire(t)
    # the only address that agents learn leads through the wire
    chain = Chain(t, advertise=f"https://127.0.0.1:{wire.port}")
    wire.target = chain.port()
    chain.broker.port = chain.port()
    chain.agent("east", Tree(t, "east", 15, 30), port=wire.port)
    chain.agent("west", Tree(t, "west", 60, 50))
    chain.wait_ok("east", "west")
    wire.cut.set()
    wait_until(lambda: chain.state("east") == "silent" and chain.state("west") == "silent")
    assert chain.broker.refused("bob") == "no_metrics"
    wire.cut.clear()
    wait_until(lambda: chain.state("east") == "ok" and chain.state("west") == "ok", 60)
    assert chain.broker.goes_to("bob") == ("east", "least_loaded")


@suite.test
def a_revoked_token_is_told(t):
    chain = Chain(t)
    agent = chain.agent("east", Tree(t, "east", 15, 30))
    chain.wait_ok("east")
    chain.broker.change("tokens", "agent.east", revoked=True)
    agent.process.wait_log("token")
    wait_until(lambda: chain.state("east") == "silent")
    chain.broker.wait_event("access-denied")
    chain.broker.change("tokens", "agent.east", revoked=False)
    agent.stop()  # rather than wait until it tries again by itself
    agent.start()
    chain.wait_ok("east")


@suite.test
def this_machine_as_it_is(t):
    chain = Chain(t)
    made = chain.broker.create("nodes", name="here", provider="farm", address="127.0.0.1")
    agent = Agent(t, {"node": "here", "dispatchers": [f"https://127.0.0.1:{chain.broker.port}"],
                      "token_file": t.write("here.token", made["token"], mode=0o600),
                      "state_dir": t.dir, "ca_file": chain.ca,
                      "collect_interval": 1, "push_interval": 1})
    agent.start()
    wait_until(lambda: chain.state("here") in ("ok", "not_accepting", "full"))
    shown = chain.broker.admin.get("/api/v1/nodes/here").json
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(file.readline().split()[1]) * 1024
    assert 0 < shown["metrics"]["memory_total_bytes"] <= total, shown
    wait_until(lambda: chain.broker.admin.get("/api/v1/nodes/here").json["load_index"] is not None)


suite.main()
