#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""packaging/quickstart, as a newcomer sees it: what it shows, in which order, and what it leaves."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
from harness import SOURCE, Process, Skip, Suite, build_dir, deadline

suite = Suite("quickstart", timeout=240)
QUICKSTART = SOURCE / "packaging/quickstart"

SHOWN = [  # regular expressions, each behind the one before
    r"^== A private PostgreSQL, a dispatcher, three agents$",
    r"^this-machine +\w+ +\d+ .* local ",
    r"^east +ok +3233 .* 192\.0\.2\.11 ",
    r"^west +ok +5488 .* 192\.0\.2\.12 ",
    r"^\$ termbroker connect office alice$",
    r"^alice goes to east \(192\.0\.2\.11\): it is the least loaded",
    r"^alice would go to east: it is the least loaded$",
    r"^this-machine +tag_mismatch .* its tags do not match$",
    r"^east +candidate .* chosen$",
    r"^east:c1 +alice +east +active",
    r"^alice goes to east \(192\.0\.2\.11\): the user's session is there",
    r"^== With prefer_sharing off",
    r"^alice goes to west \(192\.0\.2\.12\): it is the least loaded",
    r"^west +silent ",
    r"^bob goes to east ",
    r"^== It comes back",
    r"^bob goes to west ",
    r"^node west drain$",
    r"^bob goes to east ",
    r"^node west enabled$",
    r"^== What the journal says, in English and in Russian$",
    r" WARNING west Node west \(192\.0\.2\.12\) has sent nothing for \d+ s",
    r" INFO +west Node west \(192\.0\.2\.12\) is heard again",
    r" WARNING west Узел west \(192\.0\.2\.12\) не присылает данных",
    r" Пользователь будет перенаправлен на этот узел: 192\.0\.2\.12, т\.к\. он наименее загружен$",
    r"^done; ",
]


def leftovers():
    return set(Path("/tmp").glob("termbroker-quickstart.*"))


@suite.test
def once_shows_the_whole_chain_and_leaves_nothing(t):
    root = t.dir / "root"
    root.mkdir()
    (root / "build").symlink_to(build_dir())  # what is tested is what was built
    before = leftovers()
    done = subprocess.run([QUICKSTART, "--once"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, "BUILD_ROOT": str(root)}, timeout=deadline(200))
    assert done.returncode == 0, done.stdout
    at = 0
    for pattern in SHOWN:
        found = re.compile(pattern, re.M).search(done.stdout, at)
        assert found, f"'{pattern}' is not shown behind what must come before\n{done.stdout}"
        at = found.end()
    work = re.search(r"^admin socket +(\S+)/admin\.sock$", done.stdout, re.M).group(1)
    assert not Path(work).exists() and Path(work) not in leftovers() - before
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        assert work.encode() not in line, line


@suite.test
def wrong_use_is_told(t):
    done = subprocess.run([QUICKSTART, "--twice"], capture_output=True,
                          text=True, check=False, timeout=deadline(60))
    assert done.returncode == 2 and "usage" in done.stderr, done


@suite.test
def control_c_is_no_failure(t):
    if not os.access(build_dir(), os.W_OK):
        raise Skip("it builds, and this user may not write to the build under test")
    (t.dir / "build").symlink_to(build_dir())
    process = Process(t, [QUICKSTART], env={"BUILD_ROOT": t.dir}, expect=130)
    process.wait_log("Ctrl-C ends it", 120, stream="out")
    said = process.out()
    work = Path(re.search(r"^configuration +(/.*)/termbrokerd.conf$", said, re.M)[1])
    # what it proposes to try writes to no file that standard output may go to as well
    assert f"connect office carol --rdp {work}/carol.rdp" in said, said
    process.signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.err() == "", process.err()
    assert not work.exists()


@suite.test
def a_folder_that_cannot_be_written_is_named(t):
    done = subprocess.run([QUICKSTART, "--once"], capture_output=True, text=True, check=False,
                          env={**os.environ, "BUILD_ROOT": "/proc"}, cwd=t.dir)
    assert done.returncode == 1, done
    assert "cannot write to /proc/build" in done.stderr, done.stderr
    assert f"BUILD_ROOT=DIR {QUICKSTART} --once" in done.stderr, done.stderr


suite.main()
