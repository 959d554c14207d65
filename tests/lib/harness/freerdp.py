# SPDX-License-Identifier: ISC
"""The real RDP client, on a screen of the test's own."""

import shutil

from .process import Process
from .scope import Skip, deadline, need_program, wait_until


def screen(t):
    """An X server of the test's own; its DISPLAY."""
    need_program("Xvfb")
    server = Process(t, ["Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"],
                     name="Xvfb", expect=None)
    return ":" + wait_until(lambda: server.out().strip(), what="a display")


def freerdp():
    for name in ("xfreerdp", "xfreerdp3"):
        if shutil.which(name):
            return name
    raise Skip("no xfreerdp")


def first_line(listener):
    """The cookie line of the first RDP client that comes to a node's LISTENER."""
    listener.settimeout(deadline(60))
    while True:
        with listener.accept()[0] as connection:
            connection.settimeout(deadline(20))
            got = b""
            while b"\r\n" not in got:
                more = connection.recv(512)
                if not more:
                    break  # one that only looked
                got += more
            else:
                return got[11:got.index(b"\r\n")]
