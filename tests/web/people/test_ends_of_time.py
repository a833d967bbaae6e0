"""Times, days and numbers that no calendar or column holds are refused with a word, never a 500."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

OUTSIDE = [
    "0000-01-01T00:00Z", "0001-01-01T00:00Z", "0001-01-01T00:01", "1969-12-31T23:59Z",
    "1999-12-31T23:59Z", "2100-01-01T00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00Z",
    "2026-01-01T24:01Z", "202\u0666-01-01T00:00Z",
]  # fmt: skip


@pytest.fixture
def auditor(sign_in: SignIn) -> Browser:
    return sign_in(Role.AUDITOR)


@pytest.mark.parametrize("at", OUTSIDE)
@pytest.mark.parametrize(
    "range_", ["since={}", "until={}", "since={}&until={}", "until={}&event=e"]
)
def test_an_incident_outside_the_calendar_is_refused_with_the_field(
    on_call: Browser, range_: str, at: str
) -> None:
    answer = on_call.get(f"/incident?{range_.replace('{}', at)}")
    assert answer.status_code == 422
    assert re.search("“(since|until)”", answer.text)
    assert on_call.get(f"/incident?{range_.replace('{}', at)}&format=json").status_code == 422


@pytest.mark.parametrize(
    "range_",
    [
        "since=2000-01-01T00:00Z&until=2000-01-01T01:00Z",
        "since=2000-01-01T00:00Z&until=2000-01-02T00:00Z",
        "since=2099-12-31T22:00Z&until=2099-12-31T23:59:59Z",
        "since=2099-12-30T23:59Z&until=2099-12-31T23:59Z",
    ],
)
def test_the_first_and_the_last_hours_are_shown_in_every_zone(
    on_call: Browser, range_: str
) -> None:
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"):
        assert on_call.post("/preferences", zone=zone).status_code == 303
        for form in ("", "&format=csv", "&format=json"):
            assert on_call.get(f"/incident?{range_}{form}").status_code == 200


def test_a_preset_does_not_lead_to_an_address_that_is_refused(on_call: Browser) -> None:
    answer = on_call.get("/incident?until=2000-01-01T00:30Z")
    assert answer.status_code == 422
    assert "“until”" in answer.text


ORDERS: list[tuple[str, dict[str, str], str]] = [
    *[(what, {}, "id") for what in ("account", "ticket", "event", "reset_request")],
    ("account", {"id": "a b"}, "id"),
    *[
        ("audit", {name: day}, name)
        for name in ("since", "until")
        for day in ("2026-02-31", "2099-11-31", "0001-01-01", "9999-12-31", "20\u0662\u0666-01-01")
    ],
    ("audit", {"since": "2026-02-01", "until": "2026-01-31"}, "since"),
    ("sender_domains", {"verdict": "odd"}, "verdict"),
    ("failures", {"range": "9y"}, "range"),
    ("pending", {"stage": "odd"}, "stage"),
    ("trail", {"since": "2026-02-31"}, "since"),
    ("trail", {"until": "9999-12-31"}, "until"),
    ("trail", {"since": "2026-02-01", "until": "2026-01-31"}, "since"),
]


def kept(database: Database) -> dict[str, Any]:
    """What an order leaves behind."""
    with database.connection() as connection:
        row = connection.execute(
            """SELECT (SELECT count(*) FROM export) AS exports,
                      (SELECT count(*) FROM export_part) AS parts,
                      (SELECT count(*) FROM rate_window WHERE name LIKE 'export:%') AS counted"""
        ).fetchone()
    assert row
    looks = [each for each in audit_rows(database) if each["action"] == "export"]
    return {**row, "looks": len(looks)}


@pytest.mark.parametrize(("what", "fields", "field"), ORDERS)
def test_an_order_that_cannot_be_made_is_refused_before_anything_is_kept(
    auditor: Browser, database: Database, what: str, fields: dict[str, str], field: str
) -> None:
    path = "/exports/trail" if what == "trail" else f"/exports/new/{what}"
    answer = auditor.post(path, format="csv", **fields)
    assert answer.status_code == 422
    assert f"“{field}”" in answer.text
    assert kept(database) == {"exports": 0, "parts": 0, "counted": 0, "looks": 0}
    if what != "trail":
        form = auditor.client.get(path, query_string=fields)
        assert form.status_code == 422, "no form is offered for it either"


def test_what_was_refused_costs_none_of_the_hours_three(
    auditor: Browser, notices: dict[str, UUID]
) -> None:
    for _ in range(4):
        assert auditor.post("/exports/new/account", format="csv").status_code == 422
    for _ in range(3):
        assert auditor.post("/exports/new/pending", format="csv").status_code == 303


@pytest.mark.parametrize(
    "path",
    [
        "/audit?since=0001-01-01", "/audit?until=9999-12-31", "/audit?since=2099-02-29",
        "/audit?since=2026-02-01&until=2026-01-31", "/policy?before=0", "/policy?before=9999999999",
        "/expired?cursor=0001-01-01", "/failures?range=9999d", "/alerts/rules?days=99999999999",
        "/pending?size=99999999999999999999", "/exports?cursor=9999", "/alerts?cursor=x",
    ],
)  # fmt: skip
def test_other_pages_refuse_what_no_calendar_holds(auditor: Browser, path: str) -> None:
    assert auditor.get(path).status_code == 422


@pytest.mark.parametrize(
    "path",
    ["/policy/revisions/99999999999999999999", f"/policy/revisions/{'9' * 400}"],
)
def test_a_number_that_nothing_has_is_not_found(on_call: Browser, path: str) -> None:
    assert on_call.get(path).status_code == 404
