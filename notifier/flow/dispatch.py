"""Carries a claimed delivery to its provider: claim, link, render, intent, call, record.

The six steps are the six functions below, in their order. Nothing external happens before the
intent is committed but the link request and the opening of the line; no transaction is open
during the call; whatever the call came to is recorded as a fact by whoever made it. A replay
goes the same way with a start of its own in the intent's place (`flow/starts`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from notifier.domain.call_limits import LINK_LIMIT_S, call_budget, turn_limit
from notifier.domain.outcome import NotAccepted, Outcome, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.domain.values import RenderedMessage
from notifier.flow import put_back, replays, starts, turns
from notifier.flow.contacts import Contacts
from notifier.flow.desk import Desk
from notifier.flow.policies import PolicyShelf
from notifier.flow.recording import STORE_TROUBLE, Recorder
from notifier.flow.starts import Start
from notifier.messages.render import RenderFailed
from notifier.ports.links import (
    LinkAnswer,
    LinkGone,
    LinkGranted,
    LinkRequest,
    LinkSource,
    LinkUnavailable,
    LinkWithheld,
)
from notifier.ports.sending import Connection, Envelope, Sender
from notifier.store.database import Database, PooledConnection
from notifier.store.ledger import claim as claims
from notifier.store.ledger.claim import Claim, Take
from notifier.store.ledger.intent import StartValues
from notifier.store.trail import Announce, TrailEntry, remaining_seconds

SLIPPED_S: Final = 1.0
"""A worker that lost more than this between intent and call does not start the call."""

Render = Callable[[Claim, LinkGranted, datetime], RenderedMessage]


@dataclass(frozen=True, slots=True)
class Granted:
    """A link with the end of its use, shortened where the answer says so."""

    answer: LinkGranted
    stop_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt that may be made.

    `intended_at` and `ends_at` are seconds on this process's monotonic clock; `ends_at` is not
    later than the attempt's deadline by the database's.
    """

    intent: Start
    reference: str
    intended_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The sending side of one process; its methods are called from many threads.

    `now` is the database's clock as this process knows it and raises while it does not;
    `stopping` says whether the process has been asked to end.
    """

    database: Database
    desk: Desk
    shelf: PolicyShelf
    recorder: Recorder
    contacts: Contacts
    owner: str
    senders: Mapping[Channel, Sender]
    links: LinkSource
    message: Render
    now: Callable[[], datetime]
    stopping: Callable[[], bool]
    announce: Announce

    def carry(self, claim: Claim) -> None:
        """Take one claimed delivery through the protocol, as far as it gets."""
        try:
            self._carry(claim)
        finally:
            sender = self.senders[Channel(claim.channel)]
            turns.give_back(self.database, self.desk, claim, sender.name)

    def _carry(self, claim: Claim) -> None:
        if (granted := self.link(claim)) is None:
            return
        if (message := self.render(claim, granted)) is None:
            return
        line = self.senders[Channel(claim.channel)].connect(self._time_to_connect(claim))
        if claim.repeats and isinstance(line, NotAccepted):
            return  # no replay is used up on a line that could not be opened
        try:
            if (started := self.intent(claim, granted, message)) is None:
                return
            outcome = self._needless(claim) or self.call(started, granted, message, line)
        finally:
            if not isinstance(line, NotAccepted):
                line.close()
        self.record(claim, started, outcome)

    # 1

    def claim(self, channel: Channel, slots: int) -> list[Claim]:
        """Lease up to `slots` due deliveries, those with the least validity left first.

        Replays come first, on at most half of the slots: what is unknown blocks its person.
        After a pause of the provider one delivery is leased over all processes, to try it.
        """
        self.now()  # nothing is claimed without the database's clock
        _, policy = self.shelf.current()
        provider, turn = self.senders[channel].name, turn_limit(policy, channel)
        take, entries = Take(slots, timedelta(seconds=policy.lease_s)), list[TrailEntry]()
        with self.database.connection() as connection:
            taken = self._take(connection, channel, take, entries)
            if slots and not taken:

                def one(until: datetime) -> list[Claim]:
                    just_one = replace(take, slots=1, turn_until=until)
                    return self._take(connection, channel, just_one, entries)

                taken = turns.claim_in_turn(connection, provider, turn, one)
        self.announce(entries)
        return taken

    def _take(
        self,
        connection: PooledConnection,
        channel: Channel,
        take: Take,
        entries: list[TrailEntry],
    ) -> list[Claim]:
        sender = self.senders[channel]
        marked = replays.claim(
            connection,
            channel=channel,
            provider=sender.name,
            key_lifetime_s=sender.key_lifetime_s,
            take=replace(take, slots=(take.slots + 1) // 2),
        )
        taken, written = claims.claim(
            connection,
            channel=channel,
            provider=sender.name,
            owner=self.owner,
            take=replace(take, slots=take.slots - len(marked)),
        )
        entries += written
        return marked + taken

    # 2

    def link(self, claim: Claim) -> Granted | None:
        """Ask for link and destination; None where the delivery has been put elsewhere."""
        if self.stopping():
            put_back.hand_back(self.desk, claim, Reason.SHUTDOWN)
            return None
        left = (claim.stop_at - self.now()).total_seconds()
        if left <= 0:
            put_back.settle(self.desk, claim)
            return None
        request = LinkRequest(claim.reset_request_id, claim.event_id, Channel(claim.channel))
        return self._understand(claim, self.links.ask(request, min(LINK_LIMIT_S, left)))

    def _understand(self, claim: Claim, answer: LinkAnswer) -> Granted | None:
        if claim.repeats:
            known = replays.understand(self.desk, self.contacts, claim, answer)
            return self._bounded(claim, known) if known else None
        match answer:
            case LinkGranted():
                self.contacts.learn(self.desk, claim, answer.destination)
                return self._bounded(claim, answer)
            case LinkUnavailable(fault=fault):
                put_back.hand_back_for_link(self.desk, claim, fault)
            case LinkWithheld(reason=reason):
                put_back.suppress(self.desk, claim, Reason(reason))
            case LinkGone(reason=reason):
                put_back.end_reset(self.desk, claim, reason)
        return None

    def _bounded(self, claim: Claim, answer: LinkGranted) -> Granted:
        expires_at = min(answer.expires_at or claim.expires_at, claim.expires_at)
        if expires_at < claim.expires_at:
            put_back.shorten(self.desk, claim, expires_at)
        stop_at = claim.stop_at - (claim.expires_at - expires_at)
        return Granted(answer, stop_at, expires_at)

    # 3

    def render(self, claim: Claim, granted: Granted) -> RenderedMessage | None:
        """Render the message; a template's fault fails the delivery before any call."""
        try:
            return self.message(claim, granted.answer, granted.expires_at)
        except RenderFailed:
            if claim.repeats:
                replays.drop(self.desk, claim)
            else:
                put_back.fail(self.desk, claim, Reason.RENDER_FAILED)
            return None

    # 4

    def intent(self, claim: Claim, granted: Granted, message: RenderedMessage) -> Started | None:
        """Ask every guard and commit the attempt; None where one of them forbids it.

        Where the store's answer is lost, nobody knows whether the attempt was committed, but
        this worker knows that it did not call: it says so until it is heard.
        """
        reference = claim.repeats.reference if claim.repeats else secrets.token_urlsafe(15)
        intended_at = time.monotonic()
        try:
            intent = self._commit(claim, granted, message, reference)
        except STORE_TROUBLE:
            self.recorder.record(claim, reference, NotAccepted(Detail.TIMEOUT))
            raise
        if not starts.is_permitted(intent):
            starts.stand_back(self.desk, claim, intent)
            return None
        self.announce([starts.entry_of(claim, intent)])
        left = (intent.deadline - intent.now).total_seconds()
        return Started(intent, reference, intended_at, intended_at + left)

    def _commit(
        self, claim: Claim, granted: Granted, message: RenderedMessage, reference: str
    ) -> Start:
        channel = Channel(claim.channel)
        sender = self.senders[channel]
        values: StartValues = {
            "notice_id": claim.notice_id,
            "channel": channel,
            "fence": claim.fence,
            "owner": self.owner,
            "provider": sender.name,
            "reference": reference,
            "message_digest": message.digest,
            "budget": call_budget(self.shelf.of(claim.policy_revision), channel),
            "not_after": granted.stop_at,
            "turn_until": claim.turn_until,
        }
        return starts.commit(self.database, claim, values, key_lifetime_s=sender.key_lifetime_s)

    def _needless(self, claim: Claim) -> NotAccepted | None:
        """The last look before a replay: it is dropped where the first call's fate is known now.

        Where the store does not answer nothing leaves either.
        """
        if claim.repeats is None:
            return None
        try:
            needed = replays.is_needed(self.database, claim, claim.repeats)
        except STORE_TROUBLE:
            return NotAccepted(Detail.TIMEOUT)
        return None if needed else NotAccepted(Detail.CANCELLED)

    # 5

    def call(
        self,
        started: Started,
        granted: Granted,
        message: RenderedMessage,
        line: Connection | NotAccepted,
    ) -> Outcome:
        """Make the one request, inside what is left of the attempt's time.

        Without a line, or when this worker was held up since the intent, nothing leaves: that
        is *not accepted*. From the first byte on, any fault leaves the outcome *unknown*.
        """
        if isinstance(line, NotAccepted):
            return line
        begins_at = time.monotonic()
        left = started.ends_at - begins_at
        if begins_at - started.intended_at > SLIPPED_S or left <= 0:
            return NotAccepted(Detail.TIMEOUT)
        envelope = Envelope(
            destination=granted.answer.destination,
            message=message,
            reference=started.reference,
            key=started.intent.key,
            budget_s=left,
            validity_s=max(int(remaining_seconds(granted.expires_at, started.intent.now)), 0),
        )
        try:
            return line.send(envelope)
        except Exception:  # noqa: BLE001 - an adapter's own fault proves nothing about the message
            return Unknown(Reason.CONNECTION_LOST)

    # 6

    def record(self, claim: Claim, started: Started, outcome: Outcome) -> None:
        """Write what the call came to, for as long as it takes."""
        self.recorder.record(claim, started.reference, outcome)

    def _time_to_connect(self, claim: Claim) -> float:
        policy = self.shelf.of(claim.policy_revision)
        left = (claim.stop_at - self.now()).total_seconds()
        return max(min(policy.call_timeout(Channel(claim.channel)), left), 0.001)
