"""Which alerts were open in a stretch of time, so that what was measured in it is not trusted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class Trouble:
    """An alert's rule and its key: a channel, a provider, or empty for the whole product."""

    rule: str
    key: str


_DURING: Final = """
    SELECT DISTINCT rule, key FROM alert_episode
     WHERE state <> 'held' AND rule = ANY (%(rules)s) AND crossed_at < %(until)s
       AND coalesce(resolved_at, 'infinity') >= %(since)s
     ORDER BY rule, key
"""


def load_troubles(
    connection: PooledConnection, rules: Collection[str], since: datetime, until: datetime
) -> tuple[Trouble, ...]:
    """Each rule of `rules` and key that an alert was told of and that was crossed in between."""
    values = {"rules": list(rules), "since": since, "until": until}
    return tuple(Trouble(**row) for row in connection.execute(_DURING, values))
