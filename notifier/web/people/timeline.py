"""Turns a trail into the list that a person reads: in the order in which things happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from notifier.domain.reasons import Reason
from notifier.domain.states import DeliveryState
from notifier.web.people import phrases, times
from notifier.web.people.phrases import Badge, Hue

if TYPE_CHECKING:
    from notifier.store.reads.notice_facts import AttemptRow, NoticePage, TransitionRow

LATE_AFTER: Final = timedelta(seconds=10)
"""A fact recorded this long after it occurred is marked as late."""
GAP_AFTER: Final = timedelta(seconds=20)
"""A wait this long between two steps is drawn as a gap."""
SKEW: Final = timedelta(seconds=1)
"""How far a provider's clock may differ from ours before it is called skewed."""

ARRIVALS: Final = frozenset({"delivered"})


class Source(StrEnum):
    """Where the news of a step came from."""

    ALL = "all"
    OURS = "ours"
    PROVIDER = "provider"
    OPERATOR = "operator"


Placed = tuple[datetime, "TransitionRow"]
"""A row of the trail and when it occurred, as far as that can be believed."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the timeline. `remaining` is the life left at `at`, maybe negative.

    `repeats` holds the times of steps that are told as one; `row` is then the last of them.
    `unclear`: an arrival that was learnt after expiry, of which the provider does not say when.
    `gap` says how long nothing happened before. `first_dead`: the validity ended before this step
    and after the one before it.
    """

    at: datetime
    offset: str
    sentence: str
    row: TransitionRow
    was: Badge | None
    now: Badge | None
    remaining: timedelta
    remaining_share: float
    gap: str | None
    late: str | None
    skewed: bool
    arrived: bool
    unclear: bool
    repeats: tuple[datetime, ...] = ()
    first_dead: bool = False

    @property
    def dead_on_arrival(self) -> bool:
        """Whether the message reached the person after its link had expired."""
        return self.arrived and not self.unclear and self.remaining < timedelta(0)

    @property
    def arrived_in_time(self) -> bool:
        """Whether it reached the person while its link was good."""
        return self.arrived and self.remaining >= timedelta(0)

    @property
    def moved(self) -> bool:
        """Whether the step changed a state, or only noted a fact."""
        return self.row.from_state != self.row.to_state

    @property
    def hue(self) -> Hue:
        """The colour of the step's mark."""
        if self.dead_on_arrival:
            return Hue.FAILED
        return self.now.hue if self.now and self.moved else Hue.CALM

    @property
    def icon(self) -> str:
        """The shape of the step's mark."""
        return self.now.icon if self.now and self.moved else "dot"


def source_of(row: TransitionRow) -> Source:
    """Whose news the step is: a provider's, an operator's, or that of our own machinery."""
    who = row.actor.partition(":")[0]
    return Source(who) if who in {Source.PROVIDER, Source.OPERATOR} else Source.OURS


def counts(page: NoticePage) -> dict[Source, int]:
    """How many steps of the trail came from each source."""
    found = [source_of(row) for row in page.transitions]
    return {each: len(found) if each is Source.ALL else found.count(each) for each in Source}


def timeline(page: NoticePage, source: Source = Source.ALL) -> tuple[Line, ...]:
    """Every step from there, a late one where it belongs by when it occurred."""
    attempts: dict[tuple[str, int], AttemptRow] = {
        (each.channel, each.number): each for row in page.deliveries for each in row.attempts
    }
    placed = sorted(
        (
            (_placed_at(row, attempts), row)
            for row in page.transitions
            if source in {Source.ALL, source_of(row)}
        ),
        key=lambda pair: (pair[0], pair[1].seq),
    )
    lines: list[Line] = []
    before: datetime | None = None
    for run in _runs(placed):
        lines += _told(page, run, before)
        before = run[-1][0]
    return _with_end(lines)


def _with_end(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The same, with a mark where the validity ended between two steps."""
    was_good = [False, *(line.remaining > timedelta(0) for line in lines)]
    return tuple(
        replace(line, first_dead=good and line.remaining <= timedelta(0))
        for good, line in zip(was_good, lines, strict=False)
    )


def _runs(placed: Sequence[Placed]) -> list[list[Placed]]:
    """The steps, those that only repeat each other in one list."""
    runs: list[list[Placed]] = []
    for step in placed:
        if runs and _goes_on(runs[-1], step[1]):
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _goes_on(run: Sequence[Placed], row: TransitionRow) -> bool:
    """Whether `row` repeats a look that found nothing, or goes on asking for a link in vain."""
    first, last = run[0][1], run[-1][1]
    if (row.channel, row.attempt) != (last.channel, last.attempt):
        return False
    if row.reason == Reason.LOOKED_NOT_FOUND:
        return last.reason == Reason.LOOKED_NOT_FOUND
    asks = first.reason == Reason.CLAIMED
    if row.reason == Reason.LINK_UNAVAILABLE:
        return asks and last.reason == Reason.CLAIMED
    return row.reason == Reason.CLAIMED and asks and last.reason == Reason.LINK_UNAVAILABLE


def _told(page: NoticePage, run: Sequence[Placed], before: datetime | None) -> list[Line]:
    """One line for a run that repeats something, else one for each step."""
    row = run[-1][1]
    if row.reason == Reason.CLAIMED and len(run) > 1:
        return [*_told(page, run[:-1], before), _line(page, *run[-1], run[-2][0])]
    times = tuple(at for at, each in run if each.reason == row.reason)
    if len(times) == 1:
        befores = [before, *(at for at, _ in run)]
        return [_line(page, *step, earlier) for step, earlier in zip(run, befores, strict=False)]
    first = _line(page, *run[0], before)
    return [
        replace(
            _line(page, *run[-1], None),
            at=first.at, offset=first.offset, remaining=first.remaining, gap=first.gap,
            remaining_share=first.remaining_share, repeats=times,
            sentence=_told_once(row, len(times)),
        )
    ]  # fmt: skip


def _told_once(row: TransitionRow, times: int) -> str:
    if row.reason == Reason.LOOKED_NOT_FOUND:
        return phrases.looked(times, row.channel)
    return phrases.asked_for_a_link(times, row.channel, row.detail)


def _placed_at(row: TransitionRow, attempts: dict[tuple[str, int], AttemptRow]) -> datetime:
    """When it occurred; by our own clock where that of the provider is plainly wrong.

    Nothing is told of an attempt before it began: clocks that tell whole seconds say so.
    """
    attempt = attempts.get((row.channel or "", row.attempt or 0))
    if row.occurred_at > row.recorded_at:
        return row.recorded_at
    if attempt is not None and row.occurred_at < attempt.started_at - SKEW:
        return row.recorded_at
    return max(row.occurred_at, attempt.started_at) if attempt else row.occurred_at


def _line(page: NoticePage, at: datetime, row: TransitionRow, before: datetime | None) -> Line:
    remaining = row.remaining + (row.recorded_at - at)
    life = page.expires_at - page.requested_at
    wait = at - before if before else timedelta(0)
    delay = row.recorded_at - at
    return Line(
        at=at,
        offset=_offset(at - page.requested_at),
        sentence=phrases.sentence(row.reason, row.channel, row.to_state, row.detail),
        row=row,
        was=phrases.badge(row.from_state) if row.from_state else None,
        now=phrases.badge(row.to_state) if row.to_state else None,
        remaining=remaining,
        remaining_share=times.share(remaining, life),
        gap=_gap(wait, row) if wait >= GAP_AFTER else None,
        late=times.rough(delay) if delay >= LATE_AFTER else None,
        skewed=abs(row.occurred_at - at) > SKEW,
        arrived=_is_arrival(row),
        unclear=_is_unclear(page, row),
    )


def _gap(wait: timedelta, row: TransitionRow) -> str:
    """How long nothing happened, and what was waited for where the step tells."""
    length = times.span(wait)
    match row.from_state:
        case DeliveryState.QUEUED:
            return f"waited {length} in the queue"
        case DeliveryState.ATTEMPTED | DeliveryState.ACCEPTED | DeliveryState.UNKNOWN:
            return f"{length} without news"
        case _:
            return f"{length} later"


def _is_unclear(page: NoticePage, row: TransitionRow) -> bool:
    """Whether the provider's receipt came after expiry without a time of its own.

    Where the receipt is past its retention, the trail tells: such a step occurred when it was
    recorded.
    """
    if row.receipt_id is None or row.remaining >= timedelta(0):
        return False
    for receipt in page.receipts:
        if receipt.receipt_id == row.receipt_id:
            return receipt.occurred_at is None
    return row.occurred_at == row.recorded_at


def fallback_story(page: NoticePage, channel: str) -> tuple[str, ...]:
    """Why this channel went, waited or was not needed: the decisions, in the order of the trail.

    The decision that led to an attempt says "sent", the others only what they did.
    """
    steps = [
        each
        for each in page.transitions
        if each.channel == channel and each.reason in phrases.FALLBACK_STORY
    ]
    delivery = next((each for each in page.deliveries if each.channel == channel), None)
    sent = [each for each in steps if each.to_state == "queued" and each.from_state != "queued"]
    told = sent[-1] if sent and delivery and delivery.attempts else None
    sentences = []
    for each in steps:
        text = phrases.sentence(each.reason, channel, each.to_state)
        sentences.append(text.replace("was queued", "was sent", 1) if each is told else text)
    return tuple(sentences)


def _is_arrival(row: TransitionRow) -> bool:
    """Whether the step says that the message reached the person."""
    if row.to_state in ARRIVALS and row.from_state not in ARRIVALS:
        return True
    told = (row.evidence or {}).get("status")
    return row.receipt_id is not None and told in ARRIVALS


def _offset(since: timedelta) -> str:
    sign = "\N{MINUS SIGN}" if since < timedelta(0) else "+"
    return f"{sign}{times.stopwatch(since)}"
