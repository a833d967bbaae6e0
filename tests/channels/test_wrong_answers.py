"""Wrong answers of a provider through the whole product: wire, state, trail and headline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from notifier.store.embedded import EmbeddedServer
from peers.events import Event, build_event
from tests.channels.conftest import CALLBACK_PASSWORD, TIMES
from tests.database import fresh_database
from tests.providers.http_sending import POSTMARK_OK
from tests.providers.scripted_api import Answer, ScriptedApi, api, reply
from tests.providers.scripted_smtp import Do
from tests.running import RunningApp, surroundings, until

BLIND = reply(503, b"<html>")
"""What every look is answered, so that nothing is learnt after the call."""


@dataclass
class Stage:
    """A process whose email provider does to each POST what the test says."""

    app: RunningApp
    peer: ScriptedApi
    answer: Answer = POSTMARK_OK

    def play(self, line: str) -> Answer:
        return self.answer if line.startswith("POST ") else BLIND

    def admit(self, answer: Answer, **at: Answer) -> Event:
        """Admit an event while the provider answers so; `at` are points of the request."""
        self.answer = answer
        self.peer.script = {"ANSWER": self.play, **at}
        self.peer.lines.clear()
        event = build_event(life_s=40)
        event["policy"] = {"mode": "email_only"}
        self.app.admit(event)
        return event

    def looks(self) -> int:
        return sum(line.startswith("GET ") for line in self.peer.lines)

    def moves(self, event: Event) -> list[tuple[str, str]]:
        return [
            (row["to_state"], row["reason"])
            for row in self.app.trail(event["event_id"])
            if row["channel"] == "email" and row["to_state"] != row["from_state"]
        ]


@pytest.fixture(scope="module")
def stage(postgres: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("wrong")
    with fresh_database(postgres) as url, api() as peer:
        more = {
            "NOTIFIER_EMAIL_PROVIDERS": "postmark",
            "NOTIFIER_POSTMARK_TOKEN": "a-token",
            "NOTIFIER_POSTMARK_CALLBACK_PASSWORD": CALLBACK_PASSWORD,
            "NOTIFIER_POSTMARK_BASE_URL": peer.url,
        }
        with (
            surroundings(url, folder, policy=TIMES, more=more) as around,
            RunningApp(around) as app,
        ):
            yield Stage(app, peer)


UNKNOWN: dict[str, tuple[Answer, str]] = {
    "truncated": ((POSTMARK_OK[:-9], Do.CLOSE), "connection_lost"),
    "reset in the status line": ((POSTMARK_OK[:10], Do.RESET), "connection_lost"),
    "unparsable": (reply(200, b'{"ErrorCode": 0, "Mess'), "unreadable_answer"),
    "another charset": (
        reply(200, POSTMARK_OK.partition(b"\r\n\r\n")[2].decode().encode("utf-16")),
        "unreadable_answer",
    ),
    "redirect": (reply(307, b"", "Location: /email/again"), "gateway_error"),
    "a proxy's page": (reply(403, b"<html>no</html>"), "gateway_error"),
    "a server's error": (reply(500, {"ErrorCode": 10, "Message": "x"}), "gateway_error"),
    "slow drip": ((POSTMARK_OK[:40], Do.DRIP), "timeout"),
    "flood of informations": ((b"HTTP/1.1 103 Early\r\n\r\n" * 500, Do.HANG), "timeout"),
    "huge": (b"HTTP/1.1 200 X\r\n\r\n" + b"x" * 300_000, "unreadable_answer"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_p3_a_wrong_answer_is_unknown_looked_into_and_never_sent_again(
    stage: Stage, name: str
) -> None:
    answer, reason = UNKNOWN[name]
    given = answer if isinstance(answer, tuple) else (answer, Do.CLOSE)
    event = stage.admit(given)
    stage.app.wait_for_email(event["event_id"], "unknown")
    until(lambda: stage.looks() >= 2, 20, "two looks")

    assert stage.peer.posts() == 1
    assert stage.moves(event) == [
        ("queued", "primary_selected"),
        ("claimed", "claimed"),
        ("attempted", "attempt_started"),
        ("unknown", reason),
    ]
    told = stage.app.status(event["event_id"])
    assert (told["state"], told["support_word"]) == ("email_pending", "unknown")
    assert "may have been sent" in told["headline"]
    [attempt] = stage.app.email(event["event_id"])["attempts"]
    assert (attempt["outcome"], attempt["reason"]) == ("unknown", reason)


def met_a_dead_line(stage: Stage, end: Do) -> Event:
    """An event whose worker saw that its line was dead before it wrote to it.

    A worker that is quicker than the peer's end writes first; then nobody can know, and that
    event is of no use here.
    """
    for _ in range(20):
        event = stage.admit(POSTMARK_OK, GREETED=end)

        def has_come_to(event_id: str = event["event_id"]) -> set[str]:
            return {"not_accepted", "connection_lost"} & set(stage.app.reasons(event_id))

        until(has_come_to, 20, "the first try")
        if "not_accepted" in has_come_to():
            return event
    pytest.fail("every worker was quicker than the peer's end")


@pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET])
def test_a_line_that_breaks_before_a_byte_is_tried_again_and_posted_once(
    stage: Stage, end: Do
) -> None:
    event = met_a_dead_line(stage, end)
    assert stage.peer.posts() == 0
    stage.peer.script = {"ANSWER": stage.play}

    stage.app.wait_for_email(event["event_id"], "accepted")
    attempts: list[dict[str, Any]] = stage.app.email(event["event_id"])["attempts"]
    assert {each["outcome"] for each in attempts[:-1]} == {"not_accepted"}
    assert attempts[-1]["outcome"] == "accepted"
    assert stage.peer.posts() == 1
    told = stage.app.status(event["event_id"])
    assert (told["state"], told["support_word"]) == ("email_pending", "accepted")
