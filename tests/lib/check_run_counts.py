#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""tests/run counts right: on a project of programs that fail, crash, hang and lie."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SOURCE, Suite, need_program

suite = Suite("run-counts", timeout=300)

# suite → program → (what it does, passed, failed, skipped)
PROGRAMS = {
    "unit": {
        "good": ('echo 1..3; echo ok 1 - a; echo ok 2 - b; echo "ok 3 - c # SKIP d"', 2, 0, 1),
        "plain": ("exit 0", 1, 0, 0),
        "says_skip": ('echo "1..0 # SKIP not here"', 0, 0, 1),
        "control": (r"echo 1..1; printf 'ok 1 - a\001\033[b\n'", 1, 0, 0),
    },
    "db": {
        "fails": ("echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1", 1, 1, 0),
        "fails_twice": ("echo 1..2; echo not ok 1; echo not ok 2; exit 1", 0, 2, 0),
        "fails_and_exits_well": ("echo 1..2; echo ok 1 - a; echo not ok 2 - b", 1, 1, 0),
        "crashes": ("echo 1..3; echo ok 1 - a; kill -SEGV $$", 1, 1, 0),
        "crashes_at_once": ("kill -SEGV $$", 0, 1, 0),
        "crashes_at_the_end": ("echo 1..1; echo ok 1 - a; kill -SEGV $$", 1, 1, 0),
        "hangs": ("echo 1..2; echo ok 1 - a; sleep 600 & wait", 1, 1, 0),
        "cut_short": ("echo 1..3; echo ok 1 - a; echo ok 2 - b", 2, 1, 0),
        "bails_out": ('echo 1..3; echo ok 1 - a; echo "Bail out! no"; exit 1', 1, 1, 0),
        "says_nothing": ("true", 0, 1, 0),
        "has_no_test": ("echo 1..0", 0, 1, 0),
    },
    "fuzz": {
        "skips_all": ('echo "1..0 # SKIP not here"', 0, 0, 1),
    },
}


@suite.setup
def make_project(scope):
    """A copy of what tests/run stands on, around a project of PROGRAMS."""
    tree = scope.dir / "tree"
    for name in ("tests/run", "tests/lib/count-results", "tests/lib/valgrind.supp",
                 "packaging/install-packages"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, tree / name)
    lines = ["project('sample', 'c')", "sh = find_program('sh')"]
    for kind, programs in PROGRAMS.items():
        for name, (script, *_) in programs.items():
            protocol = "exitcode" if name == "plain" else "tap"
            lines.append(f"test('{name}', sh, args: ['-c', '''{script} '''], suite: '{kind}', "
                         f"protocol: '{protocol}', timeout: 2)")
    (tree / "meson.build").write_text("\n".join(lines) + "\n")
    return tree


def run(tree, *arguments):
    env = {key: value for key, value in os.environ.items()
           if key not in ("BUILD_ROOT", "TERMBROKER_BUILD", "TERMBROKER_SLOW", "MESON_TEST_ITERATION")}
    return subprocess.run([tree / "tests/run", *arguments], capture_output=True, text=True,
                          env=env, check=False)


def expected(*kinds):
    sums = [sum(numbers) for numbers in zip(*(row[1:] for kind in kinds
                                              for row in PROGRAMS[kind].values()))]
    return "{} passed, {} failed, {} skipped".format(*sums)


@suite.test
def good_programs_pass(t):
    done = run(t.shared, "unit")
    assert done.stdout.splitlines()[-1] == expected("unit"), done
    assert done.returncode == 0, done


@suite.test
def each_bad_program_counts_as_a_failure(t):
    done = run(t.shared, "db")
    assert done.stdout.splitlines()[-1] == expected("db"), done.stdout + done.stderr
    assert done.returncode == 1, done
    for name in PROGRAMS["db"]:
        assert f"failed: sample:db / {name}" in done.stderr, (name, done.stderr)


@suite.test
def suites_add_up(t):
    done = run(t.shared)
    assert done.stdout.splitlines()[-1] == expected("unit", "db", "fuzz"), done.stdout
    assert done.returncode == 1, done


@suite.test
def counts_can_go_to_a_file(t):
    done = run(t.shared, "--counts", str(t.dir / "counts"), "unit", "fuzz")
    assert (t.dir / "counts").read_text() == "4 0 3\n" and done.returncode == 0, done
    assert " passed, " not in done.stdout, done


@suite.test
def a_run_under_valgrind_counts_too(t):
    need_program("valgrind")
    done = run(t.shared, "--valgrind", "unit")
    assert done.stdout.splitlines()[-1] == expected("unit"), done
    assert done.returncode == 0, done


@suite.test
def a_run_without_a_test_fails(t):
    for kind in ("e2e", "fuzz"):
        done = run(t.shared, kind)
        assert done.returncode == 1 and " 1 failed, " in done.stdout.splitlines()[-1], done
        assert "no test was executed" in done.stderr, done


@suite.test
def a_broken_build_fails(t):
    meson = t.shared / "meson.build"
    good = meson.read_text()
    (t.shared / "broken.c").write_text("int main(void) { return nothing; }\n")
    for more in ("executable('broken', 'broken.c')\n", "nonsense(\n"):
        assert run(t.shared, "unit").returncode == 0
        meson.write_text(good + more)
        done = run(t.shared, "unit")
        meson.write_text(good)
        assert done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped", done
        assert done.returncode == 1 and "the build failed" in done.stderr, done


suite.main()
