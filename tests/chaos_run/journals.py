"""What the providers saw, by their own journals: the only witness of what left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from peers.fates import PRESETS, fate_of
from peers.testing import PeerHandle
from tests.chaos_run.ground import Ground
from tests.chaos_run.plan import Plan

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """One request on the wire."""

    recipient: str
    reference: str | None
    fate: str
    at: float


@dataclass(frozen=True, slots=True)
class Seen:
    """One channel: every request, and every message that was kept. Times are Unix time."""

    posts: tuple[Wire, ...]
    kept: tuple[Wire, ...]
    answered: Mapping[str, float]
    """When a caller was sent a yes, by reference."""
    callbacks: int
    callbacks_lost: int

    def kept_for(self) -> dict[str, list[Wire]]:
        """The kept messages by recipient."""
        return _by(self.kept, "recipient")

    def posts_for(self) -> dict[str, list[Wire]]:
        """The requests by recipient."""
        return _by(self.posts, "recipient")

    def posts_of(self) -> dict[str, list[Wire]]:
        """The requests by reference."""
        return _by(self.posts, "reference")

    def kept_of(self) -> dict[str, list[Wire]]:
        """The kept messages by reference."""
        return _by(self.kept, "reference")

    @property
    def faulty(self) -> int:
        """Requests that met a fault; a slow answer is none."""
        return sum(each.fate not in ("deliver", "slow") for each in self.posts)


def _by(wires: Iterable[Wire], name: str) -> dict[str, list[Wire]]:
    found: dict[str, list[Wire]] = defaultdict(list)
    for each in wires:
        found[str(getattr(each, name))].append(each)
    return dict(found)


def mails_seen(ground: Ground, plan: Plan) -> Seen:
    """The email provider's journal."""
    return _of_smtp(ground.mail) if plan.mail == "smtp" else _of_http(ground.mail)


def texts_seen(ground: Ground) -> Seen:
    """The text provider's journal."""
    return _of_http(ground.twilio)


def _of_http(peer: PeerHandle) -> Seen:
    entries = peer.journal()
    callbacks = [each for each in entries if each["phase"] == "callback"]
    lost = [each for each in callbacks if not str(each["status"]).startswith("2")]
    answered = {
        str(each["reference"]): _time(each)
        for each in entries
        if each["phase"] == "final" and each["accepted"]
    }
    return Seen(
        _wires(entries, "post"), _wires(entries, "stored"), answered,
        len(callbacks), len(lost),
    )  # fmt: skip


def _of_smtp(peer: PeerHandle) -> Seen:
    """A request is a recipient named, which is before the mail and its reference are known.

    A fate that strikes later is not told at that step, and one in the mail nowhere: the address
    asks for it.
    """
    entries = peer.journal()
    asked = [each | {"fate": each.get("fate") or _asked_for(each)} for each in entries]
    return Seen(_wires(asked, "rcpt"), _wires(entries, "stored"), {}, 0, 0)


def _asked_for(entry: Entry) -> str:
    rule = PRESETS.get(fate_of(str(entry.get("recipient"))))
    return rule.name if rule else "deliver"


def _time(entry: Entry) -> float:
    return datetime.fromisoformat(str(entry["at"])).timestamp()


def _wires(entries: Iterable[Entry], phase: str) -> tuple[Wire, ...]:
    return tuple(
        Wire(
            str(each.get("recipient")),
            each.get("reference"),
            str(each.get("fate") or "deliver"),
            _time(each),
        )
        for each in entries
        if each["phase"] == phase
    )
