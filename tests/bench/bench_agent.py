#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""What the agent costs its node: memory, CPU at the default intervals, and writes that are synced.

Measured on this machine with the agent's default intervals, over TLS against a small server on
loopback that accepts every heartbeat. The synced writes are counted by strace in a run of their
own, quicker one, so that there are many pushes.
"""

import argparse
import os
import re
import shutil
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


def memory_kib(pid):
    """Resident and private KiB of a process."""
    values = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        key, _, rest = line.partition(":")
        values[key] = int(rest.split()[0])
    return values["Rss"], values["Private_Clean"] + values["Private_Dirty"]


def cpu_ns(pid):
    """Time on a CPU of all threads so far; the scheduler's own figure, finer than ticks."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total


def measure_cost(world, seconds):
    """(resident KiB, private KiB, CPU share, pushes) at the default intervals."""
    fake = world.serve(15)
    config = world.configure(fake, "cost")
    agent = Process(world.scope, [world.program, "--config", config])
    wait_until(lambda: len(fake.accepted()) >= 2, 45, "two heartbeats")
    pushes, cpu, begin = len(fake.accepted()), cpu_ns(agent.pid), time.monotonic()
    wait_until(lambda: time.monotonic() - begin >= seconds, seconds + 5, scaled=False)
    used, elapsed = cpu_ns(agent.pid) - cpu, time.monotonic() - begin
    resident, private = memory_kib(agent.pid)
    agent.stop()
    return resident, private, used / 1e9 / elapsed, len(fake.accepted()) - pushes


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
        resident, private, share, pushes = measure_cost(world, options.seconds)
        syncs = measure_syncs(world, options.pushes)
    finally:
        scope.close()

    rows = [("resident memory with TLS", f"{resident / 1024:.1f} MiB", "16 MiB"),
            ("private memory", f"{private / 1024:.1f} MiB", "6 MiB"),
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
