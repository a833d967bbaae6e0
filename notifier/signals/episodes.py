"""When a crossing becomes an episode, when that ends, and when somebody is told.

Pure: what stands, one look's judgements and the time give the changes. An episode opens once its
crossing has stood for its hold time, ends when it has been clear for long, and each of the two is
told once; a provider that fails and recovers every few seconds is one episode. Limits move with the
life of a token as it is learnt; an open episode is judged by those that it opened with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from notifier.signals.causes import Cause, is_explained
from notifier.signals.judgements import Judged, Judgement, Level, RuleName
from notifier.store.alerts import Standing

LAPSE: Final = timedelta(seconds=15)
"""A held crossing that is not seen for so long begins anew."""


class Move(StrEnum):
    """What becomes of an episode."""

    HOLD = "hold"
    DROP = "drop"
    OPEN = "open"
    KEEP = "keep"
    RESOLVE = "resolve"


@dataclass(frozen=True, slots=True)
class Change:
    """One episode after a look. `judgement` is None where the rule no longer names the key."""

    move: Move
    rule: str
    key: str
    standing: Standing | None
    judgement: Judgement | None
    crossed_at: datetime
    clear_since: datetime | None = None


CloseAfter = Callable[[Standing], timedelta]


def as_opened(
    judged: Judged,
    standing: Sequence[Standing],
    life_s: float,
    judge_for: Callable[[float], Judged],
) -> Judged:
    """The same look, open episodes judged for the life that they opened with.

    `judged` is for tokens of `life_s`, `judge_for` judges for another life. What is below its old
    limit and crosses the new one is not over: it would be told anew at once.
    """
    found = _by_place(judged)
    for each in standing:
        if each.state == "open" and each.life_s != life_s:
            place = (each.rule, each.key)
            kept = _kept(found.pop(place, None), _by_place(judge_for(each.life_s)).get(place))
            found |= {place: kept} if kept else {}
    return Judged(tuple(found.values()), judged.unmeasured)


def _by_place(judged: Judged) -> dict[tuple[str, str], Judgement]:
    return {(str(each.rule), each.key): each for each in judged.judgements}


def _kept(by_now: Judgement | None, as_opened: Judgement | None) -> Judgement | None:
    if by_now is None or by_now.level is not Level.ABOVE:
        return as_opened
    if as_opened is not None and as_opened.level is Level.CLEAR:
        return replace(as_opened, level=Level.BETWEEN)
    return as_opened or by_now


def decide(
    standing: Sequence[Standing], judged: Judged, now: datetime, close_after: CloseAfter
) -> list[Change]:
    """What one look changes; nothing where nothing stands and nothing is crossed.

    `close_after`: for how long an open one has to be clear.
    """
    by_place = {(each.rule, each.key): each for each in standing}
    causes = tuple(_causes(standing, judged))
    changes = []
    for judgement in judged.judgements:
        held = by_place.pop((judgement.rule, judgement.key), None)
        told_of = is_explained(judgement.rule, judgement.key, causes, _began(judgement, now))
        change = _judged(held, judgement, now, close_after, explained=told_of)
        changes += [change] if change else []
    for left in by_place.values():
        if left.rule not in judged.unmeasured:
            changes.append(_gone(left, None, now, close_after))
    return changes


def _causes(standing: Sequence[Standing], judged: Judged) -> Iterator[Cause]:
    yield from (
        Cause(RuleName(each.rule), each.key, each.clear_since)
        for each in standing
        if each.state == "open"
    )
    crossed = (each for each in judged.judgements if each.level is Level.ABOVE)
    yield from (Cause(each.rule, each.key) for each in crossed)


def _began(judgement: Judgement, now: datetime) -> datetime | None:
    """When work stopped moving. Other ages grow by what a cause left behind, long after it."""
    if judgement.rule is not RuleName.NO_PROGRESS:
        return None
    return now - timedelta(seconds=judgement.value)


def _judged(
    held: Standing | None,
    judgement: Judgement,
    now: datetime,
    close_after: CloseAfter,
    *,
    explained: bool,
) -> Change | None:
    if judgement.level is Level.ABOVE:
        return _crossed(held, judgement, now, explained=explained)
    if held is None:
        return None
    if judgement.level is Level.BETWEEN and held.state == "open":
        return Change(Move.KEEP, held.rule, held.key, held, judgement, held.crossed_at)
    return _gone(held, judgement, now, close_after)


def _crossed(
    held: Standing | None, judgement: Judgement, now: datetime, *, explained: bool
) -> Change | None:
    fresh = held is None or (held.state == "held" and now - held.seen_at > _patience(judgement))
    since = now if fresh or held is None else held.crossed_at
    move = Move.HOLD
    if held is not None and held.state == "open":
        move = Move.KEEP
    elif explained:
        if held is None:
            return None
    elif now - since >= timedelta(seconds=judgement.hold_s):
        move = Move.OPEN
    return Change(move, judgement.rule, judgement.key, held, judgement, since)


def _patience(judgement: Judgement) -> timedelta:
    return max(LAPSE, timedelta(seconds=judgement.hold_s / 2))


def _gone(
    held: Standing, judgement: Judgement | None, now: datetime, close_after: CloseAfter
) -> Change:
    """Not crossed now: what was only held is dropped after a moment, an open one ends later."""
    if held.state == "held":
        move = Move.DROP if now - held.seen_at > LAPSE else Move.HOLD
        # Not seen: what it waits for is not counted from a look that did not find it.
        return Change(move, held.rule, held.key, held, None, held.crossed_at)
    since = held.clear_since or now
    ended = now - since >= close_after(held)
    move = Move.RESOLVE if ended else Move.KEEP
    return Change(move, held.rule, held.key, held, judgement, held.crossed_at, since)
