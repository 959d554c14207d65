# SPDX-License-Identifier: ISC
"""What must not be lost or block when the database or the dispatcher is killed, stopped or full."""

import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import (Client, Dispatcher, PrivatePostgres, Process, ProcessError, Suite, deadline,
                     wait_until)
from harness.broker import Broker

suite = Suite("faults", timeout=240)


def logins_in_database(broker):
    """How often each user's login stands in the event table."""
    rows = broker.pg.psql("SELECT params->>'user', count(*) FROM event WHERE name = 'user-login' "
                          "GROUP BY 1", "termbroker")
    return {user: int(count) for user, _, count in
            (line.partition("|") for line in rows.splitlines())}


class Storm:
    """Nodes that report logins as fast as they are answered; knows which were acknowledged."""

    def __init__(self, nodes):
        self.acknowledged, self.unanswered = [], []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(node,)) for node in nodes]
        for thread in self._threads:
            thread.start()

    def _run(self, node):
        client, number = node.broker.http(node.token), 0
        while not self._stop.is_set():
            number += 1
            user = f"{node.name}-user{number}"
            try:
                answer = client.post("/api/v1/heartbeat", node.message(logins=[user]))
            except OSError:
                self.unanswered.append(user)
                return
            except Exception:  # http.client: the answer was cut short
                self.unanswered.append(user)
                return
            (self.acknowledged if answer.status == 200 else self.unanswered).append(user)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(deadline(30))
            assert not thread.is_alive()


@suite.test
def nothing_acknowledged_is_lost_when_the_dispatcher_is_killed(t):
    broker = Broker(t, stale_after=30)
    nodes = broker.farm(*(f"n{i}" for i in range(8)))
    for node in nodes:
        node.up()
    for turn in range(3):
        storm = Storm(nodes)
        wait_until(lambda s=storm: len(s.acknowledged) > 200)
        broker.dispatcher.kill()
        storm.stop()
        assert storm.acknowledged
        broker.start()
        found = logins_in_database(broker)
        lost = [user for user in storm.acknowledged if user not in found]
        assert not lost, (turn, len(storm.acknowledged), lost[:5])


@suite.test
def a_login_is_acknowledged_when_it_is_stored_and_not_before(t):
    broker = Broker(t, stale_after=60)
    one, two = broker.farm("one", "two")
    one.up()
    two.up()
    broker.wait_event("node-heard")
    broker.pg.freeze()  # a batch is under way and cannot end
    answers = []

    def beat(node, user):
        with broker.http(node.token) as client:
            answers.append(client.post("/api/v1/heartbeat", node.message(logins=[user])))
    threads = [threading.Thread(target=beat, args=pair) for pair in ((one, "alice"), (two, "bob"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(a.status, a.code) for a in answers] == [(503, "database_unavailable")] * 2, answers
    assert all(int(a.headers["Retry-After"]) > 0 for a in answers), answers
    broker.pg.thaw()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "up", 40)
    one.beat(logins=["alice"])  # as an agent does that was not answered
    two.beat(logins=["bob", "carol"])
    assert logins_in_database(broker) == {"alice": 1, "bob": 1, "carol": 1}


@suite.test
def a_batch_that_was_cut_short_was_not_acknowledged(t):
    broker = Broker(t, stale_after=60)
    nodes = broker.farm(*(f"n{i}" for i in range(8)))
    for node in nodes:
        node.up()
    broker.wait_event("node-heard")
    locks = "FROM pg_locks WHERE relation = 'event'::regclass AND mode = 'AccessExclusiveLock'"
    Process(t, ["psql", "-Xq", "-d", broker.pg.dsn("termbroker"), "-c", "BEGIN", "-c",
                "LOCK TABLE event", "-c", "SELECT pg_sleep(600)"], expect=None)
    wait_until(lambda: broker.pg.psql(f"SELECT granted {locks}", "termbroker") == "t")
    storm = Storm(nodes)
    wait_until(lambda: broker.pg.psql("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted",
                                      "termbroker") == "t", what="a batch waits for the lock")
    broker.dispatcher.kill()
    storm.stop()
    broker.pg.psql(f"SELECT pg_terminate_backend(pid) {locks}", "termbroker")
    assert storm.unanswered and not storm.acknowledged, storm.acknowledged[:5]
    broker.start()
    for node in nodes:
        node.beat(logins=[f"{node.name}-user1"])
    found = logins_in_database(broker)
    assert {f"n{i}-user1" for i in range(8)} <= set(found), found


@suite.test
def nothing_acknowledged_is_lost_when_the_database_is_killed(t):
    broker = Broker(t, fsync="on", stale_after=30)
    nodes = broker.farm(*(f"n{i}" for i in range(8)))
    for node in nodes:
        node.up()
    storm = Storm(nodes)
    wait_until(lambda: len(storm.acknowledged) > 200)
    broker.pg.kill()
    before = len(storm.acknowledged)
    broker.pg.start()
    wait_until(lambda: len(storm.acknowledged) > before + 100, 60)
    storm.stop()
    found = logins_in_database(broker)
    assert not [user for user in storm.acknowledged if user not in found]
    twice = [user for user, count in found.items() if count != 1]
    assert not twice, twice[:5]


@suite.test
def a_restart_of_the_database_is_survived(t):
    broker = Broker(t, stale_after=30)
    node, = broker.farm("n1")
    node.session("alice")
    node.up(logins=["alice"])
    broker.pg.stop()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "down")
    assert broker.goes_to("alice") == ("n1", "session"), "answers go on from memory"
    assert broker.goes_to("bob")[1] == "least_loaded"
    answer = broker.admin.patch("/api/v1/nodes/n1", {"port": 3390})
    assert (answer.status, answer.code) == (503, "database_unavailable"), answer
    assert int(answer.headers["Retry-After"]) > 0, answer.headers
    assert broker.admin.get("/healthz").status == 200
    ready = broker.admin.get("/readyz")
    assert ready.status == 200 and "degraded" in ready.text, ready
    broker.pg.start()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "up", 40)
    broker.change("nodes", "n1", port=3390)
    names = [row["event"] for row in broker.events()]
    assert "database-lost" in names and "database-back" in names, names
    assert names.count("node-chosen") == 1, "what was journalled meanwhile is written once"


@suite.test
def a_frozen_database_does_not_stop_the_loop(t):
    broker = Broker(t, stale_after=60)
    node, = broker.farm("n1")
    node.up()
    broker.pg.freeze()
    slowest = 0.0
    end = time.monotonic() + deadline(8)  # longer than the time after which it is given up
    while time.monotonic() < end:
        for path in ("/healthz", "/metrics"):
            start = time.monotonic()
            answer = broker.admin.get(path)
            slowest = max(slowest, time.monotonic() - start)
            assert answer.status == 200, answer
        node.beat()
        assert broker.goes_to("bob") == ("n1", "least_loaded")
    assert slowest < deadline(1), slowest
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "down")
    broker.pg.thaw()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "up", 40)
    broker.change("nodes", "n1", port=3390)


@suite.test
def a_slow_look_into_the_journal_is_given_up_alone(t):
    broker = Broker(t, stale_after=60)
    broker.farm("n1")
    reader = broker.pg.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'termbrokerd' "
                            "AND query = 'COMMIT'")
    broker.pg.psql(f"""
        ALTER TABLE event ENABLE ROW LEVEL SECURITY;
        CREATE POLICY slow ON event USING
            (CASE WHEN pg_backend_pid() = {reader} THEN (SELECT pg_sleep(60)) IS NOT NULL
             ELSE true END);""", "termbroker")
    answers = []

    def read():
        with Client(unix=broker.socket) as client:
            answers.append(client.get("/api/v1/events"))
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(a.status, a.code) for a in answers} == {(503, "database_unavailable")}, answers
    assert "timeout" in answers[0].text, answers
    assert broker.admin.get("/api/v1/status").json["database"] == "up"
    broker.pg.psql("ALTER TABLE event DISABLE ROW LEVEL SECURITY", "termbroker")
    assert broker.events()
    assert "database lost" not in broker.dispatcher.log()


@suite.test
def changes_made_meanwhile_are_seen_after_a_reconnect(t):
    broker = Broker(t, stale_after=60)
    one, two = broker.farm("one", "two")
    one.up(cpu=1)
    two.up(cpu=50)
    broker.pg.stop()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "down")
    broker.pg.start()
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "up", 40)
    broker.pg.psql("UPDATE node SET mode = 'disabled', mode_reason = 'x' WHERE name = 'one'",
                   "termbroker")
    broker.pg.restart()
    wait_until(lambda: one.state() == "disabled", 40)
    assert broker.goes_to("bob")[0] == "two"


@suite.test
def names_that_moved_meanwhile_are_followed(t):
    broker = Broker(t, stale_after=60)
    one, two, three = broker.farm("one", "two", "three")
    for node in (one, two, three):
        node.session("alice" if node is one else "bob").up()
    # names and addresses change places; a node, a pool and a provider come anew in place of others
    broker.pg.psql("""
        UPDATE node SET name = 'x' WHERE name = 'one';
        UPDATE node SET name = 'one' WHERE name = 'two';
        UPDATE node SET name = 'two' WHERE name = 'x';
        UPDATE node SET address = 'x' WHERE name = 'three';
        UPDATE node SET address = 'three.example.test' WHERE name = 'one';
        UPDATE node SET address = 'two.example.test' WHERE name = 'three';
        CREATE TEMP TABLE p AS SELECT * FROM provider;
        UPDATE provider SET name = 'old';
        ALTER TABLE p DROP COLUMN id;
        INSERT INTO provider (name, share_sessions, balance_by_metrics, prefer_sharing,
            on_mass_silence, cpu_rule, cpu_zero, cpu_full, memory_rule, memory_zero, memory_full,
            sessions_rule, load_script_rule, mode, mode_reason)
            SELECT name, share_sessions, balance_by_metrics, prefer_sharing, on_mass_silence,
                cpu_rule, cpu_zero, cpu_full, memory_rule, memory_zero, memory_full, sessions_rule,
                load_script_rule, mode, mode_reason FROM p;
        UPDATE node SET provider_id = (SELECT id FROM provider WHERE name = 'farm');
        INSERT INTO pool (name, provider_id, default_tags, forced_tags, allowed_tags,
            untagged_default, rdp_extra, mode, mode_reason)
            SELECT 'x', (SELECT id FROM provider WHERE name = 'farm'), default_tags, forced_tags,
                allowed_tags, untagged_default, rdp_extra, mode, mode_reason FROM pool;
        DELETE FROM pool WHERE name = 'office';
        UPDATE pool SET name = 'office';
        DELETE FROM provider WHERE name = 'old';
        """, "termbroker")
    wanted = broker.pg.psql("SELECT n.name, address, port, p.name FROM node n JOIN provider p "
                            "ON p.id = provider_id ORDER BY 1", "termbroker").splitlines()
    broker.pg.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                   "WHERE usename = 'termbrokerd'")

    def found():
        nodes = broker.admin.get("/api/v1/nodes").json["items"]
        return sorted(f"{n['name']}|{n['address']}|{n['port']}|{n['provider']}" for n in nodes)

    def providers():
        return [p["name"] for p in broker.admin.get("/api/v1/providers").json["items"]]
    # what is of the past goes at the end of the load, when all that came new is there
    wait_until(lambda: found() == wanted and providers() == ["farm"], 40, what=f"{wanted}")
    assert broker.goes_to("alice") == ("two", "session")
    one.name, two.name = "two", "one"
    for node in (one, two, three):
        node.beat()
    assert "could not take" not in broker.dispatcher.log()


@suite.test
def two_changes_at_once_do_not_undo_one_another(t):
    broker = Broker(t)
    broker.farm("n1")
    broker.pg.freeze()  # so that the first is still being written when the second comes
    answers = []

    def change(**fields):
        with Client(unix=broker.socket) as client:
            answers.append(client.patch("/api/v1/nodes/n1", fields))
    threads = [threading.Thread(target=change, kwargs=fields)
               for fields in ({"port": 3390}, {"max_sessions": 7})]
    for thread in threads:
        thread.start()
    wait_until(lambda: answers)
    assert (answers[0].status, answers[0].code) == (409, "being_changed"), answers
    broker.pg.thaw()
    for thread in threads:
        thread.join()
    assert answers[1].status == 200, answers
    node = broker.admin.get("/api/v1/nodes/n1").json
    assert (node["port"] == 3390) != (node["max_sessions"] == 7), node


@suite.test
def a_row_that_the_database_refuses_is_told(t):
    broker = Broker(t, stale_after=60)
    node, = broker.farm("n1")
    broker.pg.psql("ALTER TABLE event ADD CONSTRAINT strange CHECK (name <> 'user-login')",
                   "termbroker")
    node.up(logins=["alice"])
    broker.wait_event("node-heard")  # the rest of the batch was taken
    broker.dispatcher.process.wait_log("refused a row.*user-login.*strange")
    metrics = broker.admin.get("/metrics").text
    assert "\ntermbroker_store_rows_refused_total 1\n" in metrics, metrics


@suite.test
def what_only_memory_has_can_be_removed(t):
    broker = Broker(t)
    node, = broker.farm("n1")
    node.session("alice").up()
    wait_until(lambda: node.state() == "silent")
    broker.pg.psql("DELETE FROM session", "termbroker")
    answer = broker.admin.delete("/api/v1/sessions/n1:c1")
    assert answer.status == 404 and "no such session" in answer.text, answer
    assert broker.admin.get("/api/v1/sessions").json["items"] == []
    broker.pg.psql("DELETE FROM node", "termbroker")
    answer = broker.admin.delete("/api/v1/nodes/n1")
    assert answer.status == 404 and "no such node" in answer.text, answer
    assert broker.admin.get("/api/v1/nodes").json["items"] == []


@suite.test
def two_changes_at_once_do_not_outgrow_the_tags(t):
    broker = Broker(t)
    broker.farm()
    for number in range(7):
        broker.node(f"n{number}", tags=[f"tag-{number}-{i}" for i in range(32)])
    broker.pg.freeze()  # so that the first is still being written when the second comes
    answers = []

    def create(name):
        with Client(unix=broker.socket) as client:
            answers.append(client.post("/api/v1/nodes", {
                "name": name, "provider": "farm", "address": f"{name}.example.test",
                "tags": [f"{name}-{i}" for i in range(32)]}))
    threads = [threading.Thread(target=create, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    wait_until(lambda: answers)
    assert (answers[0].status, answers[0].code) == (409, "being_changed"), answers
    broker.pg.thaw()
    for thread in threads:
        thread.join()
    assert answers[1].status == 201, answers


def start_and_fail(broker, *words):
    """The dispatcher must give up at once and say WORDS."""
    dispatcher = Dispatcher(broker.scope, broker.settings)
    done = dispatcher.run()
    assert done.returncode == 1, done
    for word in words:
        assert word in done.stderr, (word, done.stderr)


@suite.test
def a_missing_database_is_named(t):
    broker = Broker(t, start=False)
    broker.settings["database"] = {"connection": broker.pg.dsn("nowhere", "termbrokerd")}
    start_and_fail(broker, 'database "nowhere" does not exist')


@suite.test
def another_version_of_the_schema_is_refused(t):
    broker = Broker(t, start=False)
    newest = broker.pg.psql("SELECT max(version) FROM schema_migration", "termbroker")
    broker.pg.psql("INSERT INTO schema_migration (version, name, sha256) "
                   "VALUES (9999, '9999-future.sql', sha256(''))", "termbroker")
    start_and_fail(broker, "9999", "newer")
    done = broker.dispatcher.run("--migrate")
    assert done.returncode == 1 and "newer" in done.stderr, done
    broker.pg.psql(f"DELETE FROM schema_migration WHERE version IN (9999, {newest})", "termbroker")
    start_and_fail(broker, "termbroker db migrate", newest)


@suite.test
def an_empty_database_is_named(t):
    broker = Broker(t, start=False)
    broker.pg.bootstrap("empty")
    broker.settings["database"] = {"connection": broker.pg.dsn("empty", "termbrokerd")}
    start_and_fail(broker, "termbroker db migrate")


@suite.test
def a_connection_limit_is_waited_out(t):
    broker = Broker(t, start=False)
    broker.pg.psql("ALTER ROLE termbrokerd CONNECTION LIMIT 0")
    broker.dispatcher.start(ready="too many connections")
    assert Client(unix=broker.socket).get("/healthz").status == 200
    assert Client(unix=broker.socket).get("/readyz").status == 503
    assert Client(unix=broker.socket).get("/api/v1/status").json["ready"] is False
    port = int(re.search(r"127\.0\.0\.1 port (\d+)", broker.dispatcher.log()).group(1))
    for where in ({"unix": broker.socket}, {"port": port, "token": "x" * 43}):
        early = Client(**where).get("/api/v1/nodes")
        assert (early.status, early.code) == (503, "starting"), early
    broker.pg.psql("ALTER ROLE termbrokerd CONNECTION LIMIT -1")
    broker.dispatcher.process.wait_log(r"\bready\b", 40)
    broker.connect()
    broker.farm("n1")


@suite.test
def a_connection_limit_while_running_is_waited_out_too(t):
    broker = Broker(t, stale_after=60)
    node, = broker.farm("n1")
    node.up()
    broker.pg.psql("ALTER ROLE termbrokerd CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) "
                   "FROM pg_stat_activity WHERE usename = 'termbrokerd'")
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "down")
    wait_until(lambda: "too many connections" in broker.pg.log())
    assert broker.goes_to("bob")[0] == "n1"
    broker.pg.psql("ALTER ROLE termbrokerd CONNECTION LIMIT -1")
    wait_until(lambda: broker.admin.get("/api/v1/status").json["database"] == "up", 40)
    broker.change("nodes", "n1", port=3390)


@suite.test
def a_full_disk_under_the_log_ends_nothing(t):
    broker = Broker(t, journal={"file": "/dev/full", "level": "debug"})
    node, = broker.farm("n1")
    node.up()
    assert broker.goes_to("bob")[0] == "n1"
    broker.wait_event("node-chosen")
    lost = [line for line in broker.admin.get("/metrics").text.splitlines()
            if line.startswith("termbroker_journal_lost")]
    assert lost and float(lost[0].split()[-1]) > 0, lost


@suite.test
def two_migrations_at_once_and_twice(t):
    broker = Broker(t, start=False)
    broker.pg.bootstrap("again")
    settings = dict(broker.settings)
    settings["database"] = {"connection": broker.pg.dsn("again", "termbrokerd"),
                            "migration": broker.pg.dsn("again", "termbroker_owner")}
    said = []

    def migrate():
        try:
            said.append(Dispatcher(broker.scope, settings).migrate())
        except ProcessError as error:
            said.append(error)
    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [s for s in said if isinstance(s, Exception)], said
    assert len([s for s in said if "applied 0001" in s]) == 1, said
    assert PrivatePostgres.psql(broker.pg, "SELECT count(*) > 0 FROM schema_migration",
                                "again") == "t"


suite.main()
