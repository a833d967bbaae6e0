"""Light, steady traffic in which everything that can happen to a notice does happen.

A burst at the start fills every page; after that one event follows every two seconds. The
order of the kinds depends on the seed alone.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from peers.events import Event, Poster, build_event

BURST: Final = 80
EVERY_S: Final = 2.0
FIRST_TICKET: Final = 1001
TICKET_EVERY: Final = 7
MODE: Final = "email_then_sms"
SHORT_LIFE_S: Final = 50.0
"""Short enough for a fallback, and for an end, within the first minute."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that can happen. `fields` are those of `build_event`; `then` follows the post."""

    name: str
    share: int
    fields: dict[str, Any] = field(default_factory=dict)
    then: str = ""


def _inputs(mode: str = MODE, **inputs: Any) -> dict[str, Any]:
    given = {"email_consent": True, "sms_consent": True, "region": "GB", **inputs}
    return {"mode": mode, "inputs": {k: v for k, v in given.items() if v is not None}}


def _short(fate: str, **inputs: Any) -> dict[str, Any]:
    return {"fate": fate, "life_s": SHORT_LIFE_S, "policy": _inputs(**inputs)}


KINDS: Final = (
    Kind("delivered", 26),
    Kind("slow", 2, {"fate": "mail:slow"}),
    Kind("put off once", 1, {"fate": "mail:greylist"}),
    Kind("no answer, found by look-up", 3, {"fate": "mail:hang-and-silent"}),
    Kind("no answer, callback", 2, {"fate": "mail:hang-after-dot"}),
    Kind("connection lost, callback", 1, {"fate": "mail:drop-after-dot"}),
    Kind("unreadable answer", 1, {"fate": "mail:garbage-after-dot"}),
    Kind("never found, then texted", 2, _short("mail:lost-after-dot")),
    Kind("unconfirmed, then texted", 2, _short("mail:accept")),
    Kind("unconfirmed, no consent to a text", 1, _short("mail:accept", sms_consent=False)),
    Kind("unconfirmed, text not permitted there", 1, _short("mail:accept", region="US")),
    Kind("unconfirmed, region not told", 1, _short("mail:accept", region=None)),
    Kind("mailbox unknown, then texted", 2, {"fate": "mail:refuse-rcpt"}),
    Kind("bounced, then texted", 2, {"fate": "mail:bounce-hard"}),
    Kind("bounced after delivery, then texted", 1, {"fate": "mail:bounce-after-delivery"}),
    Kind("soft bounce, then delivered", 1, {"fate": "mail:bounce-soft"}),
    Kind("complained", 1, {"fate": "mail:complaint"}),
    Kind("refused by policy, text unreachable", 1, {"fate": "mail:blocked:text:unreachable"}),
    Kind("over quota, text filtered", 1, {"fate": "mail:quota-exceeded:text:filtered"}),
    Kind("bounced, text without an answer", 1, {"fate": "mail:bounce-hard:text:hang-and-silent"}),
    Kind("bounced, text never told of", 1, _short("mail:bounce-hard:text:lost")),
    Kind("bounced, text too late at the provider", 1, _short("mail:bounce-hard:text:expired")),
    Kind("callbacks twice and out of order", 1, {"fate": "mail:reordered:text:duplicate"}),
    Kind("callback about a stranger", 1, {"fate": "mail:stranger"}),
    Kind("text alone", 1, {"policy": _inputs("sms_only")}),
    Kind("email alone", 2, {"policy": _inputs("email_only")}),
    Kind("link unavailable", 3, {"fate": "link:unavailable"}),
    Kind("link slow", 1, {"fate": "link:slow"}),
    Kind("link without destination", 1, {"fate": "link:no-destination"}),
    Kind("link not permitted", 1, {"fate": "link:not-permitted"}),
    Kind("link says used", 1, {"fate": "link:used"}),
    Kind("no address", 1, {"destinations": {"email": None}}),
    Kind("invalid address", 1, {"destinations": {"email": "nobody at home"}}),
    Kind("no consent to an email, texted", 1, {"policy": _inputs(email_consent=False)}),
    Kind("no consent to anything", 1, {"policy": _inputs("email_only", email_consent=False)}),
    Kind("expired on arrival", 1, {"age_s": 1200.0, "life_s": 600.0}),
    Kind("expires unsent", 2, {"fate": "link:unavailable", "life_s": 12.0}),
    Kind("unknown locale", 1, {"locale": "tlh"}),
    Kind("posted twice", 1, then="repeat"),
    Kind("posted with other content", 1, then="conflict"),
    Kind("canceled", 1, {"fate": "link:unavailable"}, then="cancel"),
)
"""Shares out of their sum; the burst holds every kind at least once."""


def kinds(seed: int) -> Iterator[Kind]:
    """An endless order of kinds, the same for the same seed; rounds hold every kind's share."""
    order = random.Random(seed)
    one_round = [kind for kind in KINDS for _ in range(kind.share)]
    while True:
        order.shuffle(one_round)
        first = {kind.name: kind for kind in one_round}
        yield from first.values()
        rest = list(one_round)
        for kind in first.values():
            rest.remove(kind)
        yield from rest


class Traffic:
    """Posts events from one thread until closed; `counts` are the answers by status."""

    def __init__(self, base_url: str, secret: str, *, seed: int = 1, run: str = "") -> None:
        self._base_url, self._secret = base_url, secret
        self._run = run or f"{int(time.time()):x}"
        self._kinds = kinds(seed)
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._flow, daemon=True, name="traffic")
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        """Begin with the burst."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the post under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def next_event(self) -> tuple[Kind, Event]:
        """The next kind and its event; every seventh carries a ticket, from TCK-1001 on."""
        kind = next(self._kinds)
        place, self._number = self._number, self._number + 1
        has_ticket = place % TICKET_EVERY == 0
        ticket = f"TCK-{FIRST_TICKET + place // TICKET_EVERY}" if has_ticket else None
        tag = f"{self._run}-{place:05d}"
        fields = {"policy": _inputs(), **kind.fields}
        return kind, build_event(tag=tag, ticket_id=ticket, **fields)

    def _flow(self) -> None:
        with Poster(self._base_url, self._secret) as poster:
            while not self._stop.wait(0.02 if self._number < BURST else EVERY_S):
                self._post(poster, *self.next_event())

    def _post(self, poster: Poster, kind: Kind, event: Event) -> None:
        try:
            self.counts[str(poster.post(event).status)] += 1
            self._follow_up(poster, kind, event)
        except (OSError, http.client.HTTPException):
            self.counts["no answer"] += 1

    def _follow_up(self, poster: Poster, kind: Kind, event: Event) -> None:
        match kind.then:
            case "repeat":
                poster.post(event)
            case "conflict":
                poster.post(event | {"locale": "fr"})
            case "cancel":
                poster.cancel(event["event_id"], "used")
            case _:
                return
