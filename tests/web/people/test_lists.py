"""Lists: complete under equal times, filters in the address, the same rows for programs."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.store.database import Database
from notifier.store.reads import expired
from tests import people_seed
from tests.database import Clock, rewriting
from tests.people_fates import EXPIRED_UNKNOWN, EXPIRED_UNSENT, QUEUED, TEXTED, UNKNOWN, Script
from tests.people_pages import Browser
from tests.signals import seeding

if TYPE_CHECKING:
    from flask import Flask

    from notifier.web.people.services import PeopleServices

LISTS = {
    "/pending": Script("many", "email_pending", QUEUED, age=40),
    "/unknown": Script("many", "email_pending", UNKNOWN, age=100),
    "/expired": Script("many", "expired", EXPIRED_UNKNOWN, age=400, life=300),
}
NEWLY = {
    "/pending": Script("newly", "email_pending", QUEUED, age=-1),
    "/unknown": Script("newly", "email_pending", UNKNOWN, age=-1),
    "/expired": Script("newly", "expired", EXPIRED_UNKNOWN, age=290, life=300),
}
"""Notices that come to the list after its first page was read."""
BOTH_BUSY = TEXTED[:-2]
"""The email's outcome is unknown, the text is being sent."""
_EVENT = re.compile(r'<a href="/n/[^"]+">(evt-[\w-]+)</a>\s*<(?:tr|/tbody)>')
_NEXT = re.compile(r'rel="next" href="([^"]+)"')
_PREV = re.compile(r'rel="prev" href="([^"]+)"')


def events(page: str) -> list[str]:
    return _EVENT.findall(page)


def linked(pattern: re.Pattern[str], page: str) -> str | None:
    found = pattern.search(page)
    return found[1].replace("&amp;", "&") if found else None


@pytest.fixture(params=LISTS)
def crowded(request: pytest.FixtureRequest, database: Database) -> str:
    """A list with two hundred rows of the very same times."""
    path = str(request.param)
    with database.connection() as connection:
        people_seed.seed_many(connection, 200, LISTS[path])
    return path


def test_two_hundred_rows_of_one_instant_page_through_completely_there_and_back(
    support: Browser, crowded: str
) -> None:
    there: list[list[str]] = []
    at: str | None = crowded
    last: str | None = None
    while at:
        page = support.get(at).text
        there.append(events(page))
        last, at = at, linked(_NEXT, page)
    assert [len(each) for each in there] == [50, 50, 50, 50]
    assert len({event for each in there for event in each}) == 200
    back: list[list[str]] = []
    at = last
    while at:
        page = support.get(at).text
        back.append(events(page))
        at = linked(_PREV, page)
    assert back[::-1] == there


def test_new_rows_are_counted_and_shift_no_page(
    support: Browser, crowded: str, database: Database
) -> None:
    first = support.get(crowded).text
    second = linked(_NEXT, first)
    assert second
    before = events(support.get(second).text)
    with database.connection() as connection:
        people_seed.seed_many(connection, 3, NEWLY[crowded])
    for answer in (support.get(second), support.poll(second)):
        assert events(answer.text) == before
        assert "+3 new since" in answer.text
        assert '<b class="digits">200</b>' in answer.text
    assert '<b class="digits">203</b>' in support.get(crowded).text
    back = linked(_PREV, support.get(second).text)
    assert back
    assert events(support.get(back).text) == events(first)


@pytest.mark.parametrize("path", [*LISTS, "/failures", "/halts", "/exports"])
def test_every_list_names_what_it_ignores_and_refuses_what_is_odd(
    support: Browser, path: str
) -> None:
    assert "<code>colour</code>" in support.get(f"{path}?colour=red").text
    for odd in ("size=7", "live=maybe", "format=xml", "cursor=forged"):
        answer = support.get(f"{path}?{odd}")
        assert answer.status_code == 422
        assert f"“{odd.split('=')[0]}”" in answer.text


@pytest.mark.parametrize("path", [*LISTS, "/failures", "/halts", "/exports"])
def test_a_store_that_does_not_answer_is_told_and_never_shown_as_nothing(
    app: Flask, support: Browser, path: str
) -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/none", acquire_timeout_s=0.2)
    services: PeopleServices = app.extensions["notifier.people"]
    app.extensions["notifier.people"] = replace(services, database=away)
    for answer in (support.get(path), support.poll(path), support.get(f"{path}?format=json")):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
        assert 'class="digits"' not in answer.text


def test_unknown_can_be_filtered_by_channel_and_provider(
    support: Browser, notices: dict[str, UUID]
) -> None:
    everything = set(events(support.get("/unknown").text))
    assert set(events(support.get("/unknown?channel=email&provider=smtp").text)) == everything
    page = support.get("/unknown?channel=sms").text
    assert events(page) == []
    assert "The filter hides the others" in page
    assert '<b class="digits">0</b>' in page


def test_unknown_tells_why_outcomes_were_lost_lately_though_all_are_settled(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        now = people_seed.database_now(connection)
        for reason, provider, n in (("timeout", "postmark", 4), ("gateway_error", "twilio", 1)):
            seeding.count(connection, now, "unknown", n, reason=reason, provider=provider)
        old = now - timedelta(minutes=20)
        seeding.count(connection, old, "unknown", 9, reason="timeout", provider="postmark")
    page = support.get("/unknown").text
    assert "No outcome is unknown." in page
    assert "<b>4</b> timeout · <b>1</b> gateway error." in page
    narrowed = support.get("/unknown?provider=twilio").text
    assert "settled since or not: <b>1</b> gateway error." in narrowed


def test_pending_tells_what_hinders_work_whatever_its_stage(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    assert "What hinders" not in support.get("/pending").text
    with database.connection() as connection:
        connection.execute("UPDATE delivery SET reason = 'link_unavailable' WHERE state = 'queued'")
        connection.execute(
            "UPDATE delivery SET lease_until = db_now() - interval '1 s'"
            " WHERE lease_owner IS NOT NULL"
        )
    for path in ("/pending", "/pending?stage=unknown"):
        page = support.get(path).text
        assert "the auth service gives no link; it is asked again" in page
        assert "a worker has it and has been silent for longer than it may" in page


def test_unknown_since_when_the_call_ended_however_often_it_was_looked_up(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    before = support.get("/unknown?format=json").get_json()["rows"]
    with database.connection() as connection:
        connection.execute("UPDATE delivery SET absent_looks = 2, changed_at = db_now()")
    after = support.get("/unknown?format=json").get_json()["rows"]
    assert [row["since"] for row in after] == [row["since"] for row in before]


def test_only_who_may_act_is_led_to_the_acts(
    support: Browser, on_call: Browser, notices: dict[str, UUID]
) -> None:
    link = f'href="/n/{notices["unknown"]}#act"'
    assert link in on_call.get("/unknown").text
    assert link not in support.get("/unknown").text


def test_fifty_rows_with_ways_to_act_stay_within_the_bound(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 60, LISTS["/unknown"])
    assert len(on_call.poll("/unknown").data) <= 25_000


def test_the_list_json_and_csv_agree(support: Browser, crowded: str) -> None:
    page = events(support.get(crowded).text)
    document = support.get(crowded + "?format=json").get_json()
    sheet = list(csv.DictReader(io.StringIO(support.get(crowded + "?format=csv").text)))
    assert [row["event_id"] for row in document["rows"]] == page
    assert [row["event_id"] for row in sheet] == page
    after = support.get(document["later"]).get_json()
    assert len(after["rows"]) == 50
    assert not {row["event_id"] for row in after["rows"]} & set(page)


def test_fifty_rows_stay_under_sixty_kilobytes_and_their_refresh_under_twenty_five(
    support: Browser, crowded: str
) -> None:
    assert len(support.get(crowded).data) <= 60_000
    assert len(support.poll(crowded).data) <= 25_000


def test_rows_with_two_busy_channels_and_long_ids_stay_within_it_too(
    support: Browser, database: Database
) -> None:
    name = "01jdf0z8q3x7k2m9v5t4w6y8n1"
    script = Script(name, "text_pending", BOTH_BUSY, age=140, sms="+447700900143")
    with database.connection() as connection:
        people_seed.seed_many(connection, 50, script)
    assert 'text <b class="waiting">' in support.poll("/pending").text
    assert len(support.poll("/pending").data) <= 25_000


def test_the_count_is_that_of_the_whole_filtered_list(support: Browser, crowded: str) -> None:
    assert '<b class="digits">200</b>' in support.get(crowded).text


def test_least_validity_left_comes_first(support: Browser, database: Database) -> None:
    with database.connection() as connection:
        for life in (900, 300, 600):
            people_seed.seed(
                connection, [replace(LISTS["/pending"], name=f"life-{life}", life=life)]
            )
    assert events(support.get("/pending").text) == ["evt-life-300", "evt-life-600", "evt-life-900"]


@pytest.mark.parametrize(
    ("stage", "names"),
    [
        ("waiting", {"evt-email_pending"}),
        ("sending", {"evt-on_its_way"}),
        ("unknown", {"evt-unknown"}),
        ("accepted", {"evt-accepted"}),
        ("all", {"evt-email_pending", "evt-on_its_way", "evt-unknown", "evt-accepted"}),
    ],
)
def test_a_filter_on_pending_shows_what_stands_there(
    support: Browser, notices: dict[str, UUID], stage: str, names: set[str]
) -> None:
    page = support.get(f"/pending?stage={stage}").text
    assert set(events(page)) == names
    assert f'<b class="digits">{len(names)}</b>' in page


def test_unknown_lists_state_unknown_alone(support: Browser, notices: dict[str, UUID]) -> None:
    assert set(events(support.get("/unknown").text)) == {"evt-unknown", "evt-delivered"}


def test_expired_carries_its_two_badges(support: Browser, notices: dict[str, UUID]) -> None:
    rows = {
        row["event_id"]: (row["arrived_in_time_learnt_late"], row["arrived_dead"])
        for row in support.get("/expired?format=json").get_json()["rows"]
    }
    assert rows == {
        "evt-expired_unsent": (False, False),
        "evt-expired_unknown": (False, False),
        "evt-expired_late_news": (True, False),
        "evt-expired_dead_link": (False, True),
    }
    page = support.get("/expired").text
    assert page.count("learnt late, occurred in time") == 1
    assert page.count("delivered dead") == 1


def test_expired_tells_in_a_yes_or_no_whether_a_message_was_sent(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    assert '<th scope="col">Message sent?' in support.get("/expired").text
    assert ends(support) == {
        "evt-expired_unsent": "No, nothing was sent",
        "evt-expired_unknown": "Perhaps, nobody could confirm it",
        "evt-expired_late_news": "Yes learnt late, occurred in time",
        "evt-expired_dead_link": "Yes delivered dead",
    }
    with database.connection() as connection:
        connection.execute(
            "UPDATE delivery SET left_at = changed_at WHERE notice_id = %s",
            [notices["expired_unknown"]],
        )
    assert ends(support)["evt-expired_unknown"] == "Yes, not seen to arrive in time"


def ends(browser: Browser) -> dict[str, str]:
    """How each expired notice ended, by its event."""
    return {
        name: " ".join(re.sub(r"<[^>]+>", " ", row.split("<td>")[2]).split())
        for row in browser.get("/expired").text.split("<tr>")[2:]
        for name in re.findall(r">(evt-[\w-]+)</a>", row)
    }


def test_a_region_narrows_expired_its_pages_its_chart_and_its_links(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 60, LISTS["/expired"])
        with rewriting(connection, "reset_event"):
            connection.execute(
                "UPDATE reset_event SET region = 'DE' WHERE notice_id IN"
                " (SELECT notice_id FROM notice ORDER BY notice_id LIMIT 30)"
            )
        now = people_seed.database_now(connection)
        for region, n in (("DE", 30), ("GB", 31)):
            seeding.count(connection, now, "expired", n, reason="window_closed", region=region)
    page = on_call.get("/expired?region=DE&size=25").text
    assert "30</b> expired</span> in DE" in page
    assert 'href="/expired?region=GB&amp;size=25">GB</a>' in page
    assert 'href="/exports/new/expired?region=DE"' in page
    assert ">30<" in page
    assert ">31<" not in page
    behind = linked(_NEXT, page)
    assert behind is not None
    assert "region=DE" in behind
    rest = on_call.get(behind).text
    assert len({*events(page), *events(rest)}) == 30
    assert linked(_NEXT, rest) is None
    listed = on_call.get("/expired?region=GB&format=json").get_json()["rows"]
    assert len(listed) == 30
    assert "No notice of this region has expired" in on_call.get("/expired?region=FR").text
    assert on_call.get("/expired?region=germany").status_code == 422


def test_a_region_is_looked_for_in_ten_thousand_expired_notices_and_then_further_back(
    support: Browser, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expired, "COUNT_CAP", 40)
    with database.connection() as connection:
        people_seed.seed_many(connection, 60, LISTS["/expired"])
        with rewriting(connection, "reset_event"):
            connection.execute(
                "UPDATE reset_event SET region = 'DE' WHERE notice_id IN"
                " (SELECT notice_id FROM notice ORDER BY notice_id LIMIT 5)"
            )
    page = support.get("/expired?region=DE").text
    assert "None on this page" in page
    behind = linked(_NEXT, page)
    assert behind is not None
    assert len(events(support.get(behind).text)) == 5


def test_a_notice_that_ended_before_its_link_says_so(support: Browser, database: Database) -> None:
    early = Script("early", "expired", EXPIRED_UNKNOWN, age=280, life=300)
    with database.connection() as connection:
        people_seed.seed(connection, [LISTS["/expired"], early])
    page = support.get("/expired").text
    assert re.search(r"ended early; its link expires in \d+ s<", page)
    assert page.count("ended early") == 1


def test_a_notice_whose_link_expires_this_second_did_not_end_early(
    support: Browser, database: Database, clock: Clock
) -> None:
    clock.freeze()
    now = Script("now", "expired", EXPIRED_UNKNOWN, age=299.5, life=300)
    with database.connection() as connection:
        people_seed.seed(connection, [now])
    page = support.get("/expired").text
    assert "ended early" not in page
    assert "0 s ago<" in page


def test_an_expired_notice_says_why_and_one_without_a_link_leads_to_what_to_do(
    support: Browser, database: Database
) -> None:
    scripts = [
        Script("unlinked", "expired", EXPIRED_UNSENT, age=400, life=300),
        Script("unknown", "expired", EXPIRED_UNKNOWN, age=500, life=300),
    ]
    with database.connection() as connection:
        people_seed.seed(connection, scripts)
    answer = support.get("/expired?format=json").json
    assert answer is not None
    assert [row["cause"] for row in answer["rows"]] == ["no_link", "unknown"]
    unlinked, unknown = support.poll("/expired").text.split("<tr")[2:]
    assert "ago, no link<" in unlinked
    assert "ago<" in unknown, "the column beside says that nobody knows"
    assert '<a href="/runbooks/expired">What each cause means' in support.get("/expired").text
    told = support.get("/runbooks/expired").text
    assert "<strong>no link</strong>" in told
    assert "docs/how-to/answer-links.md" in told


def test_system_says_running_while_a_sweep_runs_and_never_a_time_below_nought(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO sweep_run (name, owner, epoch, started_at, finished_at, backlog,
                                      failed_at)
               SELECT name, 'p', 1, now - started * interval '1 s', now - ended * interval '1 s',
                      backlog, now - failed * interval '1 s'
                 FROM (SELECT db_now() AS now) AS clock, (VALUES
                      ('claim', 2, 5, 1000, 9), ('expiry', 5, 4, 999, 8), ('poll', 5, 9, 0, 2)
                      ) AS run (name, started, ended, backlog, failed)"""
        )
    page = support.get("/system").text
    took = re.findall(r'data-label="Took" class="number">(.*?)(?:<td|\n)', page)
    assert "running" in took[0]
    assert took[1:] == ["1.00 s", "3.00 s"]
    backlogs = re.findall(r'data-label="Backlog" class="number">(.*?)(?:<td|\n)', page)
    assert backlogs == ["1000 or more", "999", "0"]


def test_system_names_what_failed_last_also_after_a_good_run(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO sweep_run (name, owner, epoch, started_at, finished_at, failed_at,
                                      failures, error)
               SELECT name, 'p', 1, now - interval '6 s', now - ended * interval '1 s',
                      now - failed * interval '1 s', 1, error
                 FROM (SELECT db_now() AS now) AS clock, (VALUES
                      ('receipts', 5, 180, 'QueryCanceled 57014'),
                      ('rescue', 600, 180, 'UndefinedTable 42P01')
                      ) AS run (name, ended, failed, error)"""
        )
    page = support.get("/system").text
    receipts, rescue = (
        page[page.index(f"<b>{name}</b>") :].partition("<tr")[0] for name in ("receipts", "rescue")
    )
    assert "QueryCanceled 57014 the last 3 min ago" in receipts
    assert "the last good one" not in receipts
    assert "UndefinedTable 42P01 the last 3 min ago" in rescue
    assert "the last good one 10 min ago" in rescue


@pytest.mark.parametrize(
    "path", ["/pending", "/unknown", "/failures", "/expired", "/halts", "/system"]
)
def test_an_empty_page_says_what_its_emptiness_means(support: Browser, path: str) -> None:
    page = support.get(path).text
    assert any(
        words in page
        for words in (
            "Nothing is pending", "No outcome is unknown", "No notice has expired",
            "Nothing is stopped", "No sweep has run yet", "No channel has failed",
        )
    )  # fmt: skip


def test_a_filter_that_hides_everything_says_so_and_offers_the_rest(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, [LISTS["/pending"]])
    page = support.get("/pending?stage=accepted").text
    assert "The filter hides the others" in page
    assert 'href="/pending">Show all pending' in page


def test_a_cursor_of_another_filter_leads_to_the_first_page(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 60, LISTS["/pending"])
    cursor = str(linked(_NEXT, support.get("/pending").text)).split("cursor=")[1]
    first = events(support.get("/pending?stage=waiting").text)
    assert events(support.get(f"/pending?stage=waiting&cursor={cursor}").text) == first
    assert support.get(f"/expired?cursor={cursor}").status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("stage=nonsense", "stage"),
        ("stage=%3Cscript%3E", "stage"),
        ("size=1000000", "size"),
        ("size=-1", "size"),
        ("size=50%01", "size"),
        ("live=perhaps", "live"),
        ("format=xml", "format"),
        ("cursor=forged", "cursor"),
        ("cursor=%3Cimg%20src%3Dx%3E", "cursor"),
        ("cursor=" + "A" * 5000, "cursor"),
    ],
)
def test_an_odd_parameter_is_named_never_repeated_and_never_guessed(
    support: Browser, query: str, field: str
) -> None:
    answer = support.get(f"/pending?{query}")
    assert answer.status_code == 422
    assert f"“{field}”" in answer.text
    assert "&lt;script" not in answer.text
    assert "<script>" not in answer.text
    assert "<img" not in answer.text


def test_parameters_that_nobody_knows_are_listed_as_ignored_and_stay_text(
    support: Browser,
) -> None:
    page = support.get("/pending?colour=turquoise&%3Cimg%20src%3Dx%3E=1").text
    assert "<code>colour</code>" in page
    assert "<img" not in page
    assert "turquoise" not in page.split("<main")[1].split("</main")[0]


def test_no_list_shows_more_of_a_destination_than_its_mask(
    support: Browser, notices: dict[str, UUID]
) -> None:
    for path in ("/pending", "/unknown", "/expired", "/a/acct-jana"):
        for form in ("", "?format=json", "?format=csv"):
            text = support.get(path + form).text
            assert "jana.moe" not in text
            assert "7700900" not in text


def test_no_cell_of_a_sheet_is_a_formula(support: Browser, database: Database) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, [LISTS["/unknown"]])
        connection.execute("UPDATE delivery SET provider = '=cmd|calc', reason = '@SUM(A1)'")
    row = next(csv.DictReader(io.StringIO(support.get("/unknown?format=csv").text)))
    assert row["provider"] == "'=cmd|calc"
    assert row["reason"] == "'@SUM(A1)"
    assert int(row["remaining_s"]) > 0


def test_home_counts_what_the_lists_show(support: Browser, notices: dict[str, UUID]) -> None:
    page = support.get("/").text
    numbers = re.findall(r'<b class="digits">([\d,]+)</b><span>.*?</svg> ([a-z ]+)</span>', page)
    assert numbers == [
        ("4", "pending"), ("2", "unknown"), ("2", "channel failures"), ("4", "expired"),
    ]  # fmt: skip
    assert page.count('type="search"') == 1


def test_home_shows_ones_own_latest_look_ups_and_no_one_elses(
    support: Browser, on_call: Browser, notices: dict[str, UUID]
) -> None:
    support.get("/a/acct-jana")
    support.get(f"/n/{notices['failed']}")
    mine = support.get("/").text
    assert 'href="/a/acct-jana"' in mine
    assert "notice of <code>evt-failed</code>" in mine
    assert "acct-jana" not in on_call.get("/").text


def test_home_tells_of_notices_alone_whatever_else_was_opened(on_call: Browser) -> None:
    assert on_call.get("/runbooks/queue_age").status_code == 200
    answer = on_call.get("/")
    assert answer.status_code == 200
    assert "None in the past twelve hours." in answer.text


@pytest.mark.parametrize("path", ["/", "/pending", "/t/nope", "/halts", "/nope", "/search"])
def test_every_page_carries_the_search_box_once(support: Browser, path: str) -> None:
    page = support.get(path).text
    assert page.count('type="search"') == 1
    assert page.count('name="q"') == 1
