"""From Resend's documents, called back or asked for, to receipts in our words.

A webhook is the same one when its signed id is. A message that is asked for tells its last
event and when it came in, but not when that event happened.
"""

from __future__ import annotations

from typing import Any, Final

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.json_objects import Document
from notifier.ports.asking import ProviderReceipt
from notifier.providers import receipt_parts as part
from notifier.providers import resend_codes as words

NAME: Final = "resend"
ACCOUNT: Final = "team"
"""A key belongs to one team, and Resend names none in what it tells."""
REFERENCE_TAG: Final = "notice_ref"
"""The tag that carries our reference; names and values take letters, digits, `_` and `-`."""
PREFIX: Final = "email."

_UNMAPPED: Final = (ReceiptStatus.UNMAPPED, Detail.UNCLASSIFIED)


def called_back(signed_id: str, event: Document, data: Document) -> ProviderReceipt:
    """What a webhook about an email tells; its `type` decides."""
    said = part.word(str(event["type"]).removeprefix(PREFIX))
    status, detail = words.EVENTS.get(said or "", _UNMAPPED)
    code = said
    if said == "bounced" and isinstance(data.get("bounce"), dict):
        sub_kind = part.word(data["bounce"].get("subType"))
        status, detail = words.bounce(part.word(data["bounce"].get("type")), sub_kind)
        code = sub_kind or said
    return ProviderReceipt(
        provider=NAME,
        account=ACCOUNT,
        identity=part.identity("Event", signed_id),
        status=status,
        detail=detail,
        provider_code=code,
        reference=reference_of(data),
        provider_message_id=part.message_id(data.get("email_id")),
        occurred_at=part.iso_time(event.get("created_at")),
    )


def standing(message: Document, message_id: str) -> ProviderReceipt:
    """The last event of a message."""
    said = part.word(message.get("last_event"))
    status, detail = words.EVENTS.get(said or "", _UNMAPPED)
    came_in = part.iso_time(message.get("created_at"))
    return ProviderReceipt(
        provider=NAME,
        account=ACCOUNT,
        identity=part.identity("Status", message_id, said),
        status=status,
        detail=detail,
        provider_code=said,
        reference=reference_of(message),
        provider_message_id=message_id,
        occurred_at=came_in if status is ReceiptStatus.ACCEPTED else None,
    )


def reference_of(told: Document) -> str | None:
    """Our reference, as a document echoes it: tags are an object there, or a list of pairs."""
    tags: Any = told.get("tags")
    if isinstance(tags, list):
        tags = {each.get("name"): each.get("value") for each in tags if isinstance(each, dict)}
    return part.reference(tags.get(REFERENCE_TAG)) if isinstance(tags, dict) else None
