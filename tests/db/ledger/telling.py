"""Words for what providers tell us in these tests, and a provider that can be asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from notifier.domain.link_faults import LinkFault
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow.reconcile import Reconciler
from notifier.ports.asking import Capability, Looked, NotFound, ProviderReceipt, Question
from notifier.ports.links import LinkAnswer, LinkRequest, LinkUnavailable
from notifier.store.ledger.claim import Claim
from tests.db.rig import Rig

POSTMARK = "postmark"
TWILIO = "twilio"


def receipt(status: ReceiptStatus, reference: str | None = "ref-1", **more: Any) -> ProviderReceipt:
    """A receipt of Postmark's; the same content has the same identity."""
    content = f"{status}|{reference}|{sorted(more.items(), key=str)}"
    fields: dict[str, Any] = {
        "provider": POSTMARK,
        "account": "server-1",
        "identity": hashlib.sha256(content.encode()).digest(),
        "status": status,
        "reference": reference,
        **more,
    }
    return ProviderReceipt(**fields)


@dataclass
class Asked:
    """A provider's asking side that says what the test wants; counts what it was asked."""

    name: str = POSTMARK
    channel: Channel = Channel.EMAIL
    can_find: Capability = Capability.BY_REFERENCE
    can_poll: bool = True
    says: Looked = field(default_factory=NotFound)
    questions: list[Question] = field(default_factory=list)
    polled: list[str] = field(default_factory=list)

    def find(self, question: Question, budget_s: float) -> Looked:
        assert budget_s > 0
        self.questions.append(question)
        return self.says

    def poll(self, provider_message_id: str, budget_s: float) -> Looked:
        assert budget_s > 0
        self.polled.append(provider_message_id)
        return self.says


@dataclass
class Links:
    """The auth service's answer to a look-up."""

    says: LinkAnswer = field(default_factory=lambda: LinkUnavailable(LinkFault.NO_CONNECTION))
    requests: list[LinkRequest] = field(default_factory=list)

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        assert budget_s > 0
        self.requests.append(request)
        return self.says


def reconciler(rig: Rig, lookup: Asked, links: Links | None = None) -> Reconciler:
    """The asking side of a rig's process."""
    return Reconciler(
        database=rig.database,
        desk=rig.desk,
        shelf=rig.shelf,
        receipts=rig.receipts,
        lookups={lookup.name: lookup},
        links=links or Links(),
        contacts=rig.contacts,
    )


def start_new(rig: Rig, reference: str = "ref-1") -> Claim:
    rig.admit()
    return rig.start(reference, provider=POSTMARK)


def parked(rig: Rig) -> int:
    number: int = rig.one("SELECT count(*) AS n FROM receipt WHERE applied_at IS NULL")["n"]
    return number
