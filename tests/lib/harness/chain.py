# SPDX-License-Identifier: ISC
"""The whole chain: real agents on recorded trees, a dispatcher over TLS, PostgreSQL."""

import re
import shutil
import time

from .broker import Broker
from .programs import Agent
from .scope import wait_until
from .tls import Authority

FRAMES = 400


class Tree:
    """A recorded machine of 4 CPUs, BUSY percent of CPU and MEMORY percent of 16 GiB in use."""

    def __init__(self, scope, name, busy, memory):
        self.dir = scope.dir / f"tree-{name}"
        for folder in ("proc/net", "proc/sys/kernel/random", "run/systemd/sessions", "etc"):
            (self.dir / folder).mkdir(parents=True)
        shutil.copy("/proc/sys/kernel/random/uuid", self.dir / "proc/sys/kernel/random/boot_id")
        total = 16 * 1024 * 1024
        self.write("proc/meminfo", f"MemTotal: {total} kB\n"
                   f"MemAvailable: {total * (100 - memory) // 100} kB\n")
        self.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1001:1001::/:/bin/sh\n")
        self.write("proc/net/tcp", "  sl  local_address rem_address   st\n"
                   "   0: 00000000:0D3D 00000000:0000 0A 00000000:00000000 00:00000000 00000000"
                   "     0        0 1 1 0 100 0 0 10 0\n")
        cpus = "".join(f"cpu{i} 0 0 0 0 0 0 0 0 0 0\n" for i in range(4))
        for frame in range(FRAMES):
            self.write("proc/stat" + (f".{frame}" if frame else ""),
                       f"cpu {1000 + frame * busy} 0 0 {1000 + frame * (100 - busy)}"
                       f" 0 0 0 0 0 0\n{cpus}")

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def login(self, user, number=1):
        self.write(f"run/systemd/sessions/c{number}",
                   f"UID=1001\nUSER={user}\nSTATE=active\nCLASS=user\nTYPE=x11\n"
                   f"SERVICE=xrdp-sesman\nREALTIME={int(time.time())}000000\n")

    def logout(self, number=1):
        (self.dir / f"run/systemd/sessions/c{number}").unlink()


class Chain:
    def __init__(self, t, advertise="https://127.0.0.1"):
        self.t = t
        authority = Authority(t)
        certificate, key = authority.issue()
        self.ca = authority.ca_file
        self.broker = Broker(t, stale_after=4, advertise=advertise, listen={
            "address": "127.0.0.1", "port": 0, "certificate": certificate, "key": key})
        self.broker.farm()
        self.agents = {}

    def agent(self, name, tree, port=None, address=None, node=None, **more):
        """Registers the node and starts its agent, trusting the CA or, every other time, the pin."""
        made = self.broker.create("nodes", name=name, provider="farm", address=address or f"{name}.test",
                                  **(node or {}))
        token = self.t.write(f"{name}.token", made["token"] + "\n", mode=0o600)
        state = self.t.dir / f"{name}.state"
        state.mkdir()
        trust = {"pin": [made["pin"]]} if len(self.agents) % 2 else {"ca_file": self.ca}
        agent = Agent(self.t, {
            "node": name, "token_file": token, "state_dir": state,
            "dispatchers": [f"https://127.0.0.1:{port or self.broker.port}"],
            "collect_interval": 1, "push_interval": 1, "cache_size": 3, **trust, **more,
        }, root=tree.dir)
        agent.start()
        self.agents[name] = agent
        return agent

    def port(self):
        """The listener's own port, whatever is advertised."""
        listening = r"listening on 127\.0\.0\.1 port (\d+)"
        return int(re.search(listening, self.broker.dispatcher.log()).group(1))

    def state(self, name):
        return self.broker.admin.get(f"/api/v1/nodes/{name}").json["state"]

    def wait_ok(self, *names):
        for name in names:
            wait_until(lambda n=name: self.state(n) == "ok", what=f"{name} is ok")
