#!/usr/bin/python3
# SPDX-License-Identifier: ISC
""".rdp files and where they lead: the node itself, a door by token, a balancer by address."""

import base64
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import (Authority, Deaf, Dispatcher, Process, Suite, cli, deadline, free_port,
                     wait_until)
from harness.broker import Broker
from harness.freerdp import first_line, freerdp, screen
from harness.rdp import POOL_NOT_FREE, TLS, RdpClient, first_packet

suite = Suite("rdp_file")
LONGEST = 106  # bytes of a user name that a token has room for


def world(t, door=(), **settings):
    certificate, key = Authority(t).issue()
    port = free_port()
    section = {"address": "127.0.0.1", "port": port, "pool": "office",
               "certificate": certificate, "key": key, **dict(door)}
    settings.setdefault("stale_after", 120)
    broker = Broker(t, door=section, **settings)
    broker.rdp = port
    for name, forced in (("farm", ""), ("lab", "")):
        broker.create("providers", name=name)
        broker.create("pools", name="office" if name == "farm" else name, provider=name,
                      forced_tags=forced)
    return broker


def fetch(broker, user="alice", pool="office", token=None, expect=200, **more):
    """An .rdp file as a dict of its lines, in their order."""
    ask = broker.http(token=token) if token else broker.admin
    answer = ask.post("/api/v1/connections", {"pool": pool, "user": user, **more},
                      headers={"Accept": "application/x-rdp"})
    assert answer.status == expect, answer
    if expect != 200:
        return answer.json
    assert answer.body[:2] == b"\xff\xfe", answer.body
    lines = answer.body[2:].decode("utf-16-le").split("\r\n")
    assert lines.pop() == "", lines
    return {line[:line.index(":", line.index(":") + 1)]: line.split(":", 2)[2] for line in lines}


def listening(broker, name, address, port=None, cpu=5, users=(), **more):
    """A node that is a listening socket here: (socket, node)."""
    listener = socket.create_server((address, port or 0))
    listener.settimeout(deadline(20))
    node = broker.node(name, address=address, port=listener.getsockname()[1], **more)
    for number, user in enumerate(users, 1):
        node.session(user, number=number)
    node.up(cpu=cpu)
    return listener, node


def arrives(broker, line, listener):
    """A relayed client with LINE reaches LISTENER."""
    with RdpClient(broker.rdp) as client:
        client.socket.sendall(first_packet(line, TLS))
        with listener.accept()[0] as connection:
            connection.settimeout(deadline(20))
            assert connection.recv(4096) == first_packet(line, TLS)
            connection.sendall(b"x")
            assert client.socket.recv(1) == b"x"


@suite.test
def a_file_names_the_node_if_nothing_else_is_set(t):
    broker = world(t)
    listening(broker, "n1", "127.0.0.2")
    lines = fetch(broker)
    assert lines["full address:s"] == "127.0.0.2" and "loadbalanceinfo:s" not in lines, lines
    assert lines["use redirection server name:i"] == "0" and lines["username:s"] == "alice", lines


@suite.test
def freerdp_follows_the_file(t):
    """The real client opens it: to the node, and to the door with the token in its first packet."""
    program, display = freerdp(), screen(t)
    broker = world(t, door={"mode": "relay"})
    node, _ = listening(broker, "n1", "127.0.0.2", port=broker.rdp)
    path = t.dir / "alice.rdp"
    for section in ({"route": "none"},
                    {"route": "token", "address": "127.0.0.1", "port": broker.rdp},
                    {"route": "msts", "address": "127.0.0.1", "port": broker.rdp}):
        broker.dispatcher.settings["rdp_file"] = section
        broker.dispatcher.write_config()
        reloads = broker.dispatcher.log().count("reloaded")
        broker.dispatcher.reload()
        wait_until(lambda n=reloads: broker.dispatcher.log().count("reloaded") > n)
        lines = fetch(broker)
        expected = lines.get("loadbalanceinfo:s", "Cookie: mstshash=alice").encode()
        cli("--socket", broker.socket, "connect", "office", "alice", "--rdp", path)
        client = Process(t, [program, path, "/p:secret", "/cert:ignore"],
                         env={"DISPLAY": display, "HOME": t.dir}, name="xfreerdp", expect=None)
        line = first_line(node)
        if section["route"] == "token":
            assert line.startswith(b"tb1.") and len(line) == len(expected), line
        else:
            assert line == expected, line
        client.kill()


@suite.test
def the_longest_token_fits_into_a_first_packet(t):
    """Of a real client; and of one that sends a correlation identifier behind."""
    program, display = freerdp(), screen(t)
    broker = world(t, door={"mode": "relay"})
    broker.dispatcher.settings["rdp_file"] = {"route": "token", "address": "127.0.0.1",
                                              "port": broker.rdp}
    broker.dispatcher.write_config()
    broker.dispatcher.reload()
    broker.dispatcher.process.wait_log(" reloaded$")
    node, _ = listening(broker, "n1", "127.0.0.2")
    user, path = "x" * LONGEST, t.dir / "longest.rdp"
    assert fetch(broker, user + "x", expect=400)["code"] == "rdp_file_impossible"
    cli("--socket", broker.socket, "connect", "office", user, "--rdp", path)
    token = re.search("loadbalanceinfo:s:(.*)\r\n", path.read_bytes()[2:].decode("utf-16-le"))[1]
    Process(t, [program, path, "/p:secret", "/cert:ignore"],
            env={"DISPLAY": display, "HOME": t.dir}, name="xfreerdp", expect=None)
    assert first_line(node) == token.encode()
    body = (b"\xe0\0\0\0\0\0" + token.encode() + b"\r\n" + struct.pack("<BBHI", 1, 8, 8, TLS) +
            struct.pack("<BBH16s16x", 6, 0, 36, b"a correlation id"))
    packet = struct.pack(">BBHB", 3, 0, len(body) + 5, len(body)) + body
    with RdpClient(broker.rdp) as client:
        client.socket.sendall(packet)
        with node.accept()[0] as connection:
            connection.settimeout(deadline(20))
            assert connection.recv(4096) == packet


@suite.test
def a_token_leads_through_the_relay(t):
    broker = world(t, door={"mode": "relay"},
                   rdp_file={"route": "token", "address": "rdp.example.com", "port": 3390})
    home, _ = listening(broker, "home", "127.0.0.2", cpu=80, users=("CORP\\alice",))
    away, _ = listening(broker, "away", "127.0.0.3", cpu=5)
    lab, _ = listening(broker, "lab", "127.0.0.4", provider="lab")
    lines = fetch(broker, "CORP\\alice")
    assert lines["full address:s"] == "rdp.example.com", lines
    assert lines["server port:i"] == "3390" and lines["use redirection server name:i"] == "1", lines
    assert re.fullmatch(r"tb1\.[A-Za-z0-9_-]{60,196}", lines["loadbalanceinfo:s"]), lines
    token = lines["loadbalanceinfo:s"].encode() + b"\r\n"
    arrives(broker, token, home)
    arrives(broker, token, home)  # as often as one likes
    arrives(broker, fetch(broker, "bob")["loadbalanceinfo:s"].encode() + b"\r\n", away)
    arrives(broker, fetch(broker, "bob", "lab")["loadbalanceinfo:s"].encode() + b"\r\n", lab)

    def users():
        return [row["params"]["user"] for row in broker.events() if row["event"] == "door-relayed"]
    wait_until(lambda: users() == ["CORP\\alice", "CORP\\alice", "bob", "bob"], what="all in the journal")
    broker.dispatcher.stop()
    broker.start()  # it needs no list
    for node in ("home", "away"):
        assert broker.admin.get(f"/api/v1/nodes/{node}").json["state"] == "ok"
    arrives(broker, token, home)
    said = broker.dispatcher.log() + broker.journal_file.read_text()
    assert token.decode().strip() not in said


@suite.test
def a_token_remembers_the_tags(t):
    """The door decides anew, and by what the file was asked for with."""
    broker = world(t, door={"mode": "relay"}, rdp_file={"route": "token", "address": "door"})
    plain, _ = listening(broker, "plain", "127.0.0.2", cpu=5)
    tagged, _ = listening(broker, "tagged", "127.0.0.3", cpu=80, tags=["gpu"])

    def line(**more):
        return fetch(broker, **more)["loadbalanceinfo:s"].encode() + b"\r\n"
    arrives(broker, line(tags="gpu!"), tagged)
    arrives(broker, line(tags="none"), plain)
    arrives(broker, line(), plain)
    arrives(broker, line(tags=""), plain)
    refusal = fetch(broker, expect=400, tags="gpu;" + "x" * 64 + ";" + "y" * 64)
    assert refusal["code"] == "rdp_file_impossible" and f"{LONGEST} bytes" in refusal["detail"], refusal
    refusal = fetch(broker, expect=400, node="tagged")
    assert refusal["code"] == "rdp_file_impossible" and "by name" in refusal["detail"], refusal
    token = broker.create("tokens", name="portal", role="client")["token"]
    fetch(broker, token=token, expect=403, node="tagged")


@suite.test
def a_bad_token_is_refused_and_journalled(t):
    broker = world(t, door={"mode": "relay"}, rdp_file={"route": "token", "address": "door"})
    listening(broker, "n1", "127.0.0.2")
    good = fetch(broker)["loadbalanceinfo:s"]

    def refused(token, code=POOL_NOT_FREE):
        with RdpClient(broker.rdp) as client:
            assert client.negotiate(token.encode() + b"\r\n") == ("tls", TLS)
            client.start_tls()
            client.attach()
            client.say_who("alice")
            assert client.refusal() == code
    refused(good[:-1] + ("A" if good[-1] != "A" else "Q"))
    refused("tb1.nonsense")
    wait_until(lambda: {row["params"]["reason"] for row in broker.events()
                        if row["event"] == "access-denied"} == {
                            "the route token is not of this cluster, or was altered",
                            "the route token is malformed"}, what="both in the journal")
    broker.create("pools", name="short", provider="farm")
    doomed = fetch(broker, pool="short")["loadbalanceinfo:s"]
    broker.admin.delete("/api/v1/pools/short")
    refused(doomed)
    wait_until(lambda: any("pool of the route token is gone" in str(row["params"])
                           for row in broker.events()))


@suite.test
def a_token_ends_with_that_of_who_asked(t):
    broker = world(t, door={"mode": "relay"}, rdp_file={"route": "token", "address": "door"})
    listener, _ = listening(broker, "n1", "127.0.0.2")
    ends = time.time() + deadline(6)
    made = broker.create("tokens", name="portal", role="client",
                         expires_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends)))
    line = fetch(broker, token=made["token"])["loadbalanceinfo:s"].encode() + b"\r\n"
    arrives(broker, line, listener)

    def expired():
        with RdpClient(broker.rdp) as client:
            if time.time() > ends:
                client.negotiate(line)
        return any("expired" in row["params"]["reason"] for row in broker.events()
                   if row["event"] == "access-denied")
    wait_until(expired, 30, what="the token's end")


@suite.test
def a_token_removed_meanwhile_still_ends_its_file(t):
    """Who waits for a probe is answered by what the token was when he asked."""
    os.environ["MALLOC_PERTURB_"] = "200"  # what is freed reads as a time long ago
    t.defer(lambda: os.environ.pop("MALLOC_PERTURB_"))
    broker = world(t, door={"mode": "relay"}, rdp_file={"route": "token", "address": "door"},
                   stale_after=2)
    deaf, lines = Deaf(), []
    home = broker.node("home", address="127.0.0.1", port=deaf.port)
    listener, other = listening(broker, "other", "127.0.0.2")
    home.session("alice").up()

    def others(done=lambda: True):
        other.beat()
        return home.state() == "silent" and other.state() == "ok" and done()
    wait_until(others)
    made = broker.create("tokens", name="portal", role="client", expires_at="2100-01-01T00:00:00Z")
    before = deaf.callers()
    asking = threading.Thread(target=lambda: lines.append(fetch(broker, token=made["token"])),
                              daemon=True)
    asking.start()
    wait_until(lambda: deaf.callers() > before, what="the probe is under way")
    assert broker.admin.delete("/api/v1/tokens/portal").status == 204
    wait_until(lambda: others(lambda: lines))
    arrives(broker, lines[0]["loadbalanceinfo:s"].encode() + b"\r\n", listener)


@suite.test
def a_redirection_may_lead_back_to_the_relay(t):
    """Who cannot reach nodes, and says who he is: the token that he gets connects him through."""
    broker = world(t, door={"redirect_to": "relay"})
    home, _ = listening(broker, "home", "127.0.0.2", cpu=80, users=("CORP\\alice",))
    listening(broker, "away", "127.0.0.3", cpu=5)
    with RdpClient(broker.rdp) as client:
        told = client.follow("alice", "CORP")
    assert set(told) == {"token"} and told["token"].startswith(b"tb1."), told
    arrives(broker, told["token"], home)
    broker.wait_event("door-relayed")
    names = [row["event"] for row in broker.events() if row["event"].startswith("door-re")]
    assert names == ["door-redirected", "door-relayed"], names


def signed_content(lines):
    """What Windows takes for the signed text of a file."""
    scope = lines["signscope:s"].split(",")
    keys = {key.replace(" ", ""): key for key in lines}
    found = [next(key for squeezed, key in keys.items()
                  if squeezed.rpartition(":")[0] == name.replace(" ", "").lower()) for name in scope]
    text = "".join(f"{key}:{lines[key]}\r\n" for key in found)
    return scope, (text + f"signscope:s:{lines['signscope:s']}\r\n\0").encode("utf-16-le")


def verified(t, authority, lines, content):
    """Whether OpenSSL takes the signature of the file LINES for one of AUTHORITY's over CONTENT."""
    blob = base64.b64decode(lines["signature:s"], validate=True)
    assert struct.unpack("<III", blob[:12]) == (0x10001, 1, len(blob) - 12), blob[:12]
    (t.dir / "signature.der").write_bytes(blob[12:])
    (t.dir / "content").write_bytes(content)
    return subprocess.run(
        ["openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", t.dir / "signature.der",
         "-content", t.dir / "content", "-CAfile", authority.ca_file, "-purpose", "any",
         "-out", "/dev/null"], capture_output=True, check=False, timeout=deadline(30)).returncode == 0


@suite.test
def a_file_may_be_signed(t):
    """As rdpsign.exe does it; verified by OpenSSL."""
    authority = Authority(t)
    certificate, key = authority.issue()
    broker = world(t, rdp_file={"route": "token", "address": "door", "certificate": certificate,
                                "key": key})
    listening(broker, "n1", "127.0.0.2", fqdn="n1.example")
    broker.change("pools", "office", rdp_extra="redirectclipboard:i:0\nremoteapplicationmode:i:1\n"
                                               "screen mode id:i:2")
    lines = fetch(broker)
    assert lines["alternate full address:s"] == "door", lines
    scope, content = signed_content(lines)
    assert scope == ["Full Address", "Alternate Full Address", "Use Redirection Server Name",
                     "Server Port", "RemoteApplicationMode", "Prompt For Credentials",
                     "Authentication Level", "RedirectClipboard", "LoadBalanceInfo"], scope
    assert verified(t, authority, lines, content)
    other = content.replace("door".encode("utf-16-le"), "deor".encode("utf-16-le"))
    assert other != content and not verified(t, authority, lines, other)
    assert not verified(t, authority, lines, content[:-2])


@suite.test
def a_reload_takes_another_signer_or_keeps_the_old(t):
    old, new = Authority(t), Authority(t)
    broker = world(t, rdp_file=dict(zip(("certificate", "key"), old.issue())))
    listening(broker, "n1", "127.0.0.2")

    def reload(certificate, key, said):
        broker.dispatcher.settings["rdp_file"] = {"certificate": certificate, "key": key}
        broker.dispatcher.write_config()
        before = len(broker.dispatcher.log())
        broker.dispatcher.reload()
        broker.dispatcher.process.wait_log(said, after=before)

    def signed_by(authority):
        lines = fetch(broker)
        return verified(t, authority, lines, signed_content(lines)[1])
    assert signed_by(old)
    certificate, key = new.issue()
    reload(certificate, old.issue()[1], "not reloaded, the old configuration stays: rdp_file: "
                                        "the key in .* does not belong to the certificate")
    assert signed_by(old)
    reload(certificate, key, " reloaded$")
    assert signed_by(new) and not signed_by(old)
    reload("", "", " reloaded$")
    assert "signature:s" not in fetch(broker)


@suite.test
def every_dispatcher_of_the_database_takes_a_token(t):
    broker = world(t, rdp_file={"route": "token", "address": "door"}, door={"mode": "relay"})
    listener, _ = listening(broker, "n1", "127.0.0.2")
    token = fetch(broker)["loadbalanceinfo:s"].encode() + b"\r\n"
    door = {**broker.settings["door"], "port": free_port()}
    second = Dispatcher(t, {**broker.settings, "name": "d2", "door": door,
                            "admin_socket": {"path": t.dir / "second.sock", "group": ""},
                            "journal": {"file": t.dir / "second.log"}})
    second.start()
    broker.dispatcher.stop()
    broker.rdp = door["port"]
    arrives(broker, token, listener)
    second.stop()


@suite.test
def tokens_end_with_their_secret(t):
    """Which the dispatchers read, and nobody changes but the owner of the schema."""
    broker = world(t, rdp_file={"route": "token", "address": "door"}, door={"mode": "relay"})
    listener, _ = listening(broker, "n1", "127.0.0.2")
    change = "UPDATE cluster SET route_secret = reverse(route_secret)"
    secret = broker.pg.psql("SELECT route_secret FROM cluster", database="termbroker").strip()
    token = fetch(broker)["loadbalanceinfo:s"].encode() + b"\r\n"
    denied = broker.pg.psql(change, database="termbroker", user="termbrokerd", check=False)
    assert "permission denied for table cluster" in denied.stderr, denied
    broker.pg.psql(change, database="termbroker")
    arrives(broker, token, listener)  # read with all the rest, when the database is connected
    broker.pg.restart()
    broker.dispatcher.process.wait_log("the database is back")

    def refused():
        with RdpClient(broker.rdp) as client:
            client.negotiate(token)
        return any("not of this cluster" in row["params"]["reason"] for row in broker.events()
                   if row["event"] == "access-denied")
    wait_until(refused)
    arrives(broker, fetch(broker)["loadbalanceinfo:s"].encode() + b"\r\n", listener)
    said = broker.dispatcher.log() + broker.journal_file.read_text()
    assert secret not in said and secret[::-1] not in said


@suite.test
def an_address_token_is_for_balancers_that_know_it(t):
    broker = world(t, rdp_file={"route": "msts", "address": "192.0.2.1"})
    listener, _ = listening(broker, "n1", "127.0.0.2")
    lines = fetch(broker)
    number = struct.unpack("<I", socket.inet_aton("127.0.0.2"))[0]
    port = socket.htons(listener.getsockname()[1])
    assert lines["loadbalanceinfo:s"] == f"Cookie: msts={number}.{port}.0000", lines
    assert lines["full address:s"] == "192.0.2.1" and lines["server port:i"] == "3389", lines
    broker.node("six", provider="lab", address="::1").up()
    assert fetch(broker, pool="lab", expect=500)["code"] == "rdp_file_impossible"


@suite.test
def the_command_line_writes_the_file(t):
    broker = world(t, rdp_file={"route": "token", "address": "2001:db8::1"})
    listening(broker, "n1", "127.0.0.2")
    path = t.dir / "alice.rdp"
    cli("--socket", broker.socket, "connect", "office", "alice", "--rdp", path)
    text = path.read_bytes()[2:].decode("utf-16-le")
    assert "full address:s:[2001:db8::1]\r\n" in text and "loadbalanceinfo:s:tb1." in text, text


@suite.test
def bad_settings_are_named(t):
    broker = world(t)
    certificate, key = Authority(t).issue()
    edwards = t.dir / "edwards.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", edwards,
                    "-out", f"{edwards}.crt", "-subj", "/CN=signer"], check=True, capture_output=True)
    for section, words in (({"route": "token"}, "address must be set"),
                           ({"address": "door"}, "only then"),
                           ({"route": "magic", "address": "door"}, "none of none, token, msts"),
                           ({"route": "token", "address": "a b"}, "neither a host name"),
                           ({"route": "token", "address": "door", "port": 0}, "port"),
                           ({"route": "token", "address": "door", "lifetime": 5}, "lifetime"),
                           ({"certificate": "/nowhere.pem", "key": "/nowhere.pem"}, "nowhere.pem"),
                           ({"certificate": "/nowhere.pem"}, "belong together"),
                           ({"certificate": certificate, "key": edwards}, "does not belong to"),
                           ({"certificate": f"{edwards}.crt", "key": edwards}, "could not sign"),
                           ({"certificate": certificate, "key": key}, None)):
        broker.dispatcher.settings["rdp_file"] = section
        broker.dispatcher.write_config()
        done = broker.dispatcher.check_config()
        assert done.returncode == (1 if words else 0), (section, done)
        assert not words or words in done.stderr, (section, done)


suite.main()
