#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""The relay: a client is connected through to its node by its first packet alone."""

import os
import resource
import signal
import socket
import struct
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Authority, Deaf, Suite, deadline, free_port, wait_until
from harness.broker import Broker
from harness.rdp import DENIED, POOL_NOT_FREE, TLS, RdpClient, first_packet, user_line

suite = Suite("relay")


def world(t, door=(), certificate=False, **settings):
    """A broker with a relay into the pool "office"."""
    port = free_port()
    section = {"address": "127.0.0.1", "port": port, "mode": "relay", "pool": "office"}
    if certificate:
        section["certificate"], section["key"] = Authority(t).issue()
    section.update(dict(door))
    settings.setdefault("stale_after", 120)
    # what a test leaves open shall not hold up the end
    settings["limits"] = {"door_drain": 1, **settings.get("limits", {})}
    broker = Broker(t, door=section, **settings)
    broker.rdp = port
    broker.create("providers", name="farm")
    broker.create("pools", name="office", provider="farm")
    return broker


class RdpNode:
    """A node whose RDP server is the test: connections are accepted by hand."""

    def __init__(self, broker, name, address, cpu=5, users=(), **more):
        self.listener = socket.create_server((address, 0))
        self.listener.settimeout(deadline(20))
        self.address, self.port = self.listener.getsockname()
        self.node = broker.node(name, address=address, port=self.port, **more)
        for number, user in enumerate(users, 1):
            self.node.session(user, number=number)
        self.node.up(cpu=cpu)

    def accept(self, answer=b"\x03\0\0\x13 hello from node"):
        """The next connection, answered with ANSWER: (socket, its first bytes)."""
        connection, _ = self.listener.accept()
        connection.settimeout(deadline(20))
        first = connection.recv(4096)
        connection.sendall(answer)
        return connection, first

    def is_idle(self):
        self.listener.setblocking(False)
        try:
            self.listener.accept()
        except BlockingIOError:
            return True
        finally:
            self.listener.settimeout(deadline(20))
        return False

    def stop(self):
        self.listener.close()


def knock(broker, line=b"", source=None, protocols=TLS):
    client = RdpClient(broker.rdp, source=source)
    client.socket.sendall(first_packet(line, protocols))
    return client


def receive(connection, size):
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        assert more, f"the end after {len(got)} bytes"
        got += more
    return got


def through(broker, node, line=b"", **more):
    """A client that was connected through to NODE: (client's socket, node's socket, first bytes there)."""
    client = knock(broker, line, **more)
    connection, first = node.accept(b"answer")
    assert receive(client.socket, 6) == b"answer"
    return client.socket, connection, first


def lands(broker, node, line=b"", **more):
    """Whether a client with LINE is connected through to NODE, its packet byte for byte."""
    client, connection, first = through(broker, node, line, **more)
    assert first == first_packet(line, TLS), first
    client.close()
    connection.close()


def events(broker, name):
    return [row["params"] for row in broker.events() if row["event"] == name]


def ended(broker, count=1):
    wait_until(lambda: len(events(broker, "door-ended")) >= count, what="the end in the journal")
    return events(broker, "door-ended")


@suite.test
def bytes_flow_both_ways_and_are_counted(t):
    broker = world(t)
    node = RdpNode(broker, "n1", "127.0.0.2")
    client, far, first = through(broker, node, user_line("alice"))
    assert first == first_packet(user_line("alice"), TLS)
    blob = os.urandom(8 << 20)
    for sender, receiver in ((client, far), (far, client)):
        thread = threading.Thread(target=sender.sendall, args=(blob,))
        thread.start()
        assert receive(receiver, len(blob)) == blob
        thread.join()
    client.sendall(b"small")
    assert receive(far, 5) == b"small"
    client.close()
    assert far.recv(1) == b""
    far.close()
    row = ended(broker)[0]
    assert row["from_client"] == str(len(blob) + 5) and row["from_node"] == str(len(blob) + 6), row
    assert row["user"] == "alice" and row["node"] == "n1" and row["client"] == "127.0.0.1", row
    assert row["reason"] == "the client closed the connection", row
    assert events(broker, "door-relayed") == [
        {"node": "n1", "address": "127.0.0.2", "user": "alice", "client": "127.0.0.1"}]
    text = broker.admin.get("/metrics").text
    for line in ('termbroker_door_clients_total{result="relayed"} 1', "termbroker_door_relayed_open 0",
                 f"termbroker_door_relayed_bytes_total {2 * len(blob) + 11}",
                 'termbroker_door_seconds_bucket{le="+Inf"} 1', "termbroker_door_seconds_count 1"):
        assert line in text.splitlines(), (line, text)


@suite.test
def the_end_of_one_direction_is_handed_on_alone(t):
    broker = world(t)
    node = RdpNode(broker, "n1", "127.0.0.2")
    client, far, _ = through(broker, node)
    client.sendall(b"last words")
    client.shutdown(socket.SHUT_WR)
    assert receive(far, 10) == b"last words" and far.recv(1) == b""
    blob = os.urandom(1 << 20)
    threading.Thread(target=lambda: (far.sendall(blob), far.close())).start()
    assert receive(client, len(blob)) == blob and client.recv(1) == b""
    assert ended(broker)[0]["reason"] == "the client closed the connection"


@suite.test
def who_reads_slowly_slows_the_sender_down(t):
    broker = world(t)
    node = RdpNode(broker, "n1", "127.0.0.2")
    client, far, _ = through(broker, node)
    before = broker.dispatcher.resident()
    far.setblocking(False)
    sent = 0
    try:
        while True:
            sent += far.send(b"x" * 65536)
            assert sent < 1 << 30, "it takes everything"
    except BlockingIOError:
        pass
    other, far_other, _ = through(broker, node)  # others are served
    broker.dispatcher.check_growth(before, 2 << 20)
    far.settimeout(deadline(20))
    rest = threading.Thread(target=far.sendall, args=(b"y" * 1000000,))
    rest.start()
    got = receive(client, sent + 1000000)
    rest.join()
    assert got == b"x" * sent + b"y" * 1000000
    for one in (client, far, other, far_other):
        one.close()


@suite.test
def a_reset_on_either_side_reaches_the_other(t):
    broker = world(t)
    node = RdpNode(broker, "n1", "127.0.0.2")
    reset = struct.pack("ii", 1, 0)
    for far_first in (False, True):
        client, far, _ = through(broker, node)
        one, other = (far, client) if far_first else (client, far)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        one.close()
        try:
            assert other.recv(1) == b""
        except ConnectionError:
            pass
        other.close()
    reasons = {row["reason"] for row in ended(broker, 2)}
    assert reasons == {"the client reset the connection", "the node reset the connection"}, reasons


@suite.test
def a_name_leads_to_its_session(t):
    """Names as clients send them: whole, without domain, cut after nine bytes."""
    broker = world(t, user_names={"default_domain": "corp"})
    home = RdpNode(broker, "home", "127.0.0.2", cpu=80, users=(
        "CORP\\alice", "CORP\\bob", "OTHER\\carol", "CORP\\employee-0001", "CORP\\employee-0002",
        "OTHER\\maximilian.long", "Дмитрий"))
    away = RdpNode(broker, "away", "127.0.0.3", cpu=5)
    for name, node in (("alice", home), ("ALICE", home), ("bob@corp", home), ("CORP\\bob", home),
                       ("carol", home), ("OTHER\\carol", home), ("employee-0001", home),
                       ("maximilia", home), ("maximilian.lo", home), ("maximilian.long", home),
                       ("Дмитрий", home),
                       # nobody's, too short, or several users'
                       ("dave", away), ("ali", away), ("employee-", away), ("maximilian.x", away),
                       ("CORP\\carol", away), ("a#b", away)):
        lands(broker, node, user_line(name))
    lands(broker, away)
    lands(broker, away, b"Cookie: mstshash=\r\n")


def msts(node):
    address = struct.unpack("<I", socket.inet_aton(node.address))[0]
    return f"Cookie: msts={address}.{socket.htons(node.port)}.0000\r\n".encode()


@suite.test
def an_address_token_leads_to_an_open_node_of_the_pool(t):
    broker = world(t)
    named = RdpNode(broker, "named", "127.0.0.2", cpu=90, tags=["gpu"])
    away = RdpNode(broker, "away", "127.0.0.3", cpu=5)
    lands(broker, named, msts(named))
    assert broker.wait_event("node-routed")["params"]["node"] == "named"
    named.node.beat(cpu=100)  # full: who has a session there may come back
    lands(broker, named, msts(named))
    broker.change("pools", "office", forced_tags="-gpu")
    lands(broker, away, msts(named))
    broker.change("pools", "office", forced_tags="")
    broker.maintenance("nodes", "named", "drain")
    lands(broker, away, msts(named))
    stranger = socket.create_server(("127.0.0.4", 0))

    class Stranger:
        address, port = stranger.getsockname()
    lands(broker, away, msts(Stranger))
    stranger.setblocking(False)
    try:
        stranger.accept()
        raise AssertionError("anyone can be reached through the relay")
    except BlockingIOError:
        stranger.close()
    broker.create("providers", name="other")
    foreign = broker.node("foreign", provider="other", address="127.0.0.4", port=free_port())
    foreign.up()
    Stranger.port = broker.admin.get("/api/v1/nodes/foreign").json["port"]
    lands(broker, away, msts(Stranger))


@suite.test
def a_node_that_refuses_is_passed_over_and_comes_last(t):
    broker = world(t)
    dead = RdpNode(broker, "dead", "127.0.0.2", cpu=5, users=("alice",))
    good = RdpNode(broker, "good", "127.0.0.3", cpu=80)
    dead.stop()
    lands(broker, good, user_line("alice"))
    row = broker.wait_event("node-suspect")
    assert row["params"]["node"] == "dead" and "refused" in row["params"]["reason"], row
    assert broker.wait_event("session-suspended")["params"]["user"] == "alice"
    assert dead.node.state() == "suspect"
    lands(broker, good, user_line("bob"))
    assert len(events(broker, "node-suspect")) == 1
    dead.node.session("carol", number=9).beat(cpu=5, logins=["carol"])  # somebody got in
    broker.wait_event("node-trusted")
    assert dead.node.state() == "ok"
    text = broker.admin.get("/metrics").text
    assert "termbroker_door_node_refusals_total 1" in text, text


@suite.test
def a_node_that_says_nothing_is_given_up(t):
    broker = world(t, limits={"door_node": 1, "door_handshake": 3600})
    deaf = Deaf()
    broker.node("deaf", address="127.0.0.1", port=deaf.port).up(cpu=5)
    mute = RdpNode(broker, "mute", "127.0.0.2", cpu=20)
    rude = RdpNode(broker, "rude", "127.0.0.3", cpu=40)
    good = RdpNode(broker, "good", "127.0.0.4", cpu=60)
    client = knock(broker)
    with mute.listener.accept()[0] as silent:
        silent.settimeout(deadline(20))
        assert silent.recv(4096) == first_packet(b"", TLS) and silent.recv(1) == b""
    rude.listener.accept()[0].close()
    connection, _ = good.accept(b"welcome")
    assert receive(client.socket, 7) == b"welcome"
    connection.close()
    client.socket.close()
    wait_until(lambda: len(events(broker, "node-suspect")) == 3, what="three suspects")
    reasons = {row["node"]: row["reason"] for row in events(broker, "node-suspect")}
    assert set(reasons) == {"deaf", "mute", "rude"}, reasons
    assert "time allowed" in reasons["deaf"] and "time allowed" in reasons["mute"], reasons


@suite.test
def when_all_nodes_refuse_the_client_is_told(t):
    broker = world(t, certificate=True)
    for i in range(2, 5):
        RdpNode(broker, f"n{i}", f"127.0.0.{i}").stop()
    with RdpClient(broker.rdp) as client:
        assert client.negotiate(user_line("alice")) == ("tls", TLS)
        client.start_tls()
        client.attach()
        client.say_who("alice")
        assert client.refusal() == POOL_NOT_FREE
    with knock(broker, user_line("alice"), protocols=None) as client:  # it has no words for it
        assert client.closed()
    wait_until(lambda: [row["reason"] for row in events(broker, "connect-refused")] == ["no_metrics"] * 2,
               what="both refusals in the journal")


@suite.test
def who_tells_no_name_may_be_refused(t):
    broker = world(t, certificate=True, door={"unknown_user": "refuse"})
    node = RdpNode(broker, "n1", "127.0.0.2")
    with RdpClient(broker.rdp) as client:
        assert client.negotiate() == ("tls", TLS)
        client.start_tls()
        client.attach()
        client.say_who("alice")
        assert client.refusal() == DENIED
    lands(broker, node, user_line("alice"))
    lands(broker, node, msts(node))
    assert node.is_idle()


@suite.test
def the_pool_is_chosen_as_configured(t):
    broker = world(t, door={"pools": ["lab"], ("domain", "ACME"): {"pool": "acme"}})
    nodes = {"office": RdpNode(broker, "office", "127.0.0.2")}
    for number, pool in enumerate(("lab", "acme", "secret"), 3):
        broker.create("providers", name=pool)
        broker.create("pools", name=pool, provider=pool)
        nodes[pool] = RdpNode(broker, pool, f"127.0.0.{number}", provider=pool)
    tsv = "tsv://MS Terminal Services Plugin.1."
    for line, pool in ((b"", "office"), (user_line("alice"), "office"), (user_line("lab#alice"), "lab"),
                       (user_line("LAB#alice"), "lab"), (user_line("acme\\alice"), "acme"),
                       (user_line("alice@ACME"), "acme"), (user_line("lab#acme\\alice"), "lab"),
                       (f"{tsv}lab\r\n".encode(), "lab"), (f"{tsv}Lab\r\n".encode(), "lab"),
                       # not the listener's to give
                       (user_line("secret#alice"), "office"), (f"{tsv}secret\r\n".encode(), "office"),
                       (user_line("nowhere#alice"), "office")):
        lands(broker, nodes[pool], line)


PROXY_V2 = b"\r\n\r\n\0\r\nQUIT\n"


def v2(command, family, body):
    return PROXY_V2 + struct.pack(">BBH", 0x20 | command, family, len(body)) + body


@suite.test
def a_balancer_tells_who_the_client_is(t):
    broker = world(t, door={"proxy_from": ["127.0.0.9", "127.0.8.0/24", "::1"]},
                   limits={"door_first_packet": 3600})
    node = RdpNode(broker, "n1", "127.0.0.2")
    four = socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2") + struct.pack(">HH", 1, 2)
    six = socket.inet_pton(socket.AF_INET6, "2001:db8::1") * 2 + struct.pack(">HH", 1, 2)
    for source, header, address in (
            ("127.0.0.9", b"PROXY TCP4 192.0.2.7 192.0.2.8 4711 3389\r\n", "192.0.2.7"),
            ("127.0.0.9", b"PROXY TCP6 2001:db8::7 2001:db8::8 4711 3389\r\n", "2001:db8::7"),
            ("127.0.0.9", b"PROXY UNKNOWN\r\n", "127.0.0.9"),
            ("127.0.8.77", v2(1, 0x11, four), "192.0.2.1"),
            ("127.0.8.77", v2(1, 0x21, six + b"\x04\0\x01x"), "2001:db8::1"),
            ("127.0.8.77", v2(0, 0, b""), "127.0.8.77")):
        before = len(events(broker, "door-relayed"))
        client = RdpClient(broker.rdp, source=source)
        client.socket.sendall(header + first_packet(user_line("alice"), TLS))
        connection, first = node.accept()
        assert first == first_packet(user_line("alice"), TLS), first
        client.socket.close()
        connection.close()
        wait_until(lambda n=before: len(events(broker, "door-relayed")) > n)
        assert events(broker, "door-relayed")[-1]["client"] == address, header
    # one by one, it makes no difference
    client = RdpClient(broker.rdp, source="127.0.0.9")
    for byte in b"PROXY TCP4 192.0.2.9 192.0.2.8 1 2\r\n" + first_packet(b"", TLS):
        client.socket.sendall(bytes([byte]))
    connection, _ = node.accept()
    connection.close()
    client.socket.close()
    for source, data, words in (
            ("127.0.0.9", first_packet(b"", TLS), "PROXY header is due"),
            ("127.0.0.9", b"PROXY TCP4 192.0.2.7\r\n", "malformed"),
            ("127.0.0.9", b"PROXY TCP4 " + b"1" * 120, "does not end"),
            ("127.0.0.9", v2(1, 0x11, b"short"), "too short"),
            ("127.0.0.9", PROXY_V2 + b"\x21\x11\xff\xff", "65551 bytes"),
            ("127.0.0.7", b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "not TPKT")):
        with RdpClient(broker.rdp, source=source) as client:
            client.socket.sendall(data)
            assert client.closed(), data
        wait_until(lambda w=words: any(w in row["reason"] for row in events(broker, "door-failed")),
                   what=words)
    assert node.is_idle()


@suite.test
def a_node_may_be_told_who_the_client_is(t):
    broker = world(t, door={"proxy_to_node": True})
    node = RdpNode(broker, "n1", "127.0.0.2")
    client = knock(broker, user_line("alice"), source="127.0.0.77")
    port = client.socket.getsockname()[1]
    connection, first = node.accept()
    ends = socket.inet_aton("127.0.0.77") + socket.inet_aton("127.0.0.1")
    assert first == v2(1, 0x11, ends + struct.pack(">HH", port, broker.rdp)) + first_packet(
        user_line("alice"), TLS), first
    connection.close()


@suite.test
def relayed_clients_are_capped(t):
    broker = world(t, limits={"door_relayed": 4, "door_relayed_per_address": 3})
    node = RdpNode(broker, "n1", "127.0.0.2")
    open_ones = [through(broker, node) for _ in range(3)]
    with knock(broker) as client:
        assert client.closed()
    open_ones.append(through(broker, node, source="127.0.0.9"))
    with knock(broker, source="127.0.0.9") as client:
        assert client.closed()
    assert "termbroker_door_relayed_open 4" in broker.admin.get("/metrics").text
    open_ones[0][0].close()
    open_ones[0][1].close()
    ended(broker)
    through(broker, node)
    wait_until(lambda: {row["reason"] for row in events(broker, "door-failed")} == {
        "too many relayed clients at once"}, what="the reason in the journal")


@suite.test
def a_stop_waits_for_the_relayed(t):
    broker = world(t, limits={"door_drain": 3600})
    node = RdpNode(broker, "n1", "127.0.0.2")
    client, far, _ = through(broker, node)
    process = broker.dispatcher.process
    process.signal(signal.SIGTERM)
    process.wait_log("waiting for 1 relayed client")
    client.sendall(b"still here")
    assert receive(far, 10) == b"still here"
    try:
        socket.create_connection(("127.0.0.1", broker.rdp), timeout=deadline(5))
        raise AssertionError("it still accepts")
    except ConnectionRefusedError:
        pass
    assert broker.admin.get("/healthz").status == 200
    client.close()
    far.close()
    assert process.wait() == 0
    assert "door-ended" in broker.journal_file.read_text()


@suite.test
def a_stop_waits_no_longer_than_allowed(t):
    broker = world(t, limits={"door_drain": 1})
    node = RdpNode(broker, "n1", "127.0.0.2")
    client, far, _ = through(broker, node)
    broker.dispatcher.process.signal(signal.SIGTERM)
    assert client.recv(1) == b"" and far.recv(1) == b""
    assert broker.dispatcher.process.wait() == 0
    assert "the broker stopped" in broker.journal_file.read_text()


@suite.test
def many_come_and_go_and_leave_nothing(t):
    broker = world(t, limits={"door_connections_per_address": 1000})
    node = RdpNode(broker, "n1", "127.0.0.2")
    lands(broker, node)
    before = broker.dispatcher.descriptors()

    def wave():
        pairs = [through(broker, node, user_line(f"user{i}")) for i in range(200)]
        for i, (client, far, _) in enumerate(pairs):
            client.sendall(b"c" * 1000)
            far.sendall(b"n" * 1000)
            if i % 3 == 1:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if i % 3 == 2:
                far.close()
            client.close()
            far.close()
        # a pipe is kept for the next
        wait_until(lambda: broker.dispatcher.descriptors() <= before + 2 * 32,
                   what="the old count of descriptors")
    wave()
    broker.dispatcher.check_waves(wave, 1 << 20)


@suite.test
def running_out_of_descriptors_is_survived(t):
    """Neither a flood of accepts nor a relay without a pipe ends anything."""
    broker = world(t, limits={"door_connections_per_address": 1000, "door_first_packet": 3600})
    node = RdpNode(broker, "n1", "127.0.0.2")
    client, far, _ = through(broker, node)
    pid = broker.dispatcher.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (broker.dispatcher.descriptors() + 9, 20000))
    held = [socket.create_connection(("127.0.0.1", broker.rdp)) for _ in range(30)]
    broker.dispatcher.process.wait_log("could not accept an RDP client: Too many open files")
    client.sendall(b"still here")
    assert receive(far, 10) == b"still here"
    assert len(broker.dispatcher.log().splitlines()) < 50
    for one in held:
        one.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (10000, 20000))
    lands(broker, node)
    client.close()
    far.close()


suite.main()
