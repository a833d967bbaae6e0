"""Whether an SMTP refusal is about this message, about us, or passing.

The enhanced code (RFC 3463, and the registry that RFC 5248 opened) outranks the basic one.
The phase decides where neither says enough: before RCPT a server knows nothing of the
recipient, so a lasting refusal there is about us.

421 ("closing the channel") may answer anything. It is a passing refusal in every phase,
after the final dot too: RFC 5321 (4.2.5) forbids a server that answered 4yz there to
deliver the message, the client keeps it.
"""

from __future__ import annotations

from enum import IntEnum

from notifier.domain.outcome import NotAccepted, Refused, about_us
from notifier.domain.reasons import Detail
from notifier.providers.smtp_line import Reply


class Phase(IntEnum):
    """Where a conversation stands, in order."""

    BANNER = 1
    EHLO = 2
    STARTTLS = 3
    AUTH = 4
    MAIL = 5
    RCPT = 6
    DATA = 7
    END = 8


_D = Detail

_AUTH_BASIC = frozenset({530, 534, 535, 538})
"""Defined by RFC 4954 for authentication alone, whatever enhanced code stands beside them."""
_AUTH_ENHANCED = frozenset({"5.7.8", "5.7.9", "5.7.11", "5.7.13"})
_SENDER_ENHANCED = frozenset({"5.1.7", "5.1.8"} | {f"5.7.{n}" for n in range(20, 28)})
"""Our address, DKIM, SPF, DMARC or reverse DNS (RFC 3463, 7372, 7505)."""
_PROTOCOL_BASIC = frozenset({500, 502, 503, 504, 555})

_BEFORE_RECIPIENT = {
    Phase.BANNER: _D.BLOCKED,
    Phase.EHLO: _D.PROVIDER_ERROR,
    Phase.STARTTLS: _D.PROVIDER_ERROR,
    Phase.AUTH: _D.AUTH_ERROR,
    Phase.MAIL: _D.SENDER_REJECTED,
}

_LASTING = {
    "2.2": _D.MAILBOX_FULL,
    "2.3": _D.CONTENT_REJECTED,
    "3.4": _D.CONTENT_REJECTED,
    "4.7": _D.EXPIRED_AT_PROVIDER,
}
_LASTING_BY_SUBJECT = {
    "1": _D.INVALID_DESTINATION,
    "2": _D.BLOCKED,
    "3": _D.PROVIDER_ERROR,
    "4": _D.UNREACHABLE,
    "6": _D.CONTENT_REJECTED,
    "7": _D.BLOCKED,
}
_LASTING_BASIC = {552: _D.MAILBOX_FULL, 554: _D.BLOCKED, 550: _D.BLOCKED}
_LASTING_BASIC_AT_RCPT = _LASTING_BASIC | {
    501: _D.INVALID_DESTINATION,
    521: _D.INVALID_DESTINATION,
    550: _D.INVALID_DESTINATION,
    551: _D.INVALID_DESTINATION,
    553: _D.INVALID_DESTINATION,
    556: _D.INVALID_DESTINATION,
}

_PASSING = {"2.1": _D.RATE_LIMITED, "2.2": _D.MAILBOX_FULL, "5.3": _D.RATE_LIMITED}
_PASSING_BY_SUBJECT = {"1": _D.UNREACHABLE, "4": _D.UNREACHABLE, "7": _D.RATE_LIMITED}
_PASSING_BASIC = {450: _D.RATE_LIMITED}


def judge(phase: Phase, reply: Reply) -> Refused | NotAccepted:
    """Sort a reply that is not the one hoped for in `phase`."""
    if reply.code < 400:
        return NotAccepted(_D.PROVIDER_ERROR, str(reply))
    if reply.code in _AUTH_BASIC or reply.enhanced in _AUTH_ENHANCED:
        return about_us(_D.AUTH_ERROR, str(reply))
    if reply.enhanced in _SENDER_ENHANCED:
        return about_us(_D.SENDER_REJECTED, str(reply))
    if _is_lasting(reply):
        return _lasting(phase, reply)
    return NotAccepted(_passing_detail(reply), str(reply))


def _is_lasting(reply: Reply) -> bool:
    """Whether trying again is useless; a message that is too old (x.4.7) only gets older."""
    if reply.enhanced is None:
        return reply.code >= 500
    return reply.enhanced.startswith("5") or reply.enhanced == "4.4.7"


def _lasting(phase: Phase, reply: Reply) -> Refused | NotAccepted:
    protocol = reply.code in _PROTOCOL_BASIC
    if phase in _BEFORE_RECIPIENT:
        complaint = protocol and phase is not Phase.AUTH
        return about_us(_D.PROVIDER_ERROR if complaint else _BEFORE_RECIPIENT[phase], str(reply))
    if protocol and phase is not Phase.END and _specific(reply) is None:
        return NotAccepted(_D.PROVIDER_ERROR, str(reply))
    return Refused(_lasting_detail(phase, reply), str(reply))


def _lasting_detail(phase: Phase, reply: Reply) -> Detail:
    basic = _LASTING_BASIC_AT_RCPT if phase is Phase.RCPT else _LASTING_BASIC
    return _specific(reply) or basic.get(reply.code, _D.UNCLASSIFIED)


def _specific(reply: Reply) -> Detail | None:
    """What the enhanced code says, None where it says nothing (x.0.z, x.5.z or none).

    x.5.z is "protocol", but some mail hosts put it beside 550 for an unknown mailbox.
    """
    if reply.enhanced is None:
        return None
    _, subject, detail = reply.enhanced.split(".")
    return _LASTING.get(f"{subject}.{detail}") or _LASTING_BY_SUBJECT.get(subject)


def _passing_detail(reply: Reply) -> Detail:
    if reply.enhanced is None or reply.code == 454:
        return _PASSING_BASIC.get(reply.code, _D.PROVIDER_ERROR)
    _, subject, detail = reply.enhanced.split(".")
    specific = _PASSING.get(f"{subject}.{detail}") or _PASSING_BY_SUBJECT.get(subject)
    return specific or _PASSING_BASIC.get(reply.code, _D.PROVIDER_ERROR)
