# SPDX-License-Identifier: ISC
"""A whole broker: a private PostgreSQL, a dispatcher, and nodes that speak for themselves.

Its nodes are not agents but heartbeats that the test sends (tests of the agent itself use Agent): so
a test says exactly what a node reports, and when.
"""

import time
import uuid

from .postgres import PrivatePostgres
from .programs import Dispatcher
from .scope import wait_until
from .web import Client


class FakeNode:
    """A registered node: beat() sends what its agent would."""

    def __init__(self, broker, name, token):
        self.broker, self.name, self.token = broker, name, token
        self.boot_id = str(uuid.uuid4())
        self._seq = int(time.monotonic() * 1000)
        self.sessions = []

    def message(self, cpu=10.0, memory=10.0, accepting=True, complete=True, logins=(), **more):
        """A heartbeat as a dict. CPU and MEMORY in percent; None leaves the metric out."""
        self._seq += 1
        message = {
            "node": self.name, "boot_id": self.boot_id, "seq": self._seq,
            "accepting": accepting, "window": {"samples": 12, "seconds": 60},
            "sessions_complete": complete, "sessions": self.sessions, "logins": list(logins),
            "agent_version": "test",
        }
        if cpu is not None:
            message["cpu"] = {"busy_percent": cpu, "count": 4}
        if memory is not None:
            total = 16 * 1024 ** 3
            message["memory"] = {"total_bytes": total,
                                 "available_bytes": int(total * (100 - memory) / 100)}
        message.update(more)
        return message

    def beat(self, expect=200, **what):
        """Sends a heartbeat and returns the answer's JSON."""
        answer = self.broker.http().post("/api/v1/heartbeat", self.message(**what),
                                         token=self.token)
        assert answer.status == expect, answer
        return answer.json

    def up(self, **what):
        """Two heartbeats in a row: the node is heard. Logins are told by the first."""
        self.beat(**what)
        return self.beat(**{**what, "logins": []})

    def session(self, user, number=1, state="active", since=0):
        """Adds a session to what the node reports from now on, in the order that an agent keeps."""
        self.sessions.append({"id": f"c{number}", "user": user, "state": state,
                              "since": since, "client": "192.0.2.7"})
        self.sessions.sort(key=lambda s: s["id"])
        return self

    def state(self):
        return self.broker.admin.get(f"/api/v1/nodes/{self.name}").json["state"]


class Broker:
    """SETTINGS are merged over those of a quick dispatcher: 2 s until silent, journal at debug."""

    def __init__(self, scope, start=True, fsync="off", postgres=(), **settings):
        self.scope = scope
        self.pg = PrivatePostgres(scope, fsync=fsync, settings=postgres)
        self.pg.bootstrap()
        self.socket = scope.dir / "admin.sock"
        self.journal_file = scope.dir / "journal.log"
        self.settings = {
            "name": "d1", "advertise": "http://127.0.0.1",
            "listen": {"address": "127.0.0.1", "port": 0, "tls": False},
            "admin_socket": {"path": self.socket, "group": ""},
            "database": {"connection": self.pg.dsn("termbroker", "termbrokerd"),
                         "migration": self.pg.dsn("termbroker", "termbroker_owner")},
            "journal": {"file": self.journal_file, "level": "debug"},
            "stale_after": 2, "push_interval": 1,
        }
        self.settings.update(settings)
        self.dispatcher = Dispatcher(scope, self.settings)
        self.dispatcher.migrate()
        self.port = None
        self.admin = None
        if start:
            self.start()

    def start(self):
        self.dispatcher.start()
        self.connect()
        return self

    def connect(self):
        """Connects the admin client anew and learns the port."""
        self.admin = Client(unix=self.socket)
        url = self.admin.get("/api/v1/topology").json["dispatchers"][0]["url"]
        self.port = int(url.rpartition(":")[2])

    def http(self, token=None):
        """A new connection over TCP."""
        return Client(port=self.port, token=token)

    # ---- administration ----

    def create(self, kind, expect=201, **fields):
        answer = self.admin.post(f"/api/v1/{kind}", fields)
        assert answer.status == expect, answer
        return answer.json

    def change(self, kind, name, expect=200, **fields):
        answer = self.admin.patch(f"/api/v1/{kind}/{name}", fields)
        assert answer.status == expect, answer
        return answer.json

    def maintenance(self, kind, name, mode, reason="because", expect=200):
        answer = self.admin.put(f"/api/v1/{kind}/{name}/maintenance",
                                {"mode": mode, "reason": reason})
        assert answer.status == expect, answer
        return answer.json

    def farm(self, *names, **provider):
        """A provider "farm", a pool "office" and nodes NAMES, none of them heard yet."""
        self.create("providers", name="farm", **provider)
        self.create("pools", name="office", provider="farm")
        return [self.node(name) for name in names]

    def node(self, name, **fields):
        fields.setdefault("provider", "farm")
        fields.setdefault("address", f"{name}.example.test")
        return FakeNode(self, name, self.create("nodes", name=name, **fields)["token"])

    # ---- asking ----

    def ask(self, user="alice", pool="office", **more):
        """The answer to a connect as a Response."""
        return self.admin.post("/api/v1/connections", {"pool": pool, "user": user, **more})

    def goes_to(self, user="alice", **more):
        """(node, reason) of a connect that must succeed."""
        answer = self.ask(user, **more)
        assert answer.status == 200, answer
        return answer.json["node"], answer.json["reason"]

    def refused(self, user="alice", **more):
        """The code of a connect that must be refused."""
        answer = self.ask(user, **more)
        assert answer.status >= 400, answer
        return answer.code

    # ---- reading ----

    def events(self, **query):
        query.setdefault("limit", 1000)
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return self.admin.get(f"/api/v1/events?{text}").json["items"]

    def wait_event(self, name, seconds=15):
        """The first event of this name, once it is in the database."""
        def find():
            return [row for row in self.events() if row["event"] == name]
        return wait_until(find, seconds, what=f"event {name}")[0]
