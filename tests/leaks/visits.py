"""What people do on the pages, with a secret in their hands."""

from __future__ import annotations

from notifier.accounts import people, sign_in_links
from notifier.accounts.permissions import Role
from notifier.flow import halts
from notifier.store.database import Database
from peers.events import Event
from tests.database import rewriting
from tests.leaks.faults import Connection, changed
from tests.leaks.stage import Stage
from tests.leaks.wire import Wire

LISTS = (
    "/", "/pending", "/unknown", "/failures", "/expired", "/incident", "/alerts", "/policy",
    "/halts", "/sender-domains", "/audit", "/exports", "/system", "/search",
)  # fmt: skip
ROLES = (Role.SUPPORT, Role.ON_CALL, Role.AUDITOR)
PAGES = 45
MARKUP = '</textarea><img src=x onerror=p7()><p hx-get="/pending" hx-on:click="p7()">'
"""Text of somebody else's that must never run in an operator's browser (B124)."""


def signed_in(stage: Stage) -> list[Wire]:
    """One browser for each role; two by password, one by a one-time link."""
    password = stage.canaries.account_password
    database = Database(stage.database_url, size=1)
    wires = []
    halts.engage(database, scope="account:nobody", reason="markup", by="test")
    with database.connection() as connection:
        # The check of reasons keeps it out by now; a page must not rely on that.
        with rewriting(connection, "halt"):
            connection.execute("UPDATE halt SET reason = %s", [MARKUP])
        for role in ROLES:
            wire = Wire(str(role), stage.port)
            by_link = role is Role.ON_CALL
            person = people.add(connection, role, role, None if by_link else password)
            if by_link:
                enter_by_link(stage, wire, sign_in_links.create(connection, person.person_id))
            else:
                enter(wire, role, password)
            for place, secret in enumerate(wire.session_secrets()):
                stage.canaries.sessions[f"session of {role}, {place}"] = secret
            wires.append(wire)
    database.close()
    return wires


def enter(wire: Wire, name: str, password: str) -> None:
    """Sign in, once with a wrong password and once with the right one."""
    assert wire.submit("/login", "/login", username=name, password=f"{password}x").status == 422
    wire.follow(wire.submit("/login", "/login", username=name, password=password))


def enter_by_link(stage: Stage, wire: Wire, token: str) -> None:
    """Spend a one-time link; its own page alone may hold its token."""
    stage.canaries.config["one-time sign-in link"] = token
    path = f"/login/link/{token}"
    page = Wire("somebody with a link", wire.port, jar=wire.jar)
    password = stage.canaries.account_password
    assert page.submit(path, path, password=password).status == 303
    wire.cookies += page.cookies


def look_around(wire: Wire, events: list[Event], ids: list[str]) -> None:
    """Every list, every notice, what they link to, and each again for programs."""
    seen = wire.crawl(*LISTS, *(f"/n/{each}" for each in ids), most=PAGES + len(ids))
    assert all(status < 500 for status in seen.values()), seen
    assert all(seen[f"/n/{each}"] == 200 for each in ids)
    assert sum(status == 200 for status in seen.values()) > len(ids) + 4, seen
    for path in [*LISTS, f"/n/{ids[0]}"]:
        for form in ("json", "csv"):
            assert wire.get(f"{path}?format={form}").status < 500
        assert wire.get(path, HX_Request="true").status < 500
    assert b"onerror=p7" in wire.answers
    assert b"<img src=x" not in wire.answers
    assert b"<p hx-get" not in wire.answers
    event = events[0]
    for kind, key in (("e", "event_id"), ("r", "reset_request_id"), ("a", "account_id")):
        assert wire.get(f"/{kind}/{event[key]}").status in {200, 303}


def search(stage: Stage, wire: Wire) -> None:
    """Look for the person by address and number: not in the URL, nor on the page (B109)."""
    canaries = stage.canaries
    for text in (canaries.address(), f" {canaries.address().upper()}", *canaries.spellings()[2:4]):
        answer = wire.submit("/search", "/search", q=text)
        results = wire.follow(answer)
        mask = "q•••@z•••.test" if text.strip().startswith(canaries.local) else "•••"
        assert mask in results.text
        assert "/search?s=" in answer.header("Location")
        assert wire.get(answer.header("Location"), HX_Request="true").status == 200
        for form in ("json", "csv"):
            assert wire.get(f"{answer.header('Location')}&format={form}").status == 200
    for text in (f"{canaries.address()} and more", f"@{canaries.address()}", canaries.link(),
                 f"{canaries.number}99999999"):  # fmt: skip
        assert wire.submit("/search", "/search", q=text).status in {422, 429}
    assert wire.submit("/search", "/search", q=f"{canaries.address()}\0").status == 400


def break_pages(stage: Stage, connection: Connection, wire: Wire, notice_id: str) -> None:
    """A fault that nobody expects, in a page about a canary."""
    with changed(connection, "ALTER TABLE delivery RENAME stop_at TO gone",
                 "ALTER TABLE delivery RENAME gone TO stop_at"):  # fmt: skip
        for path in (f"/n/{notice_id}", f"/n/{notice_id}?format=json"):
            answer = wire.get(path)
            assert answer.status == 500, (path, answer.status, answer.text)
    with changed(connection, "ALTER TABLE search_token RENAME mask TO gone",
                 "ALTER TABLE search_token RENAME gone TO mask"):  # fmt: skip
        answer = wire.submit("/search", "/search", q=stage.canaries.address("page-fault"))
        assert answer.status in {429, 500}
