# SPDX-License-Identifier: ISC
"""A PostgreSQL server of one's own, from packaging/private-postgres."""

import os
import signal
import subprocess
from pathlib import Path

from .process import Process, ProcessError
from .scope import SOURCE, build_dir, deadline, wait_until

SCRIPT = SOURCE / "packaging" / "private-postgres"


def _children(pid):
    """The processes whose parent is PID."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == pid:
            found.append(int(entry.name))
    return found


class PrivatePostgres:
    """Started at once; ended with SCOPE. Cluster, socket and log are in the folder `dir`."""

    def __init__(self, scope, name="pg", fsync="off", settings=()):
        self._scope = scope
        self.dir = scope.dir / scope.unique(name)
        self.socket = self.dir / "socket"
        self._options = ["--fsync", fsync]
        for setting in settings:
            self._options += ["--set", setting]
        version = subprocess.run(["pg_config", "--version"], capture_output=True, text=True,
                                 check=False).stdout.strip()
        if build_dir().is_dir() and os.access(build_dir(), os.W_OK):
            key = "".join(c if c.isalnum() or c in ".-" else "_" for c in version)
            self._options += ["--template",
                              build_dir() / "pg-template" / f"{key}-{os.geteuid()}"]
        self.process = None
        self.start()

    def start(self):
        """Starts the server, on the data that it had."""
        self.process = Process(self._scope, [SCRIPT, *self._options, self.dir],
                               name=f"{self.dir.name}-server")
        self.process.wait_log(r"^host=\S+", seconds=60, stream="out")

    def dsn(self, database="postgres", user="postgres"):
        """A connection string for libpq."""
        return f"host={self.socket} user={user} dbname={database}"

    def psql(self, sql, database="postgres", user="postgres", check=True):
        """Runs SQL and returns its output, unaligned; ProcessError with the message if it fails."""
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.dsn(database, user)]
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False,
                              timeout=deadline(60))
        if check and done.returncode != 0:
            raise ProcessError(f"psql: {done.stderr.strip()}")
        return done.stdout.rstrip("\n") if check else done

    def bootstrap(self, database="termbroker"):
        """Makes the roles and DATABASE as an administrator would, by sql/bootstrap.sql."""
        command = ["psql", "-XAtq", "-d", self.dsn(), "-v", f"database={database}",
                   "-f", SOURCE / "sql" / "bootstrap.sql"]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=deadline(60))
        if done.returncode != 0:
            raise ProcessError(f"bootstrap.sql: {done.stderr.strip()}")

    def _pid(self):
        return int((self.dir / "postmaster.pid").read_text())

    def log(self):
        return (self.dir / "postgres.log").read_text(encoding="utf-8", errors="replace")

    def stop(self):
        """A fast, clean shutdown."""
        self.process.stop()

    def restart(self):
        self.stop()
        self.start()

    def kill(self):
        """SIGKILL to the server with all its processes; start() recovers."""
        self.process.expect = 1
        os.kill(self._pid(), signal.SIGKILL)
        self.process.wait()

    def freeze(self):
        """SIGSTOP to every process of the server: connections stay open and nothing answers."""
        postmaster = self._pid()
        os.kill(postmaster, signal.SIGSTOP)  # first: it cannot fork others behind us
        wait_until(lambda: self._state(postmaster) == "T", what="the postmaster has stopped")
        for pid in _children(postmaster):
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                pass
        self._scope.defer(self.thaw)  # runs before the server's own closer

    def thaw(self):
        if not self.process.alive():
            return
        postmaster = self._pid()
        for pid in _children(postmaster) + [postmaster]:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    @staticmethod
    def _state(pid):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0]
