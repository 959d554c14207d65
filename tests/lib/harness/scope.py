# SPDX-License-Identifier: ISC
"""Scopes, deadlines and ports: what every other module of the harness stands on."""

import errno
import os
import random
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
POLL_SECONDS = 0.02


class Skip(Exception):
    """Raised by a test that cannot run here; its text is the reason."""


def build_dir():
    """The build folder: TERMBROKER_BUILD, or build/ of the source tree."""
    return Path(os.environ.get("TERMBROKER_BUILD", SOURCE / "build")).resolve()


def deadline(seconds):
    """SECONDS, stretched where programs run slowly (sanitizers, valgrind)."""
    return seconds * float(os.environ.get("TERMBROKER_SLOW", "1"))


def wait_until(condition, seconds=20, what=None, scaled=True):
    """Calls CONDITION until it returns something true, and returns that.

    AssertionError when SECONDS (stretched, see deadline) are over. Exceptions of CONDITION pass.
    """
    limit = deadline(seconds) if scaled else seconds
    end = time.monotonic() + limit
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= end:
            raise AssertionError(f"not within {limit:g} s: {what or condition}")
        time.sleep(POLL_SECONDS)


def need_program(name):
    """The path of the program NAME, or the test is skipped."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise Skip(f"'{name}' is not installed")
    return path


class Scope:
    """Owns a private folder and closers; close() runs the closers in reverse order."""

    def __init__(self, name, parent=None):
        self.name = name
        self.failed = False
        self._closers = []
        self._names = {}
        if parent is None:
            # Always /tmp: a Unix socket's path has room for 107 bytes only. Others may pass
            # through, because servers that step down from root work in folders below.
            self.dir = Path(tempfile.mkdtemp(prefix="tb-", dir="/tmp"))
        else:
            self.dir = parent.dir / parent.unique(name[:16])
            self.dir.mkdir()
        self.dir.chmod(0o711)
        self.shared = None

    def unique(self, name):
        """NAME, or NAME-2, NAME-3 …: a name for a file that this scope has not given yet."""
        count = self._names.get(name, 0) + 1
        self._names[name] = count
        return name if count == 1 else f"{name}-{count}"

    def defer(self, closer):
        """Has CLOSER called when the scope ends."""
        self._closers.append(closer)

    def write(self, name, text, mode=0o644):
        """Writes TEXT to the file NAME of the scope's folder and returns its path."""
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def close(self):
        """Ends everything; raises the first error of a closer after the last has run."""
        first = None
        while self._closers:
            try:
                self._closers.pop()()
            except Exception as error:  # pylint: disable=broad-except
                first = first or error
        if os.environ.get("TERMBROKER_KEEP") == "1":
            print(f"kept: {self.dir}", file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        if first:
            raise first


_port_locks = []


def free_port(kind=socket.SOCK_STREAM):
    """A port of 127.0.0.1 that no other test takes while this process lives.

    Taken from below the range that the kernel gives to outgoing connections, so that nothing else
    slips in between this call and the server's bind. The lock between tests is an abstract socket:
    it is seen by every user, and it ends with the process.
    """
    for _ in range(1000):
        port = random.randrange(20000, 32000)
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            lock.bind(f"\0termbroker-test-port-{port}")
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError as error:
            lock.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            continue
        _port_locks.append(lock)
        return port
    raise RuntimeError("no free port found")
