"""The operating values of one policy revision, and what follows from them.

A policy document is a table of plain values (TOML file, dashboard form or stored JSON).
`parse_policy` fills what is missing from `DEFAULTS`, refuses what is unknown or of the
wrong kind, and then checks the document as a whole (`policy_checks`). All times are in
seconds and may be fractions.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from notifier.domain.policy_alerts import ALERT_DEFAULTS
from notifier.domain.policy_checks import contradictions
from notifier.domain.policy_limits import within_limits
from notifier.domain.policy_retention import RETENTION_DEFAULTS
from notifier.domain.states import Channel

EMAIL_PROVIDERS: Final = ("smtp", "postmark", "resend")
SMS_PROVIDERS: Final = ("twilio",)

DEFAULTS: Final[dict[str, Any]] = {
    "safety_margin_s": {"email": 15.0, "sms": 20.0},
    "fallback_reserve": {"share": 0.2, "floor_s": 90.0, "cap_s": 120.0},
    "observation_window": {"share": 0.5, "floor_s": 60.0, "cap_s": 300.0},
    "on_unknown": "send",
    "on_unconfirmed": "send",
    "relay_acceptance": "final",
    "absence_conclusive": [],
    "retry_backoff_s": [30.0, 120.0, 300.0],
    "retry_jitter": 0.1,
    "poll_every_s": 60.0,
    "reconcile_after_s": [5.0, 10.0, 20.0, 40.0],
    "settle_s": 60.0,
    "lease_s": 30.0,
    "call_timeout_s": {"email": 10.0, "sms": 10.0},
    "final_reply_timeout_s": {"email": 60.0},
    "sweep_every_s": 5.0,
    "provider_pause_s": 60.0,
    "max_life_s": 86_400.0,
    "account_cap_per_hour": 0,
    "require_consent": {"email": False, "sms": True},
    "regions": {"sms": "any"},
    "parallel_reason_codes": [],
    "alert": ALERT_DEFAULTS,
    "retention": RETENTION_DEFAULTS,
}
"""Every key with its built-in value; a ten-minute life gives a fallback at minute five."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a document: JSON pointer, a word for programs, a sentence for people."""

    pointer: str
    code: str
    message: str


class PolicyInvalid(ValueError):
    """The document is refused as a whole; `problems` names every fault found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{each.pointer or '/'}: {each.message}" for each in problems))
        self.problems = problems


_LIMIT_S: Final = 31_536_000.0
_Number = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
_Seconds = Annotated[float, Field(strict=True, ge=0, le=_LIMIT_S, allow_inf_nan=False)]
_Positive = Annotated[float, Field(strict=True, gt=0, le=_LIMIT_S, allow_inf_nan=False)]
_Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
_Bool = Annotated[bool, Field(strict=True)]
_Delays = Annotated[tuple[_Positive, ...], Field(min_length=1, max_length=20)]
_Country = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Z]{2}$")]
_Code = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
_Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Table = dict[_Name, _Number]
_Provider = Literal["smtp", "postmark", "resend", "twilio"]
SendOrHold = Literal["send", "hold"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PerChannel(_Part):
    """Seconds from nought up, for each channel."""

    email: _Seconds
    sms: _Seconds


class CallTimeouts(_Part):
    """How long one provider call may take; for SMTP every phase but the final reply."""

    email: _Positive
    sms: _Positive


class EmailOnly(_Part):
    """A time limit that only email has."""

    email: _Positive


class ShareOfLife(_Part):
    """A share of `expires_at - requested_at`, held between a floor and a cap (seconds)."""

    share: _Share
    floor_s: _Seconds
    cap_s: _Positive

    def of(self, life_s: float) -> float:
        """The seconds for a life of `life_s` seconds; the cap wins over the floor."""
        return min(self.cap_s, max(self.floor_s, self.share * life_s))


class ConsentRules(_Part):
    """Whether the event's input must say yes (True) or may be absent (False)."""

    email: _Bool
    sms: _Bool


class Regions(_Part):
    """The countries that may be texted (ISO 3166, two capitals), or `any`."""

    sms: Literal["any"] | tuple[_Country, ...]


class Policy(_Part):
    """One policy revision's values; equal documents are equal policies."""

    safety_margin_s: PerChannel
    fallback_reserve: ShareOfLife
    observation_window: ShareOfLife
    on_unknown: SendOrHold
    on_unconfirmed: SendOrHold
    relay_acceptance: Literal["final", "unconfirmed"]
    absence_conclusive: tuple[_Provider, ...]
    retry_backoff_s: _Delays
    retry_jitter: _Share
    poll_every_s: _Positive
    reconcile_after_s: _Delays
    settle_s: _Seconds
    lease_s: _Positive
    call_timeout_s: CallTimeouts
    final_reply_timeout_s: EmailOnly
    sweep_every_s: _Positive
    provider_pause_s: _Positive
    max_life_s: _Positive
    account_cap_per_hour: Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
    """Notices an account may get in an hour; 0 means no cap."""
    require_consent: ConsentRules
    regions: Regions
    parallel_reason_codes: tuple[_Code, ...]
    alert: _Table
    retention: _Table

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The policy of a document, judged as a whole; raises `PolicyInvalid`."""
        policy = cls._read(document)
        found = [Problem(*each) for each in contradictions(policy)]
        if found:
            raise PolicyInvalid(found)
        return policy

    @classmethod
    def from_stored(cls, document: Mapping[str, Any]) -> Self:
        """The policy of a revision that was judged when it was kept.

        A number that was permitted then, and is past a limit of today, is held to the limit.
        Raises `PolicyInvalid` where a value is of no kind that can be read.
        """
        return cls._read(within_limits(document))

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        try:
            return cls.model_validate(_over_defaults(document))
        except ValidationError as error:
            raise PolicyInvalid(_problems_of(error)) from None

    def to_document(self) -> dict[str, Any]:
        """Every key with its value, as plain JSON; `from_document` takes it back."""
        return self.model_dump(mode="json")

    def digest(self) -> str:
        """SHA-256 (hex) over the canonical JSON; equal for equal policies only."""
        canonical = json.dumps(self.to_document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def safety_margin(self, channel: Channel) -> float:
        """Seconds before expiry after which nothing starts on `channel`."""
        margins = self.safety_margin_s
        return margins.email if channel is Channel.EMAIL else margins.sms

    def call_timeout(self, channel: Channel) -> float:
        """Seconds that one call to a provider of `channel` may take."""
        limits = self.call_timeout_s
        return limits.email if channel is Channel.EMAIL else limits.sms

    def fallback_reserve_s(self, life_s: float) -> float:
        """Seconds before expiry that are kept for a text, for a life of `life_s` seconds."""
        return self.fallback_reserve.of(life_s)

    def observation_window_s(self, life_s: float) -> float:
        """Seconds after receipt for which the email is watched before a text is considered."""
        return self.observation_window.of(life_s)

    def retry_delay(self, failures: int) -> float:
        """Seconds to wait after the `failures`-th attempt that was not accepted (from 1)."""
        return nth_delay(self.retry_backoff_s, failures)

    def reconcile_delay(self, looks: int) -> float:
        """Seconds until the next look at an unknown outcome, the `looks`-th one (from 1)."""
        return nth_delay(self.reconcile_after_s, looks)

    def acceptance_is_final(self, *, reports_deliveries: bool) -> bool:
        """Whether "accepted" by such a provider already completes the notice."""
        return not reports_deliveries and self.relay_acceptance == "final"


def parse_policy(source: bytes | Mapping[str, Any]) -> Policy:
    """The policy of a TOML file's bytes or of a table; raises `PolicyInvalid` with all faults."""
    return Policy.from_document(_read_toml(source) if isinstance(source, bytes) else source)


def default_policy() -> Policy:
    """The built-in values."""
    return Policy.from_document({})


def _read_toml(source: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(source.decode())
    except UnicodeDecodeError:
        raise PolicyInvalid([Problem("", "not_utf8", "the file is not UTF-8")]) from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyInvalid([Problem("", "not_toml", f"not valid TOML: {error}")]) from None


def _over_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with missing keys filled in, one level deep (tables have no tables)."""
    filled = {**DEFAULTS, **document}
    for key, default in DEFAULTS.items():
        if isinstance(default, dict) and isinstance(given := filled[key], Mapping):
            filled[key] = {**default, **given}
    return filled


def _problems_of(error: ValidationError) -> list[Problem]:
    seen: dict[str, Problem] = {}
    for fault in error.errors(include_url=False, include_input=False):
        problem = _problem(fault["loc"], fault["type"], fault["msg"])
        seen.setdefault(problem.pointer, problem)
    return list(seen.values())


def _problem(where: tuple[int | str, ...], kind: str, message: str) -> Problem:
    path = [str(part).replace("~", "~0").replace("/", "~1") for part in where]
    if path[:2] == ["regions", "sms"]:
        wants = "wants 'any' or a list of two-letter country codes"
        return Problem("/regions/sms", "wrong_value", wants)
    if path[-1] == "[key]":
        path.pop()
    pointer = "/" + "/".join(path)
    if kind == "extra_forbidden":
        return Problem(pointer, "unknown_key", "there is no such policy key")
    return Problem(pointer, "wrong_value", message[:1].lower() + message[1:])


def nth_delay(delays: Sequence[float], number: int) -> float:
    """The `number`-th delay, counted from one; the last repeats."""
    if number < 1:
        message = "counted from one"
        raise ValueError(message)
    return delays[min(number, len(delays)) - 1]
