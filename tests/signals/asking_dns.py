"""Short words for a check of a sender domain: who is asked, what was said, what does not answer."""

from __future__ import annotations

from collections.abc import Callable

from notifier.ports.dns import Answer, Found
from notifier.signals.dns import Resolver
from notifier.signals.sender_findings import Finding
from tests.dns_server import Zone

HOME = "mail.example"
Ask = Callable[[], Resolver]


def said(found: Finding) -> str:
    return " | ".join(found.reasons)


def fail(zone: Zone, name: str, trouble: str) -> None:
    if trouble == "silence":
        zone.silent.add(name)
    else:
        zone.codes[name] = trouble


class Fixed:
    """Answers of one's own, where it does not matter how they arrive."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def ask(self, name: str, kind: str) -> Answer:
        text = self.texts.get(name) if kind == "TXT" else None
        return Answer(Found.ABSENT) if text is None else Answer(Found.PRESENT, (text,), 60, "it")
