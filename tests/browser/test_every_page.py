"""Every page, light and dark, wide and narrow, empty and full: no fault of any kind."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Literal
from uuid import UUID

import pytest

from notifier.store import sender_domains as store
from notifier.store.sender_domains import Observed
from notifier.web.people.panels import CAUSES
from tests import people_alerts, people_seed
from tests.browser.watching import axe_findings, drawn_contrasts, overflow
from tests.people_fates import FATES
from tests.signals import seeding

if TYPE_CHECKING:
    from notifier.store.database import Database, PooledConnection
    from tests.browser.conftest import OpenPage

LOOKS = [("light", 1280), ("dark", 1280), ("light", 375), ("dark", 375)]
EMPTY = [
    "/", "/pending", "/unknown", "/failures", "/failures?reason=blocked", "/expired", "/incident",
    "/halts", "/system", "/search", "/t/nothing-here", "/alerts",
    "/alerts?mine=yes", "/alerts/rules", "/runbooks", "/runbooks/queue_age",
    "/runbooks/callbacks_refused", "/sender-domains",
]  # fmt: skip
ERRORS = ["/no/such/page", "/pending?stage=odd", "/pending?colour=red", "/failures?reason=%3C"]


def fill(database: Database) -> dict[str, UUID]:
    """Something of everything."""
    with database.connection() as connection:
        ids = people_seed.seed(connection)
        people_seed.seed_many(connection, 55, FATES[2])
        connection.execute(
            "UPDATE delivery SET provider = 'smtp' WHERE channel = 'email' AND provider IS NULL"
        )
        connection.execute(
            """INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at, released_by,
                                 release_reason, released_at)
               VALUES (gen_random_uuid(), 'channel:sms', 'provider in trouble', 'otto', db_now(),
                       NULL, NULL, NULL),
                      (gen_random_uuid(), 'all', 'drill', 'otto', db_now(), 'ada', 'over',
                       db_now())"""
        )
        connection.execute(
            """INSERT INTO process (owner, host, pid, workers, version, started_at, seen_at)
               VALUES ('a:1:x', 'a', 1, 16, '0', db_now(), db_now()),
                      ('b:2:y', 'b', 2, 0, '0', db_now(), db_now() - interval '5 min')"""
        )
        connection.execute(
            "INSERT INTO leader VALUES ('main', 'a:1:x', 1, db_now() + interval '1 h')"
        )
        connection.execute(
            """INSERT INTO sweep_run (name, owner, epoch, started_at, finished_at, rows, backlog,
                                      runs, failures, error, failed_at)
               VALUES ('expiry', 'a:1:x', 1, db_now(), db_now(), 3, 0, 9, 1, 'Fault', db_now()),
                      ('claim', 'a:1:x', 1, db_now(), NULL, NULL, NULL, 0, 0, NULL, NULL)"""
        )
        connection.execute(
            """INSERT INTO provider_pause VALUES
               ('smtp', 'auth_error', db_now(), db_now() + interval '1 h', 2)"""
        )
        fill_signals(connection)
        fill_sender_domains(connection)
        ids["alert"], ids["ended_alert"] = fill_alerts(connection)
        ids["refused"] = people_alerts.open_alert(
            connection, "callbacks_refused", "postmark", unit="count", threshold=10
        )
    return ids


def fill_alerts(connection: PooledConnection) -> tuple[UUID, UUID]:
    """An alert that nobody has, one in hand, one to review; two policy revisions."""
    now = people_seed.database_now(connection)
    people_alerts.open_alert(
        connection, key="sms", acknowledged_by="otto", acknowledged_at=now,
        acknowledge_note="looking",
    )  # fmt: skip
    connection.execute(
        """INSERT INTO policy_revision
           VALUES (2, '{"lease_s": 45, "poll_every_s": 50}', '', 'otto', 'slow carrier', db_now())
           ON CONFLICT DO NOTHING"""
    )
    opened = people_alerts.open_alert(connection)
    return opened, people_alerts.ended_alert(connection)


def fill_sender_domains(connection: PooledConnection) -> None:
    """A domain with every verdict, and a record that changed."""
    key = f"v=DKIM1; k=rsa; p={'MIIBIjANBgkqhkiG9w0B' * 20}"
    store.register(connection, ["mail.a-rather-long-name.example"])
    for policy in ("none", "reject"):
        observed = [
            Observed(kind, "s1" if kind == "dkim" else "", f"{kind}.mail.example", verdict, texts,
                     ("one reason", "and another"), {"rua": "a@mail.example"}, "192.0.2.53:53", 60)
            for kind, verdict, texts in (
                ("spf", "unknown", ()), ("dkim", "fail", (key,)), ("alignment", "pass", ()),
                ("dmarc", "warn", (f"v=DMARC1; p={policy}; rua=mailto:a@mail.example",)),
            )
        ]  # fmt: skip
        store.keep(connection, "mail.a-rather-long-name.example", observed)


def fill_signals(connection: PooledConnection) -> None:
    """Half an hour of everything that is counted, after half an hour in which nobody counted."""
    now = people_seed.database_now(connection)
    seeding.span(connection, now - timedelta(minutes=30), now)
    for ago in range(30):
        at = now - timedelta(minutes=ago)
        seeding.level(connection, at, pending=5, unknown=ago)
        seeding.queue(connection, at, 200 - 6 * ago)
        for signal in ("created", "accepted", "delivered", "not_accepted", "unknown"):
            seeding.count(connection, at, signal, 3 + ago % 5, region="GB")
        seeding.count(connection, at, "refused", 2, reason="rate_limited", region="GB")
        seeding.count(connection, at, "callback_refused", 1 + ago % 9, provider="postmark")
        for _, cause in CAUSES.values():
            seeding.count(connection, at, "expired", 1, reason=cause)


def full(ids: dict[str, UUID]) -> list[str]:
    """The addresses of everything that `fill` made."""
    fates = ("delivered", "unknown", "failed", "expired_dead_link", "expired_unsent", "canceled")
    cell = "/failures?reason=rate_limited&channel=email"
    alerts = ["/alerts", f"/alerts/{ids['alert']}", f"/alerts/{ids['ended_alert']}"]
    refused = [f"/alerts/{ids['refused']}", "/runbooks/callbacks_refused"]
    policy = ["/policy", "/policy/revisions/2"]
    return [
        *EMPTY[:9],
        EMPTY[-1],
        *alerts,
        *refused,
        "/alerts/rules",
        *policy,
        cell,
        "/a/acct-jana",
        *(f"/n/{ids[fate]}" for fate in fates),
    ]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
@pytest.mark.parametrize("state", ["empty", "full", "error"])
def test_no_page_has_a_fault(
    open_page: OpenPage,
    database: Database,
    scheme: Literal["light", "dark"],
    width: int,
    state: str,
) -> None:
    paths = {"empty": EMPTY, "error": ERRORS, "full": []}[state] or full(fill(database))
    page, watch = open_page("otto", width, color_scheme=scheme)
    for path in paths:
        page.goto(path)
        for numbers in page.get_by_text("Numbers", exact=True).all():
            numbers.click()
        assert axe_findings(page) == [], path
        assert min(drawn_contrasts(page), default=21) >= 4.5, path
        assert overflow(page) <= 0, path
        watch.assert_clean()


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_the_door_has_no_fault(
    open_page: OpenPage, scheme: Literal["light", "dark"], width: int
) -> None:
    page, watch = open_page(None, width, color_scheme=scheme)
    page.goto("/login?why=ended")
    assert axe_findings(page) == []
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong password")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    assert axe_findings(page) == []
    page.goto("/login/link/spent")
    assert axe_findings(page) == []
    watch.assert_clean()


def test_nothing_is_wider_than_the_smallest_window(open_page: OpenPage, database: Database) -> None:
    ids = fill(database)
    page, _ = open_page("otto", 320)
    wide = [path for path in full(ids) if page.goto(path) and overflow(page) > 0]
    assert wide == []


def test_what_to_tell_the_customer_is_above_the_fold_of_a_phone(
    open_page: OpenPage, database: Database
) -> None:
    with database.connection() as connection:
        ids = people_seed.seed(connection)
    page, _ = open_page("ada", 375)
    for name, notice_id in ids.items():
        page.goto(f"/n/{notice_id}")
        box = page.locator(".tell").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 667, name


def test_a_printed_notice_has_no_navigation_and_says_who_printed_it(
    open_page: OpenPage, database: Database
) -> None:
    with database.connection() as connection:
        ids = people_seed.seed(connection)
    page, _ = open_page()
    page.goto(f"/n/{ids['delivered']}")
    page.emulate_media(media="print")
    assert not page.get_by_role("navigation").first.is_visible()
    assert not page.get_by_role("searchbox").is_visible()
    assert page.get_by_text("Printed by ada (support)").is_visible()
    assert page.locator("#timeline li").last.is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
