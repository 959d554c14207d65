# SPDX-License-Identifier: ISC
"""A peer that is there and does not answer."""

import socket
from pathlib import Path


class Deaf:
    """A port that neither takes nor refuses a connection: its queue is full."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self._listener.getsockname()[1]
        self._queued = []
        while self.callers() == 0:
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", self.port))
            self._queued.append(client)

    def callers(self):
        """How many sockets try to connect to it."""
        wanted = [f"0100007F:{self.port:04X}", "02"]  # SYN_SENT
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        return len([line for line in lines if line.split()[2:4] == wanted])
