"""What the auth service and the mail server may say with a secret in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from peers.events import Event
from tests.leaks.stage import Stage

Answers = Mapping[str, Any]


def odd_link_answers(stage: Stage) -> dict[str, list[Answers]]:
    """By a tag: answers that are refused, each of which quotes what nobody may keep."""
    canaries = stage.canaries
    link, address = canaries.link("odd"), canaries.address()
    right = stage.granted("odd", address)
    return {
        "reason": [{"status": 404, "body": {"reason": link}}],
        "gone-reason": [{"status": 410, "body": {"reason": address}}],
        "error-body": [{"status": 500, "body": {"error": f"no mail to {address} for {link}"}}],
        "cut-short": [{"raw": json.dumps(right)[:-9]}],
        "no-json": [{"raw": f"<p>{address} {link}</p>"}],
        "twice": [{"raw": f'{{"reset_url": "{link}", "reset_url": "{address}"}}'}],
        "swapped": [{"body": right | {"reset_url": address, "destination": link}}],
        "scheme": [{"body": right | {"reset_url": f"javascript:{canaries.token}"}}],
        "userinfo": [{"body": right | {"reset_url": link.replace("//", f"//{address}@")}}],
        "line-end": [{"body": right | {"reset_url": f"{link}\r\nBcc: {address}"}}],
        "time": [{"body": right | {"expires_at": canaries.token}}],
        "types": [{"body": {"reset_url": [link], "destination": {address: link}}}],
        "too-large": [{"raw": json.dumps(right | {"more": link * 2000})}],
        "status": [{"status": 302, "body": right}, {"status": 201, "body": right}],
        "half": [{"body": right, "manner": "truncate"}],
    }


def final_link_answers(stage: Stage) -> dict[str, Answers]:
    """By a tag: answers that end the delivery, with a secret beside what counts."""
    canaries = stage.canaries
    link, address = canaries.link("final"), canaries.address()
    return {
        "used": {"status": 410, "body": {"reason": "used", "link": link, "by": address}},
        "nobody": {"status": 404, "body": {"reason": "no_destination", "not": address}},
        "no-address": {"body": stage.granted("final", f"{canaries.token} at {canaries.local}")},
        "nul": {"body": stage.granted("final", f"{canaries.local}\0@{canaries.domain}.test")},
        "not-ascii": {"body": stage.granted("final", f"j\xf6rg{address}")},
    }


def odd_replies(stage: Stage) -> Iterator[tuple[str, Answers]]:
    """Replies of the mail server that quote the address, the link and the password."""
    canaries = stage.canaries
    quoted = f"<{canaries.address()}> {canaries.link()} {canaries.smtp_password}"
    yield "rcpt-refused", {"phase": "rcpt", "reply": f"550 5.1.1 {quoted} no such user"}
    yield "rcpt-garbage", {"phase": "rcpt", "reply": f"{quoted}", "times": 1}
    yield "data-refused", {"phase": "data", "reply": f"554 5.7.1 {quoted} refused"}
    yield "data-later", {"phase": "data", "reply": f"451 4.7.1 {quoted} later", "times": 1}
    yield "end-refused", {"phase": "final", "reply": f"554 5.6.0 {quoted} refused", "keep": False}
    yield "end-garbage", {"phase": "final", "reply": f"what is {canaries.link()}?"}
    yield "end-lines", {"phase": "final", "reply": f"250-{quoted}\r\nno {quoted}"}
    yield "end-taken", {"phase": "final", "reply": f"250 2.0.0 {quoted} queued as {canaries.token}"}
    yield "end-long", {"phase": "final", "reply": f"250 2.0.0 {quoted * 60}"}


def opening_refusals(stage: Stage) -> None:
    """Refuse the next lines before anybody is named, once in each phase."""
    canaries = stage.canaries
    quoted = f"<{canaries.address()}> {canaries.link()}"
    for phase, code in (("connect", 554), ("ehlo", 550), ("mail", 550)):
        stage.inbox.script(phase, reply=f"{code} 5.7.1 {quoted} refused", times=1)
    stage.inbox.script("auth", reply=f"{canaries.smtp_user} {canaries.smtp_password}?", times=1)
    refuse_sign_in(stage)
    stage.inbox.script("connect", reply=f"421 4.3.2 {quoted} closing", times=1)


def refuse_sign_in(stage: Stage) -> None:
    """Refuse the next AUTH, with user and password in the reply, plain and as they were sent."""
    login = f"\0{stage.canaries.smtp_user}\0{stage.canaries.smtp_password}"
    quoted = f"{login} {base64.b64encode(login.encode()).decode()}".replace("\0", ":")
    stage.inbox.script("auth", reply=f"535 5.7.8 {quoted} is wrong", times=1)


def events_with_odd_peers(stage: Stage) -> dict[str, Event]:
    """One event for each; what it comes to is another test's matter."""
    canaries = stage.canaries
    events: dict[str, Event] = {}
    for tag, answers in odd_link_answers(stage).items():
        events[tag] = stage.event(tag, first=answers)
    for tag, answer in final_link_answers(stage).items():
        events[tag] = stage.event(tag, first=[{**answer, "times": None}])
    for tag, rule in odd_replies(stage):
        stage.inbox.script(recipient=canaries.address(tag), **rule)
        events[tag] = stage.event(tag, mail=tag)
    for fate in ("hang-after-dot", "drop-after-dot", "drop-in-body", "reset-after-dot", "greylist"):
        events[fate] = stage.event(fate, mail=fate)
    events["unbuildable"] = stage.event("unbuildable", template={"id": "broken", "revision": "1"})
    return events
