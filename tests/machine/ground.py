"""One kind of surroundings (policy and providers) over a database of its own, and its clock.

The database is kept for thousands of examples: each one begins days after the last and leaves
nothing open, so that no two can meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from notifier.domain.states import Channel
from notifier.domain.values import RenderedMessage, Secret
from notifier.flow.desk import Asks
from notifier.flow.dispatch import Dispatch
from notifier.flow.reconcile import Reconciler
from notifier.flow.recording import Recorder
from notifier.messages.render import RenderFailed
from notifier.ports.asking import Capability
from notifier.ports.sending import Envelope
from notifier.store.database import Database, PooledConnection
from notifier.store.embedded import EmbeddedServer
from tests import database as databases
from tests.db.rig import Rig
from tests.machine.model.facts import Terms
from tests.machine.peers import Asked, Auth, Post

Row = dict[str, Any]
BEGIN = datetime(2031, 3, 1, tzinfo=UTC)
APART = timedelta(days=2)
SMS = "twilio"

NOTICE = """SELECT notice_id, state, basis, canceled_at, expires_at, hold_noted, seq, head
    FROM notice WHERE notice_id = ANY (%s)"""
DELIVERIES = """SELECT notice_id, channel, state, reason, stop_at, expires_at, due_at, fence,
       lease_owner, lease_until, attempts, final_acceptance, may_have_left, left_at, arrived_at,
       next_check_at
    FROM delivery WHERE notice_id = ANY (%s)"""
ATTEMPTS = """SELECT notice_id, channel, number, reference, deadline, resolved_at, call_ended,
       replay_started_at, replay_ended_at, provider_message_id
    FROM attempt WHERE notice_id = ANY (%s) ORDER BY number"""
ROWS = """SELECT notice_id, seq, channel, from_state, to_state, reason
    FROM transition WHERE notice_id = ANY (%s) AND seq > %s ORDER BY notice_id, seq"""
CHAIN = """SELECT *, evidence::text AS evidence FROM transition WHERE notice_id = ANY (%s)
    ORDER BY notice_id, seq"""
# A machine that is busy with other work is no finding.
PATIENT = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
LIFT = """UPDATE halt SET released_at = db_now(), released_by = 'machine', release_reason = 'over'
    WHERE released_at IS NULL"""


@dataclass(frozen=True)
class Kind:
    """One kind of surroundings; `finds`: what the email provider can be asked."""

    name: str
    terms: Terms
    email: str = "postmark"
    finds: Capability = Capability.BY_REFERENCE
    sms_finds: Capability = Capability.BY_DESTINATION
    regions: tuple[str, ...] | None = None
    cap: int = 0

    @property
    def reports(self) -> dict[str, bool]:
        return {"email": self.email != "smtp", "sms": True}

    @property
    def providers(self) -> dict[str, str]:
        return {"email": self.email, "sms": SMS}

    def policy(self) -> Row:
        """The same terms as the product's document."""
        terms = self.terms
        return {
            "on_unknown": terms.on_unknown,
            "on_unconfirmed": terms.on_unconfirmed,
            "relay_acceptance": "final" if terms.final_email else "unconfirmed",
            "absence_conclusive": [self.email, SMS] if terms.absence_counts else [],
            "safety_margin_s": {"email": terms.email_margin, "sms": terms.sms_margin},
            "settle_s": terms.settle,
            "retry_jitter": 0.0,
            "regions": {"sms": list(self.regions) if self.regions else "any"},
            "account_cap_per_hour": self.cap,
        }


KINDS = (
    Kind("reporting", Terms(absence_counts=True, settle=20), sms_finds=Capability.BY_REFERENCE),
    Kind("holding", Terms("hold", "hold", absence_counts=True, email_margin=40)),
    Kind("relay", Terms(final_email=True), "smtp", Capability.NOTHING),
    Kind(
        "relay with bounces",
        Terms(final_email=True, takes_bounces=True),
        "smtp",
        Capability.NOTHING,
        regions=("GB",),
    ),
    Kind("relay unconfirmed", Terms(takes_bounces=True), "smtp", Capability.NOTHING, cap=2),
    Kind("replaying", Terms(key_life=900), "resend", Capability.REPLAY),
    Kind("replaying and holding", Terms("hold", "hold", key_life=400), "resend", Capability.REPLAY),
)


@dataclass
class Ground:
    """The flows of one process over one database, with peers that say what is drawn."""

    kind: Kind
    rig: Rig
    clock: databases.Clock
    now: datetime = BEGIN
    began: datetime = BEGIN
    skew: timedelta = timedelta(0)
    render_fails: bool = False
    digest: str = "00"
    stopping: bool = False
    unfinished: bool = False
    sent: list[Envelope] = field(default_factory=list)
    auth: Auth = field(default_factory=Auth)

    def __post_init__(self) -> None:
        rig, kind = self.rig, self.kind
        rig.recorder = Recorder(
            database=rig.database,
            desk=rig.desk,
            reports_deliveries={Channel(name): said for name, said in kind.reports.items()},
            count=lambda _channel, _provider, outcome: rig.counted.append(outcome),
            give_up=rig.give_up,
        )
        self.posts = {
            name: Post(kind.providers[name], Channel(name), kind.reports[name], self.sent.append)
            for name in ("email", "sms")
        }
        self.posts["email"].key_lifetime_s = kind.terms.key_life
        self.asked = {
            kind.email: Asked(kind.email, Channel.EMAIL, kind.finds),
            SMS: Asked(SMS, Channel.SMS, kind.sms_finds),
        }
        self.admission = replace(
            rig.admission,
            channels={Channel(name): given for name, given in kind.providers.items()},
        )
        self.reconciler = Reconciler(
            database=rig.database,
            desk=rig.desk,
            shelf=rig.shelf,
            receipts=rig.receipts,
            lookups=dict(self.asked),
            links=self.auth,
            contacts=rig.contacts,
        )

    def worker(self, owner: str) -> Dispatch:
        """A worker's protocol; its clock may be wrong by `skew`."""
        rig = self.rig
        return Dispatch(
            database=rig.database,
            desk=rig.desk,
            shelf=rig.shelf,
            recorder=rig.recorder,
            contacts=rig.contacts,
            owner=owner,
            senders={Channel(name): post for name, post in self.posts.items()},
            links=self.auth,
            message=self._message,
            now=lambda: self.now + self.skew,
            stopping=lambda: self.stopping,
            announce=rig.told.extend,
        )

    def _message(self, claim: Any, _granted: Any, _expires_at: Any) -> RenderedMessage:
        if self.render_fails:
            raise RenderFailed("drawn")
        return RenderedMessage(Channel(claim.channel), "Reset", Secret("text"), None, self.digest)

    # --- time

    def begin(self) -> None:
        """A new example, days after the last."""
        self.now = self.began = self.began + APART
        self.clock.freeze(self.now)
        if self.unfinished:
            self.rig.run(LIFT)
        self.rig.run("DELETE FROM provider_pause")
        self.unfinished = True
        self.sent.clear()
        self.rig.told.clear()
        self.rig.counted.clear()

    def go_to(self, at: datetime) -> None:
        self.now = max(at, self.now)
        self.clock.freeze(self.now)

    # --- looking

    def look(self, notice_ids: list[UUID], after: int) -> tuple[list[Row], ...]:
        """Notices, deliveries, attempts and rows of the trail after a number, in one round trip."""
        with self.connection() as connection:
            with connection.pipeline():
                cursors = [
                    connection.execute(query, [notice_ids], prepare=True)
                    for query in (NOTICE, DELIVERIES, ATTEMPTS)
                ]
                cursors.append(connection.execute(ROWS, [notice_ids, after], prepare=True))
            return tuple(each.fetchall() for each in cursors)

    def pauses(self) -> dict[str, datetime]:
        """Until when each paused provider is left alone."""
        rows = self.rig.rows("SELECT provider, until FROM provider_pause")
        return {row["provider"]: row["until"] for row in rows}

    def chain(self, notice_ids: list[UUID]) -> list[Row]:
        """Every row of the trail with all its fields."""
        return self.rig.rows(CHAIN, notice_ids)

    @contextmanager
    def connection(self) -> Iterator[PooledConnection]:
        with self.rig.database.connection() as connection:
            yield connection


@contextmanager
def ground_of(server: EmbeddedServer, kind: Kind) -> Iterator[Ground]:
    """The ground of one kind, for as long as the block lasts."""
    with databases.fresh_database(server) as url:
        database = Database(
            url + ("&" if "?" in url else "?") + "connect_timeout=60",
            size=6,
            search_path="test_clock,notifier",
            acquire_timeout_s=60,
            extra_options=PATIENT,
        )
        clock = databases.Clock(url)
        reporting = {
            kind.email: Asks(can_find=kind.finds is not Capability.NOTHING, can_poll=True),
            SMS: Asks(can_find=True, can_poll=True),
        }
        try:
            rig = Rig(
                database,
                channels=(Channel.EMAIL, Channel.SMS),
                policy=kind.policy(),
                takes_bounces=kind.terms.takes_bounces,
                asks=reporting,
            )
            yield Ground(kind, rig, clock)
        finally:
            database.close()
            clock.close()
