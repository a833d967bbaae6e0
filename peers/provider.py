"""What the stand-ins of HTTP providers have in common: keep, answer as the course says, tell.

The journal has the phases `post` (one for each POST on the wire), `stored` (one for each
message kept), `held`, `final` (what the caller heard: True, False or nothing), `event`,
`callback` (one for each POST to the app), `look` and `refused` (a look turned away).
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, replace
from functools import partial

from peers.agenda import Agenda, Callback, Messenger, Patience, post_once
from peers.control import control_routes
from peers.courses import JUNK, CourseScript, Refusal, Step
from peers.journal import Holds, Journal
from peers.outbox import Event, Facts, Message, Outbox
from peers.web import HTML, Manner, Reply, Request, Route, WebServer, as_json

LOOKS = {
    "unavailable": Reply(503, b"<html>Service Unavailable</html>", HTML),
    "proxy-page": Reply(403, JUNK.encode(), HTML),
    "junk": Reply(200, JUNK.encode(), HTML),
    "hang": Reply(manner=Manner.HANG),
    "drop": Reply(manner=Manner.DROP),
    "reset": Reply(manner=Manner.RESET),
}
"""What can be scripted for looks and polls; beside these `empty`, `denied`, `limited`, `hold`
and `truncate`."""


@dataclass(slots=True)
class LookRule:
    """How the next so many looks are answered (None: all)."""

    word: str
    times: int | None


class Provider:
    """A provider on loopback. Subclasses know its words; everything here is the same for all.

    `inbox_url` is the inbox to which what arrives is passed on, for people to read.
    """

    def __init__(
        self, script: CourseScript, patience: Patience, *, port: int, inbox_url: str | None
    ) -> None:
        self.script = script
        self.journal, self.holds, self.messages = Journal(), Holds(), Outbox()
        self._inbox_url = inbox_url
        self._agenda = Agenda()
        self._messenger = Messenger(self.journal, self._agenda, patience)
        self._looks: list[LookRule] = []
        self._looks_lock = threading.Lock()
        self._web = WebServer(self._all_routes(), port=port, otherwise=self.otherwise)
        self.url = self._web.url

    # what a subclass knows

    denied: Refusal
    limited: Refusal

    def routes(self) -> dict[tuple[str, str], Route]:
        """The provider's own addresses."""
        raise NotImplementedError

    def otherwise(self, request: Request) -> Reply:
        """Addresses with an id in them."""
        raise NotImplementedError

    def taken(self, message: Message) -> Reply:
        """The answer to a message that was kept."""
        raise NotImplementedError

    def in_own_words(self, refusal: Refusal, recipient: str) -> Reply:
        """A refusal as the provider writes it."""
        raise NotImplementedError

    def callback(self, message: Message, event: Event) -> Callback | None:
        """The callback about an event; None where nobody asked for one."""
        raise NotImplementedError

    def nothing_found(self, request: Request) -> Reply:
        """The answer to a look that is scripted to find nothing."""
        raise NotImplementedError

    def as_arrived(self, message: Message, event: Event) -> tuple[str, Facts] | None:
        """Path and body for the inbox, where the event means that somebody can read it now."""
        raise NotImplementedError

    # life

    def start(self) -> None:
        """Begin to answer."""
        self._agenda.start()
        self._messenger.start()
        self._web.start()

    def close(self) -> None:
        """Stop, let go of whatever is held, and tell nothing more."""
        self.holds.close()
        self._agenda.close()
        self._messenger.close()
        self._web.close()

    # taking a message

    def submit(self, draft: Message) -> Reply:
        """Let a valid message take its course, and answer as that says."""
        course = draft.course
        facts = draft.facts()
        if course.refusal is not None:
            self.journal.add("final", {**facts, "accepted": course.answered})
            return self._refuse(course.refusal, draft.recipient)
        if course.kept:
            self._keep(draft)
        if course.hold and not self._hold(facts):
            return Reply(manner=Manner.DROP)
        time.sleep(course.slow_s)
        self.journal.add("final", {**facts, "accepted": course.answered})
        return self._answer(draft)

    def _keep(self, message: Message) -> None:
        message.seen_from = time.monotonic() + message.course.unseen_s
        self.messages.keep(message)
        self.journal.add("stored", message.facts())
        for step in message.course.steps:
            if message.course.told_first:
                self.happen(message, step, now=True)
            else:
                self._agenda.at(step.after_s, partial(self._happen_later, message, step))

    def _hold(self, facts: Facts) -> bool:
        number = self.holds.begin(facts)
        self.journal.add("held", {"id": number, **facts})
        return self.holds.wait(number)

    def _refuse(self, refusal: Refusal, recipient: str) -> Reply:
        if refusal.code is None:
            return Reply(refusal.status, JUNK.encode(), HTML)
        reply = self.in_own_words(refusal, recipient)
        wait_s = refusal.retry_after_s
        headers = {} if wait_s is None else {"Retry-After": str(wait_s)}
        return replace(reply, headers=headers)

    def _answer(self, message: Message) -> Reply:
        course, usual = message.course, self.taken(message)
        status = course.status or usual.status
        if course.raw is not None:
            return Reply(status, course.raw.encode(), HTML, manner=course.manner)
        return replace(usual, status=status, manner=course.manner)

    # what happens to it

    def _happen_later(self, message: Message, step: Step) -> None:
        self.happen(message, step)

    def happen(self, message: Message, step: Step, *, now: bool = False) -> list[int | None]:
        """Let a step happen and tell of it; `now` posts the callbacks before returning.

        Gives the statuses that the app answered with, where `now`.
        """
        event = self.messages.add_event(message, step)
        self.journal.add("event", {**message.facts(), "word": step.word, "code": step.code})
        arrived = self.as_arrived(message, event)
        if arrived is not None and self._inbox_url is not None:
            path, content = arrived
            headers = {"content-type": "application/json"}
            post_once(self._inbox_url + path, headers, json.dumps(content).encode())
        callback = self.callback(message, event)
        if callback is None:
            return []
        if now:
            return [self._messenger.post(callback) for _ in range(step.told)]
        for _ in range(step.told):
            self._messenger.post_after(step.told_late_s, callback)
        return []

    # looks

    def look(self, request: Request, answer: Route) -> Reply:
        """Answer a look or a poll, as scripted or with what `answer` finds."""
        word = self._next_look()
        facts: Facts = {"path": request.path, "query": request.query, "fate": word or "answer"}
        self.journal.add("look", facts)
        if word == "hold" and not self._hold(facts):
            return Reply(manner=Manner.DROP)
        return self._look_as(word, request, answer)

    def _look_as(self, word: str | None, request: Request, answer: Route) -> Reply:
        match word:
            case None | "hold":
                return answer(request)
            case "truncate":
                return replace(answer(request), manner=Manner.TRUNCATE)
            case "empty":
                return self.nothing_found(request)
            case "denied":
                return self._refuse(self.denied, "")
            case "limited":
                return self._refuse(self.limited, "")
        return LOOKS[word]

    def _next_look(self) -> str | None:
        with self._looks_lock:
            for rule in self._looks:
                if rule.times != 0:
                    rule.times = None if rule.times is None else rule.times - 1
                    return rule.word
        return None

    # steering

    def _all_routes(self) -> dict[tuple[str, str], Route]:
        return {
            **control_routes(self.journal, self.holds),
            **self.routes(),
            ("POST", "/control/script"): self._add_rule,
            ("POST", "/control/looks"): self._add_look,
            ("POST", "/control/clear"): self._clear,
            ("POST", "/control/tell"): self._tell,
        }

    def _add_rule(self, request: Request) -> Reply:
        given = request.json()
        self.script.add(given["fate"], given.get("recipient"), given.get("times"))
        return as_json({}, 201)

    def _add_look(self, request: Request) -> Reply:
        given = request.json()
        with self._looks_lock:
            self._looks.append(LookRule(str(given["fate"]), given.get("times")))
        return as_json({}, 201)

    def _clear(self, _: Request) -> Reply:
        self.script.clear()
        with self._looks_lock:
            self._looks.clear()
        return as_json({})

    def _tell(self, request: Request) -> Reply:
        given = request.json()
        message = self.messages.get(str(given.pop("message_id")))
        if message is None:
            return as_json({"error": "no such message"}, 404)
        return as_json({"statuses": self.happen(message, Step(**given), now=True)})
