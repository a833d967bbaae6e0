"""The JSON Schemas of what machines send and get, made from the code's own vocabularies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from notifier.domain.event import ID_PATTERN, PolicyMode
from notifier.domain.event_document import DIGEST_PATTERN
from notifier.domain.object_reader import RFC3339_PATTERN
from notifier.domain.outcome import OutcomeKind
from notifier.domain.reasons import Reason
from notifier.domain.regions import REGIONS
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.support_story import SupportWord
from notifier.web.machines.schema_words import sentence_of
from notifier.web.problem_details import FAULTS
from notifier.web.problems import Code
from notifier.web.services import CancelReason

Schema = dict[str, Any]


def text(pattern: str) -> Schema:
    """A string that matches `pattern` as a whole."""
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


def words(vocabulary: Iterable[str]) -> Schema:
    """One word of a closed vocabulary."""
    return {"type": "string", "enum": sorted(str(word) for word in vocabulary)}


def closed(members: Mapping[str, Schema], *, optional: Iterable[str] = (), of: str = "") -> Schema:
    """An object with these members and no other; all required but the `optional` ones.

    `of` names the object where a field of it means something else than elsewhere.
    """
    left_out = set(optional)
    return {
        "type": "object",
        "properties": {
            name: {**schema, "description": sentence_of(of, name)}
            for name, schema in members.items()
        },
        "required": [name for name in members if name not in left_out],
        "additionalProperties": False,
    }


def listed(item: Schema) -> Schema:
    """A list of `item`."""
    return {"type": "array", "items": item}


def or_null(schema: Schema) -> Schema:
    """`schema`, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


STRING: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
ID: Final = text(ID_PATTERN)
TIME: Final = text(RFC3339_PATTERN) | {"format": "date-time"}
HASH: Final = text("[0-9a-f]{64}")
UUID: Final[Schema] = {"type": "string", "format": "uuid"}

_INPUTS = closed(
    {"email_consent": FLAG, "sms_consent": FLAG, "region": words(REGIONS)},
    optional=("email_consent", "sms_consent", "region"),
)
_POLICY = closed(
    {
        "mode": words(PolicyMode) | {"default": PolicyMode.EMAIL_THEN_SMS},
        "reason_code": ID,
        "decision_id": ID,
        "digest": text(DIGEST_PATTERN),
        "inputs": _INPUTS,
    },
    optional=("mode", "reason_code", "decision_id", "digest", "inputs"),
)
_DESTINATIONS = closed(
    {"email": or_null(STRING), "sms": or_null(STRING)}, optional=("email", "sms")
)
_ATTEMPT = closed(
    {
        "number": COUNT,
        "class": STRING,
        "reference": STRING,
        "provider": STRING,
        "started_at": TIME,
        "finished_at": or_null(TIME),
        "outcome": or_null(words(OutcomeKind)),
        "reason": or_null(STRING),
    },
    of="attempt",
)
_DELIVERY = closed(
    {
        "channel": words(Channel),
        "state": words(DeliveryState),
        "reason": words(Reason),
        "next_permitted": STRING,
        "provider": or_null(STRING),
        "provider_message_id": or_null(STRING),
        "destination_mask": or_null(STRING),
        "attempts": listed(_ATTEMPT),
    }
)
_TRANSITION = closed(
    {
        "seq": {"type": "integer", "minimum": 1},
        "recorded_at": TIME,
        "occurred_at": TIME,
        "event_id": ID,
        "notice_id": UUID,
        "reset_request_id": ID,
        "correlation_id": or_null(STRING),
        "channel": or_null(words(Channel)),
        "attempt": or_null({"type": "integer", "minimum": 1}),
        "actor": STRING,
        "from_state": or_null(words(DeliveryState)),
        "to_state": or_null(words(DeliveryState)),
        "reason": words(Reason),
        "detail": or_null(STRING),
        "provider": or_null(STRING),
        "provider_ref": or_null(STRING),
        "receipt_id": or_null(UUID),
        "remaining_us": {"type": "integer"},
        "template_revision": STRING,
        "policy_revision": COUNT,
        "evidence": or_null(STRING | {"contentMediaType": "application/json"}),
        "prev_hash": HASH,
        "hash": HASH,
    }
)
_BASIS = closed(
    {
        "mode": words([*PolicyMode, ""]),
        "decision_id": or_null(STRING),
        "digest": or_null(STRING),
        "inputs": {"type": "object"},
        "reasons": listed(STRING),
    }
)
_FAULT = closed(
    {
        "pointer": STRING,
        "code": words(FAULTS),
        "parameter": STRING,
        "header": STRING,
        "limit": {"type": "number"},
        "detail": STRING,
    },
    optional=("parameter", "header", "limit"),
    of="fault",
)
_PROBLEM = closed(
    {
        "type": {"type": "string", "format": "uri"},
        "title": STRING,
        "detail": STRING,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "code": words(Code),
        "request_id": STRING,
        "errors": listed(_FAULT),
    },
    optional=("errors",),
    of="problem",
)

SCHEMAS: Final[dict[str, Schema]] = {
    "ResetEvent": closed(
        {
            "event_id": ID,
            "idempotency_key": ID,
            "reset_request_id": ID,
            "account_id": ID,
            "ticket_id": ID,
            "requested_at": TIME,
            "expires_at": TIME,
            "template": closed({"id": ID, "revision": ID}, of="template"),
            "locale": STRING,
            "policy": _POLICY,
            "destinations": _DESTINATIONS,
            "supersedes_earlier": FLAG | {"default": False},
            "correlation_id": ID,
        },
        optional=(
            "idempotency_key",
            "ticket_id",
            "locale",
            "policy",
            "destinations",
            "supersedes_earlier",
            "correlation_id",
        ),
    ),
    "Admission": closed(
        {
            "notification_id": UUID,
            "event_id": ID,
            "status": words(NoticeState),
            "status_url": {"type": "string", "format": "uri"},
            "expires_at": TIME,
            "stop_at": or_null(TIME),
        }
    ),
    "Status": closed(
        {
            "notification_id": UUID,
            "event_id": ID,
            "reset_request_id": ID,
            "state": words(NoticeState),
            "support_word": words(SupportWord),
            "headline": STRING,
            "customer_action": STRING,
            "expires_at": TIME,
            "stop_at": or_null(TIME),
            "remaining_s": {"type": "number", "minimum": 0},
            "on_hold": FLAG,
            "policy_revision": COUNT,
            "template": closed({"id": STRING, "revision": STRING}, of="template"),
            "basis": _BASIS,
            "deliveries": listed(_DELIVERY),
        }
    ),
    "Transitions": closed(
        {"transitions": listed(_TRANSITION), "next": or_null(COUNT)},
    ),
    "CancelRequest": closed(
        {"reason": words(CancelReason), "event_id": ID}, optional=["event_id"], of="cancel"
    ),
    "Cancellation": closed(
        {
            "state": words(NoticeState),
            "canceled": listed(words(Channel)),
            "may_have_left": listed(words(Channel)),
        }
    ),
    "TicketLink": closed({"ticket_id": ID, "notification_id": UUID}),
    "Ticket": closed(
        {
            "ticket_id": ID,
            "notices": listed(
                closed(
                    {
                        "notification_id": UUID,
                        "event_id": ID,
                        "state": words(NoticeState),
                        "support_word": words(SupportWord),
                        "expires_at": TIME,
                    }
                )
            ),
        }
    ),
    "Liveness": closed({"live": {"const": True}}),
    "Readiness": closed(
        {
            "ready": FLAG,
            "parts": listed(closed({"part": STRING, "ok": FLAG, "detail": STRING}, of="part")),
        }
    ),
    "Problem": _PROBLEM,
}
"""By the name under which `openapi.json` refers to them."""
