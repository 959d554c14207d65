# SPDX-License-Identifier: ISC
"""The project's own programs, from the build folder."""

import os
import signal
import subprocess
from pathlib import Path

from .process import Process, ProcessError
from .scope import build_dir, deadline

_PATHS = {
    "termbrokerd": "broker/termbrokerd",
    "termbroker-agent": "agent/termbroker-agent",
    "termbroker": "broker/cli/termbroker",
}


def program(name):
    """The path of a program of the project; AssertionError if it is not built."""
    path = build_dir() / _PATHS[name]
    assert path.exists(), f"{path} is not built"
    return path


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(_value(item) for item in value) + "}"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def conf_text(settings, indent=""):
    """SETTINGS as a configuration file: a dict is a section, a key (name, title) a titled one,
    None leaves the key out."""
    lines = []
    for key, value in settings.items():
        if value is None:
            continue
        if isinstance(value, dict):
            head = f'{key[0]} {_value(key[1])}' if isinstance(key, tuple) else key
            lines.append(f"{indent}{head} {{")
            lines.append(conf_text(value, indent + "\t").rstrip("\n"))
            lines.append(f"{indent}}}")
        else:
            lines.append(f"{indent}{key} = {_value(value)}")
    return "\n".join(line for line in lines if line) + "\n"


class _Daemon:
    """A daemon with a configuration file of SETTINGS below the scope's folder."""

    def __init__(self, scope, name, settings, arguments=(), env=None, user=None):
        self._scope = scope
        self.name = name
        self.settings = dict(settings)
        self._arguments = list(arguments)
        self._env = env
        self._user = user
        self.config = scope.dir / scope.unique(f"{name}.conf")
        self.process = None
        self.write_config()

    def write_config(self):
        """Writes `settings` to the file, for a start or a reload."""
        self.config.write_text(conf_text(self.settings), encoding="utf-8")

    def run(self, *arguments):
        """Runs the program to its end with ARGUMENTS; returns subprocess.CompletedProcess."""
        return subprocess.run([program(self.name), "--config", self.config, *arguments],
                              capture_output=True, text=True, check=False, timeout=deadline(60))

    def check_config(self):
        return self.run("--check-config")

    def start(self, ready=None, seconds=30):
        """Starts it; returns when it says READY (a regular expression) on standard error."""
        self.process = Process(
            self._scope, [program(self.name), "--config", self.config, *self._arguments],
            name=self.name, env=self._env, user=self._user)
        if ready is not None:
            self.process.wait_log(ready, seconds)
        return self

    def reload(self):
        self.process.signal(signal.SIGHUP)

    def stop(self):
        return self.process.stop()

    def kill(self):
        self.process.kill()

    def log(self):
        return self.process.err()

    def resident(self):
        """Bytes of memory that it occupies."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def grown(self, before):
        """By how many bytes its memory is more than BEFORE; 0 of a sanitizer's build, which keeps what
        is freed."""
        if b"__asan_" in program(self.name).read_bytes():
            return 0
        return self.resident() - before

    def check_growth(self, before, limit):
        """Its memory grew by at most LIMIT bytes."""
        grown = self.grown(before)
        assert grown < limit, f"grew by {grown}"

    def check_waves(self, wave, limit):
        """One of a few calls of WAVE leaves its memory at most LIMIT bytes larger: a leak grows with every
        one, while how many clients meet in one is chance."""
        grown = []
        for _ in range(4):
            before = self.resident()
            wave()
            grown.append(self.grown(before))
            if grown[-1] < limit:
                return
        raise AssertionError(f"grew by {grown}")

    def descriptors(self):
        """How many it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Dispatcher(_Daemon):
    """termbrokerd with SETTINGS as its configuration."""

    def __init__(self, scope, settings, **more):
        super().__init__(scope, "termbrokerd", settings, **more)

    def migrate(self):
        """Brings the database's schema up; ProcessError with what the program said if it fails."""
        done = self.run("--migrate")
        if done.returncode != 0:
            raise ProcessError(f"migrate: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, ready=r"\bready\b", seconds=30):
        return super().start(ready, seconds)


class Agent(_Daemon):
    """termbroker-agent with SETTINGS as its configuration; ROOT is a recorded tree."""

    def __init__(self, scope, settings, root=None, arguments=(), **more):
        arguments = list(arguments)
        if root is not None:
            arguments += ["--root", root]
        super().__init__(scope, "termbroker-agent", settings, arguments, **more)


def cli(*arguments, expect=0, env=None, text_in=None):
    """Runs termbroker; AssertionError with all it said unless it exits with EXPECT (None: any)."""
    full_env = dict(os.environ)
    full_env.update(env or {})
    done = subprocess.run([program("termbroker"), *map(str, arguments)], input=text_in,
                          capture_output=True, text=True, check=False, env=full_env,
                          timeout=deadline(60))
    assert expect is None or done.returncode == expect, \
        f"termbroker {' '.join(map(str, arguments))}: exit {done.returncode}, not {expect}\n" \
        f"{done.stdout}{done.stderr}"
    return done
