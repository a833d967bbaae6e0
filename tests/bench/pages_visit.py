"""Every page as its reader asks for it: who, where, on one connection that is kept."""

from __future__ import annotations

import http.client
import itertools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import psycopg

from notifier.accounts import people, sign_in_links
from notifier.accounts.permissions import Role
from notifier.store.database import Database
from tests.people_pages import FRAGMENT, build_app, csrf_token

LIST_BYTES: Final = 60_000
FRAGMENT_BYTES: Final = 25_000
PAGE_P95_MS: Final = 150.0
LOOK_UP_P95_MS: Final = 50.0
SAMPLED: Final = 400
ELSEWHERE: Final = {
    "static", "sign_in", "link", "to_issuer", "from_issuer", "leave_issuer",
    "export_file", "policy_file",
}  # fmt: skip
"""Endpoints that are no page of somebody who is signed in."""
COOKIE: Final = re.compile(r"^([^=]+=[^;]*)")


@dataclass(frozen=True, slots=True)
class Visit:
    """A page, by its endpoint; `{notice}` and the like stand for one of the sampled ids."""

    endpoint: str
    path: str
    role: Role = Role.ON_CALL
    fragment: bool = False
    look_up: bool = False


VISITS: Final = (
    Visit("home", "/", Role.SUPPORT),
    Visit("home", "/", fragment=True),
    Visit("pending", "/pending", fragment=True),
    Visit("pending", "/pending?stage=accepted"),
    Visit("pending", "/pending?stage=unknown"),
    Visit("unknown", "/unknown", fragment=True),
    Visit("unknown", "/unknown?channel=email&provider=postmark"),
    Visit("expired", "/expired", fragment=True),
    Visit("failures", "/failures", fragment=True),
    Visit("failures", "/failures?range=7d"),
    Visit("failures", "/failures?range=7d&region=GB"),
    Visit("failures", "/failures?channel=email", fragment=True),
    Visit("failures", "/failures?range=7d&region=GB&reason=hard_bounce", fragment=True),
    Visit("incident", "/incident?since={hour_ago}", fragment=True),
    Visit("incident", "/incident?since={day_ago}"),
    Visit("incident", "/incident?since={day_ago}&region=GB&channel=email"),
    Visit("incident", "/incident?since={hour_ago}&event={event}"),
    Visit("notice", "/n/{notice}", Role.SUPPORT, fragment=True),
    Visit("act_form", "/n/{open}/stop"),
    Visit("by_event", "/e/{event}", Role.SUPPORT, look_up=True),
    Visit("by_reset_request", "/r/{reset_request}", Role.SUPPORT, look_up=True),
    Visit("by_account", "/a/{account}", Role.SUPPORT, look_up=True),
    Visit("by_ticket", "/t/{ticket}", Role.SUPPORT, look_up=True),
    Visit("search_form", "/search", Role.SUPPORT),
    Visit("halts", "/halts", fragment=True),
    Visit("release_form", "/halts/{halt}/release", Role.ADMIN),
    Visit("system", "/system", fragment=True),
    Visit("alerts", "/alerts", fragment=True),
    Visit("alerts", "/alerts?state=resolved"),
    Visit("alert", "/alerts/{alert}"),
    Visit("alert_rules", "/alerts/rules"),
    Visit("alert_rules", "/alerts/rules?days=90"),
    Visit("runbooks", "/runbooks"),
    Visit("runbook", "/runbooks/queue_age"),
    Visit("runbook", "/runbooks/callbacks_refused"),
    Visit("policy", "/policy"),
    Visit("policy_revision", "/policy/revisions/1"),
    Visit("audit", "/audit", Role.AUDITOR),
    Visit("audit", "/audit?person=person-7", Role.AUDITOR),
    Visit("audit", "/audit?action=view&kind=notice", Role.AUDITOR),
    Visit("exports", "/exports", Role.AUDITOR, fragment=True),
    Visit("export", "/exports/{export}", Role.AUDITOR),
    Visit("export_manifest", "/exports/{export}/manifest", Role.AUDITOR),
    Visit("export_form", "/exports/new/pending"),
    Visit("sender_domains", "/sender-domains"),
    Visit("wishes", "/preferences", Role.SUPPORT),
)


@dataclass(slots=True)
class Seen:
    """What was measured of one page."""

    name: str
    look_up: bool
    fragment: bool
    took_ms: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Reader:
    """Somebody who is signed in, with a connection that is kept."""

    host: str
    cookies: dict[str, str] = field(default_factory=dict)
    _line: http.client.HTTPConnection | None = None

    def renew(self) -> None:
        """Begin a connection anew: the server hangs up on one that was idle for a while."""
        if self._line is not None:
            self._line.close()
        self._line = None

    def ask(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, str, float]:
        """Status, text and milliseconds."""
        if self._line is None:
            self._line = http.client.HTTPConnection(self.host, timeout=30)
            self._line.connect()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        begin = time.perf_counter()
        self._line.request(method, path, body, sent)
        answer = self._line.getresponse()
        text = answer.read().decode()
        took = (time.perf_counter() - begin) * 1000
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie" and (found := COOKIE.match(value)):
                key, _, content = found[1].partition("=")
                self.cookies[key] = content
        return answer.status, text, took


def sign_in(url: str, database: Database, role: Role) -> Reader:
    """A new account of this role, by a one-time link."""
    with database.connection() as connection:
        name = f"bench-{role.value}-{time.time_ns()}"
        person = people.add(connection, name, role, None)
        path = f"/login/link/{sign_in_links.create(connection, person.person_id)}"
    reader = Reader(urlsplit(url).netloc)
    _, page, _ = reader.ask("GET", path)
    fields = {"csrf_token": csrf_token(page), "password": "correct horse battery"}
    form = "application/x-www-form-urlencoded"
    status, text, _ = reader.ask(
        "POST", path, urlencode(fields), content_type=form, sec_fetch_site="same-origin"
    )
    assert status == 303, (status, text[:300])
    return reader


def endpoints(database: Database) -> set[str]:
    """The names of all pages of somebody who is signed in."""
    rules = build_app(database).url_map.iter_rules()
    names = {each.endpoint.partition(".")[2] for each in rules if "GET" in (each.methods or ())}
    return names - ELSEWHERE - {""}


def samples(connection: psycopg.Connection[dict[str, Any]]) -> Mapping[str, Sequence[str]]:
    """Ids of what is there, spread over all of it; and times."""
    statements = {
        "notice": "SELECT notice_id FROM notice WHERE {chance}",
        "open": "SELECT notice_id FROM notice WHERE state = 'email_pending' AND {chance}",
        "event": "SELECT event_id FROM admission WHERE {chance}",
        "reset_request": "SELECT reset_request_id FROM admission WHERE {chance}",
        "account": "SELECT account_id FROM admission WHERE {chance}",
        "ticket": "SELECT ticket_id FROM ticket_link WHERE {chance}",
        "halt": "SELECT halt_id FROM halt WHERE released_at IS NULL",
        "alert": "SELECT episode_id FROM alert_episode WHERE state = 'resolved'",
        "export": "SELECT export_id FROM export WHERE requested_by LIKE 'person-%%'",
    }
    found: dict[str, Sequence[str]] = {}
    for name, statement in statements.items():
        chance = "md5(notice_id::text) >= '8' ORDER BY md5(notice_id::text)"
        asked = f"{statement.format(chance=chance)} LIMIT {SAMPLED}"
        rows = connection.execute(asked).fetchall()
        found[name] = [str(next(iter(row.values()))) for row in rows]
    row = connection.execute("SELECT db_now() AS now").fetchone()
    assert row
    now = row["now"]
    for name, span in (("hour_ago", timedelta(hours=1)), ("day_ago", timedelta(hours=23))):
        found[name] = [quote(f"{now - span:%Y-%m-%dT%H:%M:%SZ}")]
    return found


def measure(
    visit: Visit,
    reader: Reader,
    ids: Mapping[str, Sequence[str]],
    times: int,
    forget: Callable[[], None],
) -> list[Seen]:
    """The page, the fragment where there is one, and a trivial answer between them.

    `forget` makes the product forget how often somebody has looked something up.
    """
    turns = {name: itertools.cycle(values) for name, values in ids.items() if values}
    page = Seen(f"{visit.path} ({visit.role.value})", visit.look_up, fragment=False)
    part = Seen(f"{page.name}, fragment", look_up=False, fragment=True)
    plain = Seen("/healthz", look_up=False, fragment=False)
    reader.renew()
    for _ in range(times):
        path = re.sub(r"\{(\w+)\}", lambda found: next(turns[found[1]]), visit.path)
        if visit.look_up:
            forget()
        _ask(page, reader, path, {})
        if visit.fragment:
            _ask(part, reader, path, FRAGMENT)
        _ask(plain, reader, "/healthz", {})
    return [page, *([part] if visit.fragment else []), plain]


def _ask(seen: Seen, reader: Reader, path: str, headers: Mapping[str, str]) -> None:
    status, text, took = reader.ask("GET", path, None, **headers)
    assert status == 200 or (seen.look_up and status == 303), (path, status, text[:200])
    seen.took_ms.append(took)
    seen.sizes.append(len(text.encode()))
