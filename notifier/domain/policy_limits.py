"""How small and how large each number of a policy may be, whatever the others are.

What is below its floor would be done without a pause, or judged by nothing; what is above its
ceiling would hold a worker, or an alert, for longer than anybody waits. A new document is refused
for it. A revision that was kept before there was a limit is held to it when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from notifier.domain.contradiction import Contradiction
from notifier.domain.policy_alerts import ALERT_DEFAULTS
from notifier.domain.policy_retention import LEAST_DAYS, MOST_DAYS

if TYPE_CHECKING:
    from notifier.domain.policy import Policy

Limit = tuple[float, float]
"""Least and most; a list's is that of each of its numbers."""

_HOUR_S: Final = 3_600.0
_DAY_S: Final = 86_400.0
_YEAR_S: Final = 31_536_000.0
_LEAST_WAIT_S: Final = 0.1
"""Ten times a second is as often as anything is done again."""
_MOST_CALL_S: Final = 300.0
_MOST_FINAL_REPLY_S: Final = 900.0
"""RFC 5321, 4.5.3.2.6, lets a server take ten minutes."""
_LEAST_SHARE: Final = 0.001
_LEAST_BASELINE: Final = 1e-6
_LEAST_CHANCE: Final = 1e-15

TIMES: Final[Mapping[str, Limit]] = {
    "retry_backoff_s": (_LEAST_WAIT_S, _YEAR_S),
    "poll_every_s": (_LEAST_WAIT_S, _DAY_S),
    "reconcile_after_s": (_LEAST_WAIT_S, _YEAR_S),
    "lease_s": (_LEAST_WAIT_S, _HOUR_S),
    "call_timeout_s/email": (_LEAST_WAIT_S, _MOST_CALL_S),
    "call_timeout_s/sms": (_LEAST_WAIT_S, _MOST_CALL_S),
    "final_reply_timeout_s/email": (_LEAST_WAIT_S, _MOST_FINAL_REPLY_S),
    "sweep_every_s": (_LEAST_WAIT_S, _HOUR_S),
    "provider_pause_s": (_LEAST_WAIT_S, _DAY_S),
}
"""Of the seconds in which the product acts."""


def _of_alert(name: str) -> Limit:
    if name == "chance":
        return _LEAST_CHANCE, 1.0
    if name.endswith("_baseline"):
        return _LEAST_BASELINE, 1.0
    if name.endswith("_share"):
        return _LEAST_SHARE, 1.0
    return 1.0, _YEAR_S


ALERTS: Final[Mapping[str, Limit]] = {
    f"alert/{name}": _of_alert(name)
    for name in ALERT_DEFAULTS
    if name.endswith(("_s", "_share", "_baseline")) or name == "chance"
}
"""Of what alerts are judged by; where nought has a meaning, it stays permitted."""

MAY_BE_NOUGHT: Final = frozenset({"alert/life_s", "alert/hold_share"})

RETENTION: Final[Mapping[str, Limit]] = {
    f"retention/{name}": (least, MOST_DAYS) for name, least in LEAST_DAYS.items()
}

LIMITS: Final[Mapping[str, Limit]] = {**TIMES, **ALERTS, **RETENTION}


def limit_contradictions(policy: Policy) -> Iterator[Contradiction]:
    """Every number of a policy that is out of its limits; those of retention are told apart."""
    document = policy.to_document()
    for name, limit in {**TIMES, **ALERTS}.items():
        for pointer, value in _numbers(name, _value(document, name)):
            if value > 0 and value != _held(name, value):
                least, most = limit
                bound = f"at least {least:g}" if value < least else f"at most {most:g}"
                yield pointer, "wrong_value", f"must be {bound}"


def within_limits(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with each of its numbers held to its limits; all else as it stands."""
    found: dict[str, Any] = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in document.items()
    }
    for name in LIMITS:
        table, _, key = name.rpartition("/")
        inside = found.get(table, {}) if table else found
        if isinstance(inside, dict) and key in inside:
            inside[key] = _held(name, inside[key])
    return found


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Each number with its pointer."""
    if isinstance(value, list):
        yield from ((f"/{name}/{place}", each) for place, each in enumerate(value))
    else:
        yield f"/{name}", value


def _value(document: Mapping[str, Any], name: str) -> Any:
    table, _, key = name.rpartition("/")
    return (document[table] if table else document)[key]


def _held(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_held(name, each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    least, most = LIMITS[name]
    if value == 0 and name in MAY_BE_NOUGHT:
        return value
    return value if least <= value <= most else min(max(value, least), most)
