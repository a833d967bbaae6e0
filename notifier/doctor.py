"""Looks at everything that sending rests on, and sends nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

from notifier.accounts import oidc_tokens
from notifier.accounts.oidc import Client, IssuerUnreachable, client_of
from notifier.accounts.oidc_issuer import Issuer
from notifier.domain.policy import Policy, PolicyInvalid
from notifier.messages import revisions
from notifier.setting_names import unknown_settings
from notifier.settings import PREFIX, Settings
from notifier.signals.apprise_pager import NOT_UNDERSTOOD, receivers_of
from notifier.signals.sender_watch import probe as probe_senders
from notifier.signals.sender_watch import sender_watch_of
from notifier.starting import CannotStart, first_policy, require_schema
from notifier.store.database import (
    SESSION_LIMITS,
    BoundedConnection,
    Database,
    StoreUnavailable,
)
from notifier.store.embedded import EmbeddedServer
from notifier.store.ledger import policies, templates
from notifier.store.reads.trail_checkpoints import newest

CLOCKS_APART_S: Final = 2.0
"""More than this between database and machine is said; sending uses the database's clock."""


PROBED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "smtp": ("SMTP_URL",),
    "postmark": ("POSTMARK_TOKEN", "POSTMARK_BASE_URL"),
    "resend": ("RESEND_API_KEY", "RESEND_BASE_URL"),
    "twilio": ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_BASE_URL"),
}
"""Settings without their prefix that a look at each provider rests on."""

ProbeProviders = Callable[[Policy], Iterable[tuple[str, bool, str]]]
"""Looks at every provider without sending: name, whether it is well, and a few words."""

ProbeLinks = Callable[[], tuple[bool, str]]
"""Asks the auth service about nobody: whether it answers, and a few words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `detail` holds no secret and no address of a person."""

    part: str
    ok: bool
    detail: str


def examine(
    settings: Settings,
    database_url: str,
    probe_providers: ProbeProviders,
    embedded: EmbeddedServer | None = None,
    *,
    probe_links: ProbeLinks,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Finding]:
    """Each part in turn; the later ones are left out where the database cannot be used.

    `environ` is what the settings were read from.
    """
    unknown = "; ".join(map(str, unknown_settings(environ)))
    yield Finding("settings", ok=not unknown, detail=unknown or "complete")
    yield from _pager(settings)
    yield Finding("auth service", *probe_links())
    if embedded:
        yield _embedded(embedded)
    try:
        require_schema(database_url)
    except CannotStart as error:
        yield Finding("database", ok=False, detail=str(error))
        return
    yield Finding("database", ok=True, detail="reachable, on this version's schema")
    database = Database(database_url, size=1, application_name="notifier-doctor")
    try:
        with database.connection() as connection:
            yield _clock(connection)
            yield _session(connection)
            yield _durability(connection)
            yield _templates(connection)
            yield _checkpoints(settings, connection)
            policy_finding, policy = _policy(settings, connection)
            yield policy_finding
    except (StoreUnavailable, psycopg.Error) as error:
        yield Finding("database", ok=False, detail=f"no answer: {type(error).__name__}")
        return
    finally:
        database.close()
    if client := client_of(settings):
        yield _single_sign_on(client)
    for domain, ok, detail in probe_senders(sender_watch_of(settings)):
        yield Finding(f"sender domain {domain}", ok, detail)
    if policy:
        for name, ok, detail in probe_providers(policy):
            yield Finding(f"provider {name}", ok, detail if ok else f"{detail}; {see_of(name)}")


def see_of(provider: str) -> str:
    """Where to look when a provider is not well: the settings that lead to it."""
    *others, last = (PREFIX + name for name in PROBED_WITH[provider])
    return f"see {', '.join(others)}{' and ' if others else ''}{last}"


def _embedded(server: EmbeddedServer) -> Finding:
    """Whether this command found the database running; it had to be there for the command."""
    if server.was_missed:
        told = "was not running although a process uses it; started by this command"
        return Finding("postgres", ok=False, detail=told)
    told = "was not running; started for this command" if server.was_started else "runs"
    return Finding("postgres", ok=True, detail=told)


def _pager(settings: Settings) -> Iterator[Finding]:
    """Whether each address of the pager is one; nobody is told anything."""
    receivers = receivers_of(settings.alert_urls)
    if not receivers:
        yield Finding("pager", ok=True, detail="no NOTIFIER_ALERT_URLS: alerts page nobody")
    for each in receivers:
        understood = each.is_understood()
        words = "understood" if understood else f"{NOT_UNDERSTOOD}; see {PREFIX}ALERT_URLS"
        yield Finding(f"pager {each.name}", understood, words)


def _single_sign_on(client: Client) -> Finding:
    """Reads what the issuer says of itself and its keys; signs nobody in."""
    try:
        offer = Issuer(client).offer()
    except IssuerUnreachable as error:
        return Finding(
            "single sign-on",
            ok=False,
            detail=f"no usable issuer: {error.what}; see {PREFIX}OIDC_ISSUER",
        )
    signatures = oidc_tokens.usable_signatures(
        offer.document.get("id_token_signing_alg_values_supported")
    )
    known = f"{len(offer.keys)} keys, signatures {', '.join(signatures) or 'none that is taken'}"
    return Finding("single sign-on", bool(offer.keys and signatures), f"reachable, {known}")


def _clock(connection: psycopg.Connection[dict[str, datetime]]) -> Finding:
    before = datetime.now(UTC)
    row = connection.execute("SELECT db_now() AS now").fetchone()
    if row is None:
        return Finding("clock", ok=False, detail="the database gave no time")
    apart = (row["now"] - before).total_seconds()
    detail = f"database and machine are {apart:+.2f} s apart"
    return Finding("clock", abs(apart) < CLOCKS_APART_S, detail)


def _session(connection: BoundedConnection) -> Finding:
    """Whether this connection is as the product makes it; a pooler forgets what it was told."""
    rows = connection.execute(
        "SELECT name, current_setting(name) AS value FROM unnest(%s::text[]) AS name",
        [["transaction_read_only", "search_path", *SESSION_LIMITS]],
    ).fetchall()
    found = {row["name"]: row["value"] for row in rows}
    wanted = {"transaction_read_only": "off", "search_path": "notifier", **SESSION_LIMITS}
    wrong = [f"{name} is {found[name]}" for name, value in wanted.items() if found[name] != value]
    kind = "through a pooler" if connection.pooled else "direct"
    return Finding("session", not wrong, "; ".join(wrong) or f"{kind}, settings as they should be")


def _durability(connection: psycopg.Connection[dict[str, str]]) -> Finding:
    """With asynchronous replication a failover can lose an intent and send twice (design 6.5)."""
    row = connection.execute(
        "SELECT current_setting('synchronous_commit') AS commits,"
        " current_setting('fsync') AS fsync,"
        " current_setting('synchronous_standby_names') AS standbys"
    ).fetchone() or {"commits": "off", "fsync": "off", "standbys": ""}
    if row["commits"] == "off" or row["fsync"] == "off":
        detail = "commits are not durable: synchronous_commit and fsync must be on"
        return Finding("durability", ok=False, detail=detail)
    waited_for = row["standbys"] and row["commits"] != "local"
    replicas = "on" if waited_for else "off: a failover to a standby can lose a commit"
    return Finding("durability", ok=True, detail=f"synchronous replication {replicas}")


def _checkpoints(settings: Settings, connection: psycopg.Connection[dict[str, Any]]) -> Finding:
    """Without them a tail of the trail that is removed together with its head is not missed."""
    last = newest(connection)
    told = f"number {last.number}, {last.age_s:.0f} s old" if last else "none yet"
    if settings.checkpoint_key is None:
        detail = f"no NOTIFIER_CHECKPOINT_KEY: the trail's ends are not signed ({told})"
        return Finding("checkpoints", ok=True, detail=detail)
    return Finding("checkpoints", ok=True, detail=told)


def _templates(connection: psycopg.Connection[dict[str, str]]) -> Finding:
    problems = revisions.check_revisions(templates.stored(connection))
    return Finding("templates", not problems, "; ".join(problems) or "unchanged")


def _policy(
    settings: Settings, connection: psycopg.Connection[dict[str, str]]
) -> tuple[Finding, Policy | None]:
    try:
        number = policies.newest(connection)
        policy = Policy.from_document(policies.document_of(connection, number))
    except LookupError:
        try:
            return Finding("policy", ok=True, detail="none stored yet"), first_policy(settings)
        except CannotStart as error:
            return Finding("policy", ok=False, detail=str(error)), None
    except PolicyInvalid as error:
        return Finding("policy", ok=False, detail=str(error)), None
    return Finding("policy", ok=True, detail=f"revision {number} in force"), policy
