# SPDX-License-Identifier: ISC
"""An RDP client as far as a redirection: what it says after the first packet is a recording of FreeRDP
(tests/cases/rdp) with names of our own. It checks each answer as strictly as a client would."""

import socket
import ssl
import struct

from .scope import SOURCE, deadline

TLS, NLA = 1, 2
DENIED, POOL_NOT_FREE = 0x7, 0x408  # what a refused client is told
_FIELDS = ((0x1, "address"), (0x2, "token"), (0x4, "user"), (0x8, "domain"), (0x10, "password"),
           (0x100, "fqdn"), (0x200, "netbios"))


def recorded_connect_initial():
    lines = (SOURCE / "tests/cases/rdp/redirect-dialogue.txt").read_text(encoding="utf-8")
    hexes = [line[2:] for line in lines.splitlines() if line.startswith("C ")]
    return bytes.fromhex(hexes[1])


def first_packet(line=b"", protocols=TLS | NLA):
    """A connection request; PROTOCOLS None: without negotiation."""
    body = b"\xe0\0\0\0\0\0" + line
    if protocols is not None:
        body += struct.pack("<BBHI", 1, 0, 8, protocols)
    return struct.pack(">BBHB", 3, 0, len(body) + 5, len(body)) + body


def user_line(user):
    return f"Cookie: mstshash={user}\r\n".encode()


def _data(payload):
    return struct.pack(">BBH", 3, 0, len(payload) + 7) + b"\x02\xf0\x80" + payload


class RdpClient:
    """A connection to the door at ADDRESS and PORT; a context manager."""

    def __init__(self, port, address="127.0.0.1", source=None):
        self.socket = socket.create_connection(
            (address, port), timeout=deadline(20), source_address=(source, 0) if source else None)
        self.user_channel = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self, size):
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                raise EOFError(f"the server closed the connection after {got!r}")
            got += more
        return got

    def packet(self):
        head = self.receive(4)
        assert head[:2] == b"\x03\0", head
        return self.receive(struct.unpack(">H", head[2:])[0] - 4)

    def negotiate(self, line=b"", protocols=TLS | NLA):
        """Sends the first packet: ("tls", protocol) or ("failure", code)."""
        self.socket.sendall(first_packet(line, protocols))
        answer = self.packet()
        assert answer[:2] == b"\x0e\xd0" and len(answer) == 15, answer
        kind, _, length, value = struct.unpack("<BBHI", answer[7:])
        assert length == 8 and kind in (2, 3), answer
        return "tls" if kind == 2 else "failure", value

    def start_tls(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket)
        return self.socket.version()

    def _answer(self):
        packet = self.packet()
        assert packet[:3] == b"\x02\xf0\x80", packet
        return packet[3:]

    def attach(self):
        """Connect-Initial, attach, and all joins."""
        self.socket.sendall(recorded_connect_initial())
        answer = self._answer()
        assert answer[:2] == b"\x7f\x66", answer
        at = answer.index(b"\x03\x0c")
        io, count = struct.unpack("<HH", answer[at + 4:at + 8])
        channels = struct.unpack(f"<{count}H", answer[at + 8:at + 8 + 2 * count])
        self.socket.sendall(_data(b"\x04\x01\0\x01\0") + _data(b"\x28"))
        answer = self._answer()
        assert answer[:2] == b"\x2e\0", answer
        user = struct.unpack(">H", answer[2:])[0]
        self.user_channel = user + 1001
        assert self.user_channel not in channels and count == 4, channels
        for channel in (self.user_channel, io, *channels):
            self.socket.sendall(_data(struct.pack(">BHH", 0x38, user, channel)))
            assert self._answer() == struct.pack(">HHHH", 0x3e00, user, channel, channel)

    def say_who(self, user, domain="", password="secret", unicode=True):
        code = "utf-16-le" if unicode else "ascii"
        texts = [text.encode(code) for text in (domain, user, password, "", "")]
        info = struct.pack("<IIIHHHHH", 0x40, 0x409, 0x10 if unicode else 0, *map(len, texts))
        info += b"".join(text + (b"\0\0" if unicode else b"\0") for text in texts)
        self.socket.sendall(_data(struct.pack(">BHHBH", 0x64, self.user_channel - 1001, 1003, 0x70,
                                              0x8000 | len(info)) + info))

    def redirection(self):
        """The licence, then where to go, as a dict."""
        assert self._answer()[8:12] == b"\x80\0\0\0", "no licence"
        body = self._answer()[8:]
        _, kind, _, _, magic, length, _, flags = struct.unpack("<HHHHHHII", body[:20])
        assert (kind, magic, length) == (0x1a, 0x400, len(body) - 9), body
        at, found = 20, {}
        for bit, name in _FIELDS:
            if not flags & bit:
                continue
            size = struct.unpack("<I", body[at:at + 4])[0]
            value = body[at + 4:at + 4 + size]
            found[name] = value if name == "token" else value.decode("utf-16-le").rstrip("\0")
            at += 4 + size
        assert at == len(body) - 1, body
        return found

    def refusal(self):
        """The licence, then the code of Set Error Info, then the end."""
        assert self._answer()[8:12] == b"\x80\0\0\0", "no licence"
        body = self._answer()[8:]
        assert struct.unpack("<HHH", body[:6]) == (22, 0x17, 1002) and body[14] == 47, body
        assert self._answer() == b"\x21\x80"
        assert self.closed()
        return struct.unpack("<I", body[18:22])[0]

    def follow(self, user, domain="", line=None, **more):
        """The whole dialogue; where to go."""
        assert self.negotiate(user_line(user) if line is None else line) == ("tls", TLS)
        self.start_tls()
        self.attach()
        self.say_who(user, domain, **more)
        return self.redirection()

    def closed(self):
        """Whether the server has ended the connection, within the time allowed."""
        try:
            return self.socket.recv(1) == b""
        except (ConnectionError, ssl.SSLError):
            return True
