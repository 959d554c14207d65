# SPDX-License-Identifier: ISC
"""From heartbeat to answer: where users go, and why, through the real dispatcher and database."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Suite, wait_until
from harness.broker import Broker

suite = Suite("decision")


@suite.test
def the_least_loaded_node_is_chosen_and_journalled(t):
    broker = Broker(t)
    busy, idle = broker.farm("busy", "idle")
    busy.up(cpu=80)
    index = idle.up(cpu=5)["load_index"]
    assert broker.goes_to("alice") == ("idle", "least_loaded")
    row = broker.wait_event("node-chosen")
    assert row["pool"] == "office" and row["params"]["load_index"] == str(index), row
    assert "node-chosen" in broker.journal_file.read_text()
    busy.beat(cpu=1)
    idle.beat(cpu=50)
    assert broker.goes_to("alice") == ("busy", "least_loaded")


@suite.test
def the_index_is_the_formula_of_the_manual(t):
    broker = Broker(t)
    node, = broker.farm("n1")
    # cpu 40 % = 4000; memory 47.5 of 95 % = 5000; worst 5000 + 4000 / 20
    assert node.up(cpu=40, memory=47.5)["load_index"] == 5200
    assert node.beat(cpu=40, memory=None)["load_index"] == 4000
    assert node.beat(cpu=100, memory=1)["load_index"] == 10000
    broker.change("nodes", "n1", load_multiplier=0.5)
    assert node.beat(cpu=40, memory=47.5)["load_index"] == 2600


SWITCHES = [
    # sharing, balancing, prefer, alice has a session on "busy": where she goes and why
    (True, False, True, ("busy", "session")),
    (True, False, False, ("busy", "session")),
    (True, True, True, ("busy", "session")),
    (True, True, False, ("idle", "least_loaded")),
    (False, True, True, ("idle", "least_loaded")),
    (False, True, False, ("idle", "least_loaded")),
]


@suite.test
def each_row_of_the_table_of_switches(t):
    broker = Broker(t)
    busy, idle = broker.farm("busy", "idle")
    busy.session("alice")
    busy.up(cpu=80, logins=["alice"])
    idle.up(cpu=5)
    for sharing, balancing, prefer, wanted in SWITCHES:
        broker.change("providers", "farm", share_sessions=sharing, balance_by_metrics=balancing,
                      prefer_sharing=prefer)
        got = broker.goes_to("alice")
        assert got == wanted, (sharing, balancing, prefer, got)
        assert broker.goes_to("bob")[1] == ("least_loaded" if balancing else "round_robin")
    broker.change("providers", "farm", share_sessions=False, balance_by_metrics=False)
    turns = [broker.goes_to("alice") for _ in range(4)]
    assert {reason for _, reason in turns} == {"round_robin"}, turns
    assert turns[0] == turns[2] and turns[1] == turns[3] and turns[0] != turns[1], turns


@suite.test
def a_full_node_takes_no_new_user_but_its_own(t):
    broker = Broker(t)
    full, other = broker.farm("full", "other")
    full.session("alice")
    full.up(cpu=100, logins=["alice"])
    other.up(cpu=90)
    assert broker.goes_to("bob") == ("other", "least_loaded")
    assert broker.goes_to("alice") == ("full", "session")
    row = broker.wait_event("node-full")
    assert row["level"] == "WARNING" and "10000 slv" in row["text"], row
    other.beat(cpu=100)
    assert broker.refused("bob") == "all_full"
    refused = broker.wait_event("connect-refused")
    assert refused["params"]["reason"] == "all_full", refused
    # once per crossing, and again only after a fall of 5 %
    full.beat(cpu=96)
    full.beat(cpu=100)
    assert len([e for e in broker.events() if e["event"] == "node-full"]) == 2
    full.beat(cpu=50)
    full.beat(cpu=100)
    wait_until(lambda: len([e for e in broker.events() if e["event"] == "node-full"]) == 3)


@suite.test
def capacity_is_a_limit_of_its_own(t):
    broker = Broker(t)
    broker.farm()
    small = broker.node("small", max_sessions=2)
    small.session("alice", 1).session("bob", 2)
    small.up(cpu=1)
    assert broker.refused("carol") == "all_full"
    broker.change("nodes", "small", max_sessions=4)
    assert broker.goes_to("carol") == ("small", "least_loaded")


@suite.test
def tags_narrow_the_choice(t):
    broker = Broker(t)
    broker.farm()
    gpu, plain = broker.node("gpu1", tags=["gpu"]), broker.node("plain")
    gpu.up(cpu=1)
    plain.up(cpu=50)
    assert broker.goes_to("alice")[0] == "plain"
    assert broker.goes_to("alice", tags="gpu")[0] == "gpu1"
    assert broker.goes_to("alice", tags="any")[0] == "gpu1"
    assert broker.goes_to("alice", tags="-gpu")[0] == "plain"
    assert broker.goes_to("alice", tags="east")[0] == "plain"
    assert broker.refused("alice", tags="east!") == "no_tag_match"
    assert broker.refused("alice", tags="a b") == "tags_invalid"
    broker.change("pools", "office", allowed_tags=["east"])
    assert broker.refused("alice", tags="gpu") == "tag_denied"
    broker.change("pools", "office", allowed_tags=[], forced_tags="gpu")
    assert broker.goes_to("alice")[0] == "gpu1"


@suite.test
def an_administrator_may_name_a_node(t):
    broker = Broker(t)
    one, two = broker.farm("one", "two")
    one.up(cpu=1)
    two.up(cpu=90)
    broker.maintenance("nodes", "two", "drain")
    assert broker.goes_to("alice", node="two") == ("two", "administrator")
    assert broker.refused("alice", node="three") == "node_unknown"
    token = broker.create("tokens", name="portal", role="client")["token"]
    answer = broker.http(token).post("/api/v1/connections",
                                     {"pool": "office", "user": "alice", "node": "two"})
    assert (answer.status, answer.code) == (403, "admin_required"), answer


@suite.test
def one_person_under_many_spellings(t):
    broker = Broker(t, user_names={"default_domain": "corp.example",
                                   ("alias", "CORP"): {"domain": "corp.example"}})
    home, other = broker.farm("home", "other")
    home.session("CORP\\Alice")
    home.up(cpu=90)
    other.up(cpu=1)
    for spelling in ("alice", "ALICE", "corp\\alice", "Alice@corp.example", " alice "):
        assert broker.goes_to(spelling) == ("home", "session"), spelling
    assert broker.goes_to("alice@elsewhere.example")[0] == "other"
    assert broker.goes_to("home\\alice")[0] == "other"  # a local account of that node


@suite.test
def local_accounts_belong_to_their_node(t):
    broker = Broker(t)
    home, away = broker.farm("home", "AWAY")
    other = broker.node("other")
    for node in (home, away):  # the same person by name, and two accounts
        node.session(".\\alice", 1).session(f"{node.name}\\bob", 2)
    home.up(cpu=90)
    away.up(cpu=80)
    other.up(cpu=1)
    for user in ("alice", "bob"):
        for spelling in ("home\\", "HOME\\", " Home \\"):
            assert broker.goes_to(spelling + user) == ("home", "session"), spelling
        for spelling in ("AWAY\\", "away\\"):
            assert broker.goes_to(spelling + user) == ("AWAY", "session"), spelling
        for spelling in ("", "other\\", "CORP\\"):
            assert broker.goes_to(spelling + user) == ("other", "least_loaded"), spelling
    assert broker.refused(".\\alice") == "user_invalid", "a client is no node"


@suite.test
def new_rules_for_names_log_nobody_out(t):
    broker = Broker(t, stale_after=60)
    home, other = broker.farm("home", "other")
    home.session("alice")
    home.up(cpu=90, logins=["alice"])
    other.up(cpu=1)
    broker.dispatcher.settings["user_names"] = {"default_domain": "corp.example"}
    broker.dispatcher.write_config()
    broker.dispatcher.reload()
    broker.dispatcher.process.wait_log("reloaded")
    home.beat(cpu=90)
    assert broker.goes_to("alice@corp.example") == ("home", "session")
    assert broker.goes_to("alice") == ("home", "session")
    broker.wait_event("session-reconnect")
    assert "user-logout" not in [row["event"] for row in broker.events()]
    # the same while nobody was there to be told of the change
    broker.dispatcher.stop()
    broker.dispatcher.settings["user_names"] = {"default_domain": "new.example"}
    broker.dispatcher.write_config()
    broker.start()
    home.beat(cpu=90)
    assert broker.goes_to("alice@new.example") == ("home", "session")


@suite.test
def sessions_that_end_free_their_user(t):
    broker = Broker(t)
    home, other = broker.farm("home", "other")
    home.session("alice")
    home.up(cpu=90, logins=["alice"])
    other.up(cpu=1)
    assert broker.goes_to("alice") == ("home", "session")
    home.sessions.clear()
    home.beat(cpu=90, complete=False)  # an incomplete list ends nothing
    assert broker.goes_to("alice") == ("home", "session")
    home.beat(cpu=90)
    assert broker.goes_to("alice") == ("other", "least_loaded")
    login = broker.wait_event("user-login")
    assert login["params"]["user"] == "alice" and login["level"] == "INFO", login
    broker.wait_event("user-logout")
    answer = broker.admin.get("/api/v1/events?lang=ru&limit=1000").json["items"]
    texts = [row["text"] for row in answer if row["event"] == "user-login"]
    assert texts == ["Пользователь alice успешно вошел в систему"], texts


@suite.test
def explain_tells_every_node_and_reserves_nothing(t):
    broker = Broker(t)
    full, idle, gone = broker.farm("full", "idle", "gone")
    full.up(cpu=100)
    idle.up(cpu=20)
    assert gone.state() == "never_heard"
    answer = broker.admin.post("/api/v1/explain", {"pool": "office", "user": "alice"})
    assert answer.status == 200, answer
    assert answer.json["decision"]["node"] == "idle", answer.json
    verdicts = {row["node"]: row["verdict"] for row in answer.json["nodes"]}
    assert verdicts["idle"] == "candidate" and verdicts["full"] == "index_full", verdicts
    assert verdicts["gone"] == "silent", verdicts
    assert broker.goes_to("bob")[0] == "idle"
    broker.wait_event("node-chosen")
    chosen = [e["params"]["user"] for e in broker.events() if e["event"] == "node-chosen"]
    assert chosen == ["bob"], chosen
    # nor does it take a turn
    broker.change("providers", "farm", balance_by_metrics=False)
    full.beat(cpu=100)
    idle.beat(cpu=20)
    turns = []
    for _ in range(6):
        told = broker.admin.post("/api/v1/explain", {"pool": "office", "user": "bob"}).json
        again = broker.admin.post("/api/v1/explain", {"pool": "office", "user": "bob"}).json
        turns.append(broker.goes_to("bob"))
        assert (told["decision"]["node"], "round_robin") == turns[-1], (told["decision"], turns)
        assert again["decision"] == told["decision"]
    assert {turn[0] for turn in turns} == {"full", "idle", "gone"}, turns


suite.main()
