"""The page of the sender domains: read by all, changed by nobody, and a check that is queued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from notifier.accounts.permissions import Role
from notifier.store import sender_domains as store
from notifier.store.sender_domains import Observed
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.database import Clock
    from tests.web.people.conftest import SignIn

HOME = "mail.example"


def seen(
    kind: str, verdict: str = "pass", *texts: str, why: str = "", selector: str = ""
) -> Observed:
    reasons = (why,) if why else ()
    facts = {"rua": "a@mail.example"} if kind == "dmarc" else {}
    return Observed(
        kind, selector, f"{kind}.{HOME}", verdict, texts, reasons, facts, "192.0.2.53:53", 60
    )


def keep(database: Database, *observed: Observed, domain: str = HOME) -> None:
    with database.connection() as connection:
        store.register(connection, [domain])
        store.keep(connection, domain, observed)


def rows(browser: Browser, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = browser.get(f"/sender-domains?format=json{query}").get_json()[
        "rows"
    ]
    return found


def test_an_empty_page_says_where_domains_come_from(support: Browser) -> None:
    page = support.get("/sender-domains").text
    assert "No sender domain is known yet" in page
    assert "NOTIFIER_EMAIL_FROM" in page


def test_a_record_stands_with_its_verdict_reasons_text_resolver_and_age(
    support: Browser, database: Database
) -> None:
    keep(
        database,
        seen("spf", "unknown", why="mail.example could not be looked up: SERVFAIL"),
        seen("dkim", "fail", "v=DKIM1; p=", why="the key was revoked: p is empty", selector="s1"),
        seen("dmarc", "warn", "v=DMARC1; p=none", why="the policy is none"),
    )
    page = support.get("/sender-domains").text
    for words in (
        "could not be looked up: SERVFAIL", "the key was revoked", "v=DMARC1; p=none", "s1",
        "rua: a@mail.example", "192.0.2.53:53", "TTL 60 s", "not asked", "SPF", "DKIM", "DMARC",
    ):  # fmt: skip
        assert words in page, words


def test_the_history_shows_what_went_and_what_came(
    support: Browser, database: Database, clock: Clock
) -> None:
    keep(database, seen("dmarc", "warn", "v=DMARC1; p=none"))
    keep(database, seen("dmarc", "pass", "v=DMARC1; p=reject"))
    page = support.get("/sender-domains").text
    assert "<del>p=none</del>" in page
    assert "<ins>p=reject</ins>" in page
    assert "first observed" in page


def test_filters_by_domain_and_verdict_show_what_they_say(
    support: Browser, database: Database
) -> None:
    keep(database, seen("spf"), seen("dmarc", "fail"))
    keep(database, seen("spf", "unknown"), domain="other.example")
    assert {row["domain"] for row in rows(support, "&domain=other.example")} == {"other.example"}
    assert [row["kind"] for row in rows(support, "&verdict=fail")] == ["dmarc"]
    assert rows(support, "&verdict=warn") == []
    page = support.get("/sender-domains?domain=other.example").text
    assert "<code>other.example</code>" in page
    assert "<code>mail.example</code>" not in page
    assert "The filter hides everything else" in support.get("/sender-domains?domain=no").text
    assert support.get("/sender-domains?verdict=odd").status_code == 422


def test_what_a_stranger_wrote_stays_text(support: Browser, database: Database) -> None:
    keep(database, seen("spf", "fail", "v=spf1 <script>alert(1)</script>", why="<b>odd</b>"))
    page = support.get("/sender-domains").text
    assert "<script>alert" not in page
    assert "<b>odd" not in page
    (row,) = rows(support)
    assert row["texts"] == "v=spf1 <script>alert(1)</script>"


def test_a_check_is_queued_for_a_worker_and_written_down(
    on_call: Browser, database: Database
) -> None:
    keep(database, seen("spf"))
    with database.connection() as connection:
        connection.execute("UPDATE sender_domain SET due_at = db_now() + interval '1 hour'")
    assert "Queue a check of mail.example" in on_call.get("/sender-domains").text
    answer = on_call.post("/sender-domains", domain=HOME)
    assert (answer.status_code, answer.location) == (303, "/sender-domains")
    page = on_call.get("/sender-domains").text
    assert f"A check is queued by {on_call.name}" in page
    assert "Queue a check of" not in page
    acts = [row for row in audit_rows(database) if row["object_kind"] == "check_sender"]
    assert [(row["object_ref"], row["outcome"]) for row in acts] == [(HOME, "asked")]


def test_an_unknown_domain_is_not_queued(on_call: Browser, database: Database) -> None:
    assert on_call.post("/sender-domains", domain="stranger.example").status_code == 404
    acts = [row for row in audit_rows(database) if row["object_kind"] == "check_sender"]
    assert [(row["object_ref"], row["outcome"]) for row in acts] == [(None, "not_done")]


def test_support_reads_and_is_offered_no_check(support: Browser, database: Database) -> None:
    keep(database, seen("spf"))
    assert "Queue a check" not in support.get("/sender-domains").text
    assert support.post("/sender-domains", domain=HOME).status_code == 403


@pytest.mark.parametrize("form", ["csv", "json", "ndjson"])
def test_the_observations_are_taken_out_by_themselves(
    sign_in: SignIn, database: Database, form: str
) -> None:
    keep(database, seen("spf", "pass", "v=spf1 -all"), seen("dmarc", "warn", "v=DMARC1; p=none"))
    keep(database, seen("dmarc", "pass", "v=DMARC1; p=reject"))
    auditor = sign_in(Role.AUDITOR)
    where = str(auditor.post("/exports/new/sender_domains", format=form).location)
    file, manifest = auditor.get(f"{where}/file"), auditor.get(f"{where}/manifest").get_json()
    assert (manifest["list"], manifest["rows"]) == ("sender_domains", 3)
    assert "v=DMARC1; p=none" in file.text
    assert "notification_id" not in file.text


def test_many_observations_page_through(support: Browser, database: Database, clock: Clock) -> None:
    clock.freeze()
    for number in range(60):
        keep(database, seen("spf", "pass", f"v=spf1 ip4:192.0.2.{number} -all"))
    first = support.get("/sender-domains?format=json&size=25").get_json()
    second = support.get(first["later"]).get_json()
    third = support.get(second["later"]).get_json()
    texts = [row["texts"] for page in (first, second, third) for row in page["rows"]]
    assert len(texts) == len(set(texts)) == 60
