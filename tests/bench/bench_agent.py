#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What the agent costs its node: memory, CPU at the default intervals, and writes that are synced.

Measured on this machine with the agent's default intervals, over TLS against a small server on
loopback that accepts every heartbeat. The synced writes are counted by strace in a run of their
own, quicker one, so that there are many pushes.

What is private depends on who else maps the same libraries: on a node where sshd runs, libcrypto
is shared, and its pages count for nobody. The figure must not hang on that. The agent runs here on
copies of its libraries (all but libc's, which every process has), so that all of a library that is
resident counts as its own. That is the strictest reading of private memory, and the one that the
goal is held against; the part of it that the agent has written (heap, stack, relocated data), which
no sharing makes smaller, is given as well. The rest is code and constants, which the kernel can
take away at any time. At the end of a minute that part is what pushing and sampling use again and
again: what the start and the handshake touched was given back (agent/shed.c).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from fake_dispatcher import FakeDispatcher, reply  # noqa: E402
from harness import Authority, Process, Scope, conf_text, wait_until  # noqa: E402

SYNCS = re.compile(r"\b(fsync|fdatasync|sync_file_range|msync|syncfs|sync)\(")


class World:
    """A folder, a server and a way to write an agent's configuration."""

    def __init__(self, scope, build):
        self.scope = scope
        self.program = build / "agent" / "termbroker-agent"
        if not self.program.exists():
            sys.exit(f"{self.program} is not built")
        self.authority = Authority(scope)
        self.pair = self.authority.issue()

    def serve(self, push_interval):
        fake = FakeDispatcher(*self.pair, lambda request: reply(push_interval=push_interval))
        self.scope.defer(fake.close)
        return fake

    def configure(self, fake, name, **settings):
        token = self.scope.dir / f"{name}.token"
        token.write_text("a-token-for-the-measurement", encoding="ascii")
        token.chmod(0o600)
        path = self.scope.dir / f"{name}.conf"
        path.write_text(conf_text({
            "node": "bench", "dispatchers": [fake.url], "token_file": token,
            "ca_file": self.authority.ca_file, "state_dir": self.scope.dir / f"{name}.state",
            **settings}), encoding="utf-8")
        return path


def copy_libraries(program, folder):
    """Copies what PROGRAM is linked with, but for libc's own, into FOLDER."""
    folder.mkdir()
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", text):
        if not re.match(r"(libc|libm|libresolv)\.so", name):
            shutil.copyfile(path, folder / name)


def memory_kib(pid):
    """Resident, private, and private written KiB of a process."""
    values = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        key, _, rest = line.partition(":")
        values[key] = int(rest.split()[0])
    return (values["Rss"], values["Private_Clean"] + values["Private_Dirty"],
            values["Anonymous"])


def cpu_ns(pid):
    """Time on a CPU of all threads so far; the scheduler's own figure, finer than ticks."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total


def measure_cost(world, seconds):
    """((resident, private, written KiB), CPU share, pushes) at the default intervals."""
    fake = world.serve(15)
    config = world.configure(fake, "cost")
    libraries = world.scope.dir / "libraries"
    copy_libraries(world.program, libraries)
    agent = Process(world.scope, [world.program, "--config", config],
                    env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
    wait_until(lambda: len(fake.accepted()) >= 2, 45, "two heartbeats")
    pushes, cpu, begin = len(fake.accepted()), cpu_ns(agent.pid), time.monotonic()
    wait_until(lambda: time.monotonic() - begin >= seconds, seconds + 5, scaled=False)
    used, elapsed = cpu_ns(agent.pid) - cpu, time.monotonic() - begin
    memory = memory_kib(agent.pid)
    agent.stop()
    return memory, used / 1e9 / elapsed, len(fake.accepted()) - pushes


def measure_syncs(world, pushes):
    """(synced writes, pushes) of a run of PUSHES pushes; None without strace."""
    strace = shutil.which("strace")
    if not strace:
        return None
    fake = world.serve(1)
    config = world.configure(fake, "syncs", collect_interval=1, push_interval=1)
    trace = world.scope.dir / "strace.out"
    agent = Process(world.scope, [
        strace, "-D", "-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync,sync,syncfs",
        "-o", trace, world.program, "--config", config])
    # What comes before is making the file.
    wait_until(fake.accepted, 30, "a heartbeat")
    before = len(SYNCS.findall(trace.read_text(errors="replace")))
    first = len(fake.accepted())
    wait_until(lambda: len(fake.accepted()) >= first + pushes, pushes * 3 + 30, "the pushes")
    after = len(SYNCS.findall(trace.read_text(errors="replace")))
    done = len(fake.accepted()) - first
    agent.stop()
    return after - before, before, done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.environ.get("TERMBROKER_BUILD", "build"),
                        help="the build folder")
    parser.add_argument("--seconds", type=int, default=60, help="how long CPU time is measured")
    parser.add_argument("--pushes", type=int, default=20, help="pushes of the counting run")
    options = parser.parse_args()

    scope = Scope("bench-agent")
    try:
        world = World(scope, Path(options.build).resolve())
        (resident, private, written), share, pushes = measure_cost(world, options.seconds)
        syncs = measure_syncs(world, options.pushes)
    finally:
        scope.close()

    rows = [("resident memory with TLS", f"{resident / 1024:.1f} MiB", "16 MiB"),
            ("private memory, sharing only libc", f"{private / 1024:.1f} MiB", "6 MiB"),
            ("  of it written: heap, stack, relocated data", f"{written / 1024:.1f} MiB", ""),
            (f"CPU of one core ({options.seconds} s, {pushes} pushes)", f"{share * 100:.3f} %",
             "0.2 %")]
    if syncs is None:
        rows.append(("synced writes a push", "strace is not installed", "1"))
    else:
        counted, before, done = syncs
        rows.append((f"synced writes a push ({counted} in {done} pushes, {before} at the start)",
                     f"{counted / done:.2f}", "1"))
    print(f"{'agent':<62} {'measured':>24} {'at most':>8}")
    for what, value, limit in rows:
        print(f"{what:<62} {value:>24} {limit:>8}")


if __name__ == "__main__":
    main()
