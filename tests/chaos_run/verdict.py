"""Holds the product's rows against the providers' journals and the senders' answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.chaos_run.explain import Causes
from tests.chaos_run.journals import Seen, Wire
from tests.chaos_run.plan import MARGIN_S
from tests.chaos_run.senders import Told

Row = dict[str, Any]

CLOSED = {"delivered", "failed", "suppressed", "expired", "canceled"}
ENDED = {"complete", "expired", "failed", "suppressed", "canceled"}
UNTRIED = {
    "expired_on_arrival", "too_close_to_expiry", "window_closed", "reset_used", "no_destination",
    "excluded_by_policy", "life_too_short_for_fallback",
}  # fmt: skip
"""Why a channel may end without any attempt."""
PATIENT_S = 20.0
"""An event that lived this long and was never tried needs more than its end for a reason."""
SHOWN = 8


@dataclass(slots=True)
class Book:
    """The rows of one run, in an order that questions can be asked in."""

    deliveries: dict[str, dict[str, Row]]
    attempts: dict[str, Row]
    reasons: dict[tuple[str, str | None], set[str]]

    @classmethod
    def of(cls, deliveries: Sequence[Row], attempts: Sequence[Row], reasons: Sequence[Row]) -> Book:
        """Sort them."""
        by_event: dict[str, dict[str, Row]] = defaultdict(dict)
        for row in deliveries:
            by_event[row["event_id"]][row["channel"]] = row
        why: dict[tuple[str, str | None], set[str]] = defaultdict(set)
        for row in reasons:
            why[row["notice_id"], row["channel"]].add(row["reason"])
        return cls(dict(by_event), {row["reference"]: row for row in attempts}, dict(why))

    def all(self) -> Iterable[Row]:
        """Every delivery."""
        return (row for both in self.deliveries.values() for row in both.values())


@dataclass(slots=True)
class Found:
    """What one question found: how many, and some of them in words."""

    names: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def shown(self) -> list[str]:
        """Some examples."""
        return self.names[:SHOWN]


def lost(book: Book, told: Told) -> Found:
    """Acknowledged, and yet without a row, an end, or a reason for never having been tried."""
    found = Found()
    for event_id, identity in told.identity.items():
        both = book.deliveries.get(event_id)
        why = "no row" if both is None else _why_lost(book, both, identity, told.events[event_id])
        if why:
            found.names.append(f"{event_id}: {why}")
    return found


def _why_lost(book: Book, both: Mapping[str, Row], identity: str, event: Row) -> str | None:
    rows = list(both.values())
    if any(row["notice_id"] != identity for row in rows):
        return "answered with another id"
    if any(row["notice_state"] not in ENDED for row in rows):
        return f"still {rows[0]['notice_state']}"
    still = [row["channel"] for row in rows if not _is_closed(row)]
    if still:
        return f"{still} not closed"
    untried = [row for row in rows if not row["attempts"]]
    strange = [row["reason"] for row in untried if not _may_stay_untried(row)]
    if len(untried) == len(rows) and strange:
        return f"never tried: {strange}"
    if len(untried) == len(rows) and _is_silent(book, rows, event):
        return f"never tried in its life: {[row['reason'] for row in rows]}"
    return None


def _is_closed(row: Row) -> bool:
    return row["state"] in CLOSED or (row["state"] == "accepted" and row["final_acceptance"])


def _may_stay_untried(row: Row) -> bool:
    return row["reason"] in UNTRIED


def _is_silent(book: Book, rows: Sequence[Row], event: Row) -> bool:
    """Whether a long life passed and the trail does not say what stood in the way."""
    excuses = {"link_unavailable", "provider_paused", "lease_expired", "reset_used"}
    excuses |= {"no_destination", "expired_on_arrival", "excluded_by_policy"}
    said = set().union(*(book.reasons.get((r["notice_id"], r["channel"]), set()) for r in rows))
    life_s = _life_left(rows)
    return life_s >= PATIENT_S and not said & excuses


def _life_left(rows: Sequence[Row]) -> float:
    return float(max(row["life_s"] for row in rows))


def duplicates(seen: Seen) -> Found:
    """Messages beyond the first that a provider kept for one person."""
    found = Found()
    for recipient, kept in seen.kept_for().items():
        found.names += [f"{recipient} {each.reference}" for each in kept[1:]]
    return found


def repeated_on_the_wire(book: Book, seen: Seen) -> Found:
    """Attempts that were posted more often than once, and once more for a replay."""
    found = Found()
    for reference, posts in seen.posts_of().items():
        row = book.attempts.get(reference)
        if row and len(posts) > 1 + (row["replay_started_at"] is not None):
            found.names.append(f"{reference}: {len(posts)} times")
    return found


def started_late(book: Book) -> Found:
    """Attempts whose intent was committed at or after the stop time."""
    found = Found()
    stops = {(row["event_id"], row["channel"]): row["stop_at"] for row in book.all()}
    for row in book.attempts.values():
        if row["started_at"] >= stops[row["event_id"], row["channel"]]:
            found.names.append(row["reference"])
    return found


def lateness(book: Book, seen: Mapping[str, Seen]) -> list[tuple[float, Wire, Row]]:
    """By how many seconds each request arrived after its stop time (below 0: before)."""
    stops = {(r["event_id"], r["channel"]): r["stop_at"].timestamp() for r in book.all()}
    found = []
    for channel, side in seen.items():
        for post in (*side.posts, *side.kept):
            row = book.attempts.get(str(post.reference))
            if row is not None:
                found.append((post.at - stops[row["event_id"], channel], post, row))
    return found


def arrived_late(book: Book, seen: Mapping[str, Seen], causes: Causes) -> tuple[Found, Found]:
    """Requests that arrived after expiry: of processes that ran, and of those that stood still."""
    running, frozen = Found(), Found()
    for late, post, row in lateness(book, seen):
        if late > MARGIN_S:
            pid, begin = int(row["owner"].split(":")[1]), row["started_at"].timestamp()
            stood = causes._stood_still(pid, begin - 1, post.at + 1)
            (frozen if stood else running).names.append(f"{post.reference} by {late:.2f} s")
    return running, frozen


def told_falsely(book: Book, told: Told, seen: Mapping[str, Seen]) -> Found:
    """Called sent though nothing was kept, or called not sent though something was."""
    found, kept = Found(), {name: side.kept_for() for name, side in seen.items()}
    by_reference = {name: side.kept_of() for name, side in seen.items()}
    for row in book.all():
        address = _address(told, row)
        has = address in kept.get(row["channel"], {})
        if row["state"] in ("delivered", "accepted") and not has:
            found.names.append(f"{row['event_id']} {row['channel']}: {row['state']}, not kept")
    for row in book.attempts.values():
        has = row["reference"] in by_reference[row["channel"]]
        if row["outcome"] in ("refused", "not_accepted") and has:
            found.names.append(f"{row['reference']}: {row['outcome']}, but kept")
        if row["outcome"] == "accepted" and not has:
            found.names.append(f"{row['reference']}: accepted, not kept")
    return found


def _address(told: Told, row: Row) -> str:
    event = told.events.get(row["event_id"])
    return str(event["destinations"][row["channel"]]) if event else ""


def unknown(book: Book, causes: Causes) -> tuple[Counter[str], Found]:
    """Deliveries that ended unknown by explanation, and those that nothing explains."""
    by_delivery: dict[tuple[str, str], Row] = {}
    for row in book.attempts.values():
        if row["outcome"] in (None, "unknown"):
            by_delivery[row["event_id"], row["channel"]] = row
    explained: Counter[str] = Counter()
    strange = Found()
    for row in book.all():
        if row["state"] != "unknown" and row["reason"] != "unknown_at_expiry":
            continue
        attempt = by_delivery.get((row["event_id"], row["channel"]))
        why = attempt and causes.of(attempt)
        if why:
            explained[f"{row['channel']}: {why}"] += 1
        else:
            strange.names.append(f"{row['event_id']} {row['channel']}: {attempt}")
    return explained, strange


def ends(book: Book) -> Counter[str]:
    """How deliveries ended."""
    return Counter(f"{row['channel']} {row['state']} ({row['reason']})" for row in book.all())


def nobody_told(told: Told, seen: Mapping[str, Seen]) -> int:
    """Acknowledged events whose person no message was kept for, on any channel."""
    kept = {name: side.kept_for() for name, side in seen.items()}
    return sum(
        not any(address in kept[name] for name, address in told.events[e]["destinations"].items())
        for e in told.identity
    )


def kept_after_expiry(told: Told, seen: Mapping[str, Seen], expiries: Mapping[str, float]) -> int:
    """Messages that were kept after their event had expired; by recipient, for both contestants."""
    return sum(
        each.at > expiries[each.recipient]
        for side in seen.values()
        for each in side.kept
        if each.recipient in expiries
    )


def expiries(told: Told) -> dict[str, float]:
    """When each person's event expires, in Unix time, by address and by number."""
    return {
        address: datetime.fromisoformat(event["expires_at"]).timestamp()
        for event in told.events.values()
        for address in event["destinations"].values()
    }
