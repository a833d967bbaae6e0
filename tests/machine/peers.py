"""The world outside, in memory: an auth service, senders and providers that say what is drawn.

Calls are the product's boundary, so scripted peers are enough here; how they look on the wire
is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import Accepted, NotAccepted, Outcome
from notifier.domain.states import Channel
from notifier.domain.values import Destination
from notifier.ports.asking import Capability, Looked, NotFound, Question
from notifier.ports.links import LinkAnswer, LinkRequest, LinkUnavailable
from notifier.ports.sending import Connection, Envelope


@dataclass
class Auth:
    """The auth service; `says` is its next answer, `knows` the destination of a look-up."""

    says: LinkAnswer = field(default_factory=lambda: LinkUnavailable(LinkFault.NO_CONNECTION))
    knows: Callable[[LinkRequest], LinkAnswer] | None = None

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        assert budget_s > 0
        if request.purpose == "look_up" and self.knows is not None:
            return self.knows(request)
        return self.says


@dataclass
class Line:
    """An open line; what was sent over it is reported to the machine."""

    says: Outcome
    sent: Callable[[Envelope], None]

    def send(self, envelope: Envelope) -> Outcome:
        self.sent(envelope)
        return self.says

    def close(self) -> None:
        pass


@dataclass
class Post:
    """A provider's sending side."""

    name: str
    channel: Channel
    reports_deliveries: bool
    sent: Callable[[Envelope], None]
    says: Outcome = field(default_factory=Accepted)
    line_fails: NotAccepted | None = None
    key_lifetime_s: float = 0.0

    def connect(self, budget_s: float) -> Connection | NotAccepted:
        assert budget_s > 0
        return self.line_fails or Line(self.says, self.sent)


@dataclass
class Asked:
    """A provider's asking side; `finds` and `polls` are drawn by the machine."""

    name: str
    channel: Channel
    can_find: Capability
    can_poll: bool = True
    finds: Callable[[Question], Looked] = lambda _question: NotFound()
    polls: Callable[[str], Looked] = lambda _message_id: NotFound()

    def find(self, question: Question, budget_s: float) -> Looked:
        assert budget_s > 0
        return self.finds(question)

    def poll(self, provider_message_id: str, budget_s: float) -> Looked:
        assert budget_s > 0
        return self.polls(provider_message_id)


ADDRESSES = {
    "email": [f"person.{number}@mail.example" for number in range(4)],
    "sms": [f"+44770090012{number}" for number in range(4)],
}


def address(channel: str, number: int) -> str:
    return ADDRESSES[channel][number % 4]


def destination(channel: str, number: int) -> Destination:
    return Destination(Channel(channel), address(channel, number))
