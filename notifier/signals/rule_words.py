"""What each rule says in one line, and which page explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from notifier.domain.reasons import Detail
from notifier.signals.judgements import RuleName, channel_of
from notifier.signals.thresholds import Unit

TITLES: Final[Mapping[RuleName, str]] = {
    RuleName.DATABASE_UNREACHABLE: "The database cannot be reached",
    RuleName.RULES_NOT_JUDGED: "The alert rules are not judged",
    RuleName.SWEEP_STALLED: "Sweeps stand still",
    RuleName.PROVIDER_PAUSED: "A provider stays paused",
    RuleName.CALLBACKS_REFUSED: "A provider's callbacks are refused",
    RuleName.PROVIDER_SILENT: "A provider accepts and tells nothing",
    RuleName.NO_PROGRESS: "Claimed work makes no progress",
    RuleName.RESCUES: "Work is taken back from workers again and again",
    RuleName.QUEUE_AGE: "Ready work waits too long",
    RuleName.EXPIRY_AHEAD: "Notices will expire before their turn",
    RuleName.UNKNOWN_RATE: "Too many unknown outcomes",
    RuleName.CHANNEL_FAILURES: "Too many sends fail",
    RuleName.EXPIRED: "More notices expire than usual",
    RuleName.AVOIDABLE_FALLBACKS: "Texts were sent that nobody needed",
    RuleName.UNMAPPED: "A provider used a word that is not known",
    RuleName.UNREADABLE: "Callbacks cannot be read",
    RuleName.CHECKPOINT_MISSING: "The trail has no fresh checkpoint",
    RuleName.LOCAL_ACCOUNT_USED: "A local account was used beside single sign-on",
    RuleName.SENDER_DOMAIN_FAILS: "A sender domain's records stopped being usable",
}


_PAGES: Final[Mapping[RuleName, tuple[str, Mapping[str, str]]]] = {
    RuleName.DATABASE_UNREACHABLE: ("/system", {}),
    RuleName.RULES_NOT_JUDGED: ("/system", {}),
    RuleName.SWEEP_STALLED: ("/system", {}),
    RuleName.PROVIDER_PAUSED: ("/system", {}),
    RuleName.CHECKPOINT_MISSING: ("/system", {}),
    RuleName.CALLBACKS_REFUSED: ("/incident", {"channel": "channel"}),
    RuleName.UNREADABLE: ("/incident", {"channel": "channel"}),
    RuleName.RESCUES: ("/incident", {}),
    RuleName.AVOIDABLE_FALLBACKS: ("/incident", {}),
    RuleName.EXPIRED: ("/expired", {"region": "key"}),
    RuleName.QUEUE_AGE: ("/pending", {"stage": "=waiting"}),
    RuleName.EXPIRY_AHEAD: ("/pending", {"stage": "=waiting"}),
    RuleName.NO_PROGRESS: ("/pending", {}),
    RuleName.PROVIDER_SILENT: ("/pending", {"stage": "=accepted"}),
    RuleName.UNKNOWN_RATE: ("/unknown", {"provider": "key"}),
    RuleName.CHANNEL_FAILURES: ("/failures", {"provider": "key"}),
    RuleName.UNMAPPED: ("/failures", {"provider": "key"}),
    RuleName.LOCAL_ACCOUNT_USED: ("/audit", {}),
    RuleName.SENDER_DOMAIN_FAILS: ("/sender-domains", {}),
}
"""The page, and its filters: the key, the key's channel, or a fixed word after an equals sign."""


def page_of(rule: str, key: str) -> str:
    """The path of the page on which the cause is seen, narrowed to the key."""
    path, filters = _PAGES[RuleName(rule)]
    named = {"key": key, "channel": channel_of(key) or ""}
    given = {name: named.get(word, word.removeprefix("=")) for name, word in filters.items()}
    given = {name: value for name, value in given.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def runbook_of(rule: str) -> str:
    """The path of the rule's runbook."""
    return f"/runbooks/{rule}"


_NOTICES: Final = ("notice", "notices")
_UNHEARD: Final = ("message without news", "messages without news")
_RESCUED: Final = ("delivery taken back", "deliveries taken back")
_WORDS: Final = ("unknown word", "unknown words")
_UNREADABLE: Final = ("unreadable callback", "unreadable callbacks")
_SIGN_INS: Final = ("sign-in", "sign-ins")
_RECORDS: Final = ("record", "records")

_COUNTED: Final[Mapping[RuleName, tuple[str, str]]] = {
    RuleName.CALLBACKS_REFUSED: ("refused callback", "refused callbacks"),
    RuleName.PROVIDER_SILENT: _UNHEARD,
    RuleName.RESCUES: _RESCUED,
    RuleName.EXPIRY_AHEAD: _NOTICES,
    RuleName.UNMAPPED: _WORDS,
    RuleName.UNREADABLE: _UNREADABLE,
    RuleName.LOCAL_ACCOUNT_USED: _SIGN_INS,
    RuleName.SENDER_DOMAIN_FAILS: _RECORDS,
}
"""What a value that is a count is a count of."""

_MEASURED: Final[Mapping[RuleName, str]] = {
    RuleName.SWEEP_STALLED: "since the last good end",
    RuleName.CALLBACKS_REFUSED: "within 5 min",
    RuleName.NO_PROGRESS: "without progress",
    RuleName.RESCUES: "within 5 min",
    RuleName.QUEUE_AGE: "of waiting",
    RuleName.UNKNOWN_RATE: "of the sends within 5 min unknown",
    RuleName.CHANNEL_FAILURES: "of the sends within 5 min failed",
    RuleName.EXPIRED: "of the notices within 1 h expired",
    RuleName.AVOIDABLE_FALLBACKS: "of the texts within 1 h not needed",
    RuleName.UNMAPPED: "within 1 h",
    RuleName.UNREADABLE: "within 1 h",
    RuleName.CHECKPOINT_MISSING: "without a checkpoint",
}
"""What follows a value: of what it is, and over which time (the windows of `store.reads`)."""

_AFFECTED: Final[Mapping[RuleName, tuple[str, str]]] = {
    RuleName.SWEEP_STALLED: ("sweep", "sweeps"),
    RuleName.CALLBACKS_REFUSED: _UNHEARD,
    RuleName.PROVIDER_SILENT: _UNHEARD,
    RuleName.RESCUES: _RESCUED,
    RuleName.UNKNOWN_RATE: ("unknown outcome", "unknown outcomes"),
    RuleName.CHANNEL_FAILURES: ("failed send", "failed sends"),
    RuleName.AVOIDABLE_FALLBACKS: ("text", "texts"),
    RuleName.UNMAPPED: _WORDS,
    RuleName.UNREADABLE: _UNREADABLE,
    RuleName.LOCAL_ACCOUNT_USED: _SIGN_INS,
    RuleName.SENDER_DOMAIN_FAILS: _RECORDS,
}
"""What `affected` counts; notices, where a rule does not stand here."""


def value_of(rule: str, value: float, unit: str, detail: str | None = None) -> str:
    """A rule's value as a person reads it: `75 s of waiting`, `15 refused callbacks within 5 min`.

    `detail` is the provider's word for a pause, where it is known.
    """
    name, parts = RuleName(rule), [amount(value, unit)]
    if Unit(unit) is Unit.COUNT and name in _COUNTED:
        parts.append(_noun(_COUNTED[name], round(value)))
    told = _of_pause(detail) if name is RuleName.PROVIDER_PAUSED else _MEASURED.get(name)
    return " ".join([*parts, told] if told else parts)


def _of_pause(detail: str | None) -> str:
    """A pause that paces us is judged by the work behind it, any other by its own length."""
    if detail is None:
        return "while it was paused"
    return f"of {'waiting' if detail == Detail.RATE_LIMITED else 'pause'} ({detail})"


def affected_of(rule: str, affected: int) -> str:
    """How much work an alert is about, and of what kind: `18 notices`."""
    if rule == RuleName.CHECKPOINT_MISSING:
        return "the newest rows of the trail"
    nouns = _AFFECTED.get(RuleName(rule), _NOTICES)
    if affected:
        return f"{affected:,} {_noun(nouns, affected)}"
    missed = "; each refused callback may be a report missed"
    return f"no {nouns[0]} yet{missed if rule == RuleName.CALLBACKS_REFUSED else ''}"


def _noun(nouns: tuple[str, str], number: int) -> str:
    return nouns[0] if number == 1 else nouns[1]


def amount(value: float, unit: str) -> str:
    """A value as a person reads it, a count without its noun."""
    match Unit(unit):
        case Unit.SECONDS:
            return f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"
        case Unit.SHARE:
            return f"{value * 100:.1f} %"
        case Unit.COUNT:
            return f"{value:.0f}"
