# SPDX-License-Identifier: ISC
"""Silence, drain, grace and alarms: what takes a node out, and what brings it back."""

import re
import socket
import sys
import threading
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Client, Deaf, Dispatcher, JumpingClock, Suite, deadline, free_port, wait_until
from harness.broker import Broker

suite = Suite("maintenance")


def keep_beating(nodes, until, seconds=20):
    """Heartbeats of NODES, twice a second at most, until UNTIL() is true."""
    last = [0.0]

    def turn():
        if time.monotonic() - last[0] > 0.4:
            last[0] = time.monotonic()
            for node in nodes:
                node.beat()
        return until()
    wait_until(turn, seconds, what=until)


@suite.test
def a_silent_node_goes_and_comes_back_by_itself(t):
    broker = Broker(t)
    quiet, loud = broker.farm("quiet", "loud")
    for node in (quiet, loud):
        node.up()
    assert quiet.state() == "ok"
    keep_beating([loud], lambda: quiet.state() == "silent")
    assert {broker.goes_to(f"u{i}")[0] for i in range(20)} == {"loud"}
    row = broker.wait_event("node-silent")
    assert row["node"] == "quiet" and row["level"] == "WARNING", row
    assert re.search(r'node "quiet" .* is silent', broker.dispatcher.log())
    reply = quiet.beat()
    assert reply["maintenance"] is True and quiet.state() == "silent", "one heartbeat is not enough"
    before = len(broker.dispatcher.log())
    reply = quiet.beat()
    assert reply["maintenance"] is False and quiet.state() == "ok"
    wait_until(lambda: [row["node"] for row in broker.events() if row["event"] == "node-heard"]
               .count("quiet") == 2, what="the event that it is heard again")
    broker.dispatcher.process.wait_log('"quiet" is heard again', after=before)


@suite.test
def a_drain_outlives_heartbeats_and_restarts(t):
    broker = Broker(t)
    one, two = broker.farm("one", "two")
    one.session("alice")
    one.up(cpu=1)
    two.up(cpu=50)
    broker.maintenance("nodes", "one", "drain", "new kernel")
    assert broker.goes_to("bob")[0] == "two"
    assert broker.goes_to("alice") == ("one", "session"), "a reconnect is not a new user"
    assert one.beat()["maintenance"] is True
    one.boot_id = "11111111-2222-3333-4444-555555555555"  # the machine was rebooted
    one.beat()
    assert one.state() == "drain"
    broker.dispatcher.kill()
    broker.start()
    assert one.state() == "drain"
    shown = broker.admin.get("/api/v1/nodes/one").json
    assert shown["mode"] == "drain" and shown["mode_reason"] == "new kernel", shown
    row = broker.wait_event("maintenance")
    assert row["params"]["reason"] == "new kernel" and row["params"]["mode"] == "drain", row
    broker.maintenance("nodes", "one", "disabled", "gone")
    assert broker.goes_to("alice")[0] == "two"
    broker.maintenance("nodes", "one", "enabled", "")
    assert broker.goes_to("alice") == ("one", "session")


@suite.test
def pools_and_providers_have_maintenance_too(t):
    broker = Broker(t)
    node, = broker.farm("n1")
    node.session("alice")
    node.up()
    for kind, name in (("pools", "office"), ("providers", "farm")):
        broker.maintenance(kind, name, "drain", f"paint {name}")
        assert broker.goes_to("alice") == ("n1", "session")
        assert broker.refused("bob") == "pool_maintenance"
        broker.maintenance(kind, name, "disabled", f"sell {name}")
        answer = broker.ask("alice")
        assert (answer.status, answer.code) == (503, "pool_maintenance"), answer
        assert answer.json["detail"] == \
            f'{kind[:-1]} "{name}" is in maintenance: sell {name}', answer.json
        assert int(answer.headers["Retry-After"]) > 0, answer.headers
        # the agent is told what concerns its node: not that of one pool among others
        assert node.beat()["maintenance"] is (kind == "providers")
        broker.maintenance(kind, name, "enabled")
        assert node.beat()["maintenance"] is False
        assert broker.goes_to("bob")[0] == "n1"
    answer = broker.admin.put("/api/v1/nodes/n1/maintenance", {"mode": "drain"})
    assert answer.status == 400 and "reason" in answer.text, answer
    answer = broker.admin.put("/api/v1/nodes/n1/maintenance", {"mode": "asleep", "reason": "x"})
    assert answer.status == 400 and "drain or disabled" in answer.text, answer


@suite.test
def a_dispatcher_that_just_started_waits_before_it_judges(t):
    broker = Broker(t, stale_after=4)
    one, two = broker.farm("one", "two")
    one.up(cpu=1)
    two.up(cpu=90)
    wait_until(lambda: broker.pg.psql("SELECT count(*) FROM node_load WHERE voice = 'heard'",
                                      "termbroker") == "2")
    broker.dispatcher.kill()
    broker.start()
    # both count by their last known index, until one that was heard is preferred
    assert broker.goes_to("alice")[0] == "one"
    two.beat(cpu=90)
    assert broker.goes_to("alice")[0] == "two", "unheard since the start come last"
    assert broker.admin.get("/api/v1/status").json["grace"] is True
    keep_beating([two], lambda: one.state() == "silent")
    assert broker.admin.get("/api/v1/status").json["grace"] is False


@suite.test
def a_database_that_came_back_is_a_new_start_of_the_wait(t):
    broker = Broker(t, stale_after=3)
    node, = broker.farm("n1")
    node.up()
    keep_beating([node], lambda: broker.admin.get("/api/v1/status").json["grace"] is False)
    broker.pg.stop()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "down")
    broker.pg.start()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "up", 40)
    assert broker.admin.get("/api/v1/status").json["grace"] is True
    assert "degraded" in broker.admin.get("/readyz").text
    keep_beating([node], lambda: broker.admin.get("/api/v1/status").json["grace"] is False)
    assert node.state() == "ok"


@suite.test
def a_clock_that_jumps_makes_nobody_silent_and_hides_no_silence(t):
    clock = JumpingClock(t)
    broker = Broker(t, start=False)
    broker.dispatcher = Dispatcher(t, broker.settings, env=clock.env)
    broker.start()
    loud, quiet = broker.farm("loud", "quiet")
    loud.up()
    keep_beating([loud], lambda: broker.admin.get("/api/v1/status").json["grace"] is False)
    for shift in (86400, -86400):
        clock.jump(shift)
        uptime = broker.admin.get("/api/v1/status").json["uptime_seconds"]
        keep_beating([loud], lambda u=uptime: broker.admin.get("/api/v1/status")
                     .json["uptime_seconds"] > u + 3)
        assert loud.state() == "ok"
        quiet.up()
        quiet.beat()
        assert quiet.state() == "ok"
        heard = broker.admin.get("/api/v1/nodes/quiet").json["heard_at"]
        assert heard.startswith(time.strftime("%Y-%m-%d", time.gmtime(time.time() + shift)))
        keep_beating([loud], lambda: quiet.state() == "silent")
        assert broker.goes_to("alice")[0] == "loud"
    assert [e["node"] for e in broker.events() if e["event"] == "node-silent"] == ["quiet"] * 2


@suite.test
def more_than_half_silent_is_one_alarm(t):
    broker = Broker(t)
    nodes = broker.farm("a", "b", "c", "d")
    for node in nodes:
        node.up()
    keep_beating(nodes[:1], lambda: all(n.state() == "silent" for n in nodes[1:]))
    row = broker.wait_event("mass-silence")
    assert row["params"]["nodes"] == "4", row
    # looked at once a second, and told once
    uptime = broker.admin.get("/api/v1/status").json["uptime_seconds"]
    keep_beating(nodes[:1], lambda: broker.admin.get("/api/v1/status").json["uptime_seconds"]
                 > uptime + 3)
    keep_beating(nodes, lambda: all(n.state() == "ok" for n in nodes))
    assert len([e for e in broker.events() if e["event"] == "mass-silence"]) == 1
    broker.change("providers", "farm", on_mass_silence="keep")
    wait_until(lambda: nodes[0].state() == "silent")
    wait_until(lambda: broker.ask("bob").status == 200, what="the last known indices serve")

    def alarms():
        return len([row for row in broker.events() if row["event"] == "mass-silence"])
    wait_until(lambda: alarms() == 2)
    broker.dispatcher.stop()
    broker.start()
    assert broker.goes_to("bob")[1] == "least_loaded", "a restart does not forget that it is so"
    wait_until(lambda: not broker.admin.get("/api/v1/status").json["grace"])
    nodes[0].up()
    keep_beating(nodes[:1], lambda: broker.admin.get("/api/v1/status").json["uptime_seconds"] > 4)
    assert alarms() == 2


@suite.test
def nodes_that_fell_silent_one_by_one_are_no_alarm_after_a_restart(t):
    broker = Broker(t)
    nodes = broker.farm("a", "b", "c")
    for node in nodes:
        node.up()
    keep_beating(nodes[:2], lambda: nodes[2].state() == "silent")
    since = time.monotonic()
    keep_beating(nodes[:2], lambda: time.monotonic() - since > 3)
    keep_beating(nodes[:1], lambda: nodes[1].state() == "silent")
    broker.dispatcher.stop()
    broker.start()
    keep_beating(nodes[:1], lambda: broker.admin.get("/api/v1/status").json["uptime_seconds"] > 4)
    assert broker.admin.get("/api/v1/status").json["grace"] is False
    assert "mass-silence" not in [row["event"] for row in broker.events()]


@suite.test
def a_live_session_on_a_silent_node_is_kept_while_its_port_answers(t):
    broker = Broker(t)
    broker.farm()
    port = free_port()
    home = broker.node("home", address="127.0.0.1", port=port)
    other = broker.node("other")
    home.session("alice")
    home.up()
    listener = socket.create_server(("127.0.0.1", port))
    keep_beating([other], lambda: home.state() == "silent")
    for _ in range(20):
        assert broker.goes_to("alice") == ("home", "session")
    listener.setblocking(False)
    listener.accept()[0].close()
    try:
        listener.accept()
        raise AssertionError("probed twice within 10 s")
    except BlockingIOError:
        pass
    listener.close()
    # the probe's result is kept for 10 s
    keep_beating([other], lambda: broker.goes_to("alice")[0] == "other", seconds=30)
    row = broker.wait_event("session-suspended")
    assert row["node"] == "home" and row["pool"] == "office", row
    home.beat()
    home.beat()
    assert broker.goes_to("alice") == ("home", "session"), "suspended, not deleted"


@suite.test
def who_waits_for_a_probe_is_answered_when_its_node_changes(t):
    broker = Broker(t)
    broker.farm()
    deaf = Deaf()
    home = broker.node("home", address="127.0.0.1", port=deaf.port)
    other = broker.node("other")
    home.session("alice").up()
    keep_beating([other], lambda: home.state() == "silent")
    before, answers = deaf.callers(), []

    def ask():
        with Client(unix=broker.socket) as client:
            answers.append(client.post("/api/v1/connections", {"pool": "office", "user": "alice"}))
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    wait_until(lambda: deaf.callers() > before, what="the probe is under way")
    broker.change("nodes", "home", max_sessions=5)
    keep_beating([other], lambda: answers)
    asking.join()
    assert answers[0].json["node"] == "other", answers


@suite.test
def a_node_that_swallows_the_probe_keeps_nobody_waiting(t):
    broker = Broker(t)
    broker.farm()
    deaf = Deaf()
    home = broker.node("home", address="127.0.0.1", port=deaf.port)
    other = broker.node("other")
    home.session("alice").up()
    keep_beating([other], lambda: home.state() == "silent")
    asked = time.monotonic()
    assert broker.goes_to("alice") == ("other", "least_loaded")
    assert time.monotonic() - asked < deadline(20), "the kernel itself gives up after two minutes"
    assert broker.wait_event("session-suspended")["node"] == "home"


@suite.test
def a_node_without_a_listener_or_metrics_takes_nobody(t):
    broker = Broker(t)
    node, = broker.farm("n1")
    node.up(accepting=False)
    assert node.state() == "not_accepting"
    assert broker.refused() == "no_metrics"
    node.beat(cpu=None, memory=None)
    assert node.state() == "stale"
    assert broker.refused() == "no_metrics"
    node.beat(cpu=None, memory=5)
    assert broker.goes_to()[0] == "n1"
    shown = broker.admin.get("/api/v1/nodes/n1").json
    assert shown["missing_metrics"] is True, shown


@suite.test
def a_machine_pushed_aside_by_its_copy_comes_back_with_a_new_token(t):
    broker = Broker(t, stale_after=60)
    node, = broker.farm("n1")
    node.up()
    mine = node.boot_id
    node.boot_id = str(uuid.uuid4())  # a copy that was booted by mistake
    node.beat()
    node.boot_id = mine
    for _ in range(2):
        node.beat(expect=409)
    node.token = broker.create("tokens", name="n1.again", role="agent", node="n1")["token"]
    node.beat()
    node.boot_id = str(uuid.uuid4())
    node.beat(expect=200)
    broker.dispatcher.stop()
    broker.start()
    node.boot_id = mine  # which is again of the past
    node.beat(expect=409)


suite.main()
