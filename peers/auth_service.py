"""The company's auth service, as far as we can see it: it answers signed link requests.

A reset request's id can ask for a fate, in pairs before the rest of the id:
`link:used:7f3a` (what the answer is), `mail:hang-after-dot:7f3a` and `text:filtered:7f3a` (whom
the link is for, so that the stand-in for a provider follows its own fate). Without, everybody
has an address and a number where messages arrive. Scripted answers and people added from
outside go before that.

`python -m peers.auth_service` serves it alone and prints one line of JSON with its addresses.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from peers.alone import add_stop_option, serve
from peers.control import control_routes
from peers.journal import Holds, Journal
from peers.twilio_words import number_for
from peers.web import Manner, Reply, Request, WebServer, as_json

LINK_PATH = "/link-requests"
RESET_PAGE = "https://account.example.test/reset/"
SLOW_S = 1.5
TOO_SLOW_S = 6.0


@dataclass(frozen=True, slots=True)
class Person:
    """To whom a reset request belongs. None: no such destination."""

    email: str | None
    sms: str | None
    name: str | None = None
    expires_at: str | None = None


@dataclass(slots=True)
class Answer:
    """One deviation from the normal answer. `body` None keeps the normal body for a 200."""

    status: int = 200
    body: Any = None
    manner: Manner = Manner.ANSWER
    delay_s: float = 0.0
    hold: bool = False
    times: int | None = None
    reset_request_id: str | None = None
    """None: any."""
    purpose: str | None = None
    raw: str | None = None
    """The exact body, for answers that are no JSON."""


def _gone(reason: str) -> Answer:
    return Answer(410, {"reason": reason})


FATES = {
    "used": _gone("used"),
    "superseded": _gone("superseded"),
    "revoked": _gone("revoked"),
    "expired": _gone("expired"),
    "no-destination": Answer(404, {"reason": "no_destination"}),
    "not-permitted": Answer(404, {"reason": "not_permitted"}),
    "bare-404": Answer(404, {}),
    "error": Answer(500, {"error": "broken"}),
    "unavailable": Answer(503, {"error": "busy"}),
    "redirect": Answer(302, {}),
    "malformed": Answer(raw='{"reset_url": "https://acc'),
    "empty": Answer(200, {}),
    "truncate": Answer(manner=Manner.TRUNCATE),
    "drop": Answer(manner=Manner.DROP),
    "hang": Answer(manner=Manner.HANG),
    "slow": Answer(delay_s=SLOW_S),
    "too-slow": Answer(delay_s=TOO_SLOW_S),
    "hold": Answer(hold=True),
}
"""What the answer can be, by the word after `link:`."""

NORMAL = Answer()

NAMES = (
    "Ada Quillfeather", "Bo Lindqvist-Marsh", "Chidi Okonrow", "Dilys Penhallow",
    "Eun-ji Harrow", "Farid Castellane", "Gwen Ashdown", "H\u00e9l\u00e8ne Vautrain",
    "Imke Sandersen", "Jo\u00e3o Mirandela",
)  # fmt: skip


class AuthService:
    """Answers link requests at `link_url`; steered and read below `url`."""

    def __init__(self, secrets: list[str], *, port: int = 0, reset_page: str = RESET_PAGE) -> None:
        self._verifiers = [Webhook(secret) for secret in secrets]
        self._link_key = hashlib.sha256(secrets[0].encode()).digest()
        self._reset_page = reset_page
        self.journal, self.holds = Journal(), Holds()
        self._lock = threading.Lock()
        self._people: dict[str, Person] = {}
        self._answers: list[Answer] = []
        self._web = WebServer(self._routes(), port=port)
        self.url = self._web.url
        self.link_url = self.url + LINK_PATH

    def start(self) -> None:
        """Begin to answer."""
        self._web.start()

    def close(self) -> None:
        """Stop and let go of whatever is held."""
        self.holds.close()
        self._web.close()

    def link_for(self, reset_request_id: str) -> str:
        """The link of a request: the same for as long as this service's secret."""
        token = hmac.new(self._link_key, reset_request_id.encode(), hashlib.sha256).hexdigest()
        return f"{self._reset_page}{token}"

    def person_for(self, reset_request_id: str) -> Person:
        """Whom the request belongs to: as told from outside, else made up from its id."""
        with self._lock:
            known = self._people.get(reset_request_id)
        return known or made_up_person(reset_request_id)

    def _routes(self) -> dict[tuple[str, str], Any]:
        return {
            **control_routes(self.journal, self.holds),
            ("POST", LINK_PATH): self._link,
            ("POST", "/control/people"): self._add_person,
            ("POST", "/control/script"): self._add_answer,
            ("POST", "/control/clear"): self._clear_script,
        }

    def _link(self, request: Request) -> Reply:
        trouble = self._trouble_with(request)
        if trouble is not None:
            self.journal.add("refused", {"why": trouble})
            return as_json({"error": trouble}, 401)
        asked = request.json()
        answer = self._answer_for(asked)
        self.journal.add("asked", {**asked, "status": answer.status, "manner": answer.manner})
        return self._give(answer, asked)

    def _trouble_with(self, request: Request) -> str | None:
        trouble = "no secret"
        for verifier in self._verifiers:
            try:
                verifier.verify(request.body, request.headers, json_parse=False)
            except (WebhookVerificationError, ValueError) as error:
                trouble = str(error)
            else:
                return None
        return trouble

    def _give(self, answer: Answer, asked: dict[str, Any]) -> Reply:
        if answer.delay_s:
            time.sleep(answer.delay_s)
        if answer.hold and not self._hold(asked):
            return Reply(manner=Manner.DROP)
        if answer.raw is not None:
            return Reply(answer.status, answer.raw.encode(), manner=answer.manner)
        normal = answer.status == 200 and answer.body is None
        reply = self._normal(asked) if normal else as_json(answer.body, answer.status)
        return Reply(reply.status, reply.body, manner=answer.manner)

    def _hold(self, asked: dict[str, Any]) -> bool:
        number = self.holds.begin(asked)
        self.journal.add("held", {"id": number, **asked})
        return self.holds.wait(number)

    def _normal(self, asked: dict[str, Any]) -> Reply:
        identity = str(asked["reset_request_id"])
        person = self.person_for(identity)
        destination = person.email if asked["channel"] == "email" else person.sms
        if destination is None:
            return as_json({"reason": "no_destination"}, 404)
        facts = {"reset_url": self.link_for(identity), "destination": destination}
        extra = {"name": person.name, "expires_at": person.expires_at}
        return as_json({**facts, **{k: v for k, v in extra.items() if v is not None}})

    def _answer_for(self, asked: dict[str, Any]) -> Answer:
        with self._lock:
            for answer in self._answers:
                if _concerns(answer, asked) and answer.times != 0:
                    if answer.times is not None:
                        answer.times -= 1
                    return answer
        return FATES.get(fates_of(str(asked["reset_request_id"])).get("link", ""), NORMAL)

    def _add_person(self, request: Request) -> Reply:
        given = request.json()
        identity = str(given.pop("reset_request_id"))
        with self._lock:
            self._people[identity] = Person(**given)
        return as_json({}, 201)

    def _add_answer(self, request: Request) -> Reply:
        given = request.json()
        given["manner"] = Manner(given.get("manner", Manner.ANSWER))
        with self._lock:
            self._answers.append(Answer(**given))
        return as_json({}, 201)

    def _clear_script(self, _: Request) -> Reply:
        with self._lock:
            self._answers.clear()
            self._people.clear()
        return as_json({})


def _concerns(answer: Answer, asked: dict[str, Any]) -> bool:
    return answer.reset_request_id in (None, asked.get("reset_request_id")) and (
        answer.purpose in (None, asked.get("purpose"))
    )


def fates_of(reset_request_id: str) -> dict[str, str]:
    """The fates an id asks for: `link:slow:mail:hold:1` is `{"link": "slow", "mail": "hold"}`."""
    words = reset_request_id.split(":")
    found: dict[str, str] = {}
    while len(words) > 2 and words[0] in ("link", "mail", "text"):
        found[words[0]] = words[1]
        words = words[2:]
    return found


def made_up_person(reset_request_id: str) -> Person:
    """Somebody at example.test with a number from the range kept for fiction."""
    digest = hashlib.sha256(reset_request_id.encode()).hexdigest()
    fates = fates_of(reset_request_id)
    local = fates.get("mail", "person")
    number = number_for(fates.get("text", "deliver"), int(digest[:8], 16))
    name = NAMES[int(digest[8:16], 16) % len(NAMES)]
    return Person(f"{local}+{digest[:10]}@example.test", number, name)


def main() -> None:
    """Serve an auth service alone; its secrets come from PEERS_LINK_SECRET, comma-separated."""
    parser = argparse.ArgumentParser(prog="python -m peers.auth_service")
    parser.add_argument("--port", type=int, default=0)
    add_stop_option(parser)
    chosen = parser.parse_args()
    secrets = os.environ.get("PEERS_LINK_SECRET", "")
    if not secrets:
        sys.exit("PEERS_LINK_SECRET must hold one or more whsec_... secrets")
    service = AuthService(secrets.split(","), port=chosen.port)
    facts: dict[str, object] = {"link_url": service.link_url, "url": service.url}
    serve(service, facts, stop_with_stdin=chosen.stop_with_stdin)


if __name__ == "__main__":
    main()
