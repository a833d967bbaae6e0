"""When a provider says that something happened: a time that every page can show, or none."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from notifier.providers.receipt_parts import iso_time, mail_time

ZONES = [ZoneInfo(name) for name in ("Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC")]


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1999-12-31T23:59:59Z",
        "2100-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00",
    ],
)  # fmt: skip
def test_a_time_at_the_ends_of_the_calendar_is_none(text: str) -> None:
    assert iso_time(text) is None


@pytest.mark.parametrize(
    "text", ["Fri, 31 Dec 9999 23:59:59 +0000", "Mon, 01 Jan 1900 00:00:00 +0000"]
)
def test_a_mail_time_far_from_now_is_none(text: str) -> None:
    assert mail_time(text) is None


@pytest.mark.parametrize("text", ["2000-01-01T00:00:00Z", "2099-12-31T23:59:59.999999Z"])
def test_a_time_of_this_century_can_be_shown_in_every_zone(text: str) -> None:
    found = iso_time(text)
    assert found == datetime.fromisoformat(text)
    assert len({found.astimezone(zone) for zone in ZONES}) == 1
