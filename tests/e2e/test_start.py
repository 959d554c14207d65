# SPDX-License-Identifier: ISC
"""Starting, reloading and stopping the dispatcher: each mistake is named before anything serves."""

import grp
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import Authority, Client, Dispatcher, Skip, Suite, deadline, wait_until
from harness.broker import Broker

suite = Suite("start")


@suite.setup
def one_database(scope):
    return Broker(scope, start=False)


def settings(t, **more):
    """A configuration for T that uses the shared database."""
    merged = dict(t.shared.settings)
    merged["admin_socket"] = {"path": t.dir / "admin.sock", "group": ""}
    merged["journal"] = {"file": t.dir / "journal.log", "level": "debug"}
    merged.update(more)
    return merged


def says(t, *words, **more):
    """Both --check-config (where it can know) and the start must fail with WORDS."""
    dispatcher = Dispatcher(t, settings(t, **more))
    done = dispatcher.run()
    assert done.returncode == 1, done
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    assert "info: ready" not in done.stderr
    return dispatcher


@suite.test
def an_unknown_key_or_a_wrong_type(t):
    checked = says(t, "colour", colour="red").check_config()
    assert checked.returncode == 1 and "colour" in checked.stderr, checked
    lines = checked.args[checked.args.index("--config") + 1].read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "colour" in text)
    assert f"termbrokerd.conf:{line}: " in checked.stderr, checked
    says(t, "stale_after", stale_after="soon")


@suite.test
def a_certificate_that_cannot_be_used(t):
    authority = Authority(t)
    certificate, key = authority.issue()
    other_certificate, _ = authority.issue("other")
    old, old_key = authority.issue("old", expired=True)
    tls = {"address": "127.0.0.1", "port": 0}
    for files, word in (((t.dir / "none.pem", key), "none.pem"),
                        ((certificate, t.dir / "none.key"), "none.key"),
                        ((other_certificate, key), str(other_certificate)),
                        ((old, old_key), "expired")):
        listen = {**tls, "certificate": files[0], "key": files[1]}
        checked = says(t, word, listen=listen).check_config()
        assert checked.returncode == 1 and word in checked.stderr, checked
        assert f'{checked.args[2]}: listen "127.0.0.1": ' in checked.stderr, checked
    listen = {**tls, "certificate": certificate, "key": key}
    dispatcher = Dispatcher(t, settings(t, listen=listen))
    assert dispatcher.check_config().returncode == 0
    dispatcher.start()
    url = Client(unix=t.dir / "admin.sock").get("/api/v1/topology").json["dispatchers"][0]["url"]
    with Client(port=int(url.rpartition(":")[2]), ca=authority.ca_file) as client:
        assert client.get("/healthz").status == 200
    # a reload takes a new certificate, and refuses a bad one without losing the old
    new, new_key = authority.issue("new", hosts=("localhost", "127.0.0.1", "new.example"))
    dispatcher.settings["listen"] = {**listen, "certificate": new, "key": new_key}
    dispatcher.write_config()
    dispatcher.reload()
    dispatcher.process.wait_log("reloaded")
    with Client(port=int(url.rpartition(":")[2]), ca=authority.ca_file) as client:
        client.connection.connect()
        names = client.connection.sock.getpeercert()["subjectAltName"]
        assert ("DNS", "new.example") in names, names
    dispatcher.settings["listen"]["certificate"] = old
    dispatcher.write_config()
    dispatcher.reload()
    dispatcher.process.wait_log("the old configuration stays")
    with Client(port=int(url.rpartition(":")[2]), ca=authority.ca_file) as client:
        assert client.get("/healthz").status == 200


@suite.test
def a_reload_that_fails_late_changes_nothing(t):
    authority = Authority(t)
    certificate, key = authority.issue()
    dispatcher = Dispatcher(t, settings(t, listen={
        "address": "127.0.0.1", "port": 0, "certificate": certificate, "key": key}))
    dispatcher.start()
    admin = Client(unix=t.dir / "admin.sock")
    url = admin.get("/api/v1/topology").json["dispatchers"][0]["url"]
    new, new_key = authority.issue("new", hosts=("localhost", "127.0.0.1", "new.example"))
    dispatcher.settings["listen"] = {**dispatcher.settings["listen"],
                                     "certificate": new, "key": new_key}
    dispatcher.settings["journal"] = {"file": t.dir / "nowhere" / "journal.log"}
    dispatcher.write_config()
    certificate.unlink()  # what was read at the start need not be there any more
    dispatcher.reload()
    dispatcher.process.wait_log("the old configuration stays.*nowhere")
    assert admin.get("/api/v1/status").status == 200
    with Client(port=int(url.rpartition(":")[2]), ca=authority.ca_file) as client:
        client.connection.connect()
        names = client.connection.sock.getpeercert()["subjectAltName"]
        assert ("DNS", "new.example") not in names, names


@suite.test
def a_port_in_use(t):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        says(t, str(port), "in use", listen={"address": "127.0.0.1", "port": port, "tls": False})


@suite.test
def a_socket_that_another_dispatcher_holds(t):
    Dispatcher(t, settings(t)).start()
    says(t, "admin.sock")
    # one that was left behind by a killed process is no obstacle
    path = t.dir / "left.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(os.fspath(path))
    left.close()
    dispatcher = Dispatcher(t, settings(t, admin_socket={"path": path, "group": ""},
                                        journal={"file": t.dir / "j2.log"}))
    dispatcher.start()


@suite.test
def a_log_file_that_cannot_be_opened(t):
    says(t, "nowhere/journal.log", journal={"file": t.dir / "nowhere" / "journal.log"})


@suite.test
def the_log_is_reopened_and_its_language_changed(t):
    dispatcher = Dispatcher(t, settings(t))
    dispatcher.start()
    file = t.dir / "journal.log"
    wait_until(lambda: "dispatcher-started" in file.read_text())
    file.rename(t.dir / "journal.log.1")
    dispatcher.settings["log_language"] = "ru"
    dispatcher.write_config()
    dispatcher.reload()
    wait_until(file.exists)
    client = Client(unix=t.dir / "admin.sock")
    assert client.post("/api/v1/providers", {"name": "reopened"}).status == 201
    wait_until(lambda: "admin-created" in file.read_text())
    assert "создан" in file.read_text(), file.read_text()
    dispatcher.settings["log_language"] = "de"
    dispatcher.write_config()
    dispatcher.reload()
    dispatcher.process.wait_log("none of en, ru")
    assert client.get("/healthz").status == 200


@suite.test
def the_log_is_reopened_though_the_configuration_is_bad(t):
    """Whoever turns the logs over must not lose lines to someone else's mistake."""
    dispatcher = Dispatcher(t, settings(t))
    dispatcher.start()
    file = t.dir / "journal.log"
    wait_until(lambda: "dispatcher-started" in file.read_text())
    file.rename(t.dir / "journal.log.1")
    dispatcher.settings["colour"] = "red"
    dispatcher.write_config()
    dispatcher.reload()
    dispatcher.process.wait_log("not reloaded, the old configuration stays: .*colour")
    wait_until(file.exists)
    client = Client(unix=t.dir / "admin.sock")
    assert client.post("/api/v1/providers", {"name": "kept"}).status == 201
    wait_until(lambda: "created provider kept" in file.read_text())
    assert "provider kept" not in (t.dir / "journal.log.1").read_text()


@suite.test
def a_quiet_journal_still_stores_who_changed_what(t):
    dispatcher = Dispatcher(t, settings(t, journal={"file": t.dir / "journal.log",
                                                    "level": "error"}))
    dispatcher.start()
    client = Client(unix=t.dir / "admin.sock")
    path = "/api/v1/providers/quiet"
    assert client.post("/api/v1/providers", {"name": "quiet"}).status == 201
    assert client.patch(path, {"prefer_sharing": False}).status == 200
    assert client.put(f"{path}/maintenance", {"mode": "drain", "reason": "x"}).status == 200
    assert client.delete(path).status == 204
    rows = [row for row in client.get("/api/v1/events?limit=1000").json["items"]
            if row["params"].get("name") == "quiet"]
    assert [row["event"] for row in rows] == \
        ["admin-created", "admin-changed", "maintenance", "admin-removed"], rows
    assert (t.dir / "journal.log").read_text() == ""


@suite.test
def syslog_has_the_events_too(t):
    path = t.dir / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(os.fspath(path))
        syslog.settimeout(deadline(20))
        Dispatcher(t, settings(t, journal={"file": "", "syslog": True, "syslog_socket": path},
                               log_language="ru")).start()
        line = syslog.recv(65536).decode("utf-8")
        while "dispatcher-started" not in line:
            line = syslog.recv(65536).decode("utf-8")
    assert line.startswith("<") and "termbrokerd" in line and "Диспетчер" in line, line


@suite.test
def the_admin_socket_belongs_to_its_group(t):
    mine = grp.getgrgid(os.getgroups()[-1] if os.getgroups() else os.getgid())
    if os.geteuid() == 0:
        mine = grp.getgrnam("daemon")
    path = t.dir / "admin.sock"
    Dispatcher(t, settings(t, admin_socket={"path": path, "group": mine.gr_name})).start()
    assert path.stat().st_gid == mine.gr_gid and path.stat().st_mode & 0o777 == 0o660
    other = t.dir / "other.sock"
    says(t, 'no group "nobody-knows-it"', admin_socket={"path": other, "group": "nobody-knows-it"})
    assert not other.exists()


@suite.test
def who_comes_by_the_socket_is_named_by_the_kernel(t):
    if os.geteuid() != 0:
        raise Skip("only root can be somebody else")
    path = t.dir / "admin.sock"
    Dispatcher(t, settings(t, admin_socket={"path": path, "group": "daemon"})).start()
    become = ["setpriv", "--reuid", "65534", "--regid", "65534"]
    ask = ["curl", "-sS", "--unix-socket", path, "-d", '{"name": "made-by-nobody"}',
           "http://localhost/api/v1/providers"]
    done = subprocess.run([*become, "--clear-groups", *ask], capture_output=True, text=True,
                          check=False)
    assert done.returncode != 0 and "made-by-nobody" not in done.stdout, done
    done = subprocess.run([*become, "--groups", "daemon", *ask], capture_output=True, text=True,
                          check=False)
    assert '"made-by-nobody"' in done.stdout, done
    file = t.dir / "journal.log"
    wait_until(lambda: "created provider made-by-nobody" in file.read_text())
    actor = pwd.getpwuid(65534).pw_name
    assert f"uid 65534 ({actor}) created provider made-by-nobody" in file.read_text()


@suite.test
def what_only_a_start_can_change_is_named_and_stays(t):
    dispatcher = Dispatcher(t, settings(t, name="before"))
    dispatcher.start()
    client = Client(unix=t.dir / "admin.sock")
    topology = client.get("/api/v1/topology").json["dispatchers"]
    dispatcher.settings.update(
        name="after", stale_after=7, admin_socket={"path": t.dir / "x.sock", "group": "x"},
        listen={"address": "127.0.0.1", "port": 1, "tls": False},
        database={"connection": "dbname=elsewhere"})
    dispatcher.write_config()
    for _ in range(2):  # it is said each time, for it still waits
        before = dispatcher.log().count("only the next start")
        dispatcher.reload()
        wait_until(lambda n=before: dispatcher.log().count("only the next start") > n)
    assert ("name, listen, admin_socket.path, admin_socket.group, database.connection"
            in dispatcher.log()), dispatcher.log()
    assert client.get("/api/v1/topology").json["dispatchers"] == topology
    assert client.get("/api/v1/status").json["dispatcher"] == "before"


@suite.test
def a_stop_writes_what_is_queued(t):
    dispatcher = Dispatcher(t, settings(t, name="stopping"))
    dispatcher.start()
    assert dispatcher.stop() in (0, None)
    count = t.shared.pg.psql("SELECT count(*) FROM event WHERE name = 'dispatcher-stopped' "
                             "AND params->>'dispatcher' = 'stopping'", "termbroker")
    assert count == "1", count


suite.main()
