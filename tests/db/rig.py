"""The flows over a test's own database, and short words for what a test does with them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from notifier.domain.event import Admitted, PolicyMode, ResetEvent, Transport
from notifier.domain.outcome import Outcome
from notifier.domain.policy import parse_policy
from notifier.domain.states import Channel
from notifier.flow import turns
from notifier.flow.admission import Admission
from notifier.flow.contacts import Contacts
from notifier.flow.desk import Asks, Desk
from notifier.flow.policies import PolicyShelf
from notifier.flow.receipts import Receipts
from notifier.flow.recording import Recorder
from notifier.ports.asking import ProviderReceipt
from notifier.store.database import Database
from notifier.store.ledger import claim as claims
from notifier.store.ledger import intent as intents
from notifier.store.ledger.claim import Claim, Take
from notifier.store.ledger.intent import Intent
from notifier.store.trail import TrailEntry
from tests.database import rewriting

Row = dict[str, Any]

TRANSPORT = Transport("msg-1", "key-1", "request-1")
WORKER = "worker-1"
BOTH = (Channel.EMAIL, Channel.SMS)
PROVIDERS = {Channel.EMAIL: "smtp", Channel.SMS: "twilio"}
LEASE = timedelta(seconds=30)
TURN = timedelta(seconds=40)
BUDGET = timedelta(seconds=20)
_numbers = itertools.count(1)


def event_at(now: datetime, life_s: float = 600, **changes: Any) -> ResetEvent:
    """An event that was requested at `now`, with ids that no other event of the run has."""
    number = next(_numbers)
    fields: Row = {
        "event_id": f"evt-{number}",
        "idempotency_key": f"key-{number}",
        "reset_request_id": f"req-{number}",
        "account_id": f"acc-{number}",
        "requested_at": now,
        "expires_at": now + timedelta(seconds=life_s),
        "template_id": "password-reset",
        "template_revision": "1",
    }
    return ResetEvent(**{**fields, **changes})


@dataclass
class Rig:
    """One process's flows; several over one database are several processes."""

    database: Database
    channels: Sequence[Channel] = (Channel.EMAIL,)
    policy: Mapping[str, Any] = field(default_factory=dict)
    digest_keys: tuple[bytes, ...] = (b"digest key",)
    reports: bool = False
    takes_bounces: bool = False
    asks: Mapping[str, Asks] = field(default_factory=dict)
    told: list[TrailEntry] = field(default_factory=list)
    counted: list[Outcome] = field(default_factory=list)
    give_up: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.shelf = PolicyShelf(self.database)
        self.shelf.begin(parse_policy(self.policy), "test")
        self.desk = Desk(
            self.database,
            self.shelf,
            self.told.extend,
            asks=self.asks,
            takes_bounces=self.takes_bounces,
        )
        self.receipts = Receipts(self.database, self.desk, lambda _provider, _status: None)
        self.contacts = Contacts(self.database, (b"fingerprint key",))
        self.admission = Admission(
            database=self.database,
            desk=self.desk,
            shelf=self.shelf,
            contacts=self.contacts,
            digest_keys=self.digest_keys,
            channels={each: PROVIDERS[each] for each in self.channels},
            pick_locale=lambda _locale, _template, _revision: ("en", False),
            announce=self.told.extend,
            wake=lambda: None,
        )
        self.recorder = Recorder(
            database=self.database,
            desk=self.desk,
            reports_deliveries=dict.fromkeys(Channel, self.reports),
            count=lambda _channel, _provider, outcome: self.counted.append(outcome),
            give_up=self.give_up,
        )

    # --- doing

    def admit(self, event: ResetEvent | None = None, **changes: Any) -> UUID:
        """Admit an event (default: one of ten minutes' life) and give its notice."""
        answer = self.admission.admit(event or self.event(**changes), TRANSPORT)
        assert isinstance(answer, Admitted)
        return UUID(answer.notification_id)

    def event(self, **changes: Any) -> ResetEvent:
        return event_at(self.now(), **changes)

    def admit_for_both(self, **changes: Any) -> UUID:
        """A notice with its email queued and a text in reserve."""
        return self.admit(sms_consent=True, mode=PolicyMode.EMAIL_THEN_SMS, **changes)

    def claim(
        self,
        slots: int = 1,
        *,
        channel: Channel = Channel.EMAIL,
        owner: str = WORKER,
        provider: str = "smtp",
        turn: timedelta = TURN,
    ) -> list[Claim]:
        with self.database.connection() as connection:

            def take(take: Take) -> list[Claim]:
                asked = {"channel": channel, "provider": provider, "owner": owner}
                return claims.claim(connection, **asked, take=take)[0]

            return take(Take(slots, LEASE)) or turns.claim_in_turn(
                connection, provider, turn, lambda until: take(Take(1, LEASE, until))
            )

    def claim_one(self, channel: Channel = Channel.EMAIL, provider: str = "smtp") -> Claim:
        [taken] = self.claim(channel=channel, provider=provider)
        return taken

    def intent(self, claim: Claim, reference: str = "ref-1", **changes: Any) -> Intent:
        guards: Row = {
            "notice_id": claim.notice_id,
            "channel": claim.channel,
            "fence": claim.fence,
            "owner": WORKER,
            "provider": "smtp",
            "reference": reference,
            "message_digest": "00",
            "budget": BUDGET,
            "not_after": claim.stop_at,
            "turn_until": claim.turn_until,
        }
        with self.database.connection() as connection:
            return intents.intent(connection, **{**guards, **changes})

    def start(
        self,
        reference: str = "ref-1",
        channel: Channel = Channel.EMAIL,
        provider: str = "smtp",
    ) -> Claim:
        """Claim the one notice that is due and commit its intent."""
        claim = self.claim_one(channel, provider)
        started = self.intent(claim, reference, provider=provider)
        assert started.verdict is intents.Verdict.STARTED
        return claim

    def start_new(self, reference: str = "ref-1") -> Claim:
        """Admit a notice and commit its first intent."""
        self.admit()
        return self.start(reference)

    def record(self, claim: Claim, outcome: Outcome, reference: str = "ref-1") -> None:
        self.recorder.record(claim, reference, outcome)

    def tell(self, *receipts: ProviderReceipt, source: str = "callback") -> None:
        """Have a provider tell us something."""
        self.receipts.take(receipts, source)

    def sweep_parked(self) -> int:
        """Apply what waited in the inbox; how many receipts were looked at."""
        with self.database.connection() as connection:
            return self.receipts.apply_parked(connection)

    def settle(self, notice_id: UUID) -> None:
        """Have the rules asked, as every sweep does."""
        with self.desk.open(notice_id):
            pass

    # --- looking

    def now(self) -> datetime:
        at: datetime = self.one("SELECT db_now() AS at")["at"]
        return at

    def rows(self, query: str, *values: Any) -> list[Row]:
        with self.database.connection() as connection:
            return connection.execute(query, values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        with self.database.connection() as connection:
            connection.execute(statement, values)

    def rewrite(self, table: str, statement: str, *values: Any) -> None:
        """Change what the product never changes, to see what it makes of it."""
        with self.database.connection() as connection, rewriting(connection, table):
            connection.execute(statement, values)

    def one(self, query: str, *values: Any) -> Row:
        [row] = self.rows(query, *values)
        return row

    def count(self, table: str) -> int:
        number: int = self.one(f"SELECT count(*) AS n FROM {table}")["n"]  # noqa: S608
        return number

    def notice(self, notice_id: UUID) -> Row:
        return self.one("SELECT * FROM notice WHERE notice_id = %s", notice_id)

    def delivery(self, notice_id: UUID, channel: Channel = Channel.EMAIL) -> Row:
        query = "SELECT * FROM delivery WHERE notice_id = %s AND channel = %s"
        return self.one(query, notice_id, channel)

    def state(self, notice_id: UUID, channel: Channel = Channel.EMAIL) -> str:
        state: str = self.delivery(notice_id, channel)["state"]
        return state

    def attempts(self, notice_id: UUID) -> list[Row]:
        return self.rows("SELECT * FROM attempt WHERE notice_id = %s ORDER BY number", notice_id)

    def trail(self, notice_id: UUID) -> list[Row]:
        return self.rows("SELECT * FROM transition WHERE notice_id = %s ORDER BY seq", notice_id)

    def reasons(self, notice_id: UUID) -> list[str]:
        return [row["reason"] for row in self.trail(notice_id)]
