"""What people write into episodes, each guarded by the version that they saw."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import psycopg

Row = dict[str, Any]
Connection = psycopg.Connection[Row]

ACKNOWLEDGE: Final = """
UPDATE alert_episode SET acknowledged_by = %(by)s, acknowledged_at = db_now(),
       acknowledge_note = %(text)s, version = version + 1
 WHERE episode_id = %(episode_id)s AND version = %(version)s AND state = 'open'
   AND acknowledged_by IS NULL
RETURNING episode_id
"""
UNACKNOWLEDGE: Final = """
WITH given_back AS (
    UPDATE alert_episode SET acknowledged_by = NULL, acknowledged_at = NULL,
           acknowledge_note = NULL, version = version + 1
     WHERE episode_id = %(episode_id)s AND version = %(version)s AND state = 'open'
       AND acknowledged_by IS NOT NULL
    RETURNING episode_id)
INSERT INTO alert_note (episode_id, at, by, text)
SELECT episode_id, db_now(), %(by)s, %(text)s FROM given_back
RETURNING episode_id
"""
NOTE: Final = """
INSERT INTO alert_note (episode_id, at, by, text)
SELECT episode_id, db_now(), %(by)s, %(text)s FROM alert_episode
 WHERE episode_id = %(episode_id)s AND state <> 'held'
RETURNING episode_id
"""

# Whoever was told of the beginning is told of the end.
RESOLVE: Final = """
WITH ended AS (
    UPDATE alert_episode SET state = 'resolved', resolved_at = db_now(), resolved_by = %(by)s,
           resolve_note = %(note)s, version = version + 1
     WHERE episode_id = %(episode_id)s AND version = %(version)s AND state = 'open'
    RETURNING episode_id),
    told AS (
        INSERT INTO alert_page (episode_id, kind, receiver, made_at, due_at)
        SELECT p.episode_id, 'resolved', p.receiver, clock.now, clock.now
          FROM alert_page p JOIN ended USING (episode_id),
               (SELECT db_now() AS now) AS clock
         WHERE p.kind = 'opened'
        ON CONFLICT DO NOTHING)
SELECT episode_id FROM ended
"""
REVIEW: Final = """
UPDATE alert_episode SET led_to_action = %(led)s, review_what = %(text)s,
       review_verdict = %(verdict)s, reviewed_by = %(by)s, reviewed_at = db_now(),
       version = version + 1
 WHERE episode_id = %(episode_id)s AND version = %(version)s AND state = 'resolved'
RETURNING episode_id
"""


def act(
    connection: Connection, statement: str, episode_id: UUID, *, version: int, **values: Any
) -> bool:
    """Carry out one of the acts above; False where the episode is not as it was seen."""
    given = {**values, "episode_id": episode_id, "version": version}
    return connection.execute(statement, given).fetchone() is not None


def note(connection: Connection, episode_id: UUID, *, by: str, text: str) -> bool:
    """Write beside an episode; False where there is none."""
    values = {"episode_id": episode_id, "by": by, "text": text}
    return connection.execute(NOTE, values).fetchone() is not None


def resolve(connection: Connection, episode_id: UUID, *, version: int, by: str, note: str) -> bool:
    """End an open episode and have it told; False where it is not as it was seen."""
    return act(connection, RESOLVE, episode_id, version=version, by=by, note=note)
