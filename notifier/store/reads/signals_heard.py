"""What providers let us know of: the last receipt of each, what it is silent about, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from notifier.store.reads.signals_stalled import WALKED

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

HEARD: Final = 2_000
"""Receipts, newest first, among which the last one of each provider is looked for."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a provider let us know of, ages in seconds (None: not lately).

    `awaiting`: messages that it accepted a while ago and has told nothing of since. `refused`:
    callbacks that were not believed since the last one that was.
    """

    provider: str
    awaiting: int = 0
    receipt_s: float | None = None
    refused: int = 0


# The ids of receipts are ordered by time, so the newest are at the end of the primary key. Of
# refused callbacks the minute of the last believed one is left out: order inside it is not known.
_HEARD: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    lately AS MATERIALIZED (
        SELECT provider, source, received_at FROM receipt ORDER BY receipt_id DESC LIMIT %(heard)s),
    told AS (
        SELECT provider, max(received_at) AS at,
               max(received_at) FILTER (WHERE source = 'callback') AS callback_at
          FROM lately GROUP BY provider),
    unheard AS (
        SELECT d.provider, count(*) AS awaiting
          FROM (SELECT provider, changed_at FROM delivery
                 WHERE state = 'accepted' AND NOT final_acceptance
                   AND expires_at > (SELECT now FROM clock)
                 ORDER BY expires_at LIMIT %(walked)s) d, clock
         WHERE d.changed_at < clock.now - %(silent)s
         GROUP BY d.provider),
    refused AS (
        SELECT r.provider, sum(r.n) AS n
          FROM clock CROSS JOIN rollup_count r LEFT JOIN told USING (provider)
         WHERE r.minute > (SELECT date_trunc('minute', now) FROM clock) - %(short)s
           AND r.signal = 'callback_refused'
           AND r.minute > coalesce(date_trunc('minute', told.callback_at), '-infinity')
         GROUP BY r.provider)
SELECT provider, coalesce(awaiting, 0)::int AS awaiting,
       extract(epoch FROM now - told.at)::float8 AS receipt_s,
       coalesce(refused.n, 0)::int AS refused
  FROM clock CROSS JOIN
       (SELECT provider FROM unheard UNION SELECT provider FROM refused) AS named
  LEFT JOIN unheard USING (provider) LEFT JOIN refused USING (provider)
  LEFT JOIN told USING (provider) ORDER BY provider
"""


def heard(
    connection: PooledConnection, *, lately: timedelta, silent: timedelta
) -> tuple[Heard, ...]:
    """The providers that there is something to tell of.

    A message is `awaiting` after `silent`; refused callbacks count within `lately`.
    """
    asked = {"walked": WALKED, "heard": HEARD, "short": lately, "silent": silent}
    return tuple(Heard(**row) for row in connection.execute(_HEARD, asked))
