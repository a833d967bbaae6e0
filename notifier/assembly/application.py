"""The parts of one process, each built from the settings and from the parts it stands on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from notifier import __version__
from notifier.accounts.oidc import client_of
from notifier.accounts.oidc_issuer import Issuer
from notifier.announcing import Announcer
from notifier.assembly.alerting import watch_of
from notifier.clock import DatabaseClock
from notifier.domain.destinations import check_destination
from notifier.domain.states import Channel
from notifier.flow import expiry, rescue, retention, wording
from notifier.flow.admission import Admission
from notifier.flow.checkpoints import Seal, checkpoint, public_keys
from notifier.flow.contacts import Contacts
from notifier.flow.desk import Asks, Desk
from notifier.flow.dispatch import Dispatch
from notifier.flow.exports import Exporter
from notifier.flow.policies import PolicyShelf
from notifier.flow.receipts import Receipts
from notifier.flow.reconcile import Reconciler
from notifier.flow.recording import Recorder
from notifier.flow.trail_exports import TrailWriter
from notifier.links.auth_service import AuthService
from notifier.metrics import Metrics
from notifier.ports.asking import Capability, OutcomeLookup
from notifier.ports.sending import Sender
from notifier.providers import registry
from notifier.readiness import Readiness
from notifier.settings import Settings
from notifier.signals import rollups
from notifier.signals.refusals import Refusals
from notifier.signals.sender_watch import SenderWatch, sender_watch_of
from notifier.signals.watch import Watch
from notifier.starting import (
    check_templates,
    first_policy,
)
from notifier.store.database import Database
from notifier.store.reads import gauges
from notifier.sweeps.claim_loop import ClaimLoop
from notifier.sweeps.host import CONNECTIONS, SweepHost
from notifier.sweeps.wakeup import Wakeup, kick
from notifier.web.people.export_sources import SOURCES

if TYPE_CHECKING:
    from notifier.sweeps.runner import Body

REQUEST_CONNECTIONS = 16
OWN_PERIODS_S = {
    "claim": 1.0,
    "alert": 5.0,
    "rollup": 10.0,
    "checkpoint": 60.0,
    "retention": 600.0,
    "sender_domains": 15.0,
}
OUTCOME_WAIT_S = 20.0
"""How long an outcome that cannot be written may hold up the end of the process."""


class Application:
    """Everything that one process is made of: a property a part, each built when first used.

    Nothing is started before `start`. Requests and work have connections of their own, so that
    neither half of the process can starve the other.
    """

    def __init__(self, settings: Settings, database_url: str) -> None:
        self.settings = settings
        self.web = Database(database_url, size=REQUEST_CONNECTIONS, application_name="notifier-web")
        self.work = Database(
            database_url,
            size=settings.workers + CONNECTIONS + 2,
            application_name="notifier-work",
        )
        self.clock = DatabaseClock()
        self.wakeup = Wakeup(self.work)
        self.stopping = threading.Event()
        self.give_up = threading.Event()
        self.embedded: Callable[[], tuple[bool, str]] | None = None
        """Tells of the embedded Postgres; None where the database is somebody else's."""

    # --- life

    def start(self) -> None:
        """Begin to sweep and, with workers, to send. Once, after any fork."""
        with self.work.connection() as connection:
            self.clock.refresh(connection)
        self.host.start()
        if self.claim_loop:
            self.claim_loop.start()
        self.watch.start()

    def stop(self) -> None:
        """Claim nothing more, end or hand back what is in hand, resign, close."""
        self.stopping.set()
        patience = threading.Timer(OUTCOME_WAIT_S, self.give_up.set)
        patience.start()
        if self.claim_loop:
            self.claim_loop.stop()
        patience.cancel()
        self.host.stop()
        self.watch.stop()
        self.refusals.close()
        self.web.close()
        self.work.close()

    # --- what both halves use

    @cached_property
    def shelf(self) -> PolicyShelf:
        """The policies; an empty database gets its first one here."""
        shelf = PolicyShelf(self.work)
        shelf.begin(first_policy(self.settings), "start")
        return shelf

    @cached_property
    def senders(self) -> Mapping[Channel, Sender]:
        """The sender of each channel that has a provider."""
        return registry.senders(self.settings, self.shelf.current()[1])

    @cached_property
    def lookups(self) -> Mapping[str, OutcomeLookup]:
        """The asking side of each provider that can be asked."""
        return registry.lookups(self.settings)

    @cached_property
    def metrics(self) -> Metrics:
        """What is counted, and what is read at scrape time."""
        return Metrics(
            partial(gauges.read, self.work), [each.name for each in self.senders.values()]
        )

    @cached_property
    def announce(self) -> Announcer:
        """What is told after each commit."""
        return Announcer(self.metrics)

    @cached_property
    def contacts(self) -> Contacts:
        """What is kept of destinations."""
        return Contacts(self.work, self.settings.fingerprint_key.all)

    def desk_on(self, database: Database) -> Desk:
        """The desk on either half's connections."""
        asks = {
            name: Asks(can_find=each.can_find is not Capability.NOTHING, can_poll=each.can_poll)
            for name, each in self.lookups.items()
        }
        return Desk(database, self.shelf, self.announce, asks=asks, wake=self.wakeup.ring)

    def exporter_on(self, database: Database) -> Exporter:
        """What takes lists and trails out, on either half's connections."""
        ring = self.settings.checkpoint_key
        keys = public_keys(ring.all) if ring else {}
        return Exporter(database, SOURCES, TrailWriter(keys, __version__))

    # --- requests

    @cached_property
    def desk(self) -> Desk:
        """For requests and commands."""
        return self.desk_on(self.web)

    @cached_property
    def admission(self) -> Admission:
        """Admits events."""
        return Admission(
            database=self.web,
            desk=self.desk,
            shelf=self.shelf,
            contacts=self.contacts,
            digest_keys=self.settings.fingerprint_key.all,
            channels={channel: each.name for channel, each in self.senders.items()},
            pick_locale=wording.pick_locale,
            announce=self.announce,
            wake=self.wakeup.ring,
        )

    @cached_property
    def issuer(self) -> Issuer | None:
        """Where people sign in beside or in place of local accounts; asked when first needed."""
        client = client_of(self.settings)
        return Issuer(client) if client else None

    @cached_property
    def readiness(self) -> Readiness:
        """Whether this process does its part."""
        return Readiness(
            self.web,
            self.host.readiness,
            self.claim_loop,
            lambda: self.recorder.waiting,
            self.embedded,
        )

    @cached_property
    def refusals(self) -> Refusals:
        """Adds up callbacks that were not believed."""
        return Refusals(self.web)

    # --- work

    @cached_property
    def work_desk(self) -> Desk:
        """For dispatch and sweeps."""
        return self.desk_on(self.work)

    @cached_property
    def links(self) -> AuthService:
        """Where links and destinations are asked for."""
        secret = self.settings.link_secret.key
        return AuthService(
            self.settings.link_url,
            secret,
            check_destination,
            now=self.clock.now,
            tell=self.announce.link_fault,
        )

    @cached_property
    def reconciler(self) -> Reconciler:
        """Asks providers; cannot send."""
        return Reconciler(
            database=self.work,
            desk=self.work_desk,
            shelf=self.shelf,
            receipts=Receipts(self.work, self.work_desk, self.announce.receipt),
            lookups=self.lookups,
            links=self.links,
            contacts=self.contacts,
        )

    @cached_property
    def recorder(self) -> Recorder:
        """Writes what calls came to."""
        return Recorder(
            database=self.work,
            desk=self.work_desk,
            reports_deliveries={
                channel: each.reports_deliveries for channel, each in self.senders.items()
            },
            count=self.announce.outcome,
            give_up=self.give_up,
        )

    @cached_property
    def sealing(self) -> Mapping[str, Body]:
        """The sweep that makes checkpoints, where there is a key for it; it knows its hour."""
        if self.settings.checkpoint_key is None:
            return {}
        seal = Seal.of(self.settings.checkpoint_key.current)
        return {"checkpoint": partial(checkpoint, seal)}

    @cached_property
    def sender_watch(self) -> SenderWatch:
        """Checks what DNS says about the domains that mail is sent from."""
        return sender_watch_of(self.settings)

    @cached_property
    def host(self) -> SweepHost:
        """What runs by itself: the clock, the lease, the scheduler with these sweeps."""
        return SweepHost(
            self.work,
            workers=self.settings.workers,
            version=__version__,
            bodies={
                "claim": kick,
                "expiry": partial(expiry.expire, self.work_desk),
                "fallback": partial(expiry.decide_fallbacks, self.work_desk),
                "rescue": partial(rescue.rescue, self.work_desk),
                "receipts": self.reconciler.receipts.apply_parked,
                "poll": self.reconciler.poll,
                "reconcile": self.reconciler.reconcile,
                "rollup": partial(rollups.collect, self.shelf),
                "retention": partial(retention.retain, self.shelf),
                "export": self.exporter_on(self.work).run_due,
                "sender_domains": self.sender_watch.run_due,
                "alert": self.watch.judge.sweep,
                **self.sealing,
            },
            period_of=partial(period_of, self.shelf),
            clock=self.clock,
            wakeup=self.wakeup,
        )

    @cached_property
    def watch(self) -> Watch:
        """Judges the alert rules, and tells people."""
        return watch_of(self.settings, self.work.url, self.shelf, partial(period_of, self.shelf))

    @cached_property
    def dispatch(self) -> Dispatch:
        """Carries claimed deliveries to their providers."""
        return Dispatch(
            database=self.work,
            desk=self.work_desk,
            shelf=self.shelf,
            recorder=self.recorder,
            contacts=self.contacts,
            owner=self.host.owner,
            senders=self.senders,
            links=self.links,
            message=partial(wording.message_of, self.settings.fingerprint_key.current),
            now=self.clock.now,
            stopping=self.stopping.is_set,
            announce=self.announce,
        )

    @cached_property
    def claim_loop(self) -> ClaimLoop | None:
        """Claims and sends; None in a process that only serves."""
        if self.settings.workers == 0:
            return None
        return ClaimLoop(
            dispatch=self.dispatch,
            desk=self.work_desk,
            channels=tuple(self.senders),
            workers=self.settings.workers,
            bell=self.wakeup,
        )


def compose(settings: Settings, database_url: str) -> Application:
    """The parts of a process, once nothing forbids its start; starts nothing."""
    parts = Application(settings, database_url)
    check_templates(parts.work)
    return parts


def period_of(shelf: PolicyShelf, sweep: str) -> float:
    """Seconds between two runs of a sweep: the policy's, but for those with one of their own."""
    own = OWN_PERIODS_S.get(sweep)
    return shelf.current()[1].sweep_every_s if own is None else own
