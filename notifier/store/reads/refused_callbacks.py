"""How many callbacks of each provider were refused, minute by minute.

As in `rollups`, a minute that nobody counted is not known, and never nought.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from notifier.store.reads.outside_text import shown
from notifier.store.reads.rollups import Minute, is_known, load_spans, minutes_between
from notifier.store.rollups import REFUSED

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

_REFUSED: Final = """
    SELECT provider, minute, sum(n)::int AS n FROM rollup_count
     WHERE minute >= %(since)s AND minute < %(until)s AND signal = %(signal)s
     GROUP BY provider, minute ORDER BY provider
"""


def load_refused(
    connection: PooledConnection, since: datetime, until: datetime
) -> Mapping[str, tuple[Minute, ...]]:
    """Every minute that begins in the range, by each provider that had a callback refused in it.

    Under the name "" stand the minutes of a provider that had none.
    """
    values = {"since": since, "until": until, "signal": REFUSED}
    found: dict[str, dict[datetime, int]] = {"": {}}
    for row in connection.execute(_REFUSED, values):
        found.setdefault(shown(row["provider"]), {})[row["minute"]] = row["n"]
    spans = load_spans(connection, since, until)
    known = {at: is_known(at, spans) for at in minutes_between(since, until)}
    return {
        provider: tuple(
            Minute(at, {REFUSED: counts.get(at, 0)} if is_counted else None)
            for at, is_counted in known.items()
        )
        for provider, counts in found.items()
    }
