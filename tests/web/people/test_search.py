"""Finding a notice: by exact id, by destination, and never by likeness."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from flask import Flask

from notifier.accounts import rate_limits
from notifier.accounts.permissions import Role
from notifier.web.people.search import LONGEST
from tests import people_seed
from tests.database import Clock
from tests.people_fates import FATES
from tests.people_pages import Browser, audit_rows, signed_in

if TYPE_CHECKING:
    from notifier.store.database import Database

ADDRESS = "jana.moe@mail.example"
NUMBER = "+44 7700 900143"


def test_an_id_of_any_kind_leads_to_its_notice(support: Browser, notices: dict[str, UUID]) -> None:
    wanted = f"/n/{notices['failed']}"
    for text in ("T-1007", "evt-failed", "req-failed", "acct-failed", str(notices["failed"])):
        answer = support.find(f"  {text} ")
        assert (answer.status_code, answer.location) == (303, wanted), text


def test_what_is_pasted_with_its_surroundings_leads_there_too(
    support: Browser, notices: dict[str, UUID]
) -> None:
    wanted = f"/n/{notices['failed']}"
    for text in ("T-1007.", "“T-1007”", "#T-1007", "Ticket T-1007", f"http://127.0.0.1{wanted}"):
        assert support.find(text).location == wanted, text
    for text in (
        f"<{ADDRESS}>",
        f"Jana Moe <{ADDRESS}>",
        f"mailto:{ADDRESS}",
        f"(+44) {NUMBER[4:]}",
    ):
        page = support.get(str(support.find(text).location)).text
        assert str(notices["delivered"]) in page, text


def test_of_what_is_longer_than_any_name_and_address_nothing_is_looked_at(
    support: Browser, notices: dict[str, UUID]
) -> None:
    within = f"{'J' * (LONGEST - len(ADDRESS) - 2)}<{ADDRESS}>"
    assert len(within) == LONGEST
    assert support.find(within).status_code == 303
    beyond = support.find(f"J{within}")
    assert beyond.status_code == 422
    assert "Nothing was searched" in beyond.text


def test_what_is_not_found_says_what_to_do_on_the_phone(support: Browser) -> None:
    assert "search by their email address or phone number" in support.find("T-0").text
    nobody = support.get(str(support.find("nobody@mail.example").location)).text
    assert "request a new reset" in nobody


def test_an_account_with_several_notices_leads_to_a_list_newest_first(
    support: Browser, notices: dict[str, UUID]
) -> None:
    answer = support.find("acct-jana")
    assert answer.location == "/a/acct-jana"
    page = support.get("/a/acct-jana").text
    assert page.index(str(notices["delivered"])) < page.index(str(notices["complete"]))


@pytest.mark.parametrize("kind", ["t", "e", "r", "a"])
def test_a_deep_link_that_leads_nowhere_is_an_answer_and_offers_the_other_kinds(
    support: Browser, kind: str
) -> None:
    answer = support.get(f"/{kind}/nothing-here")
    assert answer.status_code == 200
    assert "Nothing found" in answer.text
    others = {"t", "e", "r", "a"} - {kind}
    assert all(f'href="/{each}/nothing-here"' in answer.text for each in others)


def test_an_unknown_notice_id_looks_like_any_other_miss(support: Browser) -> None:
    answer = support.get("/n/01910000-0000-7000-8000-000000000000")
    assert answer.status_code == 200
    assert "Nothing found" in answer.text


@pytest.mark.parametrize(
    "typed",
    [ADDRESS, ADDRESS.upper().replace("MAIL.EXAMPLE", "mail.example"), NUMBER, "0044 7700 900143"],
)
def test_a_destination_is_found_without_standing_in_any_address(
    support: Browser, notices: dict[str, UUID], typed: str
) -> None:
    answer = support.find(typed)
    assert answer.status_code == 303
    location = str(answer.location)
    assert location.startswith("/search?s=")
    page = support.get(location).text
    assert str(notices["delivered"]) in page
    for canary in (ADDRESS, "7700900143", "7700 900143", typed):
        assert canary not in location
        assert canary not in page


def test_p7_b109_a_searched_destination_is_kept_nowhere(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    for typed in (ADDRESS, NUMBER, "unknown.person@mail.example", "07700900143", "447700900143"):
        answer = support.find(typed)
        if answer.location:
            support.get(str(answer.location))
    with database.connection() as connection:
        dump = "".join(
            str(row)
            for table in ("read_audit", "search_token", "rate_window", "session")
            for row in connection.execute(f"SELECT * FROM {table}")  # noqa: S608
        )
    for canary in ("jana", "unknown.person", "7700900143", "900143"):
        assert canary not in dump


def test_a_search_belongs_to_one_session_and_ends_after_a_quarter_of_an_hour(
    app: Flask, database: Database, support: Browser, clock: Clock, notices: dict[str, UUID]
) -> None:
    location = str(support.find(ADDRESS).location)
    other = signed_in(app, database, Role.SUPPORT, "somebody-else")
    assert "That search has ended" in other.get(location).text
    assert str(notices["delivered"]) in support.get(location).text
    clock.advance(15 * 60)
    assert "That search has ended" in support.get(location).text


def test_every_look_up_is_written_down_before_it_is_answered(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    support.find("T-1007")
    support.get("/e/evt-failed")
    support.get(str(support.find(ADDRESS).location))
    support.get(f"/n/{notices['failed']}")
    seen = [(row["action"], row["object_kind"], row["object_ref"]) for row in audit_rows(database)]
    assert ("look_up", "id", "T-1007") in seen
    assert ("look_up", "event", "evt-failed") in seen
    assert ("view", "notice", str(notices["failed"])) in seen
    assert [kind for _, kind, _ in seen].count("destination") == 1
    assert all(row["person"] == support.name for row in audit_rows(database))


def test_without_a_record_of_the_look_nothing_is_shown(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    with database.connection() as connection:
        connection.execute("ALTER TABLE read_audit ADD CHECK (action = 'nothing')")
    for path in (f"/n/{notices['failed']}", "/pending", "/a/acct-jana", "/pending?format=csv"):
        answer = support.get(path)
        assert answer.status_code == 500
        assert "evt-" not in answer.text


def test_a_page_that_refreshes_itself_is_written_down_again_only_now_and_then(
    support: Browser, database: Database, clock: Clock, notices: dict[str, UUID]
) -> None:
    path = f"/n/{notices['email_pending']}"
    support.get(path)
    for _ in range(5):
        support.poll(path)
    assert len(audit_rows(database)) == 1
    clock.advance(11 * 60)
    support.poll(path)
    assert len(audit_rows(database)) == 2


def test_a_poll_that_nobody_opened_the_page_for_is_written_down(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    support.poll(f"/n/{notices['failed']}")
    assert [row["action"] for row in audit_rows(database)] == ["view"]


@pytest.mark.parametrize(
    "typed", ["_", "%", "T-100_", "T-10%", "acct-%", "evt_failed", "t-1007", "a"]
)
def test_b120_wildcards_and_other_spellings_match_nothing(
    support: Browser, notices: dict[str, UUID], typed: str
) -> None:
    answer = support.find(typed)
    assert answer.status_code in {200, 422}
    assert answer.location is None


@pytest.mark.parametrize(
    "typed", ["\\", "x" * 5000, "zażółć", "a b", "", "   ", "@", "a@", "+", "+1"]
)
def test_what_cannot_be_searched_is_told_in_words(support: Browser, typed: str) -> None:
    answer = support.find(typed)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize(
    "path", ["/t/T%00", "/e/evt%00-failed", "/n/%00", "/a/a%0Ab", "/r/a b", "/t/" + "x" * 129]
)
def test_b097_what_is_no_id_is_no_page_and_asks_the_database_nothing(
    support: Browser, database: Database, path: str
) -> None:
    answer = support.get(path)
    assert answer.status_code == 404
    assert audit_rows(database) == []


def test_b097_a_nul_in_the_form_or_the_query_is_refused_before_anything_is_looked_at(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    assert support.find("T-1007\0").status_code == 400
    assert support.find("T-1007\0x@mail.example").status_code == 400
    for path in ("/search?s=%00", "/pending?cursor=%00", "/pending?stage=%00", "/pending?%00=1"):
        assert support.get(path).status_code == 400
    assert audit_rows(database) == []


def test_a_number_without_its_country_is_not_guessed(support: Browser) -> None:
    answer = support.find("07700 900143")
    assert answer.status_code == 422
    assert "country code" in answer.text


def test_searching_is_limited_by_the_minute(support: Browser, clock: Clock) -> None:
    clock.freeze()
    for _ in range(5):
        assert support.find(ADDRESS).status_code == 303
    answer = support.find(ADDRESS)
    assert answer.status_code == 429
    assert "Wait" in answer.text
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    clock.advance(60)
    assert support.find(ADDRESS).status_code == 303


@pytest.mark.parametrize("path", ["/a/acct-none", "/t/T-none", "/e/evt-none", "/r/req-none"])
def test_an_id_in_an_address_counts_as_one_in_the_box(
    support: Browser, clock: Clock, path: str
) -> None:
    clock.freeze()
    for _ in range(rate_limits.LOOK_UPS.hits - 1):
        assert support.get(path).status_code == 200
    assert support.find("evt-none").status_code == 200
    assert support.find("evt-none").status_code == 429
    for form in ("", "?format=json", "?format=csv"):
        assert support.get(path + form).status_code == 429
    assert support.poll(path).status_code == 429
    clock.advance(60)
    assert support.get(path).status_code == 200


def test_results_come_as_json_and_csv_too(support: Browser, notices: dict[str, UUID]) -> None:
    found = support.get("/a/acct-jana?format=json").get_json()
    assert {row["event_id"] for row in found["rows"]} == {"evt-delivered", "evt-complete"}
    assert support.get("/a/acct-jana?format=csv").text.count("\r\n") == 3


def test_an_account_with_very_many_notices_says_that_it_shows_only_some(
    support: Browser, database: Database
) -> None:
    script = FATES[2].__class__(**FATES[2].__dict__ | {"account": "acct-busy"})
    with database.connection() as connection:
        people_seed.seed_many(connection, 201, script, same_instant=False)
    page = support.get("/a/acct-busy").text
    assert "200+ notices" in page
    assert page.count("<tr>") == 201


def test_results_have_one_row_for_each_reset_request(
    support: Browser, notices: dict[str, UUID]
) -> None:
    page = support.get("/a/acct-jana").text
    rows = page.split("<tbody")[1].split("<tr")[1:]
    told = [re.findall(r"<code>(req-[^<]+)", row) for row in rows]
    assert told == [["req-delivered"], ["req-complete"]]


def test_a_destination_that_leads_nowhere_says_so_with_its_mask_alone(support: Browser) -> None:
    page = support.get(str(support.find("nobody@mail.example").location)).text
    assert "Nothing found for this email address" in page
    assert "older than destinations are kept" in page
    assert "nobody" not in page
