"""The product and the model side by side: every act is done to both, then they are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from notifier.domain.event import Conflict, Given, Invalid, NoneThere, PolicyMode, ResetEvent
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.values import Secret
from notifier.flow import cancel, expiry, halts, rescue
from notifier.ports.asking import ProviderReceipt
from notifier.store.ledger import receipts as inbox_rows
from tests.db import chain
from tests.db.rig import TRANSPORT, event_at
from tests.machine.ground import Row
from tests.machine.model import inbox, protocol
from tests.machine.model.facts import Attempt, Delivery, Notice
from tests.machine.model.world import Event, Told
from tests.machine.peers import address, destination
from tests.machine.steps import Steps


class Pair(Steps):
    """All that can be done in an example."""

    # --- events

    def admit(self, life: float, late: float = 0, **changes: Any) -> Notice:
        """Admit an event requested `late` seconds ago with `life` seconds to live from then."""
        account = changes.pop("account", 0)
        event = self._event(life, late, account, changes)
        notice_id = UUID(self._admitted(event))
        name = event.event_id
        self.ids[name], self.events[name] = notice_id, event
        given = Event(
            event.event_id,
            event.account_id,
            event.requested_at,
            event.expires_at,
            str(event.mode),
            changes.get("email", "absent"),
            changes.get("sms", "absent"),
            event.email_consent,
            event.sms_consent,
            event.region,
            event.supersedes_earlier,
        )
        notice = self.world.admit(name, given, self.now)
        for channel in ("email", "sms"):
            if changes.get(channel) == "given":
                notice.contacts[channel] = address(channel, account)
        self.compare()
        return notice

    def _admitted(self, event: ResetEvent) -> str:
        answer = self.ground.admission.admit(event, TRANSPORT)
        assert not isinstance(answer, Conflict)
        return answer.notification_id

    def _event(self, life: float, late: float, account: int, changes: dict[str, Any]) -> ResetEvent:
        claims = {
            "none": NoneThere(),
            "invalid": Invalid(Secret("nowhere")),
        }
        fields = {name: value for name, value in changes.items() if name not in ("email", "sms")}
        for channel in ("email", "sms"):
            said = changes.get(channel, "absent")
            if said == "given":
                given = destination(channel, account)
                fields[channel] = Given(given, Secret(given.reveal()))
            elif said != "absent":
                fields[channel] = claims[said]
        fields["mode"] = PolicyMode(fields.get("mode", "email_then_sms"))
        fields.setdefault("sms_consent", True)
        at = self.now - timedelta(seconds=late)
        who = f"acc-{self.ground.began:%Y%m%d}-{account}"
        return event_at(at, life, account_id=who, **fields)

    def admit_again(self, notice: Notice, *, other_content: bool) -> None:
        """P1: a repeat changes nothing, other content under the same id is a visible conflict."""
        event = self.events[notice.name]
        if other_content:
            event = replace(event, template_revision="2")
        answer = self.ground.admission.admit(event, TRANSPORT)
        assert isinstance(answer, Conflict) == other_content
        if other_content:
            notice.note(None, "event_conflict")
            self.world.settle(notice, self.now)
        self.compare()

    # --- receipts

    def attempts(self) -> list[tuple[Notice, Delivery, Attempt]]:
        return [
            (notice, delivery, attempt)
            for notice in self.notices
            for delivery in notice.both
            for attempt in delivery.attempts
        ]

    def tell(
        self,
        attempt: Attempt,
        status: str,
        how: str = "both",
        *,
        ago: float | None = None,
        parked: bool = False,
    ) -> None:
        """A callback. `how`: reference, id or both; `parked`: its process stops after storing."""
        self.counter += 1
        if attempt.provider == "smtp" and status == "accepted":
            status = "information"  # a relay's own answer is all that it ever says of that
        occurred = None if ago is None else self.now - timedelta(seconds=ago)
        receipt = self._receipt(attempt, status, how, occurred)
        self.receipts.append(receipt)
        told = Told(
            receipt.provider,
            status,
            receipt.reference,
            receipt.provider_message_id,
            occurred,
            self.now,
            number=self.counter,
        )
        if parked:
            self._store_only(receipt)
            self.world.parked.append(told)
        else:
            self.ground.rig.receipts.take([receipt], "callback")
            inbox.told(self.world, told, self.now)
        self.compare()
        if parked or told in self.world.parked:
            self.ground.go_to(self.now + timedelta(milliseconds=1))  # two never at one moment

    def _receipt(
        self, attempt: Attempt, status: str, how: str, occurred: datetime | None
    ) -> ProviderReceipt:
        identity = f"{self.ground.began}|{self.counter}".encode()
        by_id = how != "reference" and attempt.provider != "smtp"
        return ProviderReceipt(
            provider=attempt.provider,
            account="account-1",
            identity=hashlib.sha256(identity).digest(),
            status=ReceiptStatus(status),
            reference=attempt.reference if how != "id" or not by_id else None,
            provider_message_id=message_id(attempt.reference) if by_id else None,
            occurred_at=occurred,
        )

    def _store_only(self, receipt: ProviderReceipt) -> None:
        from notifier.flow.receipts import _row  # noqa: PLC0415

        with self.ground.connection() as connection:
            inbox_rows.keep(connection, [_row(receipt, "callback")])

    def tell_again(self, which: int) -> None:
        """The same callback once more is the same receipt."""
        self.ground.rig.receipts.take([self.receipts[which % len(self.receipts)]], "callback")
        self.compare()

    # --- sweeps

    def sweep(self, name: str) -> None:
        rig = self.ground.rig
        with self.ground.connection() as connection:
            match name:
                case "rescue":
                    rescue.rescue(rig.desk, connection)
                    protocol.rescued(self.world, self.now)
                case "expiry":
                    expiry.expire(rig.desk, connection)
                    self.world.sweep_expiry(self.now)
                case "fallback":
                    expiry.decide_fallbacks(rig.desk, connection)
                    self.world.sweep_fallback(self.now)
                case _:
                    rig.receipts.apply_parked(connection)
                    inbox.sweep_parked(self.world, self.now)
        self.compare()

    # --- the operator and the auth service

    def cancel(self, notice: Notice, why: str) -> None:
        cancel.cancel(self.ground.rig.desk, self.ids[notice.name], why)
        self.world.cancel(notice, why, self.now)
        self.compare()

    def halt(self, scope: str) -> None:
        said = halts.engage(self.ground.rig.database, scope=scope, reason="drawn", by="machine")
        self.world.halts.add(scope)
        listed = {
            (each.event_id, each.channel)
            for each in said.in_flight
            if each.event_id in self.world.notices
        }
        assert listed == self.world.in_flight(scope, self.now), "P10: what is still in flight"

    def release(self, scope: str) -> None:
        assert halts.release(self.ground.rig.database, scope=scope, reason="drawn", by="machine")
        self.world.halts.discard(scope)

    def jump(self, seconds: float) -> None:
        self.ground.go_to(self.now + timedelta(seconds=seconds))

    # --- the end

    def finish(self) -> None:
        """Long after: everything has ended, and the trail holds."""
        for scope in sorted(self.world.halts):
            self.release(scope)
        self.ground.unfinished = False
        assert self.ground.pauses() == self.world.pauses, "who is paused, and until when"
        if not self.notices:
            return
        self.ground.go_to(max(each.expires_at for each in self.notices) + timedelta(minutes=10))
        for name in ("receipts", "rescue", "expiry"):
            self.sweep(name)
        self.compared()
        for each in self.notices:
            assert each.state()[0] not in {"email_pending", "text_pending"}, "never ends"
        ids = list(self.ids.values())
        notices, deliveries, _, _ = self.ground.look(ids, 0)
        rows = self.ground.chain(ids)
        chain.verify(rows, [_head(row) for row in notices])
        for row in deliveries:
            assert row["state"] == _rebuilt(rows, row), "the trail tells another state"


def _head(row: Row) -> Row:
    return {name: row[name] for name in ("notice_id", "seq", "head")}


def _rebuilt(rows: Sequence[Row], delivery: Row) -> str:
    own = [
        row
        for row in rows
        if (row["notice_id"], row["channel"]) == (delivery["notice_id"], delivery["channel"])
    ]
    return str(own[-1]["to_state"])


def message_id(reference: str) -> str:
    """The id that the provider gives the message of an attempt."""
    return f"pm-{reference}"
