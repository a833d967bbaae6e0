"""Asks a recursive resolver over UDP, and over TCP what does not fit.

A look-up that got no usable answer in its time has failed; it never stands for an absent record.
Nothing is kept between look-ups of different checks, so an answer is as old as its time says.
dnspython is imported when the first question is asked: most processes never ask one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from notifier.clock import steady
from notifier.ports.dns import Answer, Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dns.message

LOOK_UP_S: Final = 2.0
"""How long a resolver may take over one question, and how often it is asked: once more."""
CHECK_S: Final = 10.0
"""How long all questions of one check may take; what is left then counts as failed."""
TRIES: Final = 2
MOST_QUESTIONS: Final = 64
"""Of one check: a record that somebody wrote must not make us ask without end."""
_TEXT_KINDS: Final = frozenset({"TXT"})

Server = tuple[str, int]


@dataclass
class Resolver:
    """One check's questions. `servers`: address and port, in order; the system's where empty."""

    servers: Sequence[Server] = ()
    look_up_s: float = LOOK_UP_S
    check_s: float = CHECK_S
    _until: float = field(default=0.0, init=False)
    _asked: dict[tuple[str, str], Answer] = field(default_factory=dict, init=False)

    def ask(self, name: str, kind: str) -> Answer:
        """As the port says. The same question is asked once."""
        key = (name.lower().rstrip("."), kind)
        if key not in self._asked:
            self._asked[key] = self._look_up(*key)
        return self._asked[key]

    def _look_up(self, name: str, kind: str) -> Answer:
        self._until = self._until or steady() + self.check_s
        servers = tuple(self.servers) or system_servers()
        if not servers:
            return Answer(Found.FAILED, trouble="no resolver is configured")
        if len(self._asked) >= MOST_QUESTIONS:
            return Answer(Found.FAILED, trouble="too many look-ups in one check")
        answer = Answer(Found.FAILED, trouble="no time was left")
        for attempt in range(max(TRIES, len(servers))):
            left = self._until - steady()
            if left <= 0:
                break
            answer = _ask_once(servers[attempt % len(servers)], name, kind, left, self.look_up_s)
            if answer.found is not Found.FAILED:
                break
        return answer


def system_servers() -> tuple[Server, ...]:
    """What this machine asks; none where it does not say."""
    import dns.exception  # noqa: PLC0415 - see above
    import dns.resolver  # noqa: PLC0415

    try:
        found = dns.resolver.Resolver()
    except (dns.exception.DNSException, OSError):
        return ()
    return tuple((str(each), found.port) for each in found.nameservers)


def _ask_once(server: Server, name: str, kind: str, left: float, limit: float) -> Answer:
    import dns.exception  # noqa: PLC0415 - see above
    import dns.message  # noqa: PLC0415
    import dns.query  # noqa: PLC0415

    shown = f"{server[0]}:{server[1]}"
    try:
        question = dns.message.make_query(name, kind, use_edns=0, payload=1232)
        reply, _ = dns.query.udp_with_fallback(
            question, server[0], port=server[1], timeout=min(limit, left), ignore_errors=True
        )
        return _answer(reply, kind, shown)
    except dns.exception.Timeout:
        return Answer(Found.FAILED, resolver=shown, trouble="no answer in time")
    except (dns.exception.DNSException, OSError, EOFError, ValueError) as error:
        return Answer(Found.FAILED, resolver=shown, trouble=type(error).__name__)


def _answer(reply: dns.message.Message, kind: str, shown: str) -> Answer:
    import dns.flags  # noqa: PLC0415 - see above
    import dns.rcode  # noqa: PLC0415

    code = reply.rcode()
    if reply.flags & dns.flags.TC:
        return Answer(Found.FAILED, resolver=shown, trouble="the answer was cut short")
    if code not in {dns.rcode.NOERROR, dns.rcode.NXDOMAIN}:
        return Answer(Found.FAILED, resolver=shown, trouble=dns.rcode.to_text(code))
    chain = reply.resolve_chaining()  # type: ignore[attr-defined]
    if code == dns.rcode.NXDOMAIN or chain.answer is None:
        return Answer(Found.ABSENT, ttl_s=int(chain.minimum_ttl), resolver=shown)
    texts = tuple(_text(each, kind) for each in chain.answer)
    return Answer(Found.PRESENT, texts, int(chain.minimum_ttl), shown)


def _text(record: Any, kind: str) -> str:
    """Strings of a record are joined without anything between them (RFC 7208, 3.3)."""
    if kind in _TEXT_KINDS:
        return b"".join(record.strings).decode("latin-1")
    return str(record.to_text())
