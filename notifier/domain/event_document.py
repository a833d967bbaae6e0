"""Reads the JSON document of a reset event; decides what is a sound event.

Every fault is reported at once, by JSON pointer (RFC 6901) and code, never with a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from notifier.domain.destinations import check_email, check_number
from notifier.domain.event import (
    Absent,
    DestinationClaim,
    Given,
    Invalid,
    NoneThere,
    PolicyMode,
    ResetEvent,
)
from notifier.domain.object_reader import MISSING, FieldProblem, ObjectReader
from notifier.domain.regions import REGIONS
from notifier.domain.values import Destination, Secret

EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Times before this are refused. A fixed day, so that a repeat stays readable for ever."""

FUTURE_TOLERANCE: Final = timedelta(minutes=5)
"""How far `requested_at` may lie ahead of our clock."""

DIGEST_PATTERN: Final = r"[A-Za-z0-9._:+/=-]{1,128}"
_DIGEST = re.compile(DIGEST_PATTERN)
_LOCALE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,8}")
_MODES = frozenset(PolicyMode)


class EventInvalid(Exception):
    """The document is no sound event; `problems` lists every fault.

    `event` is there when the document is well formed and only rules that change with time or
    policy (longest life, known templates, permitted modes) stand against it: then it may still
    be the repeat of an event that was admitted under other rules.
    """

    def __init__(self, problems: Sequence[FieldProblem], event: ResetEvent | None = None) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = tuple(problems)
        self.event = event


@dataclass(frozen=True, slots=True)
class EventRules:
    """The rules that a policy revision and the installed templates add to the form.

    `max_life_s` bounds `expires_at - requested_at`, in seconds.
    """

    max_life_s: float
    template_exists: Callable[[str, str], bool]
    parallel_reason_codes: frozenset[str] = frozenset()


def parse_event(
    document: Mapping[str, Any],
    now: datetime,
    rules: EventRules,
    trace_id: str | None = None,
) -> ResetEvent:
    """The event in `document`, or `EventInvalid` with every fault.

    `trace_id` (from a `traceparent` header) is the correlation id where the document has none.
    """
    problems: list[FieldProblem] = []
    event = _read_event(ObjectReader(document, "", problems), trace_id)
    if event is not None:
        _check_times(event, now, problems)
    if problems or event is None:
        raise EventInvalid(problems)
    against = _against_rules(event, rules)
    if against:
        raise EventInvalid(against, event)
    return event


def _read_event(document: ObjectReader, trace_id: str | None) -> ResetEvent | None:
    event_id = document.id("event_id", required=True)
    fields: dict[str, object] = {
        "event_id": event_id,
        "idempotency_key": document.id("idempotency_key") or event_id,
        "reset_request_id": document.id("reset_request_id", required=True),
        "account_id": document.id("account_id", required=True),
        "ticket_id": document.id("ticket_id"),
        "requested_at": document.time("requested_at"),
        "expires_at": document.time("expires_at"),
        "supersedes_earlier": document.flag("supersedes_earlier") or False,
        "correlation_id": document.id("correlation_id") or trace_id,
        **_template(document.object("template", required=True)),
        **_locale(document),
        **_policy(document.object("policy")),
        **_destinations(document.object("destinations")),
    }
    document.close()
    needed = ("event_id", "reset_request_id", "account_id", "requested_at", "expires_at")
    if any(fields[name] is None for name in needed):
        return None
    # A field that was refused may be None here although its type says otherwise; the problem
    # that refused it keeps the event from ever leaving `parse_event`.
    return ResetEvent(**fields)  # type: ignore[arg-type]


def _template(template: ObjectReader) -> dict[str, object]:
    fields: dict[str, object] = {
        "template_id": template.id("id", required=True),
        "template_revision": template.id("revision", required=True),
    }
    template.close()
    return fields


def _locale(document: ObjectReader) -> dict[str, object]:
    written = document.text("locale")
    if written is None:
        return {}
    if _LOCALE.fullmatch(written):
        return {"locale": written}
    return {"malformed_locale": Secret(written)}


def _policy(policy: ObjectReader) -> dict[str, object]:
    mode = policy.matching("mode", _MODES.__contains__, "unknown_mode")
    fields: dict[str, object] = {
        "mode": PolicyMode(mode or PolicyMode.EMAIL_THEN_SMS),
        "reason_code": policy.id("reason_code"),
        "decision_id": policy.id("decision_id"),
        "decision_digest": policy.matching("digest", _DIGEST.fullmatch, "not_a_digest"),
        **_inputs(policy.object("inputs")),
    }
    policy.close()
    return fields


def _inputs(inputs: ObjectReader) -> dict[str, object]:
    fields: dict[str, object] = {
        "email_consent": inputs.flag("email_consent"),
        "sms_consent": inputs.flag("sms_consent"),
        "region": inputs.matching("region", REGIONS.__contains__, "unknown_region"),
    }
    inputs.close()
    return fields


def _destinations(destinations: ObjectReader) -> dict[str, object]:
    fields: dict[str, object] = {
        "email": _claim(destinations, "email", check_email),
        "sms": _claim(destinations, "sms", check_number),
    }
    destinations.close()
    return fields


def _claim(
    destinations: ObjectReader, name: str, check: Callable[[str], Destination | None]
) -> DestinationClaim:
    value = destinations.take(name)
    if value is MISSING:
        return Absent()
    if value is None:
        return NoneThere()
    if not isinstance(value, str):
        destinations.fault(name, "not_a_string")
        return Absent()
    destination = check(value)
    return Given(destination, Secret(value)) if destination else Invalid(Secret(value))


def _check_times(event: ResetEvent, now: datetime, problems: list[FieldProblem]) -> None:
    if event.requested_at < EARLIEST:
        problems.append(FieldProblem("/requested_at", "too_long_ago"))
    if event.requested_at - now > FUTURE_TOLERANCE:
        problems.append(FieldProblem("/requested_at", "in_the_future"))
    if event.expires_at <= event.requested_at:
        problems.append(FieldProblem("/expires_at", "not_after_request"))


def _against_rules(event: ResetEvent, rules: EventRules) -> list[FieldProblem]:
    problems = []
    if (event.expires_at - event.requested_at).total_seconds() > rules.max_life_s:
        problems.append(FieldProblem("/expires_at", "life_too_long", limit=rules.max_life_s))
    if not rules.template_exists(event.template_id, event.template_revision):
        problems.append(FieldProblem("/template", "unknown_template"))
    if event.mode is PolicyMode.PARALLEL and event.reason_code not in rules.parallel_reason_codes:
        problems.append(FieldProblem("/policy/mode", "parallel_not_permitted"))
    return problems
