"""What Postmark takes in a message and in a search."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from peers.courses import Refusal
from peers.outbox import Message
from peers.postmark_words import listed
from peers.web import Reply, Request, as_json

ADDRESS = re.compile(r"(?:[^<>@]*<)?([^<>@\s,]+@[^<>@\s,]+\.[^<>@\s,]+)>?")
EASTERN: Final = ZoneInfo("America/New_York")
"""Times in searches that name no zone are read in this one, as Postmark's page on messages says."""
LONGEST = {"Tag": 1000, "Subject": 2000}
MOST_FOUND = 10_000


def error(status: int, code: int, message: str) -> Reply:
    """A fault as Postmark writes it."""
    return as_json({"ErrorCode": code, "Message": message}, status)


def bare_address(address: object) -> str:
    """The address in `Name <address>`, empty where there is not exactly one."""
    found = ADDRESS.fullmatch(address.strip()) if isinstance(address, str) else None
    return found[1] if found else ""


def fault_of(given: dict[str, Any]) -> Refusal | None:
    """What Postmark would not take in a message, None for a good one."""
    metadata = given.get("Metadata") or {}
    checks: tuple[tuple[bool, int, str], ...] = (
        ("" not in given, 402, "Invalid JSON."),
        (bool(bare_address(given.get("From"))), 300, "Invalid 'From' address."),
        (bool(bare_address(given.get("To"))), 300, "Invalid 'To' address."),
        (
            bool(given.get("TextBody") or given.get("HtmlBody")),
            300,
            "Provide either email TextBody or HtmlBody or both.",
        ),
        (_fits(metadata), 300, "At most 10 metadata fields, of 20 and 80 characters."),
        (
            given.get("MessageStream", "outbound") == "outbound",
            1235,
            "The message stream was not found.",
        ),
        *(
            (len(str(given.get(name) or "")) <= longest, 300, f"{name} is too long.")
            for name, longest in LONGEST.items()
        ),
    )
    return next((Refusal(422, code, text) for good, code, text in checks if not good), None)


def _fits(metadata: object) -> bool:
    return (
        isinstance(metadata, dict)
        and len(metadata) <= 10
        and all(len(k) <= 20 and isinstance(v, str) and len(v) <= 80 for k, v in metadata.items())
    )


def filter_of(name: str, value: str) -> Callable[[Message], bool]:
    """What one parameter of a search keeps; parameters that filter nothing keep all."""
    if name.startswith("metadata_"):
        key = name.removeprefix("metadata_")
        return lambda message: (message.given.get("Metadata") or {}).get(key) == value
    if name in ("fromdate", "todate"):
        return _in_time(value, name)
    fields: dict[str, Callable[[Message], object]] = {
        "recipient": lambda message: message.recipient.lower(),
        "fromemail": lambda message: bare_address(message.given["From"]).lower(),
        "tag": lambda message: str(message.given.get("Tag")).lower(),
        "subject": lambda message: str(message.given.get("Subject")).lower(),
        "status": lambda message: str(listed(message)["Status"]).lower(),
        "messagestream": lambda message: str(listed(message)["MessageStream"]).lower(),
    }
    field = fields.get(name)
    return (lambda message: field(message) == value.lower()) if field else lambda _: True


def _in_time(value: str, name: str) -> Callable[[Message], bool]:
    given = datetime.fromisoformat(value)
    limit = given if given.tzinfo else given.replace(tzinfo=EASTERN)
    if name == "fromdate":
        return lambda message: message.at >= limit
    length = timedelta(days=1) if len(value) <= len("2026-01-01") else timedelta(seconds=1)
    return lambda message: message.at < limit + length


def page(request: Request, name: str, found: list[dict[str, Any]]) -> Reply:
    """The part of a list that `count` and `offset` ask for; both are needed."""
    try:
        count, offset = int(request.query["count"]), int(request.query["offset"])
    except (KeyError, ValueError):
        return error(422, 600, "Both 'count' and 'offset' are needed.")
    if not 0 < count <= 500 or offset < 0 or count + offset > MOST_FOUND:
        return error(422, 601, "'count' or 'offset' is out of range.")
    return as_json({"TotalCount": len(found), name: found[offset : offset + count]})
