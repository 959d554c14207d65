#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""The RDP door: who knocks is sent to the right node, and what is no RDP client costs nothing."""

import os
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Authority, Deaf, Process, Suite, deadline, free_port, wait_until
from harness.broker import Broker
from harness.freerdp import first_line, freerdp, screen
from harness.rdp import DENIED, NLA, POOL_NOT_FREE, TLS, RdpClient, first_packet, user_line

suite = Suite("door")


def world(t, door=(), **settings):
    """A broker with a door; its nodes listen on the door's port, as a redirection wants."""
    certificate, key = Authority(t).issue()
    port = free_port()
    doors = {"door": {"address": "127.0.0.1", "port": port, "pool": "office",
                      "certificate": certificate, "key": key, **dict(door)}}
    settings.setdefault("stale_after", 120)  # nobody falls silent by himself
    broker = Broker(t, **doors, **settings)
    broker.rdp = port
    broker.create("providers", name="farm")
    broker.create("pools", name="office", provider="farm")
    return broker


def node(broker, name, address, port=None, **more):
    return broker.node(name, address=address, port=port or broker.rdp, **more)


def ask(broker, user):
    client = RdpClient(broker.rdp)
    client.negotiate()
    client.start_tls()
    client.attach()
    client.say_who(user)
    return client


def failures(broker):
    return [row["params"] for row in broker.events() if row["event"] == "door-failed"]


@suite.test
def users_are_sent_to_their_session_or_the_least_loaded_node(t):
    broker = world(t)
    calm = node(broker, "calm", "127.0.0.2")
    busy = node(broker, "busy", "127.0.0.3", fqdn="busy.example")
    busy.session("alice")
    busy.session("CORP\\bob", number=2)
    calm.up(cpu=5)
    busy.up(cpu=80)
    for user, domain, unicode, expected in (
            ("carol", "", True, {"address": "127.0.0.2"}),
            ("carol", "", False, {"address": "127.0.0.2"}),
            ("alice", "", True, {"address": "127.0.0.3", "fqdn": "busy.example"}),
            ("bob", "CORP", True, {"address": "127.0.0.3", "fqdn": "busy.example"}),
            ("CORP\\bob", "ELSE", True, {"address": "127.0.0.3", "fqdn": "busy.example"}),
            ("bob@corp", "", True, {"address": "127.0.0.3", "fqdn": "busy.example"}),
            ("bob", "", True, {"address": "127.0.0.2"}),
            ("Алиса", "ДОМЕН", True, {"address": "127.0.0.2"})):
        with RdpClient(broker.rdp) as client:
            assert client.follow(user, domain, unicode=unicode) == expected, user
            assert client.closed()
    row = broker.wait_event("door-redirected")
    assert row["params"] == {"node": "calm", "address": "127.0.0.2", "user": "carol",
                             "client": "127.0.0.1"}, row
    assert row["pool"] == "office" and row["level"] == "INFO", row
    text = broker.admin.get("/metrics").text
    assert 'termbroker_door_clients_total{result="redirected"} 8' in text, text
    said = broker.dispatcher.log() + broker.journal_file.read_text()
    assert "secret" not in said


def forget_waiting(listener):
    """Drops who has connected and was not accepted."""
    listener.settimeout(0)
    try:
        while True:
            listener.accept()[0].close()
    except BlockingIOError:
        pass


@suite.test
def freerdp_lands_on_the_right_node(t):
    """The real client, on a screen. A node is a socket here, which hears who comes, and with what name."""
    program, display = freerdp(), screen(t)
    broker = world(t)
    calm, busy = node(broker, "calm", "127.0.0.2"), node(broker, "busy", "127.0.0.3")
    busy.session("CORP\\alice")
    calm.up(cpu=5)
    busy.up(cpu=80)
    nodes = {address: socket.create_server((address, broker.rdp))
             for address in ("127.0.0.2", "127.0.0.3")}
    for arguments, address in ((["/u:alice", "/d:CORP"], "127.0.0.3"),
                               (["/u:CORP\\alice"], "127.0.0.3"),
                               (["/u:alice@corp"], "127.0.0.3"),
                               (["/u:carol"], "127.0.0.2")):
        client = Process(
            t, [program, f"/v:127.0.0.1:{broker.rdp}", "/p:secret", "/cert:ignore", *arguments],
            env={"DISPLAY": display, "HOME": t.dir}, name="xfreerdp", expect=None)
        line = first_line(nodes[address])
        user = arguments[0][3:].rpartition("\\")[2]
        assert line == f"Cookie: mstshash={user}".encode(), (arguments, line)
        client.kill()
        for listener in nodes.values():
            forget_waiting(listener)
    for listener in nodes.values():
        listener.close()
    redirected = [row["params"] for row in broker.events() if row["event"] == "door-redirected"]
    assert [row["node"] for row in redirected] == ["busy", "busy", "busy", "calm"], redirected


@suite.test
def freerdp_says_why_there_is_no_node(t):
    program, display = freerdp(), screen(t)
    broker = world(t)
    client = Process(t, [program, f"/v:127.0.0.1:{broker.rdp}", "/u:alice", "/p:secret", "/cert:ignore"],
                     env={"DISPLAY": display, "HOME": t.dir}, name="xfreerdp", expect=None)
    client.wait(60)
    assert "DESTINATION_POOL_NOT_FREE" in client.out() + client.err(), client.tail()


@suite.test
def the_first_packet_may_come_byte_by_byte(t):
    broker = world(t)
    node(broker, "n1", "127.0.0.2").up()
    with RdpClient(broker.rdp) as client:
        for byte in first_packet(user_line("alice"), TLS):
            client.socket.sendall(bytes([byte]))
        assert client.packet()[7:8] == b"\x02"
        assert client.start_tls() in ("TLSv1.2", "TLSv1.3")
        client.attach()
        client.say_who("alice")
        assert client.redirection() == {"address": "127.0.0.2"}


@suite.test
def who_cannot_do_tls_is_told_so(t):
    broker = world(t)
    for protocols, words in ((None, "RDP's own security"), (NLA, "does not offer TLS"),
                             (0, "does not offer TLS")):
        with RdpClient(broker.rdp) as client:
            assert client.negotiate(user_line("bob"), protocols) == ("failure", 1)
            assert client.closed()
        wait_until(lambda w=words: any(w in f["reason"] for f in failures(broker)), what=words)


@suite.test
def refusals_close_and_are_journalled(t):
    broker = world(t, door={"unknown_user": "refuse"})
    with ask(broker, "alice") as client:  # no node yet
        assert client.refusal() == POOL_NOT_FREE
    assert broker.wait_event("connect-refused")["params"]["reason"] == "no_nodes"
    other = node(broker, "n1", "127.0.0.2", port=3390)
    other.up()
    for user, words in (("alice", "listens on port 3390"), ("", "told no user name"),
                        ("a\nb", "control"), ("a" * 300, "256")):
        with ask(broker, user) as client:
            assert client.closed() if user else client.refusal() == DENIED, user
        wait_until(lambda w=words: any(w in f["reason"] for f in failures(broker)), what=words)
    assert {f["client"] for f in failures(broker)} == {"127.0.0.1"}
    text = broker.admin.get("/metrics").text
    assert 'termbroker_door_clients_total{result="refused"} 1' in text, text
    assert 'termbroker_door_clients_total{result="failed"} 4' in text, text


@suite.test
def who_tells_no_name_is_placed_by_load(t):
    broker = world(t)
    calm, busy = node(broker, "calm", "127.0.0.2"), node(broker, "busy", "127.0.0.3")
    busy.session("unknown")  # it is nobody's name
    calm.up(cpu=5)
    busy.up(cpu=80)
    with RdpClient(broker.rdp) as client:
        assert client.follow("", line=b"") == {"address": "127.0.0.2"}


@suite.test
def who_leaves_while_a_silent_node_is_probed_is_forgotten(t):
    broker = world(t, stale_after=2)
    deaf = Deaf()
    home = node(broker, "home", "127.0.0.1", port=deaf.port)
    other = node(broker, "other", "127.0.0.2")
    home.session("alice").up()

    def others():
        other.beat()
        return home.state() == "silent" and other.state() == "ok"
    wait_until(others)
    callers = deaf.callers()
    with ask(broker, "alice"):
        wait_until(lambda: deaf.callers() > callers, what="a probe")
    with ask(broker, "alice") as client:
        assert client.redirection() == {"address": "127.0.0.2"}
    broker.wait_event("session-suspended")
    wait_until(lambda: others() and deaf.callers() == callers, 30)
    home.beat()
    home.beat()
    wait_until(others)  # and its probe is of the past
    with ask(broker, "alice"):
        assert broker.dispatcher.stop() == 0


@suite.test
def what_is_no_rdp_is_refused_at_once(t):
    broker = world(t, limits={"door_first_packet": 3600, "door_handshake": 3600})
    for data, words in ((b"GET / HTTP/1.1\r\n\r\n", "not TPKT"), (b"\x16\x03\x01", "not TPKT"),
                        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "not TPKT"),
                        (b"\x03\0\xff\xff", "length"), (b"\x03\0\0\x0b\x06\xd0", "not an X.224")):
        with RdpClient(broker.rdp) as client:
            client.socket.sendall(data)
            assert client.closed(), data
        wait_until(lambda w=words: any(w in f["reason"] for f in failures(broker)), what=words)
    with RdpClient(broker.rdp) as client:
        client.negotiate()
        client.socket.sendall(b"this is no TLS hello, and long enough to be sure of that")
        assert client.closed()
    wait_until(lambda: any(f["step"] == "tls" for f in failures(broker)))
    with RdpClient(broker.rdp) as client:
        client.negotiate()
        client.start_tls()
        client.socket.sendall(b"\x03\0\0\x08\x02\xf0\x80\x28")
        assert client.closed()
    wait_until(lambda: any(f["step"] == "connect" for f in failures(broker)))


@suite.test
def whoever_dawdles_is_cut_off(t):
    broker = world(t, limits={"door_first_packet": 1, "door_handshake": 6})
    with RdpClient(broker.rdp) as idle, RdpClient(broker.rdp) as slow:
        slow.negotiate()
        slow.start_tls()
        slow.attach()
        assert idle.closed()
        # a join again and again keeps nobody in
        try:
            while True:
                slow.socket.sendall(b"\x03")
                if slow.socket.recv(1) == b"":
                    break
        except OSError:
            pass
    wait_until(lambda: len([f for f in failures(broker) if "time allowed" in f["reason"]]) == 2)
    assert {f["step"] for f in failures(broker)} == {"request", "join"}


@suite.test
def a_thousand_bad_clients_leave_no_trace(t):
    broker = world(t, limits={"door_connections": 2000, "door_connections_per_address": 1500,
                              "door_first_packet": 60})
    node(broker, "n1", "127.0.0.2").up()
    with RdpClient(broker.rdp) as client:
        client.follow("alice")
    before = broker.dispatcher.descriptors()

    def crowd(count):
        clients = [socket.create_connection(("127.0.0.1", broker.rdp), timeout=deadline(20))
                   for _ in range(count)]
        for i, one in enumerate(clients):
            if i % 4 == 1:
                one.sendall(first_packet(user_line("drip"))[:1 + i % 20])
            elif i % 4 == 2:
                one.sendall(os.urandom(64))
            elif i % 4 == 3:
                one.sendall(first_packet(user_line("reset")))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with RdpClient(broker.rdp) as client:  # still served
            assert client.follow("alice") == {"address": "127.0.0.2"}
        for one in clients:
            one.close()
        wait_until(lambda: broker.dispatcher.descriptors() <= before, what="the old count of descriptors")
    crowd(1000)
    broker.dispatcher.check_waves(lambda: crowd(1000), 4 << 20)


@suite.test
def clients_are_capped_for_each_address_and_in_total(t):
    broker = world(t, limits={"door_connections": 5, "door_connections_per_address": 3})
    node(broker, "n1", "127.0.0.2").up()
    mine = [RdpClient(broker.rdp) for _ in range(4)]
    assert mine[3].closed()
    others = [RdpClient(broker.rdp, source="127.0.0.9") for _ in range(3)]
    assert others[2].closed()
    for one in mine + others:
        one.socket.close()

    def served():
        try:
            with RdpClient(broker.rdp) as client:
                return client.follow("alice") == {"address": "127.0.0.2"}
        except (OSError, EOFError):
            return False
    wait_until(served)
    assert any("too many clients" in f["reason"] for f in failures(broker))


@suite.test
def a_new_certificate_is_taken_and_a_bad_one_is_not(t):
    broker = world(t)
    node(broker, "n1", "127.0.0.2").up()

    def serial():
        with RdpClient(broker.rdp) as client:
            client.negotiate(user_line("alice"))
            client.start_tls()
            return client.socket.getpeercert(True)
    first = serial()
    certificate, key = Authority(t, "other").issue()
    settings = broker.dispatcher.settings["door"]
    settings.update(certificate=certificate, key=key)
    broker.dispatcher.write_config()
    broker.dispatcher.reload()
    wait_until(lambda: serial() != first)
    second = serial()
    settings.update(certificate="/nowhere.pem")
    broker.dispatcher.write_config()
    done = broker.dispatcher.check_config()
    assert done.returncode == 1 and "/nowhere.pem" in done.stderr and "door" in done.stderr, done
    broker.dispatcher.reload()
    broker.dispatcher.process.wait_log("not reloaded, the old configuration stays: .*nowhere.pem")
    assert serial() == second


@suite.test
def a_reload_changes_the_pool_and_moves_no_door(t):
    broker = world(t)
    node(broker, "n1", "127.0.0.2").up()
    broker.create("providers", name="other")
    broker.create("pools", name="labs", provider="other")
    settings = broker.dispatcher.settings["door"]

    def reload(**changes):
        settings.update(changes)
        broker.dispatcher.write_config()
        broker.dispatcher.reload()
    reload(port=free_port())
    broker.dispatcher.process.wait_log("only the next start can take it: door$")
    with RdpClient(broker.rdp) as client:
        assert client.follow("alice") == {"address": "127.0.0.2"}
    reload(port=broker.rdp, pool="labs")
    wait_until(lambda: broker.dispatcher.log().count("reloaded") == 2)
    with ask(broker, "alice") as client:
        assert client.refusal() == POOL_NOT_FREE
    row = broker.wait_event("connect-refused")
    assert row["pool"] == "labs" and row["params"]["reason"] == "no_nodes", row


@suite.test
def bad_doors_are_named(t):
    broker = world(t)
    for change, words in (({"pool": ""}, "pool must be set"), ({"pool": "a b"}, "no valid name"),
                          ({"address": "here"}, "no IP address"), ({"key": ""}, "key must be set"),
                          ({"unknown_user": "maybe"}, "neither place nor refuse"),
                          ({"colour": "red"}, "colour")):
        broker.dispatcher.settings["door"] = {
            **{k: v for k, v in broker.settings["door"].items()}, **change}
        broker.dispatcher.write_config()
        done = broker.dispatcher.check_config()
        assert done.returncode == 1 and words in done.stderr, (change, done)


@suite.test
def the_door_goes_on_while_the_database_is_away(t):
    broker = world(t)
    calm = node(broker, "calm", "127.0.0.2")
    calm.session("alice").up(logins=["alice"])
    broker.pg.stop()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "down")
    with RdpClient(broker.rdp) as client:
        assert client.follow("alice") == {"address": "127.0.0.2"}
    with RdpClient(broker.rdp) as client:
        began = time.monotonic()
        client.negotiate()
        broker.dispatcher.stop()
        assert client.closed() and time.monotonic() - began < deadline(20)


suite.main()
