"""The notice page's timeline by whose news it is, its gaps and ends, its twins, its neighbours."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from notifier.store.reads.notice import load_notice
from tests import people_seed
from tests.people_fates import FATES, TEXTED, UNKNOWN, Script, Step, admitted, sending
from tests.people_pages import Browser
from tests.web.people.test_notice_page import text_of, timeline_of

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

BOUNCE = Step(140, "email", "failed", "receipt", occurred=139, attempt=1, actor="provider:smtp",
              provider="smtp", detail="mailbox_full", evidence={"code": "552 5.2.2"})  # fmt: skip
ACT = Step(150, None, None, "ticket_linked", actor="operator:otto")
BOUNCED = Script("bounced", "complete", [*TEXTED, BOUNCE, ACT], age=300, basis="delivered",
                 sms="+447700900143", account="acct-jana")  # fmt: skip


@pytest.fixture
def bounced(database: Database) -> str:
    """The path of a notice whose email came back after its text message was delivered."""
    with database.connection() as connection:
        people_seed.seed(connection, FATES[:2])
        return f"/n/{people_seed.seed(connection, [BOUNCED])['bounced']}"


def test_a_delivered_text_says_that_the_email_came_back(support: Browser, bounced: str) -> None:
    seen = text_of(support.get(bounced).text)
    headline = seen.index("The text message was delivered at")
    assert headline < seen.index("The email bounced.") < seen.index("What to tell the customer")


@pytest.mark.parametrize(
    ("source", "reasons"),
    [("provider", ["receipt", "receipt"]), ("operator", ["ticket_linked"]), ("ours", None)],
)
def test_the_timeline_can_be_read_by_whose_news_it_is(
    support: Browser, bounced: str, source: str, reasons: list[str] | None
) -> None:
    page = support.get(f"{bounced}?source={source}").text
    steps = support.get(f"{bounced}?source={source}&format=json").get_json()["steps"]
    assert timeline_of(page).count("<li") == len(steps)
    assert {each["source"] for each in steps} == {source}
    assert reasons is None or [each["reason"] for each in steps] == reasons
    assert re.search(rf'source={source}"[^>]*aria-current="true"', page)
    assert f'hx-get="{bounced}?source={source}"' in page
    told = f"{len(steps)} lines of {len(TEXTED) + 2} recorded steps"
    assert told in text_of(page)


def test_a_source_without_news_says_so_and_leads_back(
    support: Browser, notices: dict[str, UUID]
) -> None:
    page = support.get(f"/n/{notices['failed']}?source=operator").text
    assert "No step is such news." in page
    assert support.get(f"/n/{notices['failed']}?source=gossip").status_code == 422


def test_badges_of_the_head_do_not_depend_on_the_steps_that_are_shown(
    support: Browser, notices: dict[str, UUID]
) -> None:
    page = support.get(f"/n/{notices['expired_dead_link']}?source=operator").text
    assert "delivered dead: the link had expired" in page


def test_the_raw_code_of_a_step_is_for_on_call_alone_in_every_form(
    sign_in: SignIn, bounced: str
) -> None:
    support, on_call = sign_in(Role.SUPPORT), sign_in(Role.ON_CALL)
    for path in (bounced, f"{bounced}?format=json", f"{bounced}?format=csv"):
        assert "552 5.2.2" not in support.get(path).text
        assert "552 5.2.2" in on_call.get(path).text


def test_waits_say_what_was_waited_for_and_where_the_validity_ended(
    support: Browser, database: Database
) -> None:
    steps = [
        *admitted(sms="no_consent"),
        *sending(200),
        replace(UNKNOWN[-1], after=240),
        Step(300.5, "email", "expired", "unknown_at_expiry", actor="expiry"),
    ]
    script = Script("waits", "expired", steps, age=400, life=300)
    with database.connection() as connection:
        ids = people_seed.seed(connection, [script])
    gaps = re.findall(
        r'<p class="gap[^"]*">([^<]+)', timeline_of(support.get(f"/n/{ids['waits']}").text)
    )
    assert gaps == ["waited 3:19 in the queue", "39 seconds without news",
                    "the link expired; 1:00 without news"]  # fmt: skip


def test_a_start_names_its_template_revision(support: Browser, bounced: str) -> None:
    timeline = timeline_of(support.get(bounced).text)
    assert timeline.count("template <code>password-reset@1</code>") == 2


def test_late_and_skewed_news_shows_both_times(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    late = timeline_of(support.get(f"/n/{notices['expired_late_news']}").text)
    assert re.search(r"recorded <time", late)
    assert "occurred in time" in late
    skewed = [*UNKNOWN, Step(40, "email", "accepted", "receipt", occurred=-3600, attempt=1,
                             actor="provider", provider="postmark")]  # fmt: skip
    with database.connection() as connection:
        ids = people_seed.seed(connection, [Script("skewed", "email_pending", skewed, age=60)])
    assert "the provider's clock said <time" in timeline_of(support.get(f"/n/{ids['skewed']}").text)


def test_the_other_notices_of_the_account_are_named_newest_first(
    support: Browser, bounced: str, database: Database
) -> None:
    seen = text_of(support.get(bounced).text.split('id="related-title"')[1])
    assert seen.index("evt-delivered") < seen.index("evt-complete")
    with database.connection() as connection:
        busy = Script(**FATES[2].__dict__ | {"account": "acct-busy"})
        (first, *_) = people_seed.seed_many(connection, 7, busy)
    page = support.get(f"/n/{first}").text
    related = page.split('id="related-title"')[1].split("</section>")[0]
    assert related.count("<li") == 5
    assert 'href="/a/acct-busy"' in related


def test_the_json_says_what_the_page_says(
    support: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    for notice_id in notices.values():
        page, twin = support.get(f"/n/{notice_id}"), support.get(f"/n/{notice_id}?format=json")
        told = twin.get_json()
        assert twin.content_type == "application/json"
        assert told["customer_action"] in text_of(page.text)
        assert told["headline"].partition(". ")[0] in text_of(page.text)
        assert {each["channel"] for each in told["deliveries"]} <= {"email", "sms"}
        assert told["decision"]["signing_key_id"] == "k-7f3a"
        assert len(told["steps"]) == timeline_of(page.text).count("<li")


def test_the_steps_come_as_csv_and_ndjson(support: Browser, bounced: str) -> None:
    steps = support.get(f"{bounced}?format=json").get_json()["steps"]
    lines = support.get(f"{bounced}?format=ndjson").text.splitlines()
    assert [json.loads(line) for line in lines] == steps
    assert support.get(f"{bounced}?format=csv").text.count("\r\n") == len(steps) + 1


@pytest.mark.parametrize("form", ["json", "csv", "ndjson"])
def test_a_notice_that_is_not_there_has_empty_twins(support: Browser, form: str) -> None:
    answer = support.get(f"/n/{UUID(int=7)}?format={form}")
    assert answer.status_code == 200
    assert answer.text.strip() in {"null", ""} or answer.text.count("\r\n") == 1


def test_an_unknown_notice_id_offers_the_other_kinds_of_ids(support: Browser) -> None:
    page = support.get(f"/n/{UUID(int=7)}").text
    assert all(f'href="/{kind}/{UUID(int=7)}"' in page for kind in "tera")


def test_the_basis_outlives_the_event_because_the_trail_keeps_it(
    support: Browser, database: Database
) -> None:
    evidence = {"mode": "email_then_sms", "decision_id": "dec-1", "signing_key": "k-9",
                "email_consent": True, "sms_consent": False, "region": "GB"}  # fmt: skip
    steps = [Step(0.4, None, None, "event_admitted", actor="service", evidence=evidence)]
    script = Script("kept", "email_pending", [*steps, *admitted()[1:]])
    with database.connection() as connection:
        ids = people_seed.seed(connection, [script])
        connection.execute("DELETE FROM reset_event WHERE notice_id = %s", [ids["kept"]])
    seen = text_of(support.get(f"/n/{ids['kept']}").text)
    for part in ("email_then_sms", "dec-1", "key k-9", "email yes, text no", "Region GB"):
        assert part in seen


def test_a_notice_that_is_pending_past_its_expiry_goes_on_refreshing(
    support: Browser, database: Database
) -> None:
    script = Script("overdue", "email_pending", admitted(), age=320, life=300)
    with database.connection() as connection:
        ids = people_seed.seed(connection, [script])
        loaded = load_notice(connection, ids["overdue"])
    assert loaded is not None
    assert not loaded.is_open
    assert 'data-live="5"' in support.get(f"/n/{ids['overdue']}").text


def test_paper_says_who_where_when_and_how_much(support: Browser, notices: dict[str, UUID]) -> None:
    page = support.get(f"/n/{notices['failed']}?source=ours").text
    footer = text_of(page.split("<footer>")[1])
    path = f"/n/{notices['failed']}?source=ours"
    for part in (f"Printed by {support.name} (support) from http://127.0.0.1{path}",
                 "filter: source ours", "request "):  # fmt: skip
        assert part in footer
    assert re.search(r"made \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", footer)
    listed = text_of(support.get("/pending?stage=waiting").text.split("<footer>")[1])
    assert re.search(r"filter: stage waiting · \d+ rows on this page of \d+", listed)
