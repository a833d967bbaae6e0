"""Channel failures: the table, what lies behind a number, and what it costs."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from notifier.domain.reasons import Detail
from notifier.store.reads import failures as reads
from notifier.web.people import phrases
from tests import people_seed
from tests.database import rewriting
from tests.people_fates import FAILED, UNKNOWN, Script, Step, admitted, sending
from tests.people_pages import Browser
from tests.signals import seeding

if TYPE_CHECKING:
    from notifier.store.database import Database, PooledConnection
    from tests.web.people.conftest import SignIn

TEXT_FAILED = [
    *admitted(sms="standby"),
    Step(5, "sms", "queued", "fallback_email_unconfirmed"),
    *sending(6, "sms"),
    Step(9, "sms", "failed", "receipt", attempt=1, provider="twilio", detail="unclassified",
         outcome="refused", evidence={"code": "30099"}),
]  # fmt: skip
UNMAPPED = [
    *UNKNOWN,
    Step(40, "email", None, "unmapped", attempt=1, provider="postmark", detail="unclassified"),
]
LATE_BOUNCE = [
    *UNKNOWN,
    Step(301, "email", "expired", "unknown_at_expiry"),
    Step(400, "email", None, "late_receipt", attempt=1, provider="postmark",
         detail="mailbox_full", evidence={"status": "failed"}),
]  # fmt: skip
STORIES = [
    Script("refused", "failed", FAILED),
    Script("text", "failed", TEXT_FAILED),
    Script("word", "email_pending", UNMAPPED),
    Script("bounce", "expired", LATE_BOUNCE, age=500, life=300),
    Script("plain", "email_pending", UNKNOWN),
]
NEXT = re.compile(r'rel="next" href="([^"]+)"')


@pytest.fixture
def failed(database: Database) -> dict[str, UUID]:
    with database.connection() as connection:
        return people_seed.seed(connection, STORIES)


def cells(browser: Browser, query: str = "") -> dict[tuple[str, str], int]:
    rows = browser.get(f"/failures?format=json{query}").get_json()["rows"]
    return {(row["reason"], row["channel"]): row["failures"] for row in rows}


def test_each_failure_is_counted_once_by_reason_and_channel_and_an_unknown_outcome_is_none(
    support: Browser, failed: dict[str, UUID]
) -> None:
    assert cells(support) == {
        ("rate_limited", "email"): 1,
        ("invalid_destination", "email"): 1,
        ("unclassified", "sms"): 1,
        ("unmapped", "email"): 1,
        ("mailbox_full", "email"): 1,
    }


def test_words_that_we_do_not_know_have_rows_of_their_own_even_where_there_are_none(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, STORIES[:1])
    page = support.get("/failures").text
    table = page.split("<tbody>")[1]
    words = re.findall(r'<th scope="row"><code>([a-z_]+)</code>', table)
    assert words == ["invalid_destination", "rate_limited", "unclassified", "unmapped"]


def test_each_number_leads_to_exactly_its_failures(
    support: Browser, failed: dict[str, UUID]
) -> None:
    page = support.get("/failures").text
    found = re.findall(r'href="(/failures\?[^"]+)" aria-label="(\d+) times', page)
    assert len(found) == 10
    for address, count in found:
        rows = support.get(address.replace("&amp;", "&") + "&format=json").get_json()["rows"]
        assert len(rows) == int(count), address


def test_the_rows_behind_a_number_lead_to_their_notices(
    support: Browser, failed: dict[str, UUID]
) -> None:
    page = support.get("/failures?reason=unclassified&channel=sms").text
    assert f'<a href="/n/{failed["text"]}">evt-text</a>' in page
    assert "evt-refused" not in page
    assert phrases.failure("unclassified") in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("&provider=twilio", {("unclassified", "sms"): 1}),
        ("&provider=nobody", {}),
        ("&range=15m", 5),
        ("&range=7d", 5),
    ],
)
def test_filters_stand_in_the_address(
    support: Browser, failed: dict[str, UUID], query: str, expected: Any
) -> None:
    found = cells(support, query)
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_a_range_forgets_what_is_older(support: Browser, database: Database) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, [Script("old", "failed", FAILED, age=7200)])
    assert cells(support, "&range=1h") == {}
    assert sum(cells(support).values()) == 2


def test_a_hundred_failures_of_one_instant_page_through_completely(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 60, Script("many", "failed", FAILED))
    at: str | None = "/failures?channel=email"
    seen: list[str] = []
    while at:
        page = support.get(at).text
        seen += re.findall(r">(evt-many-\d+)</a>", page)
        following = NEXT.search(page)
        at = following[1].replace("&amp;", "&") if following else None
    assert len(seen) == 120
    assert len(set(seen)) == 60


def listed(page: str) -> list[str]:
    return re.findall(r">(evt-[a-z]+-\d+)</a>", page)


def test_new_failures_are_counted_and_shift_no_page(support: Browser, database: Database) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 60, Script("many", "failed", TEXT_FAILED))
    following = NEXT.search(support.get("/failures?channel=sms").text)
    assert following
    second = following[1].replace("&amp;", "&")
    before = listed(support.get(second).text)
    assert len(before) == 10
    with database.connection() as connection:
        people_seed.seed_many(connection, 3, Script("new", "failed", TEXT_FAILED, age=9))
    for answer in (support.get(second), support.poll(second)):
        assert listed(answer.text) == before
        assert "+3 new since" in answer.text
        assert '<b class="digits">60</b>' in answer.text


A_BAD_DAY = """
    INSERT INTO transition (notice_id, seq, recorded_at, occurred_at, event_id, reset_request_id,
            channel, actor, from_state, to_state, reason, remaining_us, template_revision,
            policy_revision, prev_hash, hash)
    SELECT notice_id, 1000 + n, at, at, event_id, event_id,
           CASE WHEN n <= 10000 THEN 'email' ELSE 'sms' END, 'worker', 'attempted', 'queued',
           'not_accepted', 0, '1', 1, '', ''
      FROM notice, (SELECT n, db_now() - interval '10 min' - n * interval '1 s' AS at
                      FROM generate_series(1, 10003) AS n) AS p
"""


def test_behind_ten_thousand_failures_the_list_goes_on_and_numbers_say_that_they_are_less(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed(connection, [Script("plain", "email_pending", UNKNOWN)])
        connection.execute(A_BAD_DAY)
    assert "more than " in support.get("/failures").text
    assert "Only the newest ten thousand failures are counted" in support.get("/failures").text
    first = support.get("/failures?channel=sms").text
    assert '<b class="digits">more than 1</b>' in first
    assert first.count(">evt-plain</a>") == 1
    following = NEXT.search(first)
    assert following
    second = support.get(following[1].replace("&amp;", "&")).text
    assert second.count(">evt-plain</a>") == 2
    assert not NEXT.search(second)


def test_the_table_says_what_its_emptiness_means(support: Browser, database: Database) -> None:
    assert "No channel has failed in the past 24 hours" in support.get("/failures").text
    with database.connection() as connection:
        people_seed.seed(connection, STORIES[:1])
    hidden = support.get("/failures?provider=twilio&range=1h").text
    assert "The filter hides the others" in hidden
    assert 'href="/failures?range=1h">Show all providers' in hidden
    assert "Nothing failed so" in support.get("/failures?reason=blocked").text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("range=99d", "range"), ("reason=%3Cscript%3E", "reason"), ("channel=fax", "channel"),
        ("provider=a%01b", "provider"), ("reason=" + "a" * 41, "reason"),
    ],
)  # fmt: skip
def test_an_odd_filter_is_named(support: Browser, query: str, field: str) -> None:
    answer = support.get(f"/failures?{query}")
    assert answer.status_code == 422
    assert f"“{field}”" in answer.text


def test_raw_codes_are_for_on_call_not_for_support(
    sign_in: SignIn, failed: dict[str, UUID]
) -> None:
    on_call, support = sign_in(Role.ON_CALL), sign_in(Role.SUPPORT)
    for form in ("", "&format=json", "&format=csv"):
        path = f"/failures?reason=unclassified{form}"
        assert "30099" in on_call.get(path).text
        assert "30099" not in support.get(path).text


def test_the_sheet_and_the_table_agree(support: Browser, failed: dict[str, UUID]) -> None:
    sheet = csv.DictReader(io.StringIO(support.get("/failures?format=csv").text))
    assert {(row["reason"], row["channel"]): int(row["failures"]) for row in sheet} == cells(
        support
    )


def test_home_counts_the_same_failures(support: Browser, failed: dict[str, UUID]) -> None:
    page = support.get("/").text
    tile = page.split('href="/failures?range=15m"')[1]
    assert '<b class="digits">5</b>' in tile[:200]


def test_a_failure_and_each_detail_have_plain_words() -> None:
    assert set(Detail) <= set(phrases.FAILURES)
    assert phrases.failure("something_newer") == "something newer"


HISTORY = """
    INSERT INTO transition (notice_id, seq, recorded_at, occurred_at, event_id, reset_request_id,
            channel, actor, from_state, to_state, reason, remaining_us, template_revision,
            policy_revision, prev_hash, hash)
    SELECT gen_random_uuid(), 1, at, at, n, n, 'email', 'worker', 'queued', 'claimed', 'claimed',
           0, '1', 1, '', ''
      FROM (SELECT n, db_now() - n * interval '1 s' AS at FROM generate_series(1, 20000) AS n) AS p
"""


def pages_read(connection: PooledConnection, wanted: reads.Wanted) -> int:
    """Pages of the trail that the table's statement touches."""
    since = people_seed.database_now(connection) - wanted.span
    row = connection.execute(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {reads._CELLS}",
        {"since": since, "region": wanted.region},
    ).fetchone()
    assert row is not None
    plan = row["QUERY PLAN"][0]["Plan"]
    assert "transition_failures" in str(plan)
    assert "'Seq Scan'" not in str(plan)
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def test_the_cost_follows_the_failures_not_the_trail(
    database: Database, failed: dict[str, UUID]
) -> None:
    from notifier.web.people.failures import RANGES  # noqa: PLC0415

    with database.connection() as connection:
        connection.execute("ALTER TABLE transition DISABLE TRIGGER USER")
        connection.execute(HISTORY)
        connection.execute("ANALYZE transition")
        assert pages_read(connection, reads.Wanted(RANGES["7d"])) < 40


def test_a_region_narrows_the_table_the_rows_behind_it_and_the_trend(
    support: Browser, failed: dict[str, UUID], database: Database
) -> None:
    with database.connection() as connection:
        with rewriting(connection, "reset_event"):
            connection.execute(
                "UPDATE reset_event SET region = 'DE' WHERE notice_id = %s", [failed["text"]]
            )
        now = people_seed.database_now(connection)
        seeding.count(connection, now, "refused", 1, reason="unclassified", region="DE")
    assert cells(support, "&region=DE") == {("unclassified", "sms"): 1}
    assert len(cells(support, "&region=GB")) == 4
    listed = support.get("/failures?region=DE&channel=sms&format=json").get_json()["rows"]
    assert [row["event_id"] for row in listed] == ["evt-text"]
    assert 'href="/failures?region=DE">DE</a>' in support.get("/failures").text
    assert "Nothing failed in this region" in support.get("/failures?region=FR").text


def test_a_reason_s_trend_is_drawn_where_it_was_counted_and_hatched_where_it_was_not(
    support: Browser, failed: dict[str, UUID], database: Database
) -> None:
    with database.connection() as connection:
        now = people_seed.database_now(connection)
        ago = now - timedelta(minutes=30)
        seeding.count(connection, ago, "refused", 3, channel="email", reason="invalid_destination")
        seeding.span(connection, now - timedelta(minutes=45), now)
    page = support.get("/failures?range=1h").text
    row = page.split("<code>invalid_destination</code>")[1].split("<tr>")[0]
    spark = row.split('<svg class="spark')[1].split("</svg>")[0]
    assert 'class="missed"' in spark
    assert spark.split('class="grow"')[1].count("M") == 1
