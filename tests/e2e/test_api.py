# SPDX-License-Identifier: ISC
"""Every call of the HTTP interface: who may, what it answers, what it says of bad input."""

import base64
import hashlib
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Authority, Suite, deadline, free_port, http, need_program, wait_until
from harness.broker import Broker

suite = Suite("api")
ROLES = ("agent", "client", "auditor", "admin")


def world(t, **settings):
    """A broker with one node and a token of each role in .tokens."""
    settings.setdefault("stale_after", 60)
    broker = Broker(t, **settings)
    broker.one, = broker.farm("n1")
    broker.one.up(cpu=20)
    broker.tokens = {"agent": broker.one.token}
    for role in ROLES[1:]:
        broker.tokens[role] = broker.create("tokens", name=f"a-{role}", role=role)["token"]
    return broker


CONNECT = {"pool": "office", "user": "alice"}
CALLS = [  # method, path, body, who may
    ("POST", "/api/v1/connections", CONNECT, "client admin"),
    ("POST", "/api/v1/explain", CONNECT, "auditor admin"),
    ("POST", "/api/v1/heartbeat", {}, "agent"),
    ("GET", "/api/v1/topology", None, "agent client auditor admin"),
    ("GET", "/api/v1/status", None, "auditor admin"),
    ("GET", "/api/v1/sessions", None, "auditor admin"),
    ("DELETE", "/api/v1/sessions/n1:c9", None, "admin"),
    ("GET", "/api/v1/events", None, "auditor admin"),
    ("GET", "/metrics", None, "auditor admin"),
]
for KIND in ("providers", "pools", "nodes", "tokens"):
    CALLS += [
        ("GET", f"/api/v1/{KIND}", None, "auditor admin"),
        ("POST", f"/api/v1/{KIND}", {}, "admin"),
        ("GET", f"/api/v1/{KIND}/none", None, "auditor admin"),
        ("PATCH", f"/api/v1/{KIND}/none", {}, "admin"),
        ("DELETE", f"/api/v1/{KIND}/none", None, "admin"),
    ]
    if KIND != "tokens":
        CALLS.append(("PUT", f"/api/v1/{KIND}/none/maintenance", {"mode": "drain"}, "admin"))


@suite.test
def each_call_is_for_its_roles_alone(t):
    broker = world(t)
    for method, path, body, may in CALLS:
        answer = http(method, path, body, port=broker.port)
        assert (answer.status, answer.code) == (401, "token_missing"), (method, path, answer)
        answer = http(method, path, body, port=broker.port, token="A" * 43)
        assert (answer.status, answer.code) == (401, "token_invalid"), (method, path, answer)
        for role in ROLES:
            answer = http(method, path, body, port=broker.port, token=broker.tokens[role])
            denied = (answer.status, answer.code) == (403, "role_denied")
            assert denied != (role in may.split()), (method, path, role, answer)
    for path in ("/healthz", "/readyz"):
        assert http("GET", path, port=broker.port).status == 200


@suite.test
def denied_calls_of_one_address_do_not_hide_anothers(t):
    broker = world(t)

    def try_from(address, token):
        connection = HTTPConnection("127.0.0.1", broker.port, timeout=deadline(10),
                                    source_address=(address, 0))
        connection.request("GET", "/api/v1/nodes", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status == 401
        connection.close()
    for _ in range(30):
        try_from("127.0.0.1", "x" * 43)
    others = [f"127.0.0.{number}" for number in range(2, 12)]
    for address in others:
        try_from(address, "x" * 43)

    def told():
        return [row["params"]["address"] for row in broker.events()
                if row["event"] == "access-denied"]
    # two addresses may share one limit, ten do not
    wait_until(lambda: set(told()) & set(others))
    assert told().count("127.0.0.1") == 20, told()


@suite.test
def revoked_and_expired_tokens_are_not_told_apart(t):
    broker = world(t)
    token = broker.tokens["client"]
    assert http("POST", "/api/v1/connections", CONNECT, port=broker.port, token=token).status == 200
    broker.change("tokens", "a-client", revoked=True)
    old = broker.create("tokens", name="old", role="client", expires_at="2020-01-01T00:00:00Z")
    texts = set()
    for text in (token, old["token"], "B" * 43, "x" * 5000):
        answer = http("POST", "/api/v1/connections", CONNECT, port=broker.port,
                      headers={"Authorization": f"Bearer {text}"})
        assert (answer.status, answer.code) == (401, "token_invalid"), (text[:9], answer)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), answer.headers
        texts.add(answer.text)
    assert len(texts) == 1, texts
    answer = http("POST", "/api/v1/connections", CONNECT, port=broker.port,
                  headers={"Authorization": "Basic YTpi"})
    assert (answer.status, answer.code) == (401, "token_missing"), answer
    reasons = {broker.wait_event("access-denied")["params"]["reason"]}
    assert reasons, reasons
    assert broker.change("tokens", "a-client", revoked=False)["revoked"] is False
    assert http("POST", "/api/v1/connections", CONNECT, port=broker.port, token=token).status == 200


@suite.test
def a_node_of_one_call_to_another(t):
    broker = world(t)
    made = broker.create("nodes", name="n2", provider="farm", address="2001:db8::2", port=3390,
                         fqdn="n2.example.test", tags=["gpu", "east"], max_sessions=40,
                         load_multiplier=1.25)
    assert len(made["token"]) == 43 and made["dispatchers"][0]["url"].startswith("http"), made
    wanted = {"name": "n2", "provider": "farm", "address": "2001:db8::2", "port": 3390,
              "fqdn": "n2.example.test", "tags": ["gpu", "east"], "max_sessions": 40,
              "load_multiplier": 1.25, "mode": "enabled", "mode_reason": "",
              "state": "never_heard", "load_index": None, "sessions": 0, "metrics": {},
              "heard_at": None, "missing_metrics": False, "agent_version": "",
              "agent_address": ""}
    assert {key: made[key] for key in wanted} == wanted, made
    shown = broker.admin.get("/api/v1/nodes/n2").json
    assert shown == wanted, shown
    names = [item["name"] for item in broker.admin.get("/api/v1/nodes").json["items"]]
    assert names == ["n1", "n2"], names
    changed = broker.change("nodes", "n2", port=3391, tags=[], fqdn=None)
    wanted.update(port=3391, tags=[], fqdn="")
    assert changed == wanted, changed
    row = broker.wait_event("admin-changed")
    assert row["params"]["changes"] == "fqdn, port, tags", row
    assert row["params"]["actor"].startswith("uid "), row
    assert broker.change("nodes", "n2", port=3391) == wanted, "no change is no event"
    mode = broker.maintenance("nodes", "n2", "drain", "new disk")
    assert (mode["mode"], mode["mode_reason"], mode["state"]) == ("drain", "new disk", "drain")
    answer = broker.admin.delete("/api/v1/nodes/n2")
    assert (answer.status, answer.body) == (204, b""), answer
    answer = broker.admin.get("/api/v1/nodes/n2")
    assert (answer.status, answer.code) == (404, "not_found"), answer
    n1 = broker.admin.get("/api/v1/nodes/n1").json
    assert n1["metrics"]["cpu_busy_percent"] == 20 and n1["metrics"]["cpu_count"] == 4, n1
    assert n1["heard_at"] and n1["agent_version"] == "test", n1
    assert n1["agent_address"] == "127.0.0.1", n1


@suite.test
def providers_pools_and_tokens_keep_what_they_are_given(t):
    broker = world(t)
    rules = {"cpu": {"on": False, "zero": 5, "full": 87.25},
             "memory": {"on": True, "zero": 0, "full": 95},
             "sessions": {"on": True}, "load_script": {"on": False}}
    p = broker.create("providers", name="p", share_sessions=False, on_mass_silence="keep",
                      rules={"cpu": rules["cpu"], "load_script": {"on": False}})
    assert p["rules"] == rules and p["on_mass_silence"] == "keep", p
    assert (p["share_sessions"], p["balance_by_metrics"], p["prefer_sharing"]) == \
        (False, True, True), p
    p = broker.change("providers", "p", rules={"cpu": {"on": True}})
    assert p["rules"]["cpu"] == {"on": True, "zero": 5, "full": 87.25}, p
    extra = "screen mode id:i:2\nusbdevicestoredirect:s:*"
    pool = broker.create("pools", name="q", provider="p", default_tags="gpu;-east",
                         forced_tags="any", allowed_tags=["gpu"], untagged_default="any",
                         rdp_extra=extra)
    wanted = {"name": "q", "provider": "p", "default_tags": "gpu;-east", "forced_tags": "any",
              "allowed_tags": ["gpu"], "untagged_default": "any", "rdp_extra": extra,
              "mode": "enabled", "mode_reason": ""}
    assert pool == wanted, pool
    answer = broker.admin.delete("/api/v1/providers/p")
    assert (answer.status, answer.code) == (409, "in_use"), answer
    token = broker.create("tokens", name="t", role="client", pools=["q", "office", "q"], tags=["gpu"],
                          see_sessions=True, expires_at="2090-01-01T00:00:00Z")
    secret = token.pop("token")
    assert broker.admin.get("/api/v1/tokens/t").json == token, token
    assert token["pools"] == ["q", "office"] and token["tags"] == ["gpu"], token
    assert token["expires_at"].startswith("2090-01-01T00:00:00"), token
    assert secret not in broker.admin.get("/api/v1/tokens").text
    agent = broker.create("tokens", name="second", role="agent", node="n1")
    assert agent["node"] == "n1", agent


BAD_FIELDS = [  # kind, body, code, what the text says
    ("nodes", {"name": "x", "address": "a"}, "field_missing", '"provider"'),
    ("nodes", {"name": "x", "provider": "farm"}, "field_missing", '"address"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "colour": 1}, "field_unknown",
     '"colour"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "mode": "drain"}, "field_unknown",
     "maintenance"),
    ("nodes", {"name": "x", "provider": "nowhere", "address": "a"}, "field_invalid", "nowhere"),
    ("nodes", {"name": "-x", "provider": "farm", "address": "a"}, "field_invalid", '"name"'),
    ("nodes", {"name": "x" * 65, "provider": "farm", "address": "a"}, "field_invalid", '"name"'),
    ("nodes", {"name": "../x", "provider": "farm", "address": "a"}, "field_invalid", '"name"'),
    ("nodes", {"name": 5, "provider": "farm", "address": "a"}, "field_invalid", '"name"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a b"}, "field_invalid", "address"),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "port": 0}, "field_invalid",
     '"port"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "port": 65536}, "field_invalid",
     '"port"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "port": "3389"}, "field_invalid",
     '"port"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "port": 3389.5}, "field_invalid",
     '"port"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "tags": ["a;b"]}, "field_invalid",
     "a;b"),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "tags": ["none"]},
     "field_invalid", "none"),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "tags": "gpu"}, "field_invalid",
     '"tags"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a",
               "tags": [f"t{i}" for i in range(33)]}, "field_invalid", "32"),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "load_multiplier": 0},
     "field_invalid", '"load_multiplier"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "load_multiplier": 101},
     "field_invalid", '"load_multiplier"'),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "load_multiplier": 1.00005},
     "field_invalid", "decimals"),
    ("nodes", {"name": "x", "provider": "farm", "address": "a", "max_sessions": -1},
     "field_invalid", '"max_sessions"'),
    ("providers", {}, "field_missing", '"name"'),
    ("providers", {"name": "x", "share_sessions": 1}, "field_invalid", '"share_sessions"'),
    ("providers", {"name": "x", "on_mass_silence": "panic"}, "field_invalid", "refuse or keep"),
    ("providers", {"name": "x", "rules": {"cpu": {"zero": 90, "full": 10}}}, "field_invalid",
     "cpu"),
    ("providers", {"name": "x", "rules": {"cpu": {"full": 101}}}, "field_invalid",
     "rules.cpu.full"),
    ("providers", {"name": "x", "rules": {"gpu": {}}}, "field_invalid", "rules.gpu"),
    ("providers", {"name": "x", "rules": {"sessions": {"full": 1}}}, "field_invalid",
     "rules.sessions"),
    ("pools", {"name": "x", "provider": "farm", "default_tags": "a!;b"}, "field_invalid",
     "default_tags"),
    ("pools", {"name": "x", "provider": "farm", "rdp_extra": "full address:s:evil"},
     "field_invalid", "full address"),
    ("pools", {"name": "x", "provider": "farm", "rdp_extra": "compression:i:1\r\nx:s:y"},
     "field_invalid", "rdp_extra"),
    ("pools", {"name": "x", "provider": "farm", "untagged_default": "some"}, "field_invalid",
     "untagged_default"),
    ("tokens", {"name": "x"}, "field_missing", '"role"'),
    ("tokens", {"name": "x", "role": "root"}, "field_invalid", '"role"'),
    ("tokens", {"name": "x", "role": "agent"}, "field_invalid", "node"),
    ("tokens", {"name": "x", "role": "agent", "node": "none"}, "field_invalid", "none"),
    ("tokens", {"name": "x", "role": "client", "pools": ["none"]}, "field_invalid", "none"),
    ("tokens", {"name": "x", "role": "client", "expires_at": "tomorrow"}, "field_invalid",
     "expires_at"),
    ("tokens", {"name": "x", "role": "client", "hash": "00"}, "field_unknown", '"hash"'),
]


@suite.test
def bad_fields_are_named_and_change_nothing(t):
    broker = world(t)
    kinds = ("providers", "pools", "nodes", "tokens")
    before = [broker.admin.get(f"/api/v1/{kind}").json for kind in kinds]
    for kind, body, code, words in BAD_FIELDS:
        answer = broker.admin.post(f"/api/v1/{kind}", body)
        assert (answer.status, answer.code) == (400, code), (kind, body, answer)
        assert words in answer.json["detail"], (kind, body, answer)
        field = set(body) - {"name", "provider", "address"}
        if kind == "nodes" and len(field) == 1 and code != "field_missing":
            answer = broker.admin.patch("/api/v1/nodes/n1", {key: body[key] for key in field})
            assert (answer.status, answer.code) == (400, code), (kind, body, answer)
    for body in ("", "[]", "{", "null", '{"name":"x","name":"y"}', b'{"name":"\xff"}',
                 "[" * 100):
        answer = broker.admin.post("/api/v1/nodes", body)
        assert (answer.status, answer.code) == (400, "request_invalid"), (body, answer)
    for body, code in (({"mode": "off"}, "field_invalid"), ({}, "field_missing"),
                       ({"mode": "drain", "why": "x"}, "field_unknown"),
                       ({"mode": "drain", "reason": "x" * 257}, "field_invalid")):
        answer = broker.admin.put("/api/v1/nodes/n1/maintenance", body)
        assert (answer.status, answer.code) == (400, code), (body, answer)
    assert [broker.admin.get(f"/api/v1/{kind}").json for kind in kinds] == before


@suite.test
def a_taken_token_name_is_no_obstacle_to_a_node(t):
    broker = world(t)
    first = broker.create("nodes", name="before", provider="farm", address="10.9.9.51")
    assert broker.admin.patch("/api/v1/nodes/before", {"name": "after"}).status == 200
    second = broker.create("nodes", name="before", provider="farm", address="10.9.9.52")
    names = {token["node"]: token["name"]
             for token in broker.admin.get("/api/v1/tokens").json["items"] if "node" in token}
    assert names["after"] == "agent.before", names
    assert re.fullmatch("agent[.]before[.][0-9a-f]{12}", names["before"]), names
    assert first["token"] != second["token"]


@suite.test
def tags_change_by_steps(t):
    broker = world(t)
    broker.change("nodes", "n1", tags=["a", "b"])
    node = broker.change("nodes", "n1", tags_add=["c", "a"], tags_remove=["b", "not there"])
    assert node["tags"] == ["a", "c"], node
    assert not {"tags_add", "tags_remove"} & node.keys(), node
    for body in ({"tags_add": ["no tag"]}, {"tags_add": "c"}, {"tags_remove": [1]},
                 {"tags_add": [f"t{i}" for i in range(1000)]}):
        answer = broker.admin.patch("/api/v1/nodes/n1", body)
        assert (answer.status, answer.code) == (400, "field_invalid"), answer
    assert broker.admin.get("/api/v1/nodes/n1").json["tags"] == ["a", "c"]
    # the journal tells the member that changed
    events = broker.admin.get("/api/v1/events?limit=1000").json["items"]
    assert any(e["params"].get("changes") == "tags" for e in events), events


@suite.test
def names_and_addresses_are_unique(t):
    broker = world(t)
    same = {"provider": "farm", "address": "10.9.9.9"}
    broker.create("nodes", name="n2", **same)
    for body, code in (({"name": "n2", "provider": "farm", "address": "10.9.9.8"}, "name_taken"),
                       ({"name": "N2", "provider": "farm", "address": "10.9.9.8"}, "name_taken"),
                       ({"name": "n3", **same}, "address_taken")):
        answer = broker.admin.post("/api/v1/nodes", body)
        assert (answer.status, answer.code) == (409, code), answer
        assert answer.json["detail"], answer
    answer = broker.admin.patch("/api/v1/nodes/n1", {"address": "10.9.9.9"})
    assert (answer.status, answer.code) == (409, "address_taken"), answer
    broker.create("nodes", name="n3", port=3390, **same)
    answer = broker.admin.post("/api/v1/providers", {"name": "farm"})
    assert (answer.status, answer.code) == (409, "name_taken"), answer


@suite.test
def a_removed_node_can_be_added_again(t):
    broker = world(t)
    assert broker.admin.delete("/api/v1/nodes/n1").status == 204
    names = [token["name"] for token in broker.admin.get("/api/v1/tokens").json["items"]]
    assert "agent.n1" not in names, names
    broker.one.beat(expect=401)
    broker.node("n1").up()
    broker.one.beat(expect=401)


@suite.test
def a_provider_has_room_for_so_many_tags(t):
    broker = world(t)
    for number in range(8):
        broker.node(f"t{number}", tags=[f"tag-{number}-{i}" for i in range(32)])
    answer = broker.admin.post("/api/v1/nodes", {
        "name": "t8", "provider": "farm", "address": "t8.example.test", "tags": ["one-more"]})
    assert (answer.status, answer.code) == (409, "too_many_tags"), answer
    answer = broker.admin.patch("/api/v1/nodes/n1", {"tags": ["one-more"]})
    assert (answer.status, answer.code) == (409, "too_many_tags"), answer
    assert broker.pg.psql("SELECT count(*) FROM node WHERE name = 't8' OR 'one-more' = ANY(tags)",
                          "termbroker") == "0", "what is refused is not stored"
    broker.change("nodes", "t7", tags=["one-more"])
    broker.change("nodes", "n1", tags=["one-more", "another"])


def bad_heartbeats(node):
    """(name, body, status, code, words) of each."""
    good = node.message()

    def but(**more):
        return {**node.message(), **more}

    def text(old, new):
        whole = json.dumps(node.message())
        assert old in whole, old
        return whole.replace(old, new)
    many = [{"id": f"s{i}", "user": "a", "state": "active"} for i in range(5001)]
    return [
        ("NaN", text('"busy_percent": 10.0', '"busy_percent": NaN'), 400, "heartbeat_invalid", ""),
        ("1e999", text('"busy_percent": 10.0', '"busy_percent": 1e999'), 400, "heartbeat_invalid",
         ""),
        ("negative", but(cpu={"busy_percent": -1, "count": 4}), 400, "heartbeat_invalid",
         "busy_percent"),
        ("above 100", but(cpu={"busy_percent": 101, "count": 4}), 400, "heartbeat_invalid",
         "busy_percent"),
        ("total 0", but(memory={"total_bytes": 0, "available_bytes": 0}), 400,
         "heartbeat_invalid", "total_bytes"),
        ("available > total", but(memory={"total_bytes": 5, "available_bytes": 6}), 400,
         "heartbeat_invalid", "available_bytes"),
        ("too many sessions", but(sessions=many), 413, "too_many_sessions", "5000"),
        ("another node", but(node="n2"), 403, "wrong_node", ""),
        ("a node that is not registered", but(node="ghost"), 403, "wrong_node", ""),
        ("no node", {key: good[key] for key in good if key != "node"}, 400, "heartbeat_invalid",
         "node"),
        ("an empty body", "", 400, "heartbeat_invalid", ""),
        ("an empty object", "{}", 400, "heartbeat_invalid", ""),
        ("deep nesting", '{"a":' * 40 + "1" + "}" * 40, 400, "heartbeat_invalid", ""),
        ("invalid UTF-8", json.dumps(good).encode().replace(b"n1", b"n\xff"), 400,
         "heartbeat_invalid", ""),
        ("a key twice", '{"node":"n1",' + json.dumps(good)[1:], 400, "heartbeat_invalid",
         "duplicate key"),
        ("not JSON", "cpu=5", 400, "heartbeat_invalid", ""),
    ]


@suite.test
def bad_heartbeats_are_refused_and_the_node_keeps_what_it_had(t):
    broker = world(t)
    broker.node("n2")
    before = broker.admin.get("/api/v1/nodes/n1").json
    for name, body, status, code, words in bad_heartbeats(broker.one):
        answer = http("POST", "/api/v1/heartbeat", body, port=broker.port, token=broker.one.token)
        assert (answer.status, answer.code) == (status, code), (name, answer)
        assert answer.json["detail"] and words in answer.json["detail"], (name, answer)
    assert broker.admin.get("/api/v1/nodes/n1").json == before
    assert broker.wait_event("heartbeat-refused")["params"]["node"] == "n1"
    # a million sessions are more than a body may have
    answer = None
    try:
        sessions = "[" + ",".join(['{"id":"s","user":"a","state":"active"}'] * 10 ** 6) + "]"
        answer = http("POST", "/api/v1/heartbeat", sessions, port=broker.port,
                      token=broker.one.token)
    except OSError:
        pass  # cut off while it was still sending
    assert answer is None or (answer.status, answer.code) == (413, "body_too_large"), answer


@suite.test
def a_heartbeat_is_taken_once_and_from_one_machine(t):
    broker = world(t)
    node = broker.one
    message = node.message(cpu=50)
    answer = http("POST", "/api/v1/heartbeat", message, port=broker.port, token=node.token)
    assert answer.status == 200 and answer.json["load_index"] > 5000, answer
    for seq in (message["seq"], message["seq"] - 1, 0):
        answer = http("POST", "/api/v1/heartbeat", {**message, "seq": seq}, port=broker.port,
                      token=node.token)
        assert (answer.status, answer.code) == (409, "heartbeat_replayed"), answer
    old = node.boot_id
    node.boot_id = "11111111-2222-3333-4444-555555555555"
    node.beat()
    body = json.dumps({**node.message(), "boot_id": old}).encode()
    with socket.create_connection(("127.0.0.1", broker.port),
                                  source_address=("127.0.0.2", 0)) as stream:
        stream.sendall(b"POST /api/v1/heartbeat HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                       b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                       % (node.token.encode(), len(body), body))
        answer = b"".join(iter(lambda: stream.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 409 ") and b'"duplicate_agent"' in answer, answer
    row = broker.wait_event("duplicate-agent")
    assert row["level"] == "WARNING", row
    assert (row["params"]["address"], row["params"]["other_address"]) == ("127.0.0.2", "127.0.0.1")


@suite.test
def one_bad_session_and_a_future_time_do_not_refuse_a_heartbeat(t):
    broker = world(t)
    broker.one.sessions = [
        {"id": "a", "user": "alice", "state": "active", "since": 9999999999999},
        {"id": "b", "user": "bob\nmallory", "state": "active", "since": 1},
        {"id": "c", "user": "carol", "state": "sleeping"},
        {"user": "dave", "state": "active"}, 7,
    ]
    broker.one.beat()
    items = broker.admin.get("/api/v1/sessions").json["items"]
    assert [item["user"] for item in items] == ["alice"], items
    assert items[0]["since"] <= items[0]["first_seen"], items
    counted = "termbroker_heartbeat_sessions_dropped_total 4"
    assert counted in broker.admin.get("/metrics").text.splitlines()


BAD_CONNECTS = [
    ({"pool": "none", "user": "a"}, 404, "pool_unknown", "none"),
    ({"pool": "office", "user": ""}, 400, "request_invalid", "user"),
    ({"pool": "office", "user": "  "}, 400, "request_invalid", "user"),
    ({"pool": "office", "user": "a" * 300}, 400, "request_invalid", "user"),
    ({"pool": "office", "user": "a\nb"}, 400, "request_invalid", "user"),
    ({"pool": "office", "user": "a\u202eb"}, 400, "request_invalid", "user"),
    ({"pool": "office", "user": 5}, 400, "request_invalid", "user"),
    ({"pool": "office"}, 400, "request_invalid", "user"),
    ({"user": "a"}, 400, "request_invalid", "pool"),
    ({"pool": "../office", "user": "a"}, 400, "request_invalid", "pool"),
    ({"pool": "'; DROP TABLE node; --", "user": "a"}, 400, "request_invalid", "pool"),
    ({"pool": "office", "user": "a", "tags": "a!;b"}, 400, "tags_invalid", 'tags: "a!": !'),
    ({"pool": "office", "user": "a", "tags": ["gpu"]}, 400, "request_invalid", "tags"),
    ({"pool": "office", "user": "a", "tags": "gpu!"}, 503, "no_tag_match", "gpu"),
    ({"pool": "office", "user": "a", "node": "n1"}, 403, "admin_required", "node"),
]


@suite.test
def bad_connects_say_what_is_wrong(t):
    broker = world(t)
    token = broker.tokens["client"]
    for body, status, code, words in BAD_CONNECTS:
        answer = http("POST", "/api/v1/connections", body, port=broker.port, token=token)
        assert (answer.status, answer.code) == (status, code), (body, answer)
        assert words in answer.json["detail"], (body, answer)
        assert answer.json["detail"].count("tags:") <= 1, answer
    # what looks like an attack and is a name is only a name
    for user in ("../../etc/passwd", "'; DROP TABLE node; --", "<script>", "Jürgen", "%s%n"):
        answer = http("POST", "/api/v1/connections", {"pool": "office", "user": user},
                      port=broker.port, token=token)
        assert answer.status == 200 and answer.json["node"] == "n1", (user, answer)
    assert broker.admin.get("/api/v1/nodes/n1").status == 200


@suite.test
def refusals_have_counts_and_tell_when_to_come_back(t):
    broker = world(t)
    broker.maintenance("nodes", "n1", "drain")
    answer = broker.ask("alice")
    assert (answer.status, answer.code) == (503, "all_maintenance"), answer
    assert answer.json["counts"]["nodes"] == 1 and answer.json["counts"]["maintenance"] == 1
    assert int(answer.headers["Retry-After"]) > 0, answer.headers
    explained = broker.admin.post("/api/v1/explain", CONNECT).json
    assert explained["decision"]["refused"] and explained["decision"]["node"] is None, explained
    assert explained["nodes"][0]["verdict"] == "maintenance", explained


@suite.test
def a_token_is_bound_to_its_pools_and_tags(t):
    broker = world(t)
    broker.create("pools", name="lab", provider="farm")
    token = broker.create("tokens", name="bound", role="client", pools=["lab"],
                          tags=["cpu"])["token"]

    def ask(**body):
        return http("POST", "/api/v1/connections", {"user": "a", **body}, port=broker.port,
                    token=token)
    assert ask(pool="lab").status == 200
    assert (ask(pool="office").status, ask(pool="office").code) == (403, "pool_denied")
    assert (ask(pool="lab", tags="gpu").status, ask(pool="lab", tags="gpu").code) == \
        (403, "tag_denied")
    broker.one.session("alice").beat()
    assert "session" not in ask(pool="lab", user="alice").json
    broker.change("tokens", "bound", see_sessions=True)
    assert ask(pool="lab", user="alice").json["session"] == {"id": "c1", "state": "active"}


@suite.test
def what_a_token_may_not_ask_for_is_journalled(t):
    broker = world(t)
    broker.create("pools", name="lab", provider="farm")
    token = broker.create("tokens", name="bound", role="client", pools=["office"],
                          tags=["cpu"])["token"]
    wanted = ("pool_denied", "tag_denied", "admin_required")
    for code, more in zip(wanted, ({"pool": "lab"}, {"tags": "gpu"}, {"node": "n1"})):
        answer = http("POST", "/api/v1/connections", {**CONNECT, **more}, port=broker.port,
                      token=token)
        assert (answer.status, answer.code) == (403, code), answer
    assert broker.ask("bob").status == 200  # behind which nothing of the above can come
    broker.wait_event("node-chosen")
    rows = [row["params"] for row in broker.events() if row["event"] == "access-denied"]
    assert [row["reason"] for row in rows] == list(wanted), rows
    for row in rows:
        assert row["actor"] == "bound" and row["call"] == "/api/v1/connections", row
        assert row["address"] == "127.0.0.1", row
    text = broker.admin.get("/metrics").text
    assert 'termbroker_connects_total{reason="tag_denied"} 1' in text, text
    assert "termbroker_denied_total 3" in text, text


@suite.test
def an_rdp_file_is_given_to_who_accepts_one(t):
    broker = world(t)
    broker.change("pools", "office", rdp_extra="screen mode id:i:2\nprompt for credentials:i:0")
    accept = {"Accept": "text/html, application/x-rdp;q=0.9"}
    token = broker.tokens["client"]

    def rdp(user):
        answer = http("POST", "/api/v1/connections", {"pool": "office", "user": user}, accept,
                      port=broker.port, token=token)
        assert answer.headers["Content-Type"] == "application/x-rdp", answer
        assert answer.headers["Content-Disposition"] == 'attachment; filename="office.rdp"'
        assert answer.body.startswith(b"\xff\xfe"), answer
        return answer.body.decode("utf-16").splitlines()
    lines = rdp("CORP\\Jürgen")
    assert lines == ["full address:s:n1.example.test", "server port:i:3389",
                     "username:s:CORP\\Jürgen", "authentication level:i:2",
                     "use redirection server name:i:0", "screen mode id:i:2",
                     "prompt for credentials:i:0"], lines
    broker.change("nodes", "n1", address="2001:db8::5", fqdn="ts5.example.test", port=3390)
    lines = rdp("alice")
    assert lines[:3] == ["full address:s:ts5.example.test",
                         "alternate full address:s:[2001:db8::5]", "server port:i:3390"], lines
    answer = http("POST", "/api/v1/connections", {"pool": "none", "user": "a"}, accept,
                  port=broker.port, token=token)
    assert (answer.status, answer.code) == (404, "pool_unknown"), answer


@suite.test
def sessions_are_listed_filtered_and_forgotten(t):
    broker = world(t)
    other = broker.node("n2")
    broker.one.session("alice", 1).session("bob", 2, state="disconnected").beat()
    other.session("ALICE", 1).up()

    def ids(query=""):
        answer = broker.admin.get(f"/api/v1/sessions{query}")
        assert answer.status == 200, answer
        return sorted(item["id"] for item in answer.json["items"])
    assert ids() == ["n1:c1", "n1:c2", "n2:c1"]
    assert ids("?node=n1") == ["n1:c1", "n1:c2"]
    assert ids("?user=alice") == ["n1:c1", "n2:c1"]
    assert ids("?user=alice&node=n2") == ["n2:c1"]
    assert ids("?state=disconnected") == ["n1:c2"]
    assert ids("?pool=office") == ["n1:c1", "n1:c2", "n2:c1"]
    short = broker.admin.get("/api/v1/sessions?limit=2").json
    assert len(short["items"]) == 2 and short["truncated"], short
    for query, status in (("?state=x", 400), ("?node=none", 404), ("?pool=none", 404),
                          ("?limit=0", 400), ("?user=" + "a" * 3000, 400), ("?user=%00", 400)):
        assert broker.admin.get(f"/api/v1/sessions{query}").status == status, query
    answer = broker.admin.delete("/api/v1/sessions/n1:c1")
    assert answer.status == 409, answer
    answer = broker.admin.delete("/api/v1/sessions/n1:none")
    assert answer.status == 404, answer
    answer = broker.admin.delete("/api/v1/sessions/nonsense")
    assert (answer.status, answer.code) == (404, "not_found"), answer
    answer = broker.admin.delete("/api/v1/nodes/n1")
    assert answer.status == 409, answer
    assert broker.admin.delete("/api/v1/nodes/n1?force=true").status == 204
    assert ids() == ["n2:c1"]
    assert broker.admin.delete("/api/v1/nodes/n2?force=yes").status == 400


@suite.test
def a_session_on_a_dead_node_can_be_forgotten(t):
    broker = world(t, stale_after=2)
    broker.one.session("alice", 1).session("bob", 2).beat()
    broker.node("n2").up()
    wait_until(lambda: broker.one.state() == "silent")
    answer = broker.admin.delete("/api/v1/sessions/n1:c1")
    assert (answer.status, answer.body) == (204, b""), answer
    items = broker.admin.get("/api/v1/sessions").json["items"]
    assert [item["id"] for item in items] == ["n1:c2"], items
    assert broker.pg.psql("SELECT id FROM session", "termbroker") == "c2"
    row = broker.wait_event("session-forgotten")
    assert row["params"]["user"] == "alice" and row["params"]["session"] == "c1", row
    assert row["params"]["actor"].startswith("uid "), row
    broker.one.beat()  # it was not dead after all: its list is the truth
    items = broker.admin.get("/api/v1/sessions").json["items"]
    assert sorted(item["id"] for item in items) == ["n1:c1", "n1:c2"], items


@suite.test
def only_the_hash_of_a_token_is_stored(t):
    broker = world(t)
    for name, secret in (("a-client", broker.tokens["client"]), ("agent.n1", broker.one.token)):
        stored = broker.pg.psql(f"SELECT encode(hash, 'hex') FROM token WHERE name = '{name}'",
                                "termbroker")
        assert stored == hashlib.sha256(secret.encode()).hexdigest(), name
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32, "256 random bits"
        where = broker.pg.psql("SELECT string_agg(t::text, ' ') FROM token t", "termbroker") + \
            broker.pg.psql("SELECT string_agg(e::text, ' ') FROM event e", "termbroker") + \
            broker.journal_file.read_text() + broker.dispatcher.log()
        assert secret not in where, name


@suite.test
def events_of_a_provider_are_in_the_journal_of_each_of_its_pools(t):
    broker = world(t)
    broker.create("pools", name="lab", provider="farm")
    broker.create("providers", name="elsewhere")
    broker.create("pools", name="far", provider="elsewhere")
    broker.one.beat(logins=["alice"])
    broker.ask("alice")
    broker.wait_event("node-chosen")
    broker.wait_event("user-login")
    seen = {pool: [row["event"] for row in broker.events(pool=pool)]
            for pool in ("office", "lab", "far")}
    for name, pools in (("user-login", ("office", "lab")), ("node-heard", ("office", "lab")),
                        ("node-chosen", ("office",))):
        for pool, names in seen.items():
            assert names.count(name) == (1 if pool in pools else 0), (name, pool, names)
    count = broker.pg.psql("SELECT count(*) FROM event WHERE name = 'user-login'", "termbroker")
    assert count == "1", "stored once"


@suite.test
def events_are_read_on_and_waited_for(t):
    broker = world(t)
    broker.wait_event("admin-created")
    first = broker.admin.get("/api/v1/events?limit=2").json
    assert len(first["items"]) == 2 and first["next"] == first["items"][-1]["id"], first
    rest = broker.admin.get(f"/api/v1/events?after={first['next']}&limit=1000").json
    assert rest["items"][0]["id"] > first["next"], rest
    newest = broker.admin.get("/api/v1/events?newest=true&limit=1").json
    got = []
    poll = threading.Thread(target=lambda: got.append(
        http("GET", f"/api/v1/events?after={newest['next']}&wait=30&lang=ru", port=broker.port,
             token=broker.tokens["auditor"]).json))
    poll.start()
    broker.maintenance("pools", "office", "drain", "заморозка")
    poll.join(20)
    assert not poll.is_alive() and got, "the poll was not woken"
    names = [item["event"] for item in got[0]["items"]]
    assert "maintenance" in names, names
    row = got[0]["items"][names.index("maintenance")]
    assert row["params"]["reason"] == "заморозка" and row["provider"] == "farm", row
    assert any("а" <= c <= "я" for c in row["text"]), row
    only = broker.admin.get("/api/v1/events?level=warning&limit=1000").json["items"]
    assert all(item["level"] in ("WARNING", "ERROR") for item in only), only
    for query, status in (("?pool=none", 404), ("?level=loud", 400), ("?lang=de", 400),
                          ("?wait=61", 400), ("?limit=1001", 400), ("?after=-1", 400),
                          ("?newest=1", 400)):
        assert broker.admin.get(f"/api/v1/events{query}").status == status, query


@suite.test
def the_database_gets_prepared_statements_alone(t):
    broker = world(t, postgres=("log_statement=all", "log_line_prefix=%u|"))
    drop = "'; DROP TABLE node; --"
    broker.one.session(drop).beat(logins=[drop])
    broker.ask(drop)
    broker.maintenance("nodes", "n1", "drain", drop)
    broker.admin.get("/api/v1/events?limit=5")
    broker.wait_event("user-login")
    broker.admin.delete("/api/v1/nodes/n1?force=true")
    lines = [line.partition("LOG:  ")[2] for line in broker.pg.log().splitlines()
             if line.startswith("termbrokerd|LOG:  ")]
    named = {line.split(":")[0] for line in lines if line.startswith("execute ")}
    for name in ("event_insert", "node_load_upsert", "session_upsert", "read_events"):
        assert f"execute {name}" in named, named
    # a connection sets itself up by what is asked once; nothing goes as a text with values in it
    assert not [line for line in lines if line.startswith("statement: ")], lines
    once = [line for line in lines if line.startswith("execute <unnamed>")]
    assert len(set(once)) <= 4 and "DROP" not in "".join(lines), once


@suite.test
def metrics_are_what_prometheus_expects(t):
    broker = world(t)
    broker.ask("alice")
    answer = http("GET", "/metrics", port=broker.port, token=broker.tokens["auditor"])
    assert answer.status == 200 and "version=0.0.4" in answer.headers["Content-Type"]
    assert 'termbroker_connects_total{reason="least_loaded"} 1' in answer.text, answer.text
    assert 'termbroker_node_load_index{node="n1",provider="farm"}' in answer.text
    promtool = shutil.which("promtool") or need_program("promtool")
    done = subprocess.run([promtool, "check", "metrics"], input=answer.body, capture_output=True,
                          check=False)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done


@suite.test
def open_metrics_is_a_setting(t):
    broker = world(t, open_metrics=True)
    assert http("GET", "/metrics", port=broker.port).status == 200


@suite.test
def status_health_and_topology_tell_how_it_is(t):
    broker = world(t)
    status = broker.admin.get("/api/v1/status").json
    assert status["dispatcher"] == "d1" and status["database"] == "up", status
    assert status["nodes"]["total"] == 1 and status["nodes"]["ok"] == 1, status
    assert status["pools"] == 1 and status["providers"] == 1, status
    ready = http("GET", "/readyz", port=broker.port).json
    assert ready["ready"] and ready["database"] == "up", ready
    topology = http("GET", "/api/v1/topology", port=broker.port, token=broker.tokens["agent"]).json
    assert topology["cluster_id"] and topology["dispatchers"][0]["name"] == "d1", topology
    broker.pg.freeze()
    for _ in range(20):
        assert http("GET", "/healthz", port=broker.port).json == {"status": "alive"}
    assert broker.goes_to("alice")[0] == "n1"
    wait_until(lambda: http("GET", "/readyz", port=broker.port).json["status"] == "degraded", 30)


@suite.test
def a_new_node_learns_the_pin_of_the_certificate(t):
    certificate, key = Authority(t).issue()
    broker = world(t, **{"listen ": {"address": "127.0.0.1", "port": free_port(), "tls": True,
                                     "certificate": certificate, "key": key}})
    made = broker.create("nodes", name="n2", provider="farm", address="10.0.0.2")
    public = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"],
                            capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=public,
                         capture_output=True, check=True).stdout
    digest = subprocess.run("openssl dgst -sha256 -binary | base64", shell=True, input=der,
                            capture_output=True, check=True).stdout.decode().strip()
    assert made["pin"] == f"sha256//{digest}", made


@suite.test
def the_admin_socket_is_for_its_group_and_one_process(t):
    broker = world(t)
    assert broker.socket.stat().st_mode & 0o777 == 0o660
    second = broker.dispatcher.run()
    assert second.returncode != 0 and "another process listens" in second.stderr, second
    broker.dispatcher.kill()
    assert broker.socket.exists()
    broker.start()  # the socket of the one that was killed is replaced
    assert broker.admin.get("/api/v1/status").status == 200
    broker.dispatcher.stop()
    assert not broker.socket.exists()


suite.main()
