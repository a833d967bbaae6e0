"""A DNS server on loopback, over UDP and TCP on one port, that answers from a zone in memory.

It can also keep silent, fail, refuse, or lie about sizes: what resolvers do on bad days.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dnslib import AAAA, CNAME, MX, QTYPE, RCODE, RR, TXT, A, DNSError, DNSRecord
from dnslib.server import DNSHandler, DNSLogger, DNSServer

from tests.ports import port_to_bind

Text = str | bytes | Sequence[bytes]
PIECE = 255
DATAGRAM = 1232


@dataclass
class Zone:
    """What the server knows. Names without a record of the asked kind but with another: NODATA."""

    records: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Protocol, name and kind of every question."""

    def txt(self, name: str, *texts: Text, ttl: int = 300) -> None:
        """Replace the TXT records of a name; a long text is cut into strings as zone files do."""
        self._put(name, "TXT", ttl, [TXT(list(_pieces(each))) for each in texts])

    def a(self, name: str, address: str = "192.0.2.1") -> None:
        """One address."""
        self._put(name, "A", 60, [A(address)])

    def aaaa(self, name: str, address: str = "2001:db8::1") -> None:
        """One address of the newer kind."""
        self._put(name, "AAAA", 60, [AAAA(address)])

    def mx(self, name: str, *exchanges: str) -> None:
        """Mail exchanges."""
        self._put(name, "MX", 60, [MX(each, 10) for each in exchanges])

    def cname(self, name: str, target: str) -> None:
        """An alias; the server answers with what it leads to as well."""
        self._put(name, "CNAME", 60, [CNAME(target)])

    def forget(self, name: str) -> None:
        """As if it had never been."""
        for key in [each for each in self.records if each[0] == name]:
            del self.records[key]

    def resolve(self, request: DNSRecord, handler: DNSHandler) -> DNSRecord:
        """Answer as dnslib's handler asks; an error of its own makes it say nothing."""
        name, kind = str(request.q.qname).rstrip(".").lower(), QTYPE[request.q.qtype]
        self.asked[handler.protocol, name, kind] += 1
        if name in self.silent:
            raise DNSError
        reply = request.reply()
        if name in self.codes:
            reply.header.rcode = getattr(RCODE, self.codes[name])
        elif not any(each[0] == name for each in self.records):
            reply.header.rcode = RCODE.NXDOMAIN
        else:
            self._add(reply, name, kind)
        return reply

    def _add(self, reply: DNSRecord, name: str, kind: str) -> None:
        for ttl, data in self.records.get((name, "CNAME"), []):
            reply.add_answer(RR(name, QTYPE.CNAME, rdata=data, ttl=ttl))
            self._add(reply, str(data.label).rstrip("."), kind)
        for ttl, data in self.records.get((name, kind), []):
            reply.add_answer(RR(name, getattr(QTYPE, kind), rdata=data, ttl=ttl))

    def _put(self, name: str, kind: str, ttl: int, data: list[Any]) -> None:
        self.records[name.lower(), kind] = [(ttl, each) for each in data]


def _pieces(text: Text) -> Iterator[bytes]:
    if not isinstance(text, str | bytes):
        yield from text
        return
    raw = text.encode() if isinstance(text, str) else text
    for start in range(0, max(len(raw), 1), PIECE):
        yield raw[start : start + PIECE]


class _Handler(DNSHandler):  # type: ignore[misc]
    """What does not fit the datagram that was asked for is cut, and asked for over TCP."""

    def get_reply(self, data: bytes) -> bytes:
        """As dnslib's; but an answer that is cut still names its question, as RFC 2181 asks."""
        request = DNSRecord.parse(data)
        reply = self.server.resolver.resolve(request, self)
        if self.protocol == "udp" and len(reply.pack()) > DATAGRAM:
            reply = request.reply()
            reply.header.tc = 1
        packed: bytes = reply.pack()
        return packed


@contextmanager
def running(zone: Zone, *, over_tcp: bool = True) -> Iterator[int]:
    """Serve the zone; the port, on loopback, of UDP and of TCP too where nothing forbids it."""
    port = port_to_bind()
    quiet = DNSLogger(logf=lambda _: None)
    servers = [
        DNSServer(zone, "127.0.0.1", port, tcp=tcp, logger=quiet, handler=_Handler).server
        for tcp in ((False, True) if over_tcp else (False,))
    ]
    threads = [
        threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        for each in servers
    ]
    for thread in threads:
        thread.start()
    try:
        yield port
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()
