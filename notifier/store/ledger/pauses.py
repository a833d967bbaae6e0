"""Pauses a provider for all processes, for trouble that is about us and not about a message."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg

Row = dict[str, Any]

# A pause is never shortened by a later, shorter one.
PAUSE: Final = """
INSERT INTO provider_pause AS p (provider, detail, since, until)
VALUES (%(provider)s, %(detail)s, db_now(), db_now() + %(wait)s)
ON CONFLICT (provider) DO UPDATE
   SET detail = excluded.detail, until = greatest(p.until, excluded.until),
       since = CASE WHEN p.until < db_now() THEN excluded.since ELSE p.since END,
       times = CASE WHEN p.until < db_now() THEN 1 ELSE p.times + 1 END
"""
STANDING: Final = """
SELECT provider, detail, since, until, times FROM provider_pause
 WHERE until > db_now() ORDER BY provider
"""


@dataclass(frozen=True, slots=True)
class Pause:
    """A provider that nothing is sent through until `until`; `times` counts the refusals."""

    provider: str
    detail: str
    since: datetime
    until: datetime
    times: int


def pause(
    connection: psycopg.Connection[Row], *, provider: str, detail: str, seconds: float
) -> None:
    """Stop starting calls to `provider` for `seconds`."""
    wait = timedelta(seconds=seconds)
    connection.execute(PAUSE, {"provider": provider, "detail": detail, "wait": wait})


def standing(connection: psycopg.Connection[Row]) -> list[Pause]:
    """The pauses in force."""
    return [Pause(**row) for row in connection.execute(STANDING)]
