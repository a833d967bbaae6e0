"""B072: neither the zone of the process nor that of its session moves an instant."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from notifier.domain.outcome import Accepted
from notifier.store.database import Database
from tests.database import Clock
from tests.db import chain
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON

ZONES = ("UTC", "Asia/Kolkata", "America/New_York")


@pytest.fixture(params=ZONES)
def process_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def in_zone(url: str, zone: str) -> Rig:
    options = f"-c timezone={zone}"
    database = Database(url, search_path="test_clock,notifier", extra_options=options)
    return Rig(database, channels=BOTH)


def instants(rig: Rig) -> dict[str, Any]:
    """Every time that was stored, as seconds that no zone can touch."""
    query = """
        SELECT extract(epoch FROM a.requested_at) AS requested,
               extract(epoch FROM a.stop_at) AS stop, extract(epoch FROM a.expires_at) AS expires,
               extract(epoch FROM n.fallback_at) AS fb, extract(epoch FROM n.created_at) AS made,
               extract(epoch FROM d.stop_at) AS email_stop,
               (SELECT string_agg(remaining_us || coalesce(evidence ->> 'fallback_at', ''), ' '
                                  ORDER BY seq) FROM transition) AS left
          FROM admission a JOIN notice n USING (notice_id)
          JOIN delivery d USING (notice_id) WHERE d.channel = 'email'
    """
    return rig.one(query)


@pytest.mark.parametrize("session_zone", ZONES)
def test_b072_the_stored_instants_are_the_same_everywhere(
    database_url: str, clock: Clock, process_zone: str, session_zone: str
) -> None:
    clock.freeze(NOON)
    rig = in_zone(database_url, session_zone)
    there = NOON.astimezone(ZoneInfo(process_zone))

    rig.admit_for_both(
        requested_at=there,
        expires_at=datetime.fromtimestamp(NOON.timestamp() + 600, ZoneInfo(session_zone)),
    )

    noon = int(NOON.timestamp())
    assert instants(rig) == {
        "requested": noon,
        "stop": noon + 585,
        "expires": noon + 600,
        "fb": noon + 300,
        "email_stop": noon + 585,
        "made": noon,
        "left": "600000000 600000000 6000000002026-03-01T12:05:00.000000Z",
    }
    rig.database.close()


def test_b072_nothing_starts_after_the_real_stop_time_in_any_zone(
    database_url: str, clock: Clock, process_zone: str
) -> None:
    clock.freeze(NOON)
    rig = in_zone(database_url, "America/New_York")
    rig.admit()
    rig.admit()
    claim = rig.start()
    rig.record(claim, Accepted("id-1"))

    clock.freeze(claim.stop_at)

    assert claim.stop_at.timestamp() == NOON.timestamp() + 585
    assert rig.claim(5) == []
    assert chain.verify_at(database_url) == rig.count("transition")
    rig.database.close()
