"""What can become of a message at the SMTP stand-in, and how a recipient asks for it.

The local part of the recipient, up to a `+`, names a fate: `hang-after-dot+7@example.test`.
Any other recipient is served normally. A `Rule` added from outside goes before these and can
also touch phases that have no recipient yet.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where in the dialogue something happens."""

    CONNECT = "connect"
    EHLO = "ehlo"
    AUTH = "auth"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    BODY = "body"
    """While the message is being written, before its terminating dot."""
    FINAL = "final"
    """After the terminating dot, before the final reply."""
    QUIT = "quit"


class Act(StrEnum):
    """What the server does in place of its normal reply."""

    REPLY = "reply"
    """Sends the given line; an empty one means the normal reply."""
    HANG = "hang"
    """Says nothing until the client leaves."""
    DROP = "drop"
    """Closes the connection in an orderly way, without a reply."""
    RESET = "reset"
    """Cuts the connection with a TCP reset."""
    HOLD = "hold"
    """Stands still until released, then sends its reply."""
    SLOW = "slow"
    """Waits `seconds`, then sends its reply."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One deviation. `keep` says whether the message is kept (only looked at in FINAL)."""

    name: str
    phase: Phase
    act: Act = Act.REPLY
    reply: str = ""
    keep: bool = True
    seconds: float = 0.0
    times: int | None = None
    recipient: str | None = None
    """Exact address; None is any."""


def _refusal(name: str, reply: str, phase: Phase = Phase.RCPT, times: int | None = None) -> Rule:
    return Rule(name, phase, reply=reply, keep=False, times=times)


PRESETS = {
    rule.name: rule
    for rule in (
        _refusal("refuse-rcpt", "550 5.1.1 No such mailbox here"),
        _refusal("blocked", "554 5.7.1 Refused by policy"),
        _refusal("disabled", "550 5.2.1 Mailbox disabled"),
        _refusal("greylist", "451 4.7.1 Greylisted, come back later", times=1),
        _refusal("mailbox-full", "452 4.2.2 Mailbox full"),
        _refusal("quota-exceeded", "552 5.2.2 Mailbox full"),
        _refusal("rate-limited", "450 4.7.0 Too many messages"),
        _refusal("sender-rejected", "550 5.7.26 Sender not authenticated"),
        _refusal("refuse-content", "554 5.6.0 Content refused", Phase.FINAL),
        _refusal("busy-after-dot", "451 4.3.0 Try again later", Phase.FINAL),
        Rule("drop-at-rcpt", Phase.RCPT, Act.DROP),
        Rule("hang-at-rcpt", Phase.RCPT, Act.HANG),
        Rule("hold-at-rcpt", Phase.RCPT, Act.HOLD),
        Rule("drop-at-data", Phase.DATA, Act.DROP),
        Rule("hold-at-data", Phase.DATA, Act.HOLD),
        Rule("drop-in-body", Phase.BODY, Act.RESET),
        Rule("hang-after-dot", Phase.FINAL, Act.HANG),
        Rule("drop-after-dot", Phase.FINAL, Act.DROP),
        Rule("reset-after-dot", Phase.FINAL, Act.RESET),
        Rule("garbage-after-dot", Phase.FINAL, reply="what is this?"),
        Rule("lost-after-dot", Phase.FINAL, Act.DROP, keep=False),
        Rule("hold", Phase.FINAL, Act.HOLD),
        Rule("slow", Phase.FINAL, Act.SLOW, seconds=2.0),
    )
}
"""The fates a recipient can ask for. `lost-after-dot` looks like `drop-after-dot` from outside."""


class Script:
    """The presets and the rules added from outside, with what has been used up of each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._used: Counter[tuple[str, str]] = Counter()

    def add(self, rule: Rule) -> None:
        """Put `rule` before the presets, after the rules added earlier."""
        with self._lock:
            self._rules.append(rule)

    def clear(self) -> None:
        """Forget every added rule."""
        with self._lock:
            self._rules.clear()

    def rule_for(self, phase: Phase, recipient: str | None) -> Rule | None:
        """The rule to follow now, counted as used once; None is the normal course."""
        with self._lock:
            return self._added(phase, recipient) or self._preset(phase, recipient)

    def _added(self, phase: Phase, recipient: str | None) -> Rule | None:
        for place, rule in enumerate(self._rules):
            concerned = rule.phase is phase and rule.recipient in (None, recipient)
            if concerned and self._use(rule, f"added:{place}"):
                return rule
        return None

    def _preset(self, phase: Phase, recipient: str | None) -> Rule | None:
        if recipient is None:
            return None
        rule = PRESETS.get(fate_of(recipient))
        if rule is None or rule.phase is not phase or not self._use(rule, recipient):
            return None
        return rule

    def _use(self, rule: Rule, whose: str) -> bool:
        if rule.times is None:
            return True
        self._used[rule.name, whose] += 1
        return self._used[rule.name, whose] <= rule.times


def fate_of(recipient: str) -> str:
    """The fate that an address asks for by its local part, or that part itself."""
    return recipient.partition("@")[0].partition("+")[0].lower()
