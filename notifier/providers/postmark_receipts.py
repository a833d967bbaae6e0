"""From Postmark's documents, called back or asked for, to receipts in our words.

Postmark numbers bounces and nothing else, so what makes a record the same one when it is told
again is its kind, its message and its time. A bounce is the same whether it was called back or
read from a message's events.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.json_objects import Document
from notifier.ports.asking import ProviderReceipt
from notifier.providers import postmark_codes as words
from notifier.providers import receipt_parts as part

NAME: Final = "postmark"
REFERENCE_FIELD: Final = "notice_ref"
"""The metadata member that carries our reference; Postmark allows 20 characters in a name."""

_UNMAPPED: Final = (ReceiptStatus.UNMAPPED, Detail.UNCLASSIFIED)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PostmarkReceipts:
    """Reads the documents of one account; every one of them holds a `MessageID`."""

    account: str

    def record(self, record: Document) -> ProviderReceipt:
        """What a callback tells: its `RecordType` decides, whatever else it looks like."""
        said = part.word(record.get("RecordType"))
        if said == "Bounce":
            return self.bounce(record)
        status, detail, when = words.RECORDS.get(said or "", (*_UNMAPPED, ""))
        identity = part.identity(
            "Record",
            said,
            record["MessageID"],
            whole_number(record.get("ID")),
            _moment(record.get(when)),
        )
        return self._receipt(record, identity, (status, detail), said, when)

    def bounce(self, bounce: Document) -> ProviderReceipt:
        """What a bounce of a type means."""
        kind = part.word(bounce.get("Type"))
        told = [bounce.get(name) for name in ("Description", "Details")]
        meaning = words.bounce(kind, " ".join(text for text in told if isinstance(text, str)))
        number = whole_number(bounce.get("ID"))
        moment = None if number else _moment(bounce.get("BouncedAt"))
        identity = part.identity("Bounce", bounce["MessageID"], number, kind, moment)
        return self._receipt(bounce, identity, meaning, kind, "BouncedAt")

    def event(self, event: Document) -> ProviderReceipt:
        """One of the events in a message's details."""
        said = part.word(event.get("Type"))
        identity = part.identity(
            "Event", event["MessageID"], said, _moment(event.get("ReceivedAt"))
        )
        meaning = words.EVENTS.get(said or "", _UNMAPPED)
        return self._receipt(event, identity, meaning, said, "ReceivedAt")

    def standing(self, message: Document, message_id: str) -> ProviderReceipt:
        """The status of a message, which tells no time of its own but that it came in."""
        said = part.word(message.get("Status"))
        identity = part.identity("Status", message_id, said)
        meaning = words.STATUSES.get(said or "", _UNMAPPED)
        return self._receipt(message, identity, meaning, said, "ReceivedAt")

    def _receipt(
        self,
        told: Document,
        identity: bytes,
        meaning: tuple[ReceiptStatus, Detail | None],
        said: str | None,
        when: str,
    ) -> ProviderReceipt:
        status, detail = meaning
        return ProviderReceipt(
            provider=NAME,
            account=self.account,
            identity=identity,
            status=status,
            detail=detail,
            provider_code=said,
            reference=reference_of(told),
            provider_message_id=part.message_id(told.get("MessageID")),
            occurred_at=part.iso_time(told.get(when)),
        )


def reference_of(told: Any) -> str | None:
    """Our reference, as a document echoes it."""
    metadata = told.get("Metadata") if isinstance(told, dict) else None
    return part.reference(metadata.get(REFERENCE_FIELD)) if isinstance(metadata, dict) else None


def whole_number(value: Any) -> str | None:
    """The digits of a bounce's number, which comes as a number or as text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and _NUMBER.fullmatch(text) else None


def _moment(value: Any) -> str | None:
    found = part.iso_time(value)
    return found.isoformat() if found else None
