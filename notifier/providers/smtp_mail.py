"""From a rendered message to the bytes that follow DATA.

The text is quoted-printable throughout, so a server needs no extension to carry it and no
line of it is long. Every header is either ours or checked; none can be split. The few header
lines are written out here: the standard library's own composition was two fifths of the work
of a whole delivery. It still folds and encodes the subject, of which there are few.
"""

from __future__ import annotations

import re
from datetime import datetime
from email.policy import SMTP
from email.quoprimime import body_encode
from email.utils import format_datetime
from functools import lru_cache

from notifier.domain.values import RenderedMessage
from notifier.ports.sending import Envelope

_MARKS = re.compile(r'[,;<>()\s](?=[^"]*$)')
_ADDRESS = re.compile(r'(?:[!#-;=?-~]+|"[ !#-;=?-~]*")@[A-Za-z0-9.\-\[\]:]+')
_REFERENCE = re.compile(r"[A-Za-z0-9_-]{1,100}")
LONGEST_LINE = 76
"""RFC 2045 (6.7) allows quoted-printable lines of 76; the library's own 78 is too many."""
_POLICY = SMTP.clone(max_line_length=LONGEST_LINE)
_LEADING_DOT = re.compile(rb"^\.", re.MULTILINE)

NO_AUTOMATIC_ANSWERS = "DR, RN, NRN, OOF, AutoReply"
"""For Exchange: all but NDR, because a non-delivery report is the one answer worth having."""


class UnbuildableError(Exception):
    """The message cannot go out by mail. Carries nothing of it."""


def is_wire_safe(address: str) -> bool:
    """Whether `address` can stand in a command and a header: printable ASCII, no brackets.

    A backstop. Addresses are checked where they arrive.
    """
    return _ADDRESS.fullmatch(address) is not None


def is_one_address(address: str) -> bool:
    """Whether an API that reads names and lists as well has to read `address` as one alone."""
    return is_wire_safe(address) and not _MARKS.search(address)


def message_id(reference: str, email_from: str) -> str:
    """Our own Message-ID; it carries the attempt reference, by which a bounce is matched."""
    domain = email_from.rpartition("@")[2]
    return f"<{reference}.notice@{domain}>"


def build(envelope: Envelope, email_from: str, sent_at: datetime) -> bytes:
    """The whole message with CRLF line ends and doubled leading dots, without the final dot.

    Raises UnbuildableError for an address, a reference or a text that cannot be carried.
    """
    if not _REFERENCE.fullmatch(envelope.reference):
        raise UnbuildableError
    if not (is_wire_safe(envelope.destination.reveal()) and is_wire_safe(email_from)):
        raise UnbuildableError
    try:
        content = _compose(envelope, email_from, sent_at)
    except (ValueError, LookupError, AttributeError):
        content = b""
    if not content.endswith(b"\r\n") or not _has_clean_lines(content):
        raise UnbuildableError
    return _LEADING_DOT.sub(b"..", content)


def _compose(envelope: Envelope, email_from: str, sent_at: datetime) -> bytes:
    head = (
        f"From: {email_from}\r\n"
        f"To: {envelope.destination.reveal()}\r\n"
        f"{_subject_line(envelope.message.subject)}"
        f"Date: {format_datetime(sent_at)}\r\n"
        f"Message-ID: {message_id(envelope.reference, email_from)}\r\n"
        "Auto-Submitted: auto-generated\r\n"
        f"X-Auto-Response-Suppress: {NO_AUTOMATIC_ANSWERS}\r\n"
        "MIME-Version: 1.0\r\n"
    )
    return head.encode("ascii") + _content(envelope.message, f"=_{envelope.reference[:60]}")


@lru_cache(maxsize=256)
def _subject_line(subject: str) -> str:
    """The folded, encoded header line. ValueError where the subject has lines of its own."""
    return str(_POLICY.fold(*_POLICY.header_store_parse("Subject", subject)))


def _content(message: RenderedMessage, boundary: str) -> bytes:
    """Content headers and content. Quoted-printable never holds "=_", so no part has a boundary."""
    text = _part("plain", message.text.reveal())
    if message.html is None:
        return text
    mark = boundary.encode("ascii")
    html = _part("html", message.html.reveal())
    kind = b'Content-Type: multipart/alternative;\r\n boundary="%b"\r\n\r\n' % mark
    return b"%b--%b\r\n%b\r\n--%b\r\n%b\r\n--%b--\r\n" % (kind, mark, text, mark, html, mark)


def _part(subtype: str, text: str) -> bytes:
    # The encoder takes bytes as Latin-1 characters; binascii's exceeds 76 at a line's last blank.
    octets = "\n".join(line.decode("latin-1") for line in text.encode("utf-8").splitlines())
    encoded = body_encode(octets + "\n", maxlinelen=LONGEST_LINE, eol="\r\n")
    return (
        f"Content-Type: text/{subtype}; charset=utf-8\r\n"
        f"Content-Transfer-Encoding: quoted-printable\r\n\r\n{encoded}"
    ).encode("ascii")


def _has_clean_lines(content: bytes) -> bool:
    return content.count(b"\n") == content.count(b"\r") == content.count(b"\r\n")
