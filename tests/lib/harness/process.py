# SPDX-License-Identifier: ISC
"""A child process whose output goes to files, and which never outlives its test."""

import ctypes
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from .scope import deadline, wait_until

SANITIZER_REPORT = re.compile(
    r"^.*(?:ERROR: (?:Address|Leak|Undefined|Thread)\w*Sanitizer|runtime error: ).*$", re.M)

PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def _die_with(parent):
    """What a child runs before its program: SIGKILL to it when PARENT ends."""
    def child():
        if _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(127)  # pylint: disable=protected-access
    return child


def _step_down(user):
    """Popen's arguments to become USER, where we are root."""
    if user is None or os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid,
            "extra_groups": os.getgrouplist(user, entry.pw_gid)}


class ProcessError(AssertionError):
    """A process ended, or did not end, against what was asked."""


class Process:
    """Starts ARGV at once, in SCOPE.

    Ended with SIGTERM when the scope closes. With expect=N (0 by default; None: do not look) an
    exit status other than N is then a failure of the test, unless the test itself ended it by
    kill(). A sanitizer's report on its standard error is a failure always.

    The kernel's death signal goes with the thread that started the process, so start processes
    from the main thread only.
    """

    def __init__(self, scope, argv, name=None, env=None, cwd=None, user=None, expect=0,
                 stdin=subprocess.DEVNULL):
        self.argv = [str(part) for part in argv]
        self.name = name or Path(self.argv[0]).name
        self.expect = expect
        self._was_killed = False
        label = scope.unique(self.name)
        self.out_path = scope.dir / f"{label}.out"
        self.err_path = scope.dir / f"{label}.err"
        self._scope = scope
        full_env = dict(os.environ)
        full_env.update({key: str(value) for key, value in (env or {}).items()})
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(
                self.argv, stdin=stdin, stdout=out, stderr=err, env=full_env,
                cwd=cwd or scope.dir, preexec_fn=_die_with(os.getpid()), **_step_down(user))
        scope.defer(self.close)

    @property
    def pid(self):
        return self.popen.pid

    def out(self):
        return self.out_path.read_text(encoding="utf-8", errors="replace")

    def err(self):
        return self.err_path.read_text(encoding="utf-8", errors="replace")

    def alive(self):
        return self.popen.poll() is None

    def tail(self, lines=30):
        """The last lines of both outputs, for a report."""
        text = [f"--- {self.name} (pid {self.pid}, status {self.popen.poll()})"]
        for label, content in (("stdout", self.out()), ("stderr", self.err())):
            text += [f"{label}: {line}" for line in content.splitlines()[-lines:]]
        return "\n".join(text)

    def wait_log(self, pattern, seconds=20, stream="err", after=0):
        """Waits until PATTERN (a regular expression) matches the output; returns the match.

        AFTER is an offset into the text, for what must come later than something else: take
        len(p.err()) before the cause.
        """
        regex = re.compile(pattern, re.M)
        read = self.err if stream == "err" else self.out

        def look():
            ended = not self.alive()
            found = regex.search(read(), after)
            if found is None and ended:
                raise ProcessError(f"'{self.name}' ended with {self.popen.returncode} "
                                   f"before it said '{pattern}'\n{self.tail()}")
            return found
        return wait_until(look, seconds, f"'{self.name}' says '{pattern}'")

    def wait_socket(self, address, seconds=20):
        """Waits until something listens on ADDRESS: a port of 127.0.0.1 or a Unix socket's path."""
        unix = not isinstance(address, int)

        def look():
            if not self.alive():
                raise ProcessError(f"'{self.name}' ended before it listened\n{self.tail()}")
            family = socket.AF_UNIX if unix else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                target = str(address) if unix else ("127.0.0.1", address)
                return probe.connect_ex(target) == 0
        wait_until(look, seconds, f"'{self.name}' listens on {address}")

    def signal(self, number):
        self.popen.send_signal(number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """SIGKILL, and waits for the end."""
        self._was_killed = True
        self.popen.kill()
        self.popen.wait()

    def wait(self, seconds=20):
        """Waits for the end and returns the exit status (negative: a signal)."""
        try:
            return self.popen.wait(deadline(seconds))
        except subprocess.TimeoutExpired:
            raise ProcessError(f"'{self.name}' did not end\n{self.tail()}") from None

    def stop(self, seconds=20):
        """SIGTERM, waits, checks the exit status against `expect`, and returns it."""
        if self.alive():
            self.thaw()
            self.popen.terminate()
        try:
            status = self.wait(seconds)
        except ProcessError:
            self.kill()
            raise
        if self.expect is not None and not self._was_killed and status != self.expect:
            raise ProcessError(f"'{self.name}' ended with {status}\n{self.tail()}")
        return status

    def close(self):
        try:
            self.stop()
        finally:
            if self._scope.failed:
                print(self.tail(), file=sys.stderr)
        report = SANITIZER_REPORT.search(self.err())
        if report:
            raise ProcessError(f"'{self.name}': {report.group(0)}\n{self.tail(200)}")
