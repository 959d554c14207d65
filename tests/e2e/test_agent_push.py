#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""The agent's pushing: trust, fail-over, back-off, refusals, topology, and what a kill may not lose.

A small server plays the dispatcher here, because these tests decide what is answered; the real
dispatcher is met in the other tests of this folder.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from fake_dispatcher import FakeDispatcher, problem, reply  # noqa: E402
from harness import (SOURCE, Agent, Authority, JumpingClock, Suite, deadline, program,  # noqa: E402
                     wait_until)

TOKEN = "secret-token-of-the-agent-0123456789abcdefghij"
TREES = SOURCE / "tests" / "cases" / "trees"

suite = Suite("agent-push")


class World:
    """A certificate authority with one server certificate."""

    def __init__(self, scope):
        self.authority = Authority(scope)
        self.certificate, self.key = self.authority.issue()


@suite.setup
def world(scope):
    return World(scope)


def dispatcher(t, decide=None, pair=None, port=0):
    certificate, key = pair or (t.shared.certificate, t.shared.key)
    fake = FakeDispatcher(certificate, key, decide or (lambda request: reply()), port)
    t.defer(fake.close)
    return fake


def tree(t, name="bare-metal"):
    """A copy of a recorded tree that the test may edit."""
    copy = t.dir / t.unique(name)
    shutil.copytree(TREES / name, copy)
    return copy


def add_session(root, session, user, state="active"):
    """Written aside and renamed, as logind does it."""
    folder = root / "run/systemd/sessions"
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".#{session}"
    new.write_text(f"UID=1001\nUSER={user}\nSTATE={state}\nCLASS=user\nTYPE=x11\n"
                   f"REALTIME=1796080300000000\n", encoding="utf-8")
    new.rename(folder / session)


def agent(t, dispatchers, root=None, token=TOKEN, env=None, **more):
    """An agent that is not started yet, quick enough for a test."""
    token_file = t.dir / t.unique("token")
    token_file.write_text(token + "\n", encoding="utf-8")
    token_file.chmod(0o640)
    settings = {
        "node": "rdp-1",
        "dispatchers": [d if isinstance(d, str) else d.url for d in dispatchers],
        "token_file": token_file,
        "ca_file": t.shared.authority.ca_file,
        "collect_interval": 1,
        "push_interval": 1,
        "state_dir": t.dir / "state",
    }
    settings.update(more)
    made = Agent(t, settings, root=root or tree(t), env=env)
    made.token_file = token_file
    return made


def until(what, condition, seconds=20):
    return wait_until(condition, seconds, what)


def pin_of(certificate):
    """curl's form of the certificate's key, by the openssl program."""
    key = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"],
                         check=True, capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key,
                         check=True, capture_output=True).stdout
    digest = subprocess.run(["openssl", "dgst", "-sha256", "-binary"], input=der, check=True,
                            capture_output=True).stdout
    return "sha256//" + subprocess.run(["openssl", "base64", "-A"], input=digest, check=True,
                                       capture_output=True, text=False).stdout.decode()


def texts(pid):
    """[(address, KiB in all, KiB resident)] of the code of a process's libraries."""
    found = []
    for line in Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            ours = len(words) > 5 and words[1] == "r-xp" and ".so" in words[5]
            span = [int(end, 16) for end in words[0].split("-")]
        elif ours and words[0] == "Rss:":
            found.append((span[0], (span[1] - span[0]) // 1024, int(words[1])))
    return found


def let_go(pid):
    """[(address, size)] of code of libraries of which nothing is resident."""
    return [(address, kib * 1024) for address, kib, resident in texts(pid) if resident == 0]


@suite.test
def what_only_the_start_and_handshakes_needed_is_given_back(t):
    fake = dispatcher(t)
    one = agent(t, [fake]).start()
    until("two heartbeats", lambda: len(fake.accepted()) >= 2)
    gone = until("code that runs once to leave", lambda: let_go(one.process.pid))
    assert fake.connections == 1
    # Reading it from here makes it resident; that a push is made changes nothing.
    with open(f"/proc/{one.process.pid}/mem", "rb", buffering=0) as memory:
        for address, size in gone:
            memory.seek(address)
            memory.read(size)
    before = len(fake.accepted())
    until("two heartbeats", lambda: len(fake.accepted()) >= before + 2)
    assert not set(gone) & set(let_go(one.process.pid)), "given back without a new connection"
    fake.close()
    fake = dispatcher(t, port=fake.port)
    until("it to leave with a new connection", lambda: set(gone) <= set(let_go(one.process.pid)))
    until("a heartbeat after it", fake.accepted)


@suite.test
def heartbeats_come_on_one_kept_connection(t):
    fake = dispatcher(t)
    one = agent(t, [fake]).start()
    until("five heartbeats", lambda: len(fake.accepted()) >= 5)
    assert fake.connections == 1, f"{fake.connections} connections"
    beats = fake.accepted()
    for beat in beats:
        assert beat.method == "POST"
        assert beat.headers["Authorization"] == f"Bearer {TOKEN}"
        assert beat.headers["Content-Type"] == "application/json"
        assert beat.body["node"] == "rdp-1"
        assert beat.body["accepting"] is True
        assert beat.body["sessions_complete"] is True
        assert beat.body["memory"]["available_bytes"] == 8388608000
    sequence = [beat.body["seq"] for beat in beats]
    assert sequence == sorted(set(sequence)), sequence
    assert beats[-1].body["window"]["samples"] > 1
    # frames: 25 %, then 35 %, then from the beginning again
    assert 25 <= beats[-1].body["cpu"]["busy_percent"] <= 35, beats[-1].body
    assert one.stop() == 0


@suite.test
def a_dead_dispatcher_is_passed_over(t):
    first, second = dispatcher(t), dispatcher(t)
    one = agent(t, [first, second]).start()
    until("a heartbeat", lambda: first.accepted() or second.accepted())
    used, other = (first, second) if first.accepted() else (second, first)
    used.close()
    until("heartbeats at the other", lambda: len(other.accepted()) >= 2)
    assert f'could not push to "{used.url}"' in one.log()
    assert f'pushing to "{other.url}"' in one.log()


@suite.test
def a_silent_dispatcher_is_passed_over(t):
    """One whose network swallows everything after the connection is made."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        fake = dispatcher(t)
        one = agent(t, [f"https://127.0.0.1:{hole.getsockname()[1]}", fake]).start()
        until("a heartbeat", fake.accepted, 30)
        assert one.process.alive()


@suite.test
def pauses_grow_while_nobody_answers(t):
    fake = dispatcher(t, lambda request: problem(503, "unavailable", "starting"))
    one = agent(t, [fake]).start()
    until("three attempts", lambda: len(fake.requests(503)) >= 3, 40)
    times = [request.at for request in fake.requests(503)]
    gaps = [b - a for a, b in zip(times, times[1:])]
    for n, gap in enumerate(gaps[:2]):
        assert gap >= 0.5 * 2 ** n - 0.1, gaps
    said = [line for line in one.log().splitlines() if "could not push" in line]
    assert len(said) == 1 and "503 unavailable: starting" in said[0], said
    fake.decide = lambda request: reply()
    until("it is over", fake.accepted, 40)
    one.process.wait_log(r'pushing to "')


def refuse_to_trust(t, fake, expected, **settings):
    """Starts an agent; it must say EXPECTED and send nothing, the token least of all."""
    one = agent(t, [fake], **settings).start()
    one.process.wait_log(expected)
    assert one.process.alive()
    assert not fake.requests(), "a heartbeat went to a server that is not to be trusted"
    one.stop()


@suite.test
def a_foreign_authority_is_refused(t):
    other = Authority(t, "other")
    refuse_to_trust(t, dispatcher(t), r"is not signed by a CA that this agent trusts: set ca_file",
                    ca_file=other.ca_file)


@suite.test
def an_expired_certificate_is_named(t):
    pair = t.shared.authority.issue("expired", expired=True)
    refuse_to_trust(t, dispatcher(t, pair=pair),
                    r"certificate has expired: renew it .*this machine's time is 20")


@suite.test
def a_certificate_for_another_name_is_refused(t):
    pair = t.shared.authority.issue("elsewhere", hosts=("elsewhere.example",))
    refuse_to_trust(t, dispatcher(t, pair=pair), r"certificate is for another name")


@suite.test
def a_wrong_pin_is_refused(t):
    pin = "sha256//" + "A" * 43 + "="
    refuse_to_trust(t, dispatcher(t), r"key is not the pinned one", ca_file=None, pin=pin)
    refuse_to_trust(t, dispatcher(t), r"key is not the pinned one", pin=pin,
                    state_dir=t.dir / "state-2")


@suite.test
def the_right_pin_needs_no_authority(t):
    fake = dispatcher(t)
    wrong = "sha256//" + "A" * 43 + "="
    agent(t, [fake], ca_file=None, pin=[wrong, pin_of(t.shared.certificate)]).start()
    until("a heartbeat", fake.accepted)


@suite.test
def the_token_stays_secret(t):
    fake = dispatcher(t)
    one = agent(t, [fake], log_level="debug").start()
    until("heartbeats", lambda: len(fake.accepted()) >= 2)
    proc = Path("/proc") / str(one.process.pid)
    needle = TOKEN.encode()
    assert needle not in (proc / "cmdline").read_bytes()
    assert needle not in (proc / "environ").read_bytes()
    for file in (t.dir / "state").iterdir():
        assert needle not in file.read_bytes(), file
        assert file.stat().st_mode & 0o077 == 0, f"{file} can be read by others"
    fake.decide = lambda request: problem(401, "token_invalid", "unknown token")
    one.process.wait_log("401 token_invalid: unknown token")
    one.stop()
    assert TOKEN not in one.log() + one.process.out()


@suite.test
def a_token_for_all_to_read_is_refused(t):
    one = agent(t, ["https://127.0.0.1:1"])
    one.token_file.chmod(0o644)
    done = one.run()
    assert done.returncode == 1
    assert "can be read or written by everyone; run: chmod 0640" in done.stderr, done.stderr
    one.token_file.chmod(0o600)
    for text, expected in (("", "is empty"), ("two\nlines\n", "one line with the token"),
                           ("x" * 600, "is too long"), ("a\rX-Evil: 1", "one line")):
        one.token_file.write_text(text, encoding="utf-8")
        done = one.check_config()
        assert done.returncode == 1 and expected in done.stderr, done.stderr


@suite.test
def a_refused_token_is_said_once_and_mended_by_reload(t):
    def decide(request):
        if request.headers["Authorization"] == f"Bearer {TOKEN}":
            return reply()
        return problem(401, "token_invalid", "no such token\nforged line")
    fake = dispatcher(t, decide)
    one = agent(t, [fake], token="wrong").start()
    one.process.wait_log(r"401 token_invalid: no such token")
    assert "\nforged line" not in one.log()
    one.token_file.write_text(TOKEN, encoding="utf-8")
    one.reload()
    until("a heartbeat", fake.accepted)
    assert one.log().count("token_invalid") == 1
    assert len(fake.requests(401)) == 1


@suite.test
def a_bad_reload_changes_nothing(t):
    fake = dispatcher(t)
    one = agent(t, [fake]).start()
    until("a heartbeat", fake.accepted)
    good = dict(one.settings)
    for change, expected in (({"cache_size": 0}, r"agent\.conf:\d+: .*must be within 1 and 1000"),
                             ({"surprise": 1}, r"agent\.conf:\d+: .*surprise"),
                             ({"token_file": "/nonexistent"}, "could not read token file"),
                             ({"state_dir": "/tmp"}, "change only with a restart")):
        one.settings = dict(good, **change)
        one.write_config()
        before = len(one.log())
        one.reload()
        one.process.wait_log(expected + r".*; nothing was changed", after=before)
    count = len(fake.accepted())
    until("it goes on", lambda: len(fake.accepted()) > count + 1)
    other = dispatcher(t)
    one.settings = dict(good, node="rdp-2", dispatchers=[other.url])
    one.write_config()
    one.reload()
    until("the other is pushed to", other.accepted)
    assert other.accepted()[0].body["node"] == "rdp-2"


@suite.test
def a_clock_that_jumps_is_not_noticed(t):
    clock = JumpingClock(t)
    fake = dispatcher(t)
    root = tree(t)
    add_session(root, "1", "old-timer")
    one = agent(t, [fake], root=root, env=clock.env, cache_size=4, log_level="debug").start()
    until("a full window", lambda: fake.accepted() and
          fake.accepted()[-1].body["window"]["samples"] == 4, 40)
    day = 24 * 60 * 60
    for shift in (day, -day, 3 * day, 0):
        before, said = len(fake.accepted()), len(one.log())
        clock.jump(shift)
        until("it goes on", lambda n=before: len(fake.accepted()) > n + 4)
        for beat in fake.accepted()[before:]:
            assert beat.body["window"]["samples"] == 4, beat.body
            assert beat.body["window"]["seconds"] <= 10, beat.body
            assert "cpu" in beat.body and not beat.body["logins"], beat.body
        date = time.strftime("%Y-%m-%dT", time.gmtime(time.time() + shift))
        assert date in one.log()[said:], "the clock did not jump"
    beats = fake.accepted()
    gaps = [b.at - a.at for a, b in zip(beats, beats[1:])]
    assert max(gaps) < deadline(5), gaps
    assert len({beat.body["boot_id"] for beat in beats}) == 1
    sequence = [beat.body["seq"] for beat in beats]
    assert sequence == sorted(set(sequence)), sequence
    assert fake.connections == 1 and "could not" not in one.log(), one.log()


@suite.test
def agents_that_start_at_once_do_not_push_at_once(t):
    fake = dispatcher(t, lambda request: reply(push_interval=20))
    for n in range(5):
        agent(t, [fake], node=f"rdp-{n}", push_interval=20, state_dir=t.dir / f"s{n}").start()

    def apart():
        first = {}
        for beat in fake.accepted():
            first.setdefault(beat.body["node"], beat.at)
        return first and max(first.values()) - min(first.values()) > 3
    until("two first heartbeats that are apart", apart, 30)


@suite.test
def logins_outlive_kill_9(t):
    fake = dispatcher(t)
    root = tree(t)
    add_session(root, "1", "old-timer")
    one = agent(t, [fake], root=root).start()
    until("a heartbeat", fake.accepted)
    assert fake.accepted()[0].body["logins"] == [], "what was there before is no login"

    fake.decide = lambda request: problem(503, "unavailable", "down")
    add_session(root, "2", "alice")
    until("the login is seen", lambda: any("alice" in r.body["logins"] for r in fake.requests(503)))
    (root / "run/systemd/sessions/2").unlink()
    until("the session has ended", lambda: len(fake.requests(503)[-1].body["sessions"]) == 1, 40)
    one.kill()
    add_session(root, "3", "bob")
    fake.decide = lambda request: reply()
    count = len(fake.accepted())
    one.start()
    until("heartbeats again", lambda: len(fake.accepted()) >= count + 3)
    logins = [beat.body["logins"] for beat in fake.accepted()[count:]]
    assert logins[0] == ["alice", "bob"], logins
    assert logins[1] == logins[2] == [], logins
    assert fake.accepted()[-1].body["boot_id"] == fake.accepted()[0].body["boot_id"]
    one.kill()
    count = len(fake.accepted())
    one.start()
    until("heartbeats again", lambda: len(fake.accepted()) >= count + 2)
    assert all(not beat.body["logins"] for beat in fake.accepted()[count:])


@suite.test
def a_replay_counts_as_acknowledged(t):
    fake = dispatcher(t)
    root = tree(t)
    one = agent(t, [fake], root=root).start()
    until("a heartbeat", fake.accepted)
    fake.decide = lambda request: problem(409, "heartbeat_replayed", "already have it")
    add_session(root, "2", "alice")
    until("a replay with the login",
          lambda: any("alice" in r.body["logins"] for r in fake.requests(409)))
    count = len(fake.requests(409))
    until("the next", lambda: len(fake.requests(409)) > count + 1)
    assert fake.requests(409)[-1].body["logins"] == []
    assert "could not push" not in one.log()


@suite.test
def a_duplicate_is_an_error_and_not_repeated_at_once(t):
    fake = dispatcher(t, lambda request: problem(409, "duplicate_agent", "seen from 192.0.2.7"))
    one = agent(t, [fake]).start()
    one.process.wait_log(
        r"error: .*another machine pushes with this node's token: seen from 192\.0\.2\.7")
    assert len(fake.requests()) == 1


@suite.test
def a_bad_request_is_told_with_its_reason(t):
    fake = dispatcher(t, lambda request: problem(400, "invalid_heartbeat", "cpu: impossible"))
    one = agent(t, [fake]).start()
    until("three attempts", lambda: len(fake.requests(400)) >= 3)
    assert one.log().count("400 invalid_heartbeat: cpu: impossible") == 1, one.log()


@suite.test
def an_answer_that_is_none_is_survived(t):
    answers = [(200, []), (200, {}), (200, {"load_index": 1e9}), (302, {}), (500, {}), (404, {})]
    fake = dispatcher(t)
    fake.decide = lambda request: answers.pop(0) if answers else reply()
    agent(t, [fake]).start()
    until("it is over", lambda: not answers and len(fake.accepted()) >= 5, 40)


def topology(version, *dispatchers, cluster="1b4e28ba-2fa1-11d2-883f-0016d3cca427"):
    return {"cluster_id": cluster, "version": version,
            "dispatchers": [{"name": f"d{n}", "url": d if isinstance(d, str) else d.url}
                            for n, d in enumerate(dispatchers)]}


@suite.test
def the_list_follows_the_topology(t):
    old, new, foreign = dispatcher(t), dispatcher(t), dispatcher(t)
    old.decide = lambda request: reply(topology=topology(7, new))
    one = agent(t, [old]).start()
    until("heartbeats at the new one", lambda: len(new.accepted()) >= 2)
    assert len(old.accepted()) == 1

    new.decide = lambda request: reply(topology=topology(9, foreign, cluster="another"))
    one.process.wait_log("belongs to another cluster")
    new.decide = lambda request: reply(topology=topology(6, foreign))  # older
    count = len(new.accepted())
    until("it stays", lambda: len(new.accepted()) > count + 2)
    new.decide = lambda request: reply(topology=topology(10))  # empty
    count = len(new.accepted())
    until("it stays", lambda: len(new.accepted()) > count + 2)
    assert not foreign.requests()
    # The configured ones are the last resort.
    count = len(old.accepted())
    new.close()
    until("back to the configured one", lambda: len(old.accepted()) > count)


@suite.test
def a_fixed_list_stays(t):
    fixed, other = dispatcher(t), dispatcher(t)
    fixed.decide = lambda request: reply(topology=topology(7, other))
    agent(t, [fixed], cluster={"refresh_interval": 0}).start()
    until("heartbeats", lambda: len(fixed.accepted()) >= 3)
    assert not other.requests()


@suite.test
def the_topology_is_asked_for_where_pushes_are_rare(t):
    def decide(request):
        if request.path == "/api/v1/topology":
            return 200, topology(3, other)
        return reply(push_interval=5)
    fake, other = dispatcher(t), dispatcher(t)
    fake.decide = decide
    agent(t, [fake], cluster={"refresh_interval": 1}, push_interval=1).start()
    until("a question", lambda: fake.requests(path="/api/v1/topology"))
    until("the next heartbeat", other.accepted, 30)


@suite.test
def the_dispatcher_sets_the_pace(t):
    fake = dispatcher(t)
    one = agent(t, [fake], push_interval=2).start()
    one.process.wait_log("asks for a push every 1 s")
    fake.decide = lambda request: reply(maintenance=True)
    one.process.wait_log("takes no new users")
    fake.decide = lambda request: reply()
    one.process.wait_log("takes new users again")


@suite.test
def a_load_script_that_fails_is_left_out(t):
    script = t.dir / "load"
    value = t.dir / "value"
    value.write_text("42.5\n", encoding="ascii")
    script.write_text(f"#!/bin/sh\nexec cat {value}\n", encoding="ascii")
    script.chmod(0o755)
    fake = dispatcher(t)
    one = agent(t, [fake], load_script=script, cache_size=1).start()
    until("a value", lambda: any(b.body.get("custom_load") == 42.5 for b in fake.accepted()))
    value.write_text("101\n", encoding="ascii")
    one.process.wait_log("did not print a number from 0 to 100")
    count = len(fake.accepted())
    until("more", lambda: len(fake.accepted()) > count + 2)
    assert "custom_load" not in fake.accepted()[-1].body
    assert one.log().count("did not print") == 1
    value.write_text("7\n", encoding="ascii")
    until("a value", lambda: fake.accepted()[-1].body.get("custom_load") == 7)


@suite.test
def a_dead_rdp_server_is_told(t):
    fake = dispatcher(t)
    root = tree(t)
    one = agent(t, [fake], root=root).start()
    until("accepting", lambda: fake.accepted() and fake.accepted()[-1].body["accepting"])
    (root / "proc/net/tcp").write_text("  sl  local_address\n", encoding="ascii")
    until("not accepting", lambda: not fake.accepted()[-1].body["accepting"])
    assert "nothing listens on port 3389 any more" in one.log()


@suite.test
def a_lost_counter_is_missing_and_not_zero(t):
    fake = dispatcher(t)
    root = tree(t)
    one = agent(t, [fake], root=root, cache_size=1).start()
    until("all metrics", lambda: fake.accepted() and "cpu" in fake.accepted()[-1].body)
    for name in ("stat", "stat.1", "stat.2", "meminfo"):
        (root / "proc" / name).unlink()
    until("none", lambda: "cpu" not in fake.accepted()[-1].body and
          "memory" not in fake.accepted()[-1].body)
    assert 'could not read "/proc/stat"' in one.log()
    count = len(fake.accepted())
    until("more", lambda: len(fake.accepted()) > count + 1)
    assert one.log().count("/proc/meminfo") == 1


@suite.test
def one_state_folder_has_one_agent(t):
    fake = dispatcher(t)
    one = agent(t, [fake]).start()
    until("a heartbeat", fake.accepted)
    done = one.run("--root", TREES / "bare-metal")
    assert done.returncode == 1 and "another agent runs on this state folder" in done.stderr, done


@suite.test
def once_prints_one_heartbeat(t):
    one = agent(t, ["https://127.0.0.1:1"], state_dir=t.dir / "unused")
    for name in sorted(p.name for p in TREES.iterdir() if p.is_dir()):
        done = one.run("--once", "--root", TREES / name)
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done
        assert '"node":"rdp-1"' in done.stdout
    assert not (t.dir / "unused").exists()
    done = one.run("--once")  # this machine
    assert done.returncode == 0 and '"cpu":{"busy_percent":' in done.stdout, done


@suite.test
def signals_end_it_cleanly(t):
    for number in (signal.SIGTERM, signal.SIGINT):
        fake = dispatcher(t)
        one = agent(t, [fake], state_dir=t.dir / f"state-{number}").start()
        until("a heartbeat", fake.accepted)
        one.process.signal(number)
        assert one.process.wait() == 0
        assert not [f for f in os.listdir(t.dir / f"state-{number}") if f.endswith("-wal")]


@suite.test
def wrong_use_is_told(t):
    path = program("termbroker-agent")
    for arguments, status in ((["--nonsense"], 2), (["surplus"], 2), (["--config"], 2),
                              (["--config", "/nonexistent/agent.conf"], 1),
                              (["--config", "/"], 1), (["--version"], 0), (["--help"], 0)):
        done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status, (arguments, done)
        assert (done.stdout if status == 0 else done.stderr).strip(), (arguments, done)


suite.main()
