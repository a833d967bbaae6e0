"""When a replay may be authorised: only while the outcome is unknown, once, and while it helps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from notifier.domain.replay import ReplayView, may_replay
from notifier.domain.states import DeliveryState

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
GOOD = ReplayView(
    state=DeliveryState.UNKNOWN,
    is_open=True,
    authorised=False,
    started=False,
    canceled=False,
    fallback_taken=False,
    now=NOON,
    stop_at=NOON + timedelta(microseconds=1),
)


def test_an_open_unknown_attempt_with_time_left_may_be_repeated() -> None:
    assert may_replay(GOOD)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"is_open": False},
        {"authorised": True},
        {"started": True},
        {"canceled": True},
        {"fallback_taken": True},
        {"stop_at": NOON},
        *({"state": state} for state in DeliveryState if state is not DeliveryState.UNKNOWN),
    ],
    ids=str,
)
def test_p3_each_condition_alone_forbids_a_replay(spoilt: dict[str, object]) -> None:
    assert not may_replay(replace(GOOD, **spoilt))  # type: ignore[arg-type]
