"""From Twilio's documents, called back or asked for, to receipts in our words.

Twilio numbers and dates no events, so what makes a receipt the same one, whoever brings it, is
its message, its status and its error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from notifier.json_objects import Document
from notifier.ports.asking import ProviderReceipt
from notifier.providers import receipt_parts as part
from notifier.providers import twilio_codes as words

NAME: Final = "twilio"
CALLBACK_PATH: Final = f"/callbacks/{NAME}/"
"""Our reference follows it in the address that is called back."""


@dataclass(frozen=True, slots=True)
class TwilioReceipts:
    """Reads the documents of one account, given by its SID."""

    account: str

    def standing(self, message: Document, at: Any) -> ProviderReceipt | None:
        """What a message resource says, at the time given; None for another account's."""
        sid = part.message_id(message.get("sid"))
        if sid is None or message.get("account_sid", self.account) != self.account:
            return None
        status, error = part.word(message.get("status")), part.code(message.get("error_code"))
        return self._receipt(sid, status, error, None, part.mail_time(at))

    def called_back(self, fields: Mapping[str, str], url: str) -> ProviderReceipt | None:
        """What a callback to `url` tells; None where it names no message."""
        sid = part.message_id(fields.get("MessageSid") or fields.get("SmsSid"))
        if sid is None:
            return None
        status = part.word(fields.get("MessageStatus") or fields.get("SmsStatus"))
        error = part.code(fields.get("ErrorCode"))
        return self._receipt(sid, status, error, _reference_in(url), None)

    def _receipt(
        self,
        sid: str,
        status: str | None,
        error: str | None,
        reference: str | None,
        at: datetime | None,
    ) -> ProviderReceipt:
        error = None if error == "0" else error
        meaning, detail = words.meaning(status, error)
        return ProviderReceipt(
            provider=NAME,
            account=self.account,
            identity=part.identity(sid, status, error),
            status=meaning,
            detail=detail,
            provider_code=error or status,
            reference=reference,
            provider_message_id=sid,
            occurred_at=at,
        )


def _reference_in(url: str) -> str | None:
    _, found, rest = urlsplit(url).path.partition(CALLBACK_PATH)
    return part.reference(rest.rstrip("/")) if found else None
