#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""The command line against a real dispatcher: what it prints, what it refuses, how it exits."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import stat
import struct
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

# pylint: disable=wrong-import-position
from harness import SOURCE, Authority, Client, Process, Suite, cli, program, wait_until
from harness.broker import Broker, FakeNode

DONE, FAILED, USAGE, NOT_FOUND, DENIED, UNREACHABLE = range(6)

suite = Suite("cli")


class Shell:
    """termbroker with the settings of one user, who has no files of his own."""

    def __init__(self, scope, *options, **env):
        self.options = options
        home = scope.dir / scope.unique("home")
        home.mkdir()
        self.env = {"HOME": str(home), "XDG_CONFIG_HOME": "", "LC_ALL": "C", **env}

    def __call__(self, *arguments, expect=DONE, text_in=None):
        return cli(*self.options, *arguments, expect=expect, env=self.env, text_in=text_in)

    def out(self, *arguments):
        return self(*arguments).stdout

    def json(self, *arguments):
        return json.loads(self.out("-o", "json", *arguments))

    def csv(self, *arguments):
        """The records of a list as dicts."""
        return list(csv.DictReader(io.StringIO(self.out("-o", "csv", *arguments))))

    def fails(self, *arguments, code=FAILED):
        """What it says on standard error; nothing goes to standard output."""
        done = self(*arguments, expect=code)
        assert done.stdout == "", done.stdout
        return done.stderr


class TlsBroker(Broker):
    """A broker that listens with TLS alone, since that is what pins and CAs are for."""

    def __init__(self, scope):
        self.authority = Authority(scope)
        certificate, key = self.authority.issue()
        super().__init__(scope, listen={"address": "127.0.0.1", "port": 0,
                                        "certificate": certificate, "key": key},
                         advertise="https://127.0.0.1", stale_after=3600)

    def http(self, token=None):
        return Client(port=self.port, ca=self.authority.ca_file, token=token)


@suite.setup
def broker(scope):
    return TlsBroker(scope)


def shell_of(t, **env):
    return Shell(t, TERMBROKER_SOCKET=str(t.shared.socket), **env)


def url_of(t):
    return f"https://127.0.0.1:{t.shared.port}"


def secret_file(t, text):
    path = t.dir / t.unique("token")
    path.write_text(text + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def farm(t, name):
    """A provider and a pool of this NAME."""
    tb = shell_of(t)
    tb("provider", "add", name)
    tb("pool", "add", name, "--provider", name)
    return tb


def add_node(t, tb, provider, name):
    """A node that the command line registered and that beats when told to."""
    answer = tb.json("node", "add", name, "--provider", provider, "--address",
                     f"{name}.example.test")
    return FakeNode(t.shared, name, answer["token"])


@suite.test
def every_verb_without_arguments_says_what_is_missing(t):
    tb = Shell(t, TERMBROKER_SOCKET=str(t.dir / "nobody"))
    data = tb.out("--completion-data").splitlines()
    assert len(data) > 20, data
    for line in data:
        noun, verb, arguments, _ = line.split("\t")
        words = [noun] if verb == "-" else [noun, verb]
        if arguments != "-":
            said = tb.fails(*words, code=USAGE)
            assert " is missing" in said and "usage: termbroker" in said, said
        assert "usage: termbroker" in tb.out(*words, "--help")
    for noun in {line.split("\t")[0] for line in data if line.split("\t")[1] != "-"}:
        assert "the verb is missing" in tb.fails(noun, code=USAGE)
    assert "what is to be done" in tb.fails(code=USAGE)
    assert re.fullmatch(r"termbroker \d+\.\d+\.\d+\n", tb.out("--version"))


@suite.test
def a_dispatcher_that_is_not_there(t):
    tb = Shell(t, "--socket", t.dir / "nobody.sock")
    said = tb.fails("status", code=UNREACHABLE)
    assert "nobody.sock" in said and "is termbrokerd running?" in said, said
    said = Shell(t, "--url", "https://127.0.0.1:1").fails("status", code=UNREACHABLE)
    assert "is termbrokerd running there?" in said, said


@suite.test
def a_fleet_from_nothing(t):
    tb = farm(t, "first")
    out = tb.out("node", "add", "first-1", "--provider", "first", "--address", "192.0.2.1",
                 "--port", "3390", "--tag", "gpu", "--tag", "big", "--max-sessions", "20",
                 "--load-multiplier", "1.5")
    node = tb.json("node", "show", "first-1")
    assert (node["port"], node["tags"], node["max_sessions"], node["load_multiplier"]) == \
        (3390, ["gpu", "big"], 20, 1.5), node
    # the lines for the node: the token twice (once to read, once to paste), the pin, the port
    token = re.search(r"shown this once:\n(\S{43})\n", out).group(1)
    assert out.count(token) == 2, out
    assert re.search(r'^pin = \{ "sha256//\S{44}" \}$', out, re.M), out
    assert re.search(r'^dispatchers = \{ "https://[^"]+" \}$', out, re.M), out
    assert re.search(r'^port = 3390$', out, re.M), out
    assert "(umask 077; cat > /etc/termbroker/agent.token) <<'EOF'" in out, out
    table = tb.out("node", "list")
    assert re.search(r"^first-1 +never_heard +- +0/20 +- +- +192\.0\.2\.1:3390 +gpu, big +"
                     r"- +first", table, re.M), table
    row = [row for row in tb.csv("node", "list") if row["name"] == "first-1"][0]
    assert (row["tags"], row["port"], row["load_index"]) == ("gpu,big", "3390", ""), row


@suite.test
def the_lines_for_the_node_work(t):
    """They are run by sh, with another folder in the place of /etc."""
    tb = farm(t, "lines")
    out = tb.out("node", "add", "lines-1", "--provider", "lines", "--address", "192.0.2.2")
    script = out[out.index("mkdir -p"):out.index("systemctl")].replace("/etc/termbroker", str(t.dir))
    subprocess.run(["sh", "-eu", "-c", script], check=True)
    token = t.dir / "agent.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert token.read_text(encoding="utf-8").strip() in out
    conf = (t.dir / "agent.conf").read_text(encoding="utf-8")
    assert f'token_file = "{token}"' in conf and 'node = "lines-1"' in conf, conf


@suite.test
def changes_at_the_same_time(t):
    tb = farm(t, "crowd")
    tb("node", "add", "crowd-1", "--provider", "crowd", "--address", "192.0.2.33")
    for turn in range(3):
        tags = [f"t{turn}-{i}" for i in range(6)]
        with ThreadPoolExecutor(len(tags)) as pool:
            done = list(pool.map(lambda tag: tb("node", "set", "crowd-1", "--tag", f"+{tag}",
                                                expect=None), tags))
        # one that came while another was written was told so; none was lost in silence
        for result in done:
            assert result.returncode == DONE or "(being_changed)" in result.stderr, result
        wanted = {tag for tag, result in zip(tags, done) if result.returncode == DONE}
        there = set(tb.json("node", "show", "crowd-1")["tags"])
        assert wanted == there & set(tags), (wanted, there)


@suite.test
def changes(t):
    tb = farm(t, "change")
    tb("node", "add", "change-1", "--provider", "change", "--address", "192.0.2.3", "--tag", "east")
    tb("node", "set", "change-1", "--tag", "+gpu", "--tag", "-east", "--address", "192.0.2.4")
    node = tb.json("node", "show", "change-1")
    assert (node["tags"], node["address"]) == (["gpu"], "192.0.2.4"), node
    tb("node", "set", "change-1", "--tag", "a", "--tag", "b")
    assert tb.json("node", "show", "change-1")["tags"] == ["a", "b"]
    tb("node", "set", "change-1", "--tag", "")
    assert tb.json("node", "show", "change-1")["tags"] == []
    assert "has no tag" in tb.fails("node", "set", "change-1", "--tag", "-gpu")
    tb("node", "set", "change-1", "--tag", "+a")
    tb("node", "set", "change-1", "--tag", "+a") # is there already
    assert tb.json("node", "show", "change-1")["tags"] == ["a"]
    tb("node", "set", "change-1", "--tag", "-a")
    assert "nothing to change" in tb.fails("node", "set", "change-1", code=USAGE)
    tb("provider", "set", "change", "--share-sessions", "off", "--on-mass-silence", "keep",
       "--cpu-rule", "10-90", "--sessions-rule", "off")
    provider = tb.json("provider", "show", "change")
    assert provider["share_sessions"] is False and provider["prefer_sharing"] is True, provider
    assert provider["rules"]["cpu"] == {"on": True, "zero": 10, "full": 90}, provider
    assert provider["rules"]["sessions"] == {"on": False}, provider
    tb("pool", "set", "change", "--allowed-tag", "gpu", "--untagged-default", "any",
       "--default-tags", "gpu", "--rdp-extra", "audiomode:i:0")
    pool = tb.json("pool", "show", "change")
    assert (pool["allowed_tags"], pool["untagged_default"]) == (["gpu"], "any"), pool
    tb("pool", "remove", "change")
    tb("node", "remove", "change-1")
    tb("provider", "remove", "change")
    assert "there is no provider" in tb.fails("provider", "show", "change", code=NOT_FOUND)


@suite.test
def names_that_are_not_there(t):
    tb = farm(t, "office")
    tb("node", "add", "ts-east", "--provider", "office", "--address", "192.0.2.5")
    assert 'did you mean "ts-east"?' in tb.fails("node", "show", "ts-eats", code=NOT_FOUND)
    assert 'did you mean "office"?' in tb.fails("connect", "ofice", "alice", code=NOT_FOUND)
    assert 'did you mean "office"?' in tb.fails("log", "--pool", "offic", code=NOT_FOUND)
    said = tb.fails("node", "add", "x", "--provider", "ofice", "--address", "192.0.2.6")
    assert 'did you mean "office"?' in said, said
    said = tb.fails("token", "revoke", "completely-different", code=NOT_FOUND)
    assert '"termbroker token list"' in said, said
    assert "session list" in tb.fails("session", "forget", "ts-east:c1", code=NOT_FOUND)
    said = tb.fails("provider", "add", "office")
    assert "(name_taken)" in said and "choose another name" in said, said
    said = tb.fails("node", "add", "x", "--provider", "office", "--address", "192.0.2.5")
    assert "(address_taken)" in said and "node list" in said and "name" not in said, said
    tb("token", "add", "taken", "--role", "auditor")
    said = tb.fails("token", "add", "taken", "--role", "auditor")
    assert "(name_taken)" in said and "revoke" in said and '"set"' not in said, said
    said = tb.fails("node", "add", "..", "--provider", "office", "--address", "192.0.2.6")
    assert "name" in said, said


@suite.test
def where_a_user_goes(t):
    tb = farm(t, "where")
    said = tb.fails("connect", "where", "alice")
    assert "(no_nodes)" in said and "node add" in said, said
    busy = add_node(t, tb, "where", "where-1")
    idle = add_node(t, tb, "where", "where-2")
    busy.up(cpu=80.0)
    idle.up(cpu=10.0)
    out = tb.out("connect", "where", "alice")
    assert re.match(r"alice goes to where-2 \(where-2\.example\.test\): it is the least loaded, "
                    r"load index \d+\n$", out), out
    busy.session("alice").beat(cpu=80.0)
    assert "where-1 " in tb.out("connect", "where", "alice")
    assert tb.json("connect", "where", "alice")["reason"] == "session"
    out = tb.out("explain", "where", "bob")
    assert out.startswith("bob would go to where-2: it is the least loaded\n"), out
    assert re.search(r"^where-1 +candidate +ok +\d+ +8000 ", out, re.M), out
    rows = tb.csv("explain", "where", "bob")
    assert [row["node"] for row in rows] == ["where-1", "where-2"], rows
    out = tb.out("session", "list", "--user", "alice")
    assert re.search(r"^where-1:c1 +alice +where-1 +active", out, re.M), out
    assert "(node_alive)" in tb.fails("session", "forget", "where-1:c1")
    said = tb.fails("node", "remove", "where-1")
    assert "(node_has_sessions)" in said and "--force" in said, said
    tb("node", "remove", "where-1", "--force")
    said = tb.fails("connect", "where", "alice", "--tags", "gpu!")
    assert "(no_tag_match)" in said, said


@suite.test
def maintenance(t):
    tb = farm(t, "maint")
    add_node(t, tb, "maint", "maint-1").up()
    said = tb.fails("node", "maintenance", "maint-1", "drain", code=USAGE)
    assert "--reason TEXT is missing" in said, said
    assert tb.out("node", "maintenance", "maint-1", "drain", "--reason", "new kernel") == \
        "node maint-1 drain\n"
    table = tb.out("node", "list")
    assert re.search(r"^maint-1 +drain .* maint +new kernel$", table, re.M), table
    said = tb.fails("connect", "maint", "alice")
    assert "(all_maintenance)" in said, said
    tb("node", "maintenance", "maint-1", "enabled")
    tb("pool", "maintenance", "maint", "disabled", "--reason", "closed")
    assert "(pool_maintenance)" in tb.fails("connect", "maint", "alice")
    tb("pool", "maintenance", "maint", "enabled")
    assert tb.json("provider", "maintenance", "maint", "drain", "--reason", "x")["mode"] == "drain"
    tb("provider", "maintenance", "maint", "enabled")
    tb("connect", "maint", "alice")


@suite.test
def an_rdp_file(t):
    tb = farm(t, "rdp")
    add_node(t, tb, "rdp", "rdp-1").up()
    path = t.dir / "alice.rdp"
    assert str(path) in tb.out("connect", "rdp", "alice", "--rdp", path)
    raw = path.read_bytes()
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    assert "full address:s:rdp-1.example.test" in text, text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = tb.fails("connect", "rdp", "alice", "--rdp", t.dir / "no" / "file")
    assert "could not write" in said, said


def on_a_terminal(tb, columns, *arguments):
    """The lines that a terminal of so many COLUMNS gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, **tb.env, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    env.pop("COLUMNS", None)
    done = subprocess.Popen([program("termbroker"), *tb.options, *arguments], stdin=theirs,
                            stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    raw = b""
    try:
        while chunk := os.read(ours, 65536):
            raw += chunk
    except OSError:  # the other end was closed: all was read
        pass
    os.close(ours)
    assert done.wait() == DONE, raw
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", raw.decode("utf-8")).splitlines()


@suite.test
def tables_fit_the_terminal(t):
    tb = farm(t, "fit")
    long = "ts-frankfurt-prod-0017"
    add_node(t, tb, "fit", long).session("CORP\\someone.with.a.long.name@corp.example.com").up()
    tb("node", "set", long, "--tag", "one-tag", "--tag", "another-tag", "--tag", "a-third-tag")
    tb("pool", "set", "fit", "--untagged-default", "any", "--default-tags",
       ";".join(f"tag-{i}" for i in range(20)), "--forced-tags", "one-tag;another-tag;a-third-tag")
    tb("token", "add", "fit-portal", "--role", "client", "--pool", "fit", "--tag", "one-tag",
       "--expires", "1h")
    for arguments in (("node", "list"), ("session", "list", "--node", long), ("pool", "list"),
                      ("provider", "list"), ("token", "list"), ("explain", "fit", "alice")):
        for columns in (80, 132):
            lines = on_a_terminal(tb, columns, *arguments)
            widest = max(lines, key=len)
            assert len(widest) <= columns, (arguments, columns, widest)
            assert len(lines) >= 2 and "fit" in "".join(lines) or long in "".join(lines), lines
    # whoever reads by program gets all of it
    assert long in tb.out("node", "list") and "another-tag" in tb.out("node", "list")


@suite.test
def the_journal(t):
    tb = farm(t, "diary")
    node = add_node(t, tb, "diary", "diary-1")
    node.up()
    tb("connect", "diary", "alice")
    wait_until(lambda: "least loaded" in tb.out("log", "--pool", "diary"), what="the choice")
    russian = tb.out("log", "--pool", "diary", "--lang", "ru")
    assert "Пользователь будет перенаправлен на этот узел: diary-1.example.test, " \
        "т.к. он наименее загружен" in russian, russian
    assert "least loaded" not in tb.out("log", "--pool", "diary", "--level", "info")
    assert len(tb.out("log", "-n", "2").splitlines()) == 2
    rows = tb.csv("log", "--pool", "diary")
    assert rows[-1]["event"] == "node-chosen" and rows[-1]["pool"] == "diary", rows[-1]
    assert tb.json("log", "-n", "1")["items"][0]["id"] >= int(rows[-1]["id"])


@suite.test
def following_the_journal(t):
    tb = farm(t, "follow")
    add_node(t, tb, "follow", "follow-1").up()
    follower = Process(t, [program("termbroker"), "log", "--follow", "--pool", "follow", "-n", "0"],
                       env=tb.env, expect=None)
    # what happens from now on, each once and in order, without asking again
    wait_until(lambda: follower.alive() and _connected(follower.pid), what="the follower")
    for user in ("alice", "bob", "carol"):
        tb("connect", "follow", user, "--node", "follow-1")
    wait_until(lambda: "carol" in follower.out(), what="carol in the journal")
    users = re.findall(r"User (\w+) will be sent to node follow-1", follower.out())
    assert users == ["alice", "bob", "carol"], follower.out()


def _connected(pid):
    """Whether the process has a socket: it asked for the newest lines."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                return True
        except FileNotFoundError: # closed meanwhile
            pass
    return False


@suite.test
def tokens_and_trust(t):
    tb = farm(t, "trust")
    add_node(t, tb, "trust", "trust-1").up()
    url, ca = url_of(t), t.shared.authority.ca_file
    out = tb.out("token", "add", "portal", "--role", "client", "--pool", "trust", "--expires", "1h")
    token = re.search(r"shown this once:\n(\S{43})\n", out).group(1)
    row = [row for row in tb.csv("token", "list") if row["name"] == "portal"][0]
    assert (row["role"], row["pools"]) == ("client", "trust") and row["expires_at"], row
    assert token not in tb.out("-o", "json", "token", "list")
    said = tb.fails("token", "add", "old", "--role", "client", "--expires", "2020-01-01T00:00:00Z",
                    code=USAGE)
    assert "is over already" in said, said
    said = tb.fails("token", "add", "old", "--role", "client", "--expires", "5m", code=USAGE)
    assert "90min" in said, said
    client = Shell(t, "--url", url, "--ca", ca, "--token-file", secret_file(t, token))
    assert "trust-1" in client.out("connect", "trust", "alice")
    said = client.fails("node", "list", code=DENIED)
    assert "needs a token of the role auditor" in said, said
    said = client.fails("connect", "trust", "alice", "--node", "trust-1", code=DENIED)
    assert "role admin" in said, said
    said = Shell(t, "--url", url, "--ca", ca).fails("connect", "trust", "alice", code=DENIED)
    assert "--token-file FILE" in said, said
    wrong = Shell(t, "--url", url, "--ca", ca, "--token-file", secret_file(t, "x" * 43))
    said = wrong.fails("connect", "trust", "alice", code=DENIED)
    assert "unknown, revoked or expired" in said and "x" * 43 not in said, said
    said = Shell(t, "--url", url).fails("status", code=UNREACHABLE)
    assert "--ca FILE" in said, said
    tb("token", "revoke", "portal")
    said = client.fails("connect", "trust", "alice", code=DENIED)
    assert "unknown, revoked or expired" in said, said


@suite.test
def a_pin_is_enough_and_another_is_not(t):
    tb = farm(t, "pin")
    pin = tb.json("node", "add", "pin-1", "--provider", "pin", "--address", "192.0.2.9")["pin"]
    admin = tb.json("token", "add", "boss", "--role", "admin")["token"]
    url, token = url_of(t), secret_file(t, admin)
    remote = Shell(t, "--url", url, "--pin", pin, "--token-file", token)
    assert remote.json("status")["database"] == "up"
    other = "sha256//" + "A" * 43 + "="
    said = Shell(t, "--url", url, "--pin", other, "--token-file", token) \
        .fails("status", code=UNREACHABLE)
    assert "not the pinned one" in said, said
    # the same from a file
    conf = Path(remote.env["HOME"]) / ".config" / "termbroker" / "cli.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(f'url = "{url}"\npin = "{pin}"\ntoken_file = "{token}"\n', encoding="utf-8")
    remote.options = ()
    assert remote.json("status")["dispatcher"] == "d1"
    conf.write_text('colour = "red"\n', encoding="utf-8")
    said = remote.fails("status")
    assert f"{conf}:1" in said and "colour" in said, said
    token.chmod(0o644)
    said = Shell(t, "--url", url, "--pin", pin, "--token-file", token).fails("status")
    assert "chmod 600" in said, said


@suite.test
def the_socket_of_someone_else(t):
    if os.geteuid() != 0:
        return  # the owner of the socket may use it
    outsider = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program("termbroker"),
         "--socket", t.shared.socket, "status"], capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": "/"})
    # the folder of the test may be closed to others, or the socket is
    assert outsider.returncode == DENIED, outsider
    assert "termbroker-admin" in outsider.stderr, outsider


def complete(t, *words):
    """What bash offers for the last of WORDS."""
    script = 'source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
        '_termbroker; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", SOURCE / "packaging/completion/termbroker",
         program("termbroker"), *words], capture_output=True, text=True, check=True,
        env={**os.environ, **shell_of(t).env})
    assert done.stderr == "", done.stderr
    return done.stdout.split()


@suite.test
def completion_by_bash(t):
    tb = farm(t, "complete")
    tb("node", "add", "complete-1", "--provider", "complete", "--address", "192.0.2.10")
    assert complete(t, "pro") == ["provider"]
    assert complete(t, "node", "ma") == ["maintenance"]
    assert complete(t, "node", "show", "compl") == ["complete-1"]
    assert complete(t, "node", "maintenance", "x", "") == ["enabled", "drain", "disabled"]
    assert complete(t, "node", "add", "x", "--provider", "compl") == ["complete"]
    assert complete(t, "node", "add", "x", "--max") == ["--max-sessions"]
    assert complete(t, "-o", "c") == ["csv"]
    assert complete(t, "connect", "compl") == ["complete"]
    assert complete(t, "--socket", "/nobody", "node", "show", "") == []
    assert complete(t, "nonsense", "") == []


@suite.test
def migrating_again_does_nothing(t):
    tb = Shell(t)
    tb("db", "migrate", "--config", t.shared.dispatcher.config)
    said = tb("db", "migrate", "--config", t.dir / "none.conf", expect=None)
    assert said.returncode != DONE and "none.conf" in said.stderr, said


@suite.test
def output_that_cannot_be_written(t):
    tb = shell_of(t)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([program("termbroker"), "status"], stdout=full, check=False,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, **tb.env})
    assert done.returncode == FAILED and "could not write the output" in done.stderr, done


suite.main()
