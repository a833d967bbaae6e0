"""Builds, signs and posts reset events as the auth service would; everybody is made up.

    python -m peers.events --url URL --secret-file FILE [--ticket TCK-1] [--fate link:used]

posts one event and prints the answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from standardwebhooks import Webhook

from peers.auth_service import made_up_person

EVENTS_PATH = "/v1/reset-events"
LIFE_S = 600.0
TEMPLATE = {"id": "password-reset", "revision": "1"}
Event = dict[str, Any]


def build_event(
    *,
    tag: str | None = None,
    fate: str = "",
    life_s: float = LIFE_S,
    age_s: float = 0.0,
    mode: str = "email_then_sms",
    ticket_id: str | None = None,
    **fields: Any,
) -> Event:
    """A valid event of somebody made up.

    `tag` makes the ids (random by default); `fate` goes before the reset request's id, as in
    `link:used` or `mail:hang-after-dot`; `age_s` is how long ago the reset was asked for, and
    the event lives `life_s` from then. `fields` replace or add members; None leaves one out.
    """
    tag = tag or uuid.uuid4().hex
    requested = datetime.now(UTC) - timedelta(seconds=age_s)
    reset_request_id = f"{fate}:rr-{tag}" if fate else f"rr-{tag}"
    person = made_up_person(reset_request_id)
    event = {
        "event_id": f"evt-{tag}",
        "reset_request_id": reset_request_id,
        "account_id": f"acc-{tag}",
        "ticket_id": ticket_id,
        "requested_at": requested.isoformat(),
        "expires_at": (requested + timedelta(seconds=life_s)).isoformat(),
        "template": TEMPLATE,
        "locale": "en",
        "policy": {"mode": mode, "inputs": {"email_consent": True, "sms_consent": True}},
        "destinations": {"email": person.email, "sms": person.sms},
        **fields,
    }
    return {name: value for name, value in event.items() if value is not None}


def body_of(event: Event) -> bytes:
    """The bytes that are signed and sent."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def signed_headers(secret: str, body: bytes, transport_id: str | None = None) -> dict[str, str]:
    """The three Standard Webhooks headers over exactly these bytes, for now."""
    transport_id = transport_id or f"msg_{uuid.uuid4().hex}"
    now = datetime.now(UTC)
    return {
        "webhook-id": transport_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(transport_id, now, body.decode()),
        "content-type": "application/json",
    }


@dataclass(frozen=True, slots=True)
class Posted:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Poster:
    """Posts signed events over one kept-open connection; for one thread at a time."""

    def __init__(self, base_url: str, secret: str, *, timeout_s: float = 10.0) -> None:
        parts = urlsplit(base_url)
        self._connection = http.client.HTTPConnection(
            parts.hostname or "127.0.0.1", parts.port, timeout=timeout_s
        )
        self._secret = secret

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def post(self, event: Event, **headers: str) -> Posted:
        """Post one event; OSError or http.client.HTTPException where no answer came.

        `headers` are added with `_` read as `-`.
        """
        return self.post_bytes(EVENTS_PATH, body_of(event), **headers)

    def cancel(self, event_id: str, reason: str) -> Posted:
        """Tell that the reset was used, superseded or revoked."""
        return self.post_bytes(f"{EVENTS_PATH}/{event_id}/cancel", body_of({"reason": reason}))

    def post_bytes(self, path: str, body: bytes, **headers: str) -> Posted:
        """Sign and post any body."""
        added = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self._connection.request("POST", path, body, signed_headers(self._secret, body) | added)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Posted(answer.status, found, content)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def main() -> None:
    """Post one event from the command line; exit 1 unless it was admitted."""
    parser = argparse.ArgumentParser(prog="python -m peers.events")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--secret-file", type=Path, required=True, help="holds a whsec_ secret")
    parser.add_argument("--ticket", default=None)
    parser.add_argument("--fate", default="", help="such as link:used or mail:hang-after-dot")
    parser.add_argument("--mode", default="email_only")
    parser.add_argument("--life-s", type=float, default=LIFE_S)
    chosen = parser.parse_args()
    event = build_event(
        ticket_id=chosen.ticket, fate=chosen.fate, mode=chosen.mode, life_s=chosen.life_s
    )
    with Poster(chosen.url, chosen.secret_file.read_text().strip()) as poster:
        answer = poster.post(event)
    sys.stdout.write(f"{answer.status} {answer.body.decode()}\n")
    sys.exit(0 if answer.status == http.client.ACCEPTED else 1)


if __name__ == "__main__":
    main()
