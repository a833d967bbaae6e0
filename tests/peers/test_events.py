"""Events that the peers make are sound, signed, and as varied as the traffic promises."""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from notifier.domain.event import Invalid
from notifier.domain.event_document import EventRules, parse_event
from notifier.domain.policy import parse_policy
from peers import postmark_words, twilio_words
from peers.auth_service import FATES, fates_of
from peers.courses import named
from peers.events import Event, Poster, build_event
from peers.fates import PRESETS
from peers.run_settings import POLICY_FILE
from peers.traffic import BURST, KINDS, Traffic, kinds
from peers.try_it import one_line, write_script
from peers.web import Reply, Request, WebServer, as_json

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


@contextmanager
def an_app() -> Iterator[tuple[str, queue.SimpleQueue[Request]]]:
    """Something that takes events on loopback and keeps them for the test to look at."""
    taken: queue.SimpleQueue[Request] = queue.SimpleQueue()

    def admit(request: Request) -> Reply:
        taken.put(request)
        return as_json({"notification_id": "n-1"}, 202)

    server = WebServer({("POST", "/v1/reset-events"): admit})
    server.start()
    try:
        yield server.url, taken
    finally:
        server.close()


def verified(request: Request) -> Event:
    """The event, if an independent implementation finds its signature right."""
    event: Event = Webhook(SECRET).verify(request.body, request.headers)
    return event


def rules() -> EventRules:
    policy = parse_policy(POLICY_FILE.read_bytes())
    return EventRules(policy.max_life_s, lambda name, revision: (name, revision) == TEMPLATE)


TEMPLATE = ("password-reset", "1")


def test_a_posted_event_carries_a_signature_that_others_can_verify() -> None:
    event = build_event(ticket_id="TCK-7")
    with an_app() as (url, taken), Poster(url, SECRET) as poster:
        assert poster.post(event).status == 202
    assert verified(taken.get()) == event


def test_a_built_event_is_sound_and_random() -> None:
    first, second = build_event(), build_event()
    parsed = parse_event(first, datetime.now(UTC), rules())
    assert (parsed.expires_at - parsed.requested_at).total_seconds() == 600
    assert first["event_id"] != second["event_id"]
    assert first["reset_request_id"] != second["reset_request_id"]


def test_the_command_line_posts_one_event(tmp_path: Path) -> None:
    secret_file = tmp_path / "secret"
    secret_file.write_text(SECRET)
    with an_app() as (url, taken):
        command = [sys.executable, "-m", "peers.events", "--url", url]
        command += ["--secret-file", str(secret_file), "--ticket", "TCK-9", "--fate", "link:used"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    event = verified(taken.get())
    assert done.stdout.startswith("202 ")
    assert event["ticket_id"] == "TCK-9"
    assert event["reset_request_id"].startswith("link:used:")


@pytest.mark.parametrize("as_script", [True, False])
def test_the_printed_curl_signs_an_event_that_others_can_verify(
    tmp_path: Path,
    as_script: bool,
) -> None:
    key_file = tmp_path / "a key.hex"
    key_file.write_text(bytes(range(32)).hex())
    script = tmp_path / "try-it.sh"
    with an_app() as (url, taken):
        write_script(script, url, key_file)
        command = [str(script)] if as_script else ["bash", "-c", one_line(url, key_file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(done.stdout.splitlines()[0]) == {"notification_id": "n-1"}
    parsed = parse_event(verified(taken.get()), datetime.now(UTC), rules())
    assert parsed.ticket_id == "TCK-2001"


def test_the_order_of_the_traffic_depends_on_the_seed_alone() -> None:
    def order(seed: int) -> list[str]:
        return [kind.name for kind in islice(kinds(seed), 200)]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_the_burst_holds_every_kind() -> None:
    assert {kind.name for kind in islice(kinds(1), BURST)} == {kind.name for kind in KINDS}


def test_every_event_of_the_traffic_is_sound_and_has_ids_of_its_own() -> None:
    traffic = Traffic("http://127.0.0.1:1", SECRET)
    events = [traffic.next_event() for _ in range(2 * BURST)]
    parsed = [parse_event(event, datetime.now(UTC), rules()) for _, event in events]
    assert len({event.event_id for event in parsed}) == 2 * BURST
    assert [e.ticket_id for e in parsed if e.ticket_id][:2] == ["TCK-1001", "TCK-1002"]
    assert any(isinstance(event.email, Invalid) for event in parsed)
    assert any(event.expires_at < datetime.now(UTC) for event in parsed)


def test_every_fate_that_the_traffic_asks_for_exists() -> None:
    asked = [fates_of(f"{kind.fields.get('fate', '')}:rr-1") for kind in KINDS]
    mail = {fates["mail"] for fates in asked if "mail" in fates}
    text = {fates["text"] for fates in asked if "text" in fates}
    link = {fates["link"] for fates in asked if "link" in fates}
    assert all(named(postmark_words.COURSES, word) for word in mail)
    assert text <= set(twilio_words.BY_DIGITS.values())
    assert link <= set(FATES)
    assert "hang-and-silent" in mail & text


def test_some_of_the_traffic_s_fates_exist_at_the_smtp_stand_in_too() -> None:
    fates = {fates_of(f"{kind.fields.get('fate', '')}:rr-1").get("mail") for kind in KINDS}
    assert len(fates & set(PRESETS)) >= 8


def test_the_traffic_posts_its_burst_and_stops_when_told() -> None:
    with an_app() as (url, taken):
        traffic = Traffic(url, SECRET)
        traffic.start()
        first = [verified(taken.get(timeout=10)) for _ in range(BURST)]
        traffic.close()
    assert len({event["event_id"] for event in first}) >= BURST - 2
    assert traffic.counts["202"] >= BURST - 2
