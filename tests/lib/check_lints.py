#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""lint-includes and lint-files find what they are for, on trees made for it."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SOURCE, Suite

suite = Suite("lints")
SPDX_C = "/* SPDX-License-Identifier: ISC */\n"
GOOD = {
    "broker/main.c": '#include "api/api.h"\n#include "base/base.h"\n',
    "broker/base/base.h": "#pragma once\n#include <stdint.h>\n",
    "broker/base/base.c": '#include "base/base.h"\n#include "base.h"\n',
    "broker/wire/wire.h": '#pragma once\n#include "base/base.h"\n',
    "broker/policy/policy.c": '#include "wire/wire.h"\n',
    "broker/store/store.c": "#include <libpq-fe.h>\n",
    "broker/service/service.h": '#include "wire/wire.h"\n',
    "broker/api/api.h": '#include "service/service.h"\n',
    "broker/door/door.h": '#include "service/service.h"\n',
    "broker/cli/table.h": "",
    "broker/cli/cli.c": '#include "cli/table.h"\n#include "wire/wire.h"\n',
    "agent/push.h": "",
    "agent/push.c": '#include "agent/push.h"\n#include "push.h"\n#include "wire/wire.h"\n',
}


def make(t, files):
    for name, text in {**GOOD, **files}.items():
        t.write(name, SPDX_C + text)
    return t.dir


def lint(name, tree):
    done = subprocess.run([SOURCE / "tests/lib" / name, tree], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stderr


def refuses(t, files, message):
    status, text = lint("lint-includes", make(t, files))
    assert status == 1 and message in text and len(text.splitlines()) == 1, text


@suite.test
def a_good_tree_passes(t):
    assert lint("lint-includes", make(t, {})) == (0, "")
    assert lint("lint-files", t.dir) == (0, "")


@suite.test
def an_empty_tree_is_no_success(t):
    for name in ("lint-includes", "lint-files"):
        assert lint(name, t.dir)[0] == 1


@suite.test
def a_layer_may_not_include_one_on_its_right(t):
    refuses(t, {"broker/policy/choose.c": '\n#include "store/s.h"\n', "broker/store/s.h": ""},
            'broker/policy/choose.c:3: policy may not include "store/s.h" of store')


@suite.test
def base_knows_no_other(t):
    refuses(t, {"broker/base/x.c": '#  include "wire/wire.h"\n'}, "base may not include")


@suite.test
def a_relative_path_is_no_way_around(t):
    refuses(t, {"broker/wire/x.c": '#include "../policy/p.h"\n', "broker/policy/p.h": ""},
            "wire may not include")


@suite.test
def peers_do_not_know_each_other(t):
    refuses(t, {"broker/api/x.c": '#include "door/door.h"\n'}, "api may not include")


@suite.test
def the_agent_stands_on_base_and_wire(t):
    refuses(t, {"agent/x.c": '#include "model/m.h"\n', "broker/model/m.h": ""},
            "agent may not include")


@suite.test
def the_command_line_stands_on_base_and_wire(t):
    refuses(t, {"broker/cli/x.c": '#include "service/service.h"\n'}, "cli may not include")


@suite.test
def nobody_includes_the_agent(t):
    refuses(t, {"broker/wire/x.c": '#include "agent/push.h"\n'}, "wire may not include")


@suite.test
def only_the_store_knows_libpq(t):
    refuses(t, {"broker/service/x.c": "#include <libpq-fe.h>\n"}, "only store/ may include")


@suite.test
def an_unknown_folder_is_refused(t):
    refuses(t, {"broker/misc/x.c": "\n"}, "'misc' is no layer")


@suite.test
def a_circle_is_refused(t):
    refuses(t, {"broker/wire/a.h": '#include "wire/b.h"\n', "broker/wire/b.h": '#include "wire/a.h"\n'},
            "includes in a circle: broker/wire/a.h → broker/wire/b.h → broker/wire/a.h")


@suite.test
def the_form_of_files_is_checked(t):
    cases = {
        "broker/base/none.c": ("int x;\n", "none.c:1: no line 'SPDX"),
        "broker/base/long.c": (SPDX_C + "int x;\n" * 800, "long.c: 801 lines"),
        "broker/base/blank.c": (SPDX_C + "int x; \n", "blank.c:2: blanks at the end"),
        "broker/base/mixed.c": (SPDX_C + "  \tint x;\n", "mixed.c:2: blanks before a tab"),
        "broker/base/end.c": (SPDX_C + "int x;", "end.c: does not end in one line feed"),
        "broker/base/crlf.c": (SPDX_C + "int x;\r\n", "crlf.c:2: blanks at the end"),
        "notes.md": ("hello\n", "notes.md: does not belong at the top level"),
    }
    make(t, {})
    for name, (text, message) in cases.items():
        path = t.dir / name
        path.write_text(text, newline="")
        status, said = lint("lint-files", t.dir)
        assert status == 1 and message in said and len(said.splitlines()) == 1, (name, said)
        path.unlink()


suite.main()
