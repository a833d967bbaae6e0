"""Polls and look-ups, done to both sides: what a provider is asked, and what it says."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from functools import partial

from notifier.domain.link_faults import LinkFault
from notifier.domain.receipts import ReceiptStatus
from notifier.ports.asking import (
    CannotTell,
    Capability,
    Found,
    Looked,
    NotFound,
    ProviderReceipt,
    Question,
)
from notifier.ports.links import LinkAnswer, LinkGone, LinkGranted, LinkRequest, LinkUnavailable
from tests.machine.ground import SMS
from tests.machine.model import inbox, replay
from tests.machine.model.facts import Attempt, Delivery, Notice
from tests.machine.model.world import Told
from tests.machine.pair import Pair, message_id
from tests.machine.peers import address, destination

Due = tuple[Notice, Delivery, Attempt]


def due(pair: Pair, state: str) -> list[Due]:
    """What the product has planned to ask about by now: only what is open and in `state`."""
    pair.compared()
    found = []
    names = {notice_id: name for name, notice_id in pair.ids.items()}
    for row in pair.rows:
        notice = pair.world.notices[names[row["notice_id"]]]
        delivery = notice.on(row["channel"])
        waits = row["next_check_at"] is not None and row["next_check_at"] <= pair.now
        if waits and delivery.state == state and pair.now < notice.expires_at:
            found.append((notice, delivery, delivery.attempts[-1]))
    return found


def to_next_look(pair: Pair, state: str) -> bool:
    """Go to when the next look falls due, if one is planned before expiry."""
    pair.compared()
    planned = [
        row["next_check_at"]
        for row in pair.rows
        if row["state"] == state and row["next_check_at"] is not None
    ]
    if planned:
        pair.ground.go_to(min(planned))
    return bool(planned)


def poll(pair: Pair, says: str) -> None:
    """Ask about accepted messages; `says` is a receipt's status, `nothing` or `cannot`."""
    asked = due(pair, "accepted")
    pair.counter += 1
    for provider in pair.ground.asked.values():
        provider.polls = partial(_said, pair, provider.name, says)
    with pair.ground.connection() as connection:
        assert pair.ground.reconciler.poll(connection) == len(asked)
    for _, _, attempt in asked:
        if attempt.message_id is not None and says not in {"nothing", "cannot"}:
            told = Told(
                attempt.provider, says, None, attempt.message_id, None, pair.now, asked=True
            )
            inbox.told(pair.world, told, pair.now)
    pair.compare()


def _said(pair: Pair, provider: str, says: str, given: str) -> Looked:
    if says == "nothing":
        return NotFound()
    if says == "cannot":
        return CannotTell("drawn")
    identity = f"{pair.ground.began}|{pair.counter}|{given}".encode()
    return Found(
        [
            ProviderReceipt(
                provider=provider,
                account="account-1",
                identity=hashlib.sha256(identity).digest(),
                status=ReceiptStatus(says),
                provider_message_id=given,
            )
        ]
    )


def reconcile(pair: Pair, says: str, link: str = "granted") -> bool:
    """Look unknown outcomes up, as `poll` asks; `link`: what a look-up request is answered.

    Several looks run side by side, so more than one at a time would have no order to predict.
    """
    asked = due(pair, "unknown")
    if len(asked) > 1:
        return False
    pair.counter += 1
    pair.ground.auth.knows = lambda request: _destination(pair, request, link)
    for provider in pair.ground.asked.values():
        provider.finds = partial(_found, pair, provider.name, says)
    with pair.ground.connection() as connection:
        assert pair.ground.reconciler.reconcile(connection) == len(asked)
    for place in asked:
        _looked(pair, place, says, link)
    pair.compare()
    return bool(asked)


def _found(pair: Pair, provider: str, says: str, question: Question) -> Looked:
    return _said(pair, provider, says, message_id(question.reference))


def _destination(pair: Pair, request: LinkRequest, link: str) -> LinkAnswer:
    notice = next(
        each
        for name, each in pair.world.notices.items()
        if pair.events[name].event_id == request.event_id
    )
    account = int(notice.account.rpartition("-")[2])
    if link == "unavailable":
        return LinkUnavailable(LinkFault.NO_ANSWER_IN_TIME)
    if link.startswith("gone-"):
        return LinkGone(link.removeprefix("gone-"))  # type: ignore[arg-type]
    other = 2 if link == "moved" else 0
    return LinkGranted(destination(str(request.channel), account + other), None)


def _looked(pair: Pair, place: Due, says: str, link: str) -> None:
    notice, delivery, attempt = place
    world, now = pair.world, pair.now
    if pair.ground.asked[attempt.provider].can_find is Capability.REPLAY:
        return replay.authorise(world, notice, delivery, now)
    if attempt.provider != SMS or pair.ground.kind.sms_finds is not Capability.BY_DESTINATION:
        return _learnt(pair, place, says, by_reference=True)
    if link == "gone-expired":
        world.shorten(notice, now, now)
    elif link.startswith("gone-"):
        world.cancel(notice, link.removeprefix("gone-"), now)
    account = int(notice.account.rpartition("-")[2]) + (2 if link == "moved" else 0)
    known = notice.contacts.get("sms") == address("sms", account)
    rivals = inbox.has_rivals(world, notice, delivery, attempt)
    if link not in {"granted", "moved"} or not known or (rivals and says != "nothing"):
        says = "cannot"
    return _learnt(pair, place, says, by_reference=False)


def _learnt(pair: Pair, place: Due, says: str, *, by_reference: bool) -> None:
    notice, delivery, attempt = place
    world, now = pair.world, pair.now
    if says == "nothing":
        inbox.found_nothing(world, notice, delivery, attempt, now, by_reference=by_reference)
        return
    if says != "cannot":
        by_id = message_id(attempt.reference)
        told = Told(attempt.provider, says, attempt.reference, by_id, None, now, asked=True)
        inbox.told(world, told, now)
    inbox.told_nothing(world, notice, delivery, now)


def settle_an_absence(pair: Pair, looks: int = 4) -> None:
    """Looks that find nothing, one after the other, each when it is due."""
    for _ in range(looks):
        if not to_next_look(pair, "unknown"):
            return
        reconcile(pair, "nothing")


def after(pair: Pair, seconds: float) -> None:
    pair.ground.go_to(pair.now + timedelta(seconds=seconds))
