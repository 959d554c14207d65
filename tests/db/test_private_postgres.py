#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""packaging/private-postgres: who may log in, and that nothing outlives its caller."""

import os
import pwd
import signal
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import PrivatePostgres, Process, Skip, Suite, wait_until

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "private-postgres"
suite = Suite("private-postgres")


def in_group(leader):
    """The live processes below LEADER, itself included."""
    parents, found = {}, [leader]
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if entry.name.isdigit() and fields[0] != "Z":
            parents[int(entry.name)] = int(fields[1])
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return [pid for pid in found if pid in parents]


def alive(pids):
    def is_alive(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    return [pid for pid in pids if is_alive(pid)]


@suite.test
def it_listens_on_a_unix_socket_alone(t):
    pg = PrivatePostgres(t)
    assert pg.psql("show listen_addresses") == ""
    assert pg.psql("show unix_socket_directories") == str(pg.socket)
    assert pg.psql("show server_encoding") == "UTF8"
    assert pg.psql("show fsync") == "off"
    owner = pwd.getpwuid((pg.dir / "data").stat().st_uid).pw_name
    assert owner != "root", owner


@suite.test
def the_caller_may_be_each_role_and_no_other(t):
    pg = PrivatePostgres(t)
    pg.bootstrap()
    pg.psql("create role stranger login")
    assert pg.psql("select current_user", user="termbroker_owner") == "termbroker_owner"
    assert pg.psql("select current_user", user="termbrokerd") == "termbrokerd"
    denied = pg.psql("select 1", user="stranger", check=False)
    assert denied.returncode != 0 and "Peer authentication failed" in denied.stderr, denied
    if os.geteuid() == 0:
        daemon = pwd.getpwnam("daemon")
        done = subprocess.run(["psql", "-XAtc", "select 1", "-d", pg.dsn()], capture_output=True,
                              text=True, user=daemon.pw_uid, group=daemon.pw_gid, check=False)
        assert done.returncode != 0 and "Peer authentication failed" in done.stderr, done


@suite.test
def data_survive_a_restart_and_a_kill(t):
    pg = PrivatePostgres(t)
    pg.psql("create table seen (n int); insert into seen values (1)")
    pg.restart()
    pg.psql("insert into seen values (2)")
    pg.kill()
    pg.start()
    assert pg.psql("select sum(n) from seen") == "3"
    assert "was not properly shut down" in pg.log()


@suite.test
def frozen_it_keeps_connections_and_does_not_answer(t):
    pg = PrivatePostgres(t)
    pg.freeze()
    client = Process(t, ["psql", "-XAtc", "select 41 + 1", "-d", pg.dsn()])
    opened = threading.Event()
    assert not opened.wait(0.3) and client.alive()
    pg.thaw()
    assert client.wait() == 0 and client.out() == "42\n"


def ends_with(t, victim):
    """Kills with SIGKILL what VICTIM(caller, supervisor) names while the server is stopped."""
    kinds = (["unshare", kind, "true"] for kind in ("-ip", "-Uip"))
    if all(subprocess.run(kind, check=False, capture_output=True).returncode for kind in kinds):
        raise Skip("no process namespace may be made here")
    folder = t.dir / "own"
    caller = Process(t, ["sh", "-c", f"{SCRIPT} --fsync off {folder}; exit 9"], expect=None)
    caller.wait_log("^host=", 60, stream="out")
    supervisor = in_group(caller.pid)[1]
    tree = in_group(caller.pid)
    assert len(tree) >= 7, tree
    server = int((folder / "postmaster.pid").read_text())
    for pid in in_group(server):
        os.kill(pid, signal.SIGSTOP)
    os.kill(victim(caller.pid, supervisor), signal.SIGKILL)
    wait_until(lambda: not alive(tree), what="the end of the whole tree")


@suite.test
def it_ends_with_its_caller(t):
    ends_with(t, lambda caller, supervisor: caller)


@suite.test
def it_ends_with_its_supervisor(t):
    ends_with(t, lambda caller, supervisor: supervisor)


@suite.test
def a_folder_with_other_files_is_left_alone(t):
    folder = t.dir / "full"
    folder.mkdir()
    (folder / "letter").write_text("dear")
    process = Process(t, [SCRIPT, folder], expect=1)
    assert process.wait() == 1 and "is not empty" in process.err(), process.tail()
    assert [p.name for p in folder.iterdir()] == ["letter"]


@suite.test
def a_path_too_long_for_a_socket_is_refused(t):
    process = Process(t, [SCRIPT, t.dir / ("x" * 100)], expect=1)
    assert process.wait() == 1 and "longer than 107 bytes" in process.err(), process.tail()


@suite.test
def a_wrong_setting_is_told(t):
    process = Process(t, [SCRIPT, "--set", "no_such_setting=1", t.dir / "own"], expect=1)
    assert process.wait() == 1 and "no_such_setting" in process.err(), process.tail()


suite.main()
