"""Requests to the machine-facing endpoints with a secret wherever one can be put."""

from __future__ import annotations

import base64
import copy
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

from peers.events import EVENTS_PATH, Event, Poster, body_of, build_event
from tests.leaks.stage import Stage
from tests.leaks.wire import Wire


def sound_events(stage: Stage) -> dict[str, Event]:
    """Each spelling of number and address, once; what is sent to stands in the link answer."""
    canaries = stage.canaries
    events = {}
    for place, spelling in enumerate(canaries.spellings()):
        events[f"number-{place}"] = stage.event(f"number-{place}")
        events[f"number-{place}"]["destinations"]["sms"] = spelling
    for place, spelling in enumerate(
        (canaries.address().upper(), canaries.foreign_address(), f"j\xf6rg{canaries.address()}",
         f"{canaries.address()}\r\nBcc: {canaries.address('bcc')}", f" {canaries.address()} ",
         f"<{canaries.address()}>", canaries.token)
    ):  # fmt: skip
        events[f"address-{place}"] = stage.event(f"address-{place}")
        events[f"address-{place}"]["destinations"]["email"] = spelling
    foreign = stage.granted("foreign", canaries.foreign_address())
    events["foreign"] = stage.event("foreign", first=[{"body": foreign, "times": None}])
    changed = stage.event("changed")
    changed["destinations"]["email"] = canaries.address("before")
    events["changed"] = changed
    events["locale"] = stage.event("locale", locale=f"{canaries.address()} \u0085\x1b[31m")
    return events


def refuse_documents(stage: Stage) -> None:
    """Documents that are not as agreed: 422 with places and codes, never with a value."""
    with Poster(stage.base_url, stage.known.ingest) as poster:
        for body in (*spoilt_documents(stage), *spoilt_bodies(stage)):
            posted = stage.keep(poster.post_bytes(EVENTS_PATH, body))
            assert posted.status == 422, (posted.status, body[:300])


def spoilt_documents(stage: Stage) -> Iterator[bytes]:
    """A secret in the place of each member, in each member's name, and beside them."""
    canaries = stage.canaries
    right = build_event(ticket_id="TCK-1", correlation_id="c-1", idempotency_key="k-1")
    right["policy"] |= {"reason_code": "r", "decision_id": "d", "digest": "x"}
    secrets: list[Any] = [f"{canaries.address()} {canaries.link()}", {canaries.token: 1}]
    for path in paths(right):
        if (path[0] in {"destinations", "locale"} and len(path) == 1) or path[-1] == "sms":
            continue
        for secret in secrets if path[0] != "locale" else secrets[1:]:
            yield body_of(replaced(right, path, secret))
    for parent in ((), ("policy",), ("policy", "inputs"), ("template",), ("destinations",)):
        for name in (canaries.address(), canaries.token, canaries.number):
            yield body_of(replaced(right, (*parent, name), 1))
    yield body_of(replaced(right, ("destinations", "sms"), [canaries.number]))
    yield body_of(replaced(right, ("destinations", "email"), {"to": canaries.address()}))


def paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where each member of a document stands."""
    if not isinstance(value, dict):
        return
    for name, content in value.items():
        if (*above, name) != ("destinations", "email"):
            yield (*above, name)
        yield from paths(content, (*above, name))


def replaced(document: Event, path: tuple[str, ...], value: Any) -> Event:
    """The document with one member put in or replaced."""
    made = copy.deepcopy(document)
    place: Any = made
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return made


def spoilt_bodies(stage: Stage) -> Iterator[bytes]:
    """Bodies that are no document at all."""
    canaries = stage.canaries
    text = json.dumps({"event_id": canaries.token, "destinations": {"email": canaries.address()}})
    yield text[:-5].encode()
    yield text.encode() + b"\0"
    yield text.replace(canaries.token, f"{canaries.token}\\u0000").encode()
    yield text.replace(canaries.token, f"{canaries.token}\\ud800").encode()
    yield text.replace("event_id", 'a": NaN, "event_id').encode()
    yield (text[:-1] + f', "event_id": "{canaries.token}"}}').encode()
    yield f"[{text}]".encode()


def refuse_requests(stage: Stage, machine: Wire) -> None:
    """What is refused before its document is read, and addresses that lead nowhere."""
    canaries = stage.canaries
    body = body_of(stage.event("unsigned"))
    signed_badly = {
        "webhook_id": canaries.token, "webhook_timestamp": canaries.token,
        "webhook_signature": f"v1,{canaries.token}", "content_type": "application/json",
    }  # fmt: skip
    assert machine.ask("POST", EVENTS_PATH, body, **signed_badly).status == 401
    assert machine.ask("POST", EVENTS_PATH, body).status == 401
    for sent, status, headers in (
        (body + b" " * 70_000, 413, {}),
        (body, 415, {"content_type": f"text/plain; name={canaries.address()}"}),
        (body, 422, {"Idempotency_Key": canaries.address()}),
        (body, 422, {"Idempotency_Key": canaries.token}),
    ):
        with Poster(stage.base_url, stage.known.ingest) as poster:
            posted = stage.keep(poster.post_bytes(EVENTS_PATH, sent, **headers))
        assert posted.status == status, posted
    with Poster(stage.base_url, stage.known.ingest) as poster:
        for reason in (canaries.address(), canaries.link()):
            assert stage.keep(poster.cancel("evt-locale", reason)).status == 422
        conflict = stage.event("changed") | {"account_id": "acc-other"}
        assert stage.keep(poster.post(conflict)).status == 409
    wrong_paths(stage, machine)


def wrong_paths(stage: Stage, machine: Wire) -> None:
    """A secret in path, query, header and request line."""
    canaries = stage.canaries
    told = {
        "Authorization": f"Bearer {canaries.token}", "User_Agent": canaries.address(),
        "Referer": canaries.link(), "X_Request_Id": canaries.address(),
        "X_Forwarded_For": canaries.address(), "traceparent": canaries.token,
        "Cookie": f"notifier-loopback={canaries.token}",
    }  # fmt: skip
    quoted = canaries.address().replace("@", "%40")
    for path in (
        f"/v1/reset-events/{quoted}", f"/v1/reset-events/evt-locale?mail={quoted}",
        f"/v1/tickets/{quoted}", f"/{quoted}", f"/callbacks/{quoted}?{canaries.token}",
        f"/static/{quoted}", f"/metrics?{quoted}", f"/t/{quoted}", f"/n/{quoted}",
        f"/a/{canaries.number}%0d%0afake", f"/openapi.json/{quoted}",
    ):  # fmt: skip
        for method in ("GET", "POST", "DELETE"):
            answer = machine.ask(method, path, None, **told)
            assert answer.status < 500, (method, path, answer.text)
    for line in (
        not_utf8(stage),
        f"GET /{canaries.address()} {canaries.token}\r\n\r\n",
        f"{canaries.token} / HTTP/1.1\r\nHost: {canaries.address()}\r\n\r\n",
        f"GET / HTTP/1.1\r\n{canaries.address()}\r\n\r\n",
        f"POST {EVENTS_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {canaries.token}\r\n\r\n",
        f"POST {EVENTS_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{canaries.address()}",
    ):
        machine.raw(line if isinstance(line, bytes) else line.encode())


def not_utf8(stage: Stage) -> bytes:
    """A rightly signed body in another encoding, as a whole request."""
    body = stage.canaries.address().encode("utf-16")
    moment = str(int(time.time()))
    key = base64.b64decode(stage.known.ingest.removeprefix("whsec_"))
    signature = hmac.digest(key, f"msg_1.{moment}.".encode() + body, "sha256")
    head = (
        f"POST {EVENTS_PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nwebhook-id: msg_1\r\nwebhook-timestamp: {moment}\r\n"
        f"webhook-signature: v1,{base64.b64encode(signature).decode()}\r\n\r\n"
    )
    return head.encode() + body


def read_everything(stage: Stage, machine: Wire, events: list[Event]) -> None:
    """Every machine-facing answer that has content."""
    token = f"Bearer {stage.known.api_token}"
    for event in events:
        path = f"{EVENTS_PATH}/{event['event_id']}"
        status = machine.get(path, Authorization=token)
        assert status.status == 200, (event["event_id"], status.text)
        assert machine.get(f"{path}/transitions", Authorization=token).status == 200
        ticket = f"/v1/tickets/TCK-{event['event_id']}"
        linked = f"{ticket}/notices/{status.json()['notification_id']}"
        assert machine.ask("PUT", linked, Authorization=token).status < 300
        assert machine.get(ticket, Authorization=token).status == 200
    for path in ("/metrics", "/healthz", "/openapi.json", "/readyz"):
        assert machine.get(path, Authorization=token).status == 200, path
