"""A policy beside another one: what differs, what follows for a token, and the same as a file.

A value is named by its JSON pointer without the leading slash (`safety_margin_s/email`); a list
is one value. Whether a draft may be kept is decided by `policy.Policy.from_document` alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from notifier.domain.admission_plan import Inputs, admission_terms, plan
from notifier.domain.event import PolicyMode
from notifier.domain.policy import Policy
from notifier.domain.states import Channel

_WHEN: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs; None on a side that has no such key."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Following:
    """What a policy comes to for a token of `life_s`, in seconds after the request.

    An event that is received at once, with both channels. `fallback_s` is None where the life
    leaves no room for a text; a `_stop_s` is when the channel's last start may be.
    """

    life_s: float
    window_s: float
    reserve_s: float
    fallback_s: float | None
    email_stop_s: float
    text_stop_s: float


def flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document's values by name, in its order."""
    return dict(_flat(document))


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The document whose `flat` these values are."""
    document: dict[str, Any] = {}
    for name, value in values.items():
        table, _, key = name.rpartition("/")
        (document.setdefault(table, {}) if table else document)[key] = value
    return document


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Every value that differs between two documents, in the order of the new one."""
    before, after = flat(old), flat(new)
    names = [*after, *(each for each in before if each not in after)]
    return [
        Change(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def following(policy: Policy, life_s: float, channels: Collection[Channel]) -> Following:
    """What admission itself would decide for an event with this life (seconds)."""
    expires_at = _WHEN + timedelta(seconds=life_s)
    terms = admission_terms(
        policy,
        mode=PolicyMode.EMAIL_THEN_SMS,
        inputs=Inputs(True, True, _region(policy)),
        destinations={},
        requested_at=_WHEN,
        expires_at=expires_at,
        channels_available=channels,
    )
    fallback_at = plan(terms, _WHEN).fallback_at
    return Following(
        life_s=life_s,
        window_s=terms.window_s,
        reserve_s=terms.reserve_s,
        fallback_s=_after(fallback_at) if fallback_at else None,
        email_stop_s=_after(terms.email_stop_at),
        text_stop_s=_after(terms.sms_stop_at),
    )


def to_toml(document: Mapping[str, Any]) -> str:
    """The document as the file that `NOTIFIER_POLICY_FILE` names; reading it gives it back."""
    plain = [f"{key} = {_toml(value)}" for key, value in document.items() if not _is_table(value)]
    for key, value in document.items():
        if _is_table(value):
            plain += ["", f"[{key}]", *(f"{name} = {_toml(each)}" for name, each in value.items())]
    return "\n".join(plain) + "\n"


def _flat(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if _is_table(value):
            yield from ((f"{key}/{name}", each) for name, each in value.items())
        else:
            yield key, value


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # TOML writes texts, numbers, true and false as JSON does, for all that a policy can hold.
    return json.dumps(value)


def _region(policy: Policy) -> str | None:
    return None if policy.regions.sms == "any" else next(iter(policy.regions.sms), None)


def _after(moment: datetime) -> float:
    return (moment - _WHEN).total_seconds()
