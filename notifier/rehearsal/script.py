"""What is scripted in a rehearsal: the event, both providers, and what goes on around them.

All times are seconds. Those of a call, its reports and looks count from the call's start, so
that they go along when a policy moves the call; those of halts, outages, cancels and the auth
service's trouble count from the moment the reset was requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from notifier.domain.admission_plan import DestinationFact
from notifier.domain.event import PolicyMode
from notifier.domain.notice_state import Basis
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.support_story import SupportWord

_CLOSED: Final = ConfigDict(extra="forbid")
_DAY: Final = 86_400.0

Seconds = Annotated[float, Field(ge=0, le=_DAY, allow_inf_nan=False)]
Life = Annotated[float, Field(gt=0, le=_DAY, allow_inf_nan=False)]
Scope = Annotated[str, Field(pattern=r"^(all|channel:(email|sms)|provider:[a-z0-9-]{1,32})$")]
Provider = Literal["smtp", "postmark", "resend", "twilio"]
Found = Literal["accepted", "delivered", "failed", "not_found", "cannot_tell"]
Answer = Literal[
    "accepted",
    "refused",
    "not_accepted",
    "hang",
    "connection_lost",
    "gateway_error",
    "unreadable_answer",
    "killed",
]
"""`hang`: no answer comes. `killed`: the process dies with the call in flight."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a provider can do for us; the adapters' own words, compared with them by a test.

    `finds` is how an unknown outcome is looked up; `key_lifetime_s` how long a key is known
    again (0: not at all).
    """

    channel: Channel
    reports_deliveries: bool
    finds: Literal["replay", "by_reference", "by_destination", "nothing"]
    can_poll: bool
    key_lifetime_s: float = 0.0


KINDS: Final[Mapping[str, Kind]] = {
    "smtp": Kind(Channel.EMAIL, reports_deliveries=False, finds="nothing", can_poll=False),
    "postmark": Kind(Channel.EMAIL, reports_deliveries=True, finds="by_reference", can_poll=True),
    "resend": Kind(
        Channel.EMAIL,
        reports_deliveries=True,
        finds="replay",
        can_poll=True,
        key_lifetime_s=_DAY,
    ),
    "twilio": Kind(Channel.SMS, reports_deliveries=True, finds="by_destination", can_poll=True),
}


@dataclass(frozen=True, slots=True)
class Call:
    """What becomes of one call. `retry_after_s` comes with `not_accepted` and pauses the provider.

    An answer that would come after the call's own deadline is never heard: that is a timeout.
    """

    __pydantic_config__ = _CLOSED
    answer: Answer = "accepted"
    after_s: Seconds = 0.3
    detail: Detail | None = None
    retry_after_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One thing the provider reports by itself about its `call`-th call.

    `occurred_s` is when it happened, where the report says that it was earlier.
    """

    __pydantic_config__ = _CLOSED
    after_s: Seconds
    status: ReceiptStatus = ReceiptStatus.DELIVERED
    call: Annotated[int, Field(ge=1, le=100)] = 1
    detail: Detail | None = None
    occurred_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What the provider answers from `after_s` on when it is asked about a call."""

    __pydantic_config__ = _CLOSED
    found: Found
    after_s: Seconds = 0.0
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class ChannelScript:
    """One channel. The last of `calls` is repeated; nothing is learnt where no look is scripted.

    `pick_up_s` is how long a due delivery waits for a worker, `link_s` how long the auth service
    takes. The first `killed_claims` workers die after their claim, before any call.
    """

    __pydantic_config__ = _CLOSED
    provider: Provider
    consent: bool | None = None
    destination: DestinationFact = DestinationFact.GIVEN
    pick_up_s: Seconds = 0.2
    link_s: Seconds = 0.1
    killed_claims: Annotated[int, Field(ge=0, le=100)] = 0
    calls: tuple[Call, ...] = (Call(),)
    reports: tuple[Report, ...] = ()
    looks: tuple[Look, ...] = ()

    @property
    def kind(self) -> Kind:
        """What this provider can do."""
        return KINDS[self.provider]


@dataclass(frozen=True, slots=True)
class Halt:
    """An operator's stop; None for one that is never released."""

    __pydantic_config__ = _CLOSED
    scope: Scope
    from_s: Seconds
    until_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """No process of ours runs."""

    __pydantic_config__ = _CLOSED
    from_s: Seconds
    until_s: Seconds


@dataclass(frozen=True, slots=True)
class LinkTrouble:
    """The auth service gives no link: it is down, forbids the channel, or says the reset ended."""

    __pydantic_config__ = _CLOSED
    answer: Literal[
        "unavailable",
        "no_destination",
        "invalid_destination",
        "not_permitted",
        "used",
        "superseded",
        "revoked",
    ]
    from_s: Seconds = 0.0
    until_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """The auth service or an operator ends the notice."""

    __pydantic_config__ = _CLOSED
    at_s: Seconds
    why: Literal["used", "superseded", "revoked", "operator"]


@dataclass(frozen=True, slots=True)
class Moment:
    """A step that must happen. `to` of None is a fact that moves nothing."""

    __pydantic_config__ = _CLOSED
    at_s: float
    reason: Reason
    channel: Channel | None = None
    to: DeliveryState | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """The end that the scenario is about, under the built-in policy."""

    __pydantic_config__ = _CLOSED
    state: NoticeState
    support_word: SupportWord
    emails: int
    texts: int
    basis: Basis | None = None
    moments: tuple[Moment, ...] = ()


_EMAIL: Final = ChannelScript(provider="postmark")
_SMS: Final = ChannelScript(provider="twilio", consent=True)


@dataclass(frozen=True, slots=True)
class Script:
    """One scenario. `policy` holds the values that it is written for.

    `arrives_s` is how long after the request the event is received; `bounces` says whether
    bounces of an email that was only ever accepted are taken in.
    """

    __pydantic_config__ = _CLOSED
    title: Annotated[str, Field(min_length=1, max_length=200)]
    life_s: Life = 600.0
    mode: PolicyMode = PolicyMode.EMAIL_THEN_SMS
    arrives_s: Seconds = 0.0
    region: str | None = None
    bounces: bool = False
    policy: Mapping[str, Any] = field(default_factory=dict)
    email: ChannelScript = _EMAIL
    sms: ChannelScript = _SMS
    halts: tuple[Halt, ...] = ()
    outages: tuple[Outage, ...] = ()
    links: tuple[LinkTrouble, ...] = ()
    cancels: tuple[Cancel, ...] = ()
    expect: Expect | None = None

    def channel(self, channel: Channel) -> ChannelScript:
        """The script of one channel."""
        return self.email if channel is Channel.EMAIL else self.sms
