"""Pauses a provider for all processes, for trouble that is about us and not about a message.

A pause whose time is over does not end by itself: the provider may refuse us still. One claim
takes the turn to try it, by pushing `until` forward for as long as a try may take, and for all
others the provider stays paused. That moment is the turn's token: whoever's `until` still
stands answers for the try. A try that is taken up ends the pause, one that is refused prolongs
it, one that tells nothing gives the turn back; a turn whose holder died lapses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg

from notifier.store.statement import Statement

Row = dict[str, Any]

SHUT: Final = """EXISTS (SELECT FROM provider_pause p WHERE p.provider = %(provider)s
    AND p.until IS DISTINCT FROM %(turn_until)s::timestamptz)"""
"""Whether a claim or a start has to leave its provider alone, `turn_until` being its turn."""

# A pause is never shortened by a later, shorter one; only a turn's own end takes its place.
PAUSE: Final = """
INSERT INTO provider_pause AS p (provider, detail, since, until)
VALUES (%(provider)s, %(detail)s, db_now(), db_now() + %(wait)s)
ON CONFLICT (provider) DO UPDATE
   SET detail = excluded.detail, times = p.times + 1,
       until = greatest(nullif(p.until, %(turn_until)s::timestamptz), excluded.until)
"""
TAKE_TURN: Final = """
UPDATE provider_pause SET until = db_now() + %(turn)s
 WHERE provider = %(provider)s AND until <= db_now()
RETURNING until
"""
END: Final = """
DELETE FROM provider_pause WHERE provider = %(provider)s AND until = %(turn_until)s
"""
GIVE_BACK: Final = """
UPDATE provider_pause SET until = db_now()
 WHERE provider = %(provider)s AND until = %(turn_until)s AND until > db_now()
"""
OVER: Final = """
SELECT FROM provider_pause WHERE provider = %(provider)s AND until <= db_now()
"""
STANDING: Final = """
SELECT provider, detail, since, until, times FROM provider_pause
 WHERE until > db_now() ORDER BY provider
"""


_OVER: Final = Statement(OVER)


@dataclass(frozen=True, slots=True)
class Pause:
    """A provider that nothing is sent through until `until`.

    `since` is the first refusal after which nothing was taken up, `times` counts them.
    """

    provider: str
    detail: str
    since: datetime
    until: datetime
    times: int


def pause(
    connection: psycopg.Connection[Row],
    *,
    provider: str,
    detail: str,
    seconds: float,
    turn_until: datetime | None = None,
) -> None:
    """Stop starting calls to `provider` for `seconds`; `turn_until` is the refused try's token."""
    wait = timedelta(seconds=seconds)
    values = {"provider": provider, "detail": detail, "wait": wait, "turn_until": turn_until}
    connection.execute(PAUSE, values)


def is_over(connection: psycopg.Connection[Row], provider: str) -> bool:
    """Whether the time of a pause is over, and one may try the provider."""
    return _OVER.run(connection, {"provider": provider}).fetchone() is not None


def take_turn(
    connection: psycopg.Connection[Row], *, provider: str, turn: timedelta
) -> datetime | None:
    """Be the one that tries `provider`, for `turn` from now; None where somebody else is."""
    row = connection.execute(TAKE_TURN, {"provider": provider, "turn": turn}).fetchone()
    return row["until"] if row else None


def end(connection: psycopg.Connection[Row], *, provider: str, turn_until: datetime) -> None:
    """The try was taken up: nothing is paused any more. Nothing happens to another's turn."""
    connection.execute(END, {"provider": provider, "turn_until": turn_until})


def give_back(connection: psycopg.Connection[Row], *, provider: str, turn_until: datetime) -> bool:
    """Let somebody else try at once; False where the turn had ended."""
    values = {"provider": provider, "turn_until": turn_until}
    return connection.execute(GIVE_BACK, values).rowcount > 0


def standing(connection: psycopg.Connection[Row]) -> list[Pause]:
    """The pauses in force."""
    return [Pause(**row) for row in connection.execute(STANDING)]
