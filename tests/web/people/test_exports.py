"""Exports: exactly the list, masked, with a manifest that proves it; large ones survive."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from notifier.flow import exports as flow
from notifier.flow.exports import Exporter
from notifier.flow.trail_exports import TrailWriter
from notifier.store.reads import trail, trail_export
from notifier.store.reads.trail_export import Scope
from notifier.web.people.export_sources import SOURCES
from tests import people_seed
from tests.database import rewriting
from tests.people_fates import FATES, QUEUED, Script
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from werkzeug.test import TestResponse

    from notifier.store.database import Database
    from tests.database import Clock
    from tests.web.people.conftest import SignIn

MANY = Script("many", "email_pending", QUEUED, age=40)


@pytest.fixture
def auditor(sign_in: SignIn) -> Browser:
    return sign_in(Role.AUDITOR)


def take(browser: Browser, what: str, form: str, **filters: str) -> str:
    """The address of the export that was ordered."""
    answer = browser.post(f"/exports/new/{what}", format=form, **filters)
    assert answer.status_code == 303, answer.text
    return str(answer.location)


def fetched(browser: Browser, where: str) -> tuple[TestResponse, dict[str, Any]]:
    """The file and its manifest, whose word is checked."""
    answer = browser.get(f"{where}/file")
    assert answer.status_code == 200
    manifest: dict[str, Any] = json.loads(browser.get(f"{where}/manifest").text)
    assert hashlib.sha256(answer.data).hexdigest() == manifest["sha256"]
    assert len(answer.data) == manifest["bytes"]
    return answer, manifest


def rows_of(answer: TestResponse, form: str) -> list[dict[str, Any]]:
    match form:
        case "csv":
            return list(csv.DictReader(io.StringIO(answer.text, newline="")))
        case "ndjson":
            return [json.loads(line) for line in answer.text.splitlines()]
        case _:
            return list(json.loads(answer.text)["rows"])


@pytest.mark.parametrize("form", ["csv", "json", "ndjson"])
@pytest.mark.parametrize("what", ["pending", "unknown", "expired", "failures", "halts", "audit"])
def test_a_file_holds_exactly_the_rows_of_its_list_and_the_manifest_proves_it(
    auditor: Browser, notices: dict[str, UUID], what: str, form: str
) -> None:
    answer, manifest = fetched(auditor, take(auditor, what, form))
    rows = rows_of(answer, form)
    assert manifest["rows"] == len(rows)
    assert (manifest["list"], manifest["format"], manifest["time_zone"]) == (what, form, "UTC")
    assert manifest["made_for"]["person"] == auditor.name
    assert manifest["product_version"] == "0.0"
    if what in {"pending", "unknown", "expired"}:
        page = auditor.get(f"/{what}?format=json").get_json()["rows"]
        assert [row["event_id"] for row in rows] == [row["event_id"] for row in page]
        assert [each for each in manifest["masked_fields"] if each not in page[0]] == []
        assert manifest["masked_fields"]


def test_more_rows_than_one_read_takes_come_in_full_and_in_order(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 520, MANY)
    answer, manifest = fetched(on_call, take(on_call, "pending", "json"))
    rows = rows_of(answer, "json")
    assert manifest["rows"] == len({row["event_id"] for row in rows}) == 520
    ids = [UUID(row["notification_id"]) for row in rows]
    assert ids == sorted(ids)


def test_a_filter_goes_with_the_file_in_words_and_as_parameters(
    on_call: Browser, notices: dict[str, UUID]
) -> None:
    page = on_call.get("/pending?stage=accepted").text
    link = re.search(r'href="(/exports/new/pending[^"]*)"', page)
    assert link
    assert "stage is accepted" in on_call.get(link[1]).text
    answer, manifest = fetched(on_call, take(on_call, "pending", "ndjson", stage="accepted"))
    assert [row["event_id"] for row in rows_of(answer, "ndjson")] == ["evt-accepted"]
    assert manifest["filter"] == {
        "words": "stage is accepted", "parameters": {"stage": "accepted"},
    }  # fmt: skip


def test_a_region_narrows_the_file_as_it_narrows_the_list(
    on_call: Browser, notices: dict[str, UUID], database: Database
) -> None:
    with database.connection() as connection, rewriting(connection, "reset_event"):
        connection.execute(
            "UPDATE reset_event SET region = 'DE' WHERE notice_id = %s", [notices["failed"]]
        )
    path = "/failures?range=7d&region=DE&channel=email&format=json"
    page = on_call.get(path).get_json()["rows"]
    asked = {"range": "7d", "region": "DE", "channel": "email"}
    answer, _ = fetched(on_call, take(on_call, "failures", "ndjson", **asked))
    assert [(row["event_id"], row["seq"]) for row in rows_of(answer, "ndjson")] == [
        (row["event_id"], row["seq"]) for row in page
    ]
    assert {row["event_id"] for row in page} == {"evt-failed"}


def test_list_count_and_file_agree_for_twenty_random_filters(
    on_call: Browser, database: Database, clock: Clock
) -> None:
    chance = random.Random(20_261_130)
    with database.connection() as connection:
        for place in range(40):
            fate = chance.choice(FATES)
            copy = replace(fate, name=f"{fate.name}-{place}", ticket=None, age=fate.age + place)
            people_seed.seed(connection, [copy])
    clock.freeze()
    for _ in range(20):
        what, filters = chance.choice(
            [
                (
                    "pending",
                    {"stage": chance.choice(["waiting", "sending", "unknown", "accepted"])},
                ),
                ("unknown", {"channel": chance.choice(["email", "sms"])}),
                ("unknown", {"provider": chance.choice(["smtp", "twilio", "nobody"])}),
                ("expired", {}),
                ("expired", {"region": chance.choice(["GB", "DE"])}),
            ]
        )
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        page = on_call.get(f"/{what}?{query}").text
        shown = re.search(r'<b class="digits">([\d,]+)</b>', page)
        listed = on_call.get(f"/{what}?{query}&format=json").get_json()["rows"]
        with database.connection() as connection:
            connection.execute("DELETE FROM rate_window")
        answer, manifest = fetched(on_call, take(on_call, what, "csv", **filters))
        assert shown
        assert int(shown[1]) == len(listed) == manifest["rows"] == len(rows_of(answer, "csv"))


def test_b126_no_cell_of_a_file_is_a_formula_and_json_keeps_the_text(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, [FATES[5]])
        connection.execute("UPDATE delivery SET provider = '=cmd|calc', reason = '@SUM(A1)'")
    where = take(on_call, "unknown", "csv")
    answer, _ = fetched(on_call, where)
    assert '"\'=cmd|calc"' in answer.text
    assert '"\'@SUM(A1)"' in answer.text
    assert answer.text.endswith("\r\n")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    name = r'attachment; filename="unknown-\d{8}T\d{6}Z-[0-9a-f]{8}\.csv"'
    assert re.fullmatch(name, answer.headers["Content-Disposition"])
    lossless, _ = fetched(on_call, take(on_call, "unknown", "json"))
    assert rows_of(lossless, "json")[0]["provider"] == "=cmd|calc"


def test_p7_no_file_holds_more_of_a_destination_than_its_mask(
    auditor: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    for what in SOURCES:
        with database.connection() as connection:
            connection.execute("DELETE FROM rate_window")
        filters = {"id": "acct-jana"} if "id" in SOURCES[what].filters else {}
        answer, _ = fetched(auditor, take(auditor, what, "json", **filters))
        assert "jana.moe" not in answer.text
        assert "7700900" not in answer.text


def test_a_large_export_is_left_to_the_sweep_and_outlives_whoever_began_it(
    on_call: Browser, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 30, MANY)
    monkeypatch.setattr(flow, "BATCH", 7)
    monkeypatch.setattr(flow, "AT_ONCE_ROWS", 7)
    where = take(on_call, "pending", "json")
    assert "in work" in on_call.poll(where).text
    assert on_call.get(f"{where}/file").status_code == 404
    with database.connection() as connection:
        people_seed.seed(connection, [replace(MANY, name="later", age=0)])
        monkeypatch.setattr(flow, "SLICE_S", 0.0)
        Exporter(database, SOURCES).run_due(connection)
        connection.execute("UPDATE export SET leased_until = db_now() + interval '1 min'")
        assert Exporter(database, SOURCES).run_due(connection) == 0, "another works on it"
        clock.advance(61)
        monkeypatch.setattr(flow, "SLICE_S", 60.0)
        assert Exporter(database, SOURCES).run_due(connection) == 1
    answer, manifest = fetched(on_call, where)
    names = [row["event_id"] for row in rows_of(answer, "json")]
    assert len(set(names)) == len(names) == manifest["rows"] == 30


def test_the_trail_of_a_notice_comes_as_the_command_writes_it(
    auditor: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    notice = notices["delivered"]
    answer = auditor.post("/exports/trail", notice=str(notice))
    assert answer.status_code == 303
    file, manifest = fetched(auditor, str(answer.location))
    scope, written = Scope(notice), bytearray()
    with database.connection() as connection, trail.snapshot(connection):
        found = trail_export.records(connection, scope)
        trail_export.write(found, scope, keys={}, version="0.0", out=written.extend)
    assert file.data == bytes(written)
    assert manifest["rows"] == file.text.count('"kind":"transition"') > 5
    assert manifest["filter"]["parameters"] == {"notice": str(notice)}


def test_the_trail_of_days_is_left_to_the_sweep(
    auditor: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    answer = auditor.post("/exports/trail", since="2026-01-01", until="2099-12-31")
    where = str(answer.location)
    assert auditor.get(f"{where}/file").status_code == 404
    with database.connection() as connection:
        Exporter(database, SOURCES, TrailWriter({}, "0.0")).run_due(connection)
    file, manifest = fetched(auditor, where)
    assert manifest["rows"] > 50
    assert str(notices["failed"]) in file.text


@pytest.mark.parametrize("fields", [{}, {"notice": "x"}, {"since": "2026-02-30"}, {"since": "1"}])
def test_an_order_for_no_trail_is_named_as_such(auditor: Browser, fields: dict[str, str]) -> None:
    assert auditor.post("/exports/trail", **fields).status_code == 422


def test_a_file_is_erased_after_a_day_and_its_digest_stays(
    on_call: Browser, database: Database, notices: dict[str, UUID], clock: Clock
) -> None:
    where = take(on_call, "pending", "csv")
    _, manifest = fetched(on_call, where)
    clock.advance(24 * 3600 + 1)
    with database.connection() as connection:
        Exporter(database, SOURCES).run_due(connection)
        left = connection.execute("SELECT count(*) AS parts FROM export_part").fetchone()
        connection.execute("UPDATE session SET seen_at = db_now(), expires_at = 'infinity'")
    assert left == {"parts": 0}
    assert on_call.get(f"{where}/file").status_code == 404
    page = on_call.get(where).text
    assert "has been erased" in page
    assert manifest["sha256"] in page


def test_an_export_that_fails_again_and_again_is_given_up_and_holds_up_no_other(
    on_call: Browser, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "AT_ONCE_S", 0.0)
    bad, good = take(on_call, "pending", "csv"), take(on_call, "expired", "csv")
    exporter = Exporter(database, {"expired": SOURCES["expired"]})
    with database.connection() as connection:
        for _ in range(8):
            exporter.run_due(connection)
            clock.advance(61)
    assert "could not be made" in on_call.get(bad).text
    assert "Download" in on_call.get(good).text


def test_three_exports_an_hour_and_then_a_wait(
    on_call: Browser, notices: dict[str, UUID], clock: Clock
) -> None:
    for _ in range(3):
        take(on_call, "pending", "csv")
    answer = on_call.post("/exports/new/pending", format="csv")
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


def test_everybody_sees_their_own_exports_and_auditors_all(
    on_call: Browser, auditor: Browser, support: Browser, notices: dict[str, UUID]
) -> None:
    where = take(on_call, "pending", "csv")
    theirs = take(auditor, "expired", "csv")
    assert f'href="{where}"' in on_call.get("/exports").text
    assert f'href="{theirs}"' not in on_call.get("/exports").text
    assert on_call.get(f"{theirs}/file").status_code == 404
    assert f'href="{where}"' in auditor.get("/exports").text
    fetched(auditor, where)
    assert "Your role takes nothing out" in support.get("/exports").text
    assert support.get("/exports/new/pending").status_code == 403
    assert support.get(f"{where}/file").status_code == 403


def test_nobody_takes_out_what_they_may_not_see(on_call: Browser) -> None:
    assert on_call.get("/exports/new/audit").status_code == 403
    assert on_call.post("/exports/new/audit", format="csv").status_code == 403
    assert on_call.get("/exports/new/people").status_code == 404


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"format": "xml"}, "format"), ({"format": "csv", "stage": "<b>"}, "stage")],
)
def test_an_odd_order_names_the_field_and_makes_nothing(
    on_call: Browser, database: Database, fields: dict[str, str], field: str
) -> None:
    answer = on_call.post("/exports/new/pending", **fields)
    assert answer.status_code == 422
    assert f"“{field}”" in answer.text
    with database.connection() as connection:
        assert connection.execute("SELECT FROM export").fetchall() == []


def test_an_export_and_its_download_are_written_down(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    where = take(on_call, "pending", "csv", reason="HD-12")
    fetched(on_call, where)
    export_id = where.rpartition("/")[2]
    told = [
        (row["action"], row["object_kind"], row["object_ref"], row["hits"], row["outcome"])
        for row in audit_rows(database)
        if row["action"] in {"export", "download"}
    ]
    assert told == [
        ("export", "pending", None, None, "asked"), ("export", "pending", export_id, 4, "done"),
        ("download", "export", export_id, 4, "shown"),
    ]  # fmt: skip
    assert "HD-12" in {row["reason"] for row in audit_rows(database)}


def test_an_export_that_cannot_be_written_down_is_not_made(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    with database.connection() as connection:
        connection.execute("ALTER TABLE read_audit ADD CHECK (action <> 'export')")
    assert on_call.post("/exports/new/pending", format="csv").status_code == 500
    with database.connection() as connection:
        assert connection.execute("SELECT FROM export").fetchall() == []
