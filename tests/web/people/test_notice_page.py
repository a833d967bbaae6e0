"""The notice page: what happened and what to tell the customer, for every fate."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from notifier.accounts.permissions import Role
from notifier.domain.reasons import Reason
from notifier.domain.states import DeliveryState, NoticeState
from notifier.domain.support_story import SupportWord
from notifier.store.reads.notice import load_notice
from notifier.store.reads.notice_story import wording_of
from notifier.web.people import phrases
from tests import people_seed
from tests.database import rewriting
from tests.people_fates import FATES, UNKNOWN, Script, Step, admitted, sending
from tests.people_pages import Browser

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

BY_NAME = {script.name: script for script in FATES}


def text_of(page: str) -> str:
    """What a reader sees, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def timeline_of(page: str) -> str:
    return page.split('<ol id="timeline">')[1].split("</ol>", maxsplit=1)[0]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_page_opens_with_the_headline_and_what_to_tell_the_customer(
    support: Browser, database: Database, notices: dict[str, UUID], name: str
) -> None:
    page = support.get(f"/n/{notices[name]}").text
    with database.connection() as connection:
        loaded = load_notice(connection, notices[name])
    assert loaded is not None
    words = wording_of(loaded)
    seen = text_of(page)
    assert words.headline.split(". ")[0] in seen
    assert words.customer_action in seen
    assert seen.index(words.customer_action) < seen.index("Basis of the decision")
    assert f"<code>{loaded.state}</code>" in page


@pytest.mark.parametrize("name", BY_NAME)
def test_the_timeline_has_each_step_with_the_validity_that_was_left(
    support: Browser, notices: dict[str, UUID], name: str
) -> None:
    timeline = timeline_of(support.get(f"/n/{notices[name]}").text)
    script = BY_NAME[name]
    told = len(script.steps) - 3 * (name == "expired_unsent")  # four steps told as one
    assert timeline.count("<li") == told
    assert timeline.count('class="life"') == told
    for reason in {step.reason for step in script.steps} - {"claimed"}:
        assert f"<code>{reason}</code>" in timeline


def test_the_basis_of_the_decision_is_there(support: Browser, notices: dict[str, UUID]) -> None:
    seen = text_of(support.get(f"/n/{notices['delivered']}").text)
    for part in (
        "email_then_sms", "dec-5521", "sha256:9f86d081884c7d65", "email yes, text yes", "GB",
        "revision 1", "password-reset@1", "key k-7f3a", "sms: fallback_reserved",
    ):  # fmt: skip
        assert part in seen


def test_attempts_show_reference_and_the_providers_id(
    support: Browser, notices: dict[str, UUID], database: Database
) -> None:
    with database.connection() as connection:
        loaded = load_notice(connection, notices["failed"])
    assert loaded is not None
    page = support.get(f"/n/{notices['failed']}").text
    attempts = loaded.deliveries[0].attempts
    assert [each.klass for each in attempts] == ["first", "retry-1"]
    for each in attempts:
        assert each.reference in page
        assert f"<code>{each.outcome}</code>" in page


def test_tickets_and_the_account_are_linked(support: Browser, notices: dict[str, UUID]) -> None:
    page = support.get(f"/n/{notices['delivered']}").text
    assert 'href="/t/T-1002"' in page
    assert 'href="/a/acct-jana"' in page


def test_late_news_stands_where_it_occurred_and_says_when_it_was_recorded(
    support: Browser, notices: dict[str, UUID]
) -> None:
    page = support.get(f"/n/{notices['expired_late_news']}").text
    timeline = timeline_of(page)
    assert timeline.index("late_receipt") < timeline.index("unknown_at_expiry")
    assert "recorded 11 min later" in timeline
    assert "learnt late, occurred in time" in page
    assert "delivered dead" not in page


def test_what_arrives_after_expiry_is_called_dead(
    support: Browser, notices: dict[str, UUID]
) -> None:
    page = support.get(f"/n/{notices['expired_dead_link']}").text
    assert "delivered dead" in timeline_of(page)
    assert "expired 2:10 earlier" in page
    assert "occurred in time" not in page


def test_a_providers_clock_that_is_ahead_or_behind_gives_no_negative_time(
    support: Browser, database: Database
) -> None:
    steps = [
        *UNKNOWN,
        Step(40, "email", "accepted", "receipt", occurred=-3600, attempt=1, provider="postmark"),
        Step(50, "email", "delivered", "receipt", occurred=9000, attempt=1, provider="postmark"),
    ]
    with database.connection() as connection:
        ids = people_seed.seed(
            connection, [Script("skewed", "complete", steps, age=60, basis="delivered")]
        )
    timeline = timeline_of(support.get(f"/n/{ids['skewed']}").text)
    assert timeline.count("clock skew") == 2
    assert "earlier" not in timeline
    assert "\N{MINUS SIGN}" not in timeline
    order = [timeline.index(f">{word}</code>") for word in ("timeout", "receipt")]
    assert order == sorted(order)


LOOKS = [
    *UNKNOWN,
    *(Step(60 + 30 * n, "email", None, "looked_not_found", attempt=1) for n in range(6)),
    Step(230, "email", "accepted", "reconciled", attempt=1),
]


def test_looks_that_find_nothing_are_told_as_one_with_the_time_of_each(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        ids = people_seed.seed(connection, [Script("looks", "email_pending", LOOKS, age=240)])
    timeline = timeline_of(support.get(f"/n/{ids['looks']}").text)
    assert "The provider was asked for the email 6 times and found none" in timeline
    assert timeline.count("looked_not_found") == 1
    assert timeline.count("<li") == len(LOOKS) - 5
    times = timeline.split("<details")[1].split("</details>", maxsplit=1)[0]
    assert times.count("<time") == 7


def test_links_that_were_not_to_be_had_are_told_as_one(
    support: Browser, notices: dict[str, UUID]
) -> None:
    timeline = timeline_of(support.get(f"/n/{notices['expired_unsent']}").text)
    assert "The auth service was asked 2 times for a link and gave none" in timeline


PUT_ASIDE = [
    *admitted(sms="standby"),
    Step(120, "email", "standby", "fallback_goes_first"),
    Step(120, "sms", "queued", "fallback_email_not_sent"),
    *sending(121, "sms"),
    Step(122, "sms", "failed", "refused", attempt=1, provider="twilio", outcome="refused"),
    Step(122, "email", "queued", "text_ended_in_time"),
]
HELD = [*admitted(sms="standby"), Step(90, "sms", None, "fallback_held")]
HELD_TO_THE_END = [*HELD, Step(200, "sms", "suppressed", "fallback_held_by_policy")]
NOT_NEEDED = [
    *admitted(sms="standby"),
    Step(60, "sms", "queued", "fallback_email_unconfirmed"),
    Step(61, "sms", "standby", "primary_delivered"),
    Step(200, "sms", "suppressed", "primary_delivered"),
]


@pytest.mark.parametrize(
    ("steps", "sentences"),
    [
        (HELD[:-1], ["The text message was held in reserve, because the email goes first."]),
        (HELD, ["The text message was held, because the policy says so."]),
        (HELD_TO_THE_END, ["was not sent, because the policy says to hold it."]),
        (
            PUT_ASIDE,
            [
                "The text message was sent, because the email had not been sent yet.",
                "The email was put aside, so that the text message goes first.",
                "The email came back, because the text message ended early without success.",
            ],
        ),
        (
            NOT_NEEDED,
            [
                "The text message was queued, because nothing confirmed that the email arrived.",
                "The text message went back into reserve, because the email arrived.",
                "The text message was not needed, because the email arrived.",
            ],
        ),
    ],
)
def test_the_channels_tell_the_story_of_the_fallback_in_plain_words(
    support: Browser, database: Database, steps: list[Step], sentences: list[str]
) -> None:
    script = Script("story", "email_pending", steps, age=210, sms="+447700900143")
    with database.connection() as connection:
        ids = people_seed.seed(connection, [script])
    page = support.get(f"/n/{ids['story']}").text
    story = text_of(page.split('id="channels-title"')[1].split('id="timeline-title"')[0])
    for sentence in sentences:
        assert sentence in story


def test_receipts_show_when_something_occurred_and_when_we_learnt_of_it(
    support: Browser, notices: dict[str, UUID], database: Database
) -> None:
    seen = text_of(support.get(f"/n/{notices['expired_late_news']}").text)
    assert "What the provider told us" in seen
    assert "11 min later" in seen
    assert "after expiry postmark, by itself" in seen
    with database.connection() as connection, rewriting(connection, "receipt"):
        connection.execute("UPDATE receipt SET occurred_at = NULL")
    for path in (f"/n/{notices['expired_dead_link']}", "/expired"):
        page = support.get(path).text
        assert "learnt late, when it arrived is not known" in page
        assert "delivered dead" not in page


def test_an_odd_ticket_id_is_refused_beside_its_field(
    support: Browser, notices: dict[str, UUID]
) -> None:
    path = f"/n/{notices['complete']}"
    answer = support.post(f"{path}/tickets", ticket_id="no such <b>id")
    assert answer.status_code == 422
    assert "That is no ticket id" in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert f"{path}/tickets?" not in answer.text
    assert support.post(f"/n/{UUID(int=7)}/tickets", ticket_id="HD-1").status_code == 404


def test_a_ticket_linked_here_says_who_linked_it_and_stays_one(
    support: Browser, notices: dict[str, UUID]
) -> None:
    path = f"/n/{notices['complete']}"
    for _ in range(2):
        assert support.post(f"{path}/tickets", ticket_id=" HD-77 ").location == path
    page = support.get(path).text
    assert "by support-person" in text_of(page)
    assert timeline_of(page).count("A help-desk ticket was linked.") == 1
    assert support.get("/t/HD-77").location == path


def test_waiting_is_drawn_as_a_gap(support: Browser, notices: dict[str, UUID]) -> None:
    assert '<p class="gap">1:28 later</p>' in support.get(f"/n/{notices['delivered']}").text


def test_a_pending_notice_refreshes_itself_and_a_finished_one_does_not(
    support: Browser, notices: dict[str, UUID]
) -> None:
    pending = support.get(f"/n/{notices['email_pending']}").text
    assert 'data-live="5"' in pending
    assert f'hx-get="/n/{notices["email_pending"]}"' in pending
    assert (
        "data-live"
        not in support.get(f"/n/{notices['email_pending']}?live=off")
        .text.split("<main")[1]
        .split('class="live-switch"')[0]
    )
    for name in ("failed", "suppressed", "expired_unsent"):
        assert "hx-get" not in support.get(f"/n/{notices[name]}").text


def test_the_fragment_is_the_page_without_its_frame(
    support: Browser, notices: dict[str, UUID]
) -> None:
    fragment = support.poll(f"/n/{notices['email_pending']}").text
    assert fragment.lstrip().startswith('<article id="notice"')
    assert "<html" not in fragment
    assert '<header class="top"' not in fragment


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        ("all", True), ("channel:email", True), ("account:acct-email_pending", True),
        ("event:evt-email_pending", True), ("template:password-reset@1", True),
        ("channel:sms", False), ("account:acct-jana", False), ("provider:other", False),
    ],
)  # fmt: skip
def test_a_halt_holds_only_what_it_covers(
    support: Browser, database: Database, notices: dict[str, UUID], scope: str, held: bool
) -> None:
    with database.connection() as connection:
        connection.execute(
            """INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at)
               VALUES (gen_random_uuid(), %s, 'drill', 'ops', db_now())""",
            [scope],
        )
        loaded = load_notice(connection, notices["email_pending"])
    assert loaded is not None
    assert loaded.on_hold is held
    page = support.get(f"/n/{notices['email_pending']}").text
    assert ("On hold" in page) is held
    assert "Sending is stopped" in page


def test_raw_codes_of_a_provider_are_for_on_call_not_for_support(
    sign_in: SignIn, database: Database, notices: dict[str, UUID]
) -> None:
    with database.connection() as connection:
        connection.execute("UPDATE attempt SET provider_code = '550 5.1.1'")
    path = f"/n/{notices['failed']}"
    assert "550 5.1.1" in sign_in(Role.ON_CALL).get(path).text
    assert "550 5.1.1" not in sign_in(Role.SUPPORT).get(path).text


HOSTILE = [
    '<img src=x onerror="alert(1)">',
    "</textarea></title><script>alert(1)</script>",
    '<div hx-get="/logout" hx-trigger="load" hx-on:click="alert(1)">',
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
    "{{ 7 * 7 }}",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_b124_what_a_provider_says_stays_text_everywhere(
    sign_in: SignIn, database: Database, hostile: str
) -> None:
    steps = [
        *UNKNOWN,
        Step(40, "email", None, "unmapped", attempt=1, actor=hostile, provider=hostile,
             provider_ref=hostile, detail=hostile, evidence={"said": hostile, hostile[:30]: "x"}),
    ]  # fmt: skip
    with database.connection() as connection:
        ids = people_seed.seed(connection, [Script("hostile", "email_pending", steps)])
        connection.execute(
            "UPDATE attempt SET provider_code = %(x)s, provider_message_id = %(x)s, detail = %(x)s",
            {"x": hostile},
        )
        connection.execute("UPDATE delivery SET provider = %(x)s, detail = %(x)s", {"x": hostile})
        connection.execute("UPDATE contact SET mask = %s", [hostile])
        connection.execute(
            """INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at)
               VALUES (gen_random_uuid(), 'all', %(x)s, %(x)s, db_now())""",
            {"x": hostile},
        )
        connection.execute(
            """INSERT INTO sweep_run (name, owner, epoch, started_at, failures, error)
               VALUES (%(x)s, %(x)s, 1, db_now(), 1, %(x)s)""",
            {"x": hostile},
        )
    browser = sign_in(Role.ON_CALL)
    for path in (
        f"/n/{ids['hostile']}",
        "/pending",
        "/unknown",
        "/failures",
        "/failures?reason=unmapped",
        "/halts",
        "/system",
        "/",
        "/nope",
    ):
        for page in (browser.get(path).text, browser.poll(path).text):
            assert_inert(page)


class Elements(HTMLParser):
    """Every element with its attributes, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_inert(page: str) -> None:
    """No element or attribute in the page is one that we did not write."""
    for tag, attributes in Elements(page).found:
        assert tag not in {"img", "textarea", "iframe"}
        assert tag != "script" or (attributes["src"] or "").startswith("/static/")
        assert not [name for name in attributes if name.startswith(("on", "hx-on"))]
        assert attributes.get("hx-get") != "/logout"
        assert "autofocus" not in attributes
    assert "{{ 7 * 7 }}" in html.unescape(page) or "7 * 7" not in page


def test_direction_marks_control_characters_and_endless_texts_are_tamed(
    support: Browser, database: Database
) -> None:
    nasty = "abc\u202edef\u0007ghi\u200b" + "x" * 5000
    steps = [*UNKNOWN, Step(40, "email", None, "unmapped", provider_ref=nasty, provider="p")]
    with database.connection() as connection:
        ids = people_seed.seed(connection, [Script("nasty", "email_pending", steps)])
    page = support.get(f"/n/{ids['nasty']}").text
    assert "\u202e" not in page
    assert "\u0007" not in page
    assert "x" * 200 not in page
    assert "abc def ghi" in page


def test_every_reason_state_and_word_has_plain_words_of_its_own() -> None:
    assert set(phrases.SENTENCES) == set(Reason)
    assert {*DeliveryState, *NoticeState} == set(phrases.STATES)
    assert set(SupportWord) == set(phrases.WORDS)
    assert "Noted: something newer" in phrases.sentence("something_newer", "email", None)
    assert phrases.badge("something_newer").hue == phrases.Hue.UNKNOWN


def test_unknown_looks_like_neither_waiting_nor_failed() -> None:
    unknown = phrases.STATES["unknown"]
    for state in ("queued", "attempted", "accepted", "failed", "expired"):
        other = phrases.STATES[state]
        assert unknown.hue != other.hue
        assert unknown.icon != other.icon
        assert unknown.word != other.word


def test_no_page_claims_that_an_account_was_recovered(
    support: Browser, notices: dict[str, UUID]
) -> None:
    for notice_id in notices.values():
        seen = text_of(support.get(f"/n/{notice_id}").text)
        assert "recovered" not in seen.replace("not that the account was recovered", "")
