"""The peers as tests use them: started, asked, scripted, held and released.

Handles speak to a peer over HTTP only, so they work the same whether it runs in a thread of
this process (default, quick) or in a process of its own (`process=True`, for benchmarks and
for tests that must not share an interpreter with it).
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from peers import postmark, resend, twilio
from peers.auth_service import AuthService
from peers.journal import Entry
from peers.smtp_inbox import Inbox

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 15.0


class PeerHandle:
    """What every peer offers."""

    def __init__(self, url: str) -> None:
        self.url = url

    def journal(self, since: int = 0, **facts: object) -> list[Entry]:
        """Entries after `since` in which every one of `facts` stands (`phase="stored"`)."""
        found: list[Entry] = self._get(f"/journal.json?since={since}")["entries"]
        return [entry for entry in found if _agrees(entry, facts)]

    def wait_for(
        self, *, count: int = 1, timeout_s: float = PATIENCE_S, **facts: object
    ) -> list[Entry]:
        """Wait until `count` entries with these facts exist; AssertionError when they do not."""
        deadline, since = time.monotonic() + timeout_s, 0
        found: list[Entry] = []
        while len(found) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                message = f"{len(found)} of {count} entries with {facts} after {timeout_s} s"
                raise AssertionError(message)
            news = self._get(f"/journal.json?since={since}&wait={min(left, 5.0):.3f}")
            since = news["next"]
            found += [entry for entry in news["entries"] if _agrees(entry, facts)]
        return found

    def held(self) -> list[Entry]:
        """The calls standing still now."""
        found: list[Entry] = self._get("/held.json")["held"]
        return found

    def release(self, number: int | None = None, *, drop: bool = False) -> int:
        """Let a held call (None: all) go on, or cut it with `drop`; how many that were."""
        count: int = self._post("/control/release", {"id": number, "drop": drop})["released"]
        return count

    def clear(self) -> None:
        """Forget everything scripted."""
        self._post("/control/clear", {})

    def _get(self, path: str) -> Any:
        with urlopen(self.url + path, timeout=60) as answer:  # noqa: S310 - loopback
            return json.load(answer)

    def _post(self, path: str, value: object) -> Any:
        request = Request(self.url + path, json.dumps(value).encode(), method="POST")  # noqa: S310
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
                return json.load(answer)
        except HTTPError as error:
            message = f"the peer refused {path}: {error.read().decode()}"
            raise AssertionError(message) from error


class InboxHandle(PeerHandle):
    """The SMTP stand-in."""

    def __init__(self, smtp_port: int, url: str) -> None:
        super().__init__(url)
        self.smtp_port = smtp_port
        self.smtp_url = f"smtp://127.0.0.1:{smtp_port}"

    def script(self, phase: str, act: str = "reply", **rule: object) -> None:
        """Add a deviation before the recipients' own fates: see `peers.fates.Rule`."""
        self._post("/control/script", {"phase": phase, "act": act, **rule})

    def messages(self, recipient: str | None = None) -> list[dict[str, Any]]:
        """Kept mails, newest first, with `subject`, `headers`, `text` and `html`."""
        query = f"?recipient={recipient.replace('+', '%2B')}" if recipient else ""
        found: list[dict[str, Any]] = self._get(f"/messages.json{query}")["messages"]
        return found

    def text(self, sender: str, recipient: str, body: str) -> None:
        """Put a text beside the mails, as a stand-in for an SMS provider does."""
        self._post("/texts", {"from": sender, "to": recipient, "body": body})


class AuthHandle(PeerHandle):
    """The auth service; `link_url` is what NOTIFIER_LINK_URL wants."""

    def __init__(self, link_url: str, url: str) -> None:
        super().__init__(url)
        self.link_url = link_url

    def script(self, **answer: object) -> None:
        """Add an answer that goes before everything else: see `peers.auth_service.Answer`."""
        self._post("/control/script", answer)

    def person(
        self,
        reset_request_id: str,
        *,
        email: str | None = None,
        sms: str | None = None,
        **more: str | None,
    ) -> None:
        """Say to whom a request belongs; `name` and `expires_at` are optional."""
        facts = {"reset_request_id": reset_request_id, "email": email, "sms": sms, **more}
        self._post("/control/people", facts)


class ProviderHandle(PeerHandle):
    """What the stand-ins of HTTP providers offer; see `peers.provider` for the journal."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.base_url = url

    def script(self, fate: str, *, recipient: str | None = None, times: int | None = None) -> None:
        """Let the next messages (None: all) to a recipient (None: any) take a course."""
        self._post("/control/script", {"fate": fate, "recipient": recipient, "times": times})

    def script_looks(self, fate: str, *, times: int | None = None) -> None:
        """Answer the next looks and polls (None: all) so: see `peers.provider.LOOKS`."""
        self._post("/control/looks", {"fate": fate, "times": times})

    def posts(self, **facts: object) -> int:
        """How many submits came over the wire."""
        return len(self.journal(0, phase="post", **facts))

    def stored(self, **facts: object) -> list[Entry]:
        """The messages that were kept."""
        return self.journal(0, phase="stored", **facts)

    def tell(self, message_id: object, word: str, **step: object) -> list[int | None]:
        """Let something happen to a message now; the statuses that its callbacks got.

        `word` is the provider's own; more members as in `peers.courses.Step`.
        """
        step = {"message_id": message_id, "word": word, **step}
        statuses: list[int | None] = self._post("/control/tell", step)["statuses"]
        return statuses


class PostmarkHandle(ProviderHandle):
    """The stand-in for Postmark; `token` is its server's."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url)
        self.token = token

    def callback_to(self, url: str, password: str, user: str = "postmark") -> None:
        """Post webhooks there, with basic authentication."""
        self._post("/control/callback", {"url": url, "user": user, "password": password})


class ResendHandle(ProviderHandle):
    """The stand-in for Resend; `api_key` may read and send."""

    def __init__(self, url: str, api_key: str) -> None:
        super().__init__(url)
        self.api_key = api_key

    def callback_to(self, url: str, secret: str) -> None:
        """Post webhooks there, signed with `secret` (`whsec_…`)."""
        self._post("/control/callback", {"url": url, "secret": secret})

    def script_replays(
        self, fate: str, *, recipient: str | None = None, times: int | None = None
    ) -> None:
        """Answer the next repetitions under a known key (None: all) as a course says."""
        rule = {"fate": fate, "recipient": recipient, "times": times}
        self._post("/control/replays", rule)


class TwilioHandle(ProviderHandle):
    """The stand-in for Twilio."""

    def __init__(self, url: str, account_sid: str, auth_token: str) -> None:
        super().__init__(url)
        self.account_sid, self.auth_token = account_sid, auth_token

    def callback_to(self, url: str) -> None:
        """Call back there about messages that name no address."""
        self._post("/control/callback", {"url": url})


def _agrees(entry: Entry, facts: dict[str, object]) -> bool:
    return all(entry.get(name) == value for name, value in facts.items())


@contextmanager
def running_inbox(
    *,
    process: bool = False,
    credentials: tuple[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    tls_at_once: bool = False,
    offers: tuple[str, ...] = (),
) -> Iterator[InboxHandle]:
    """An inbox on free ports; AUTH, TLS and `offers` only in this process."""
    if process:
        with _process("peers.smtp_inbox", {}) as facts:
            yield InboxHandle(facts["smtp_port"], facts["url"])
        return
    inbox = Inbox(credentials=credentials, tls=tls, tls_at_once=tls_at_once, offers=offers)
    inbox.start()
    try:
        yield InboxHandle(inbox.smtp_port, inbox.url)
    finally:
        inbox.close()


@contextmanager
def running_auth_service(*secrets: str, process: bool = False) -> Iterator[AuthHandle]:
    """An auth service on a free port that takes requests signed with any of `secrets`."""
    if process:
        environment = {"PEERS_LINK_SECRET": ",".join(secrets)}
        with _process("peers.auth_service", environment) as facts:
            yield AuthHandle(facts["link_url"], facts["url"])
        return
    service = AuthService(list(secrets))
    service.start()
    try:
        yield AuthHandle(service.link_url, service.url)
    finally:
        service.close()


@contextmanager
def running_postmark(
    token: str = postmark.TOKEN, *, process: bool = False, inbox_url: str | None = None
) -> Iterator[PostmarkHandle]:
    """A Postmark on a free port; what it delivers is also shown by the inbox at `inbox_url`."""
    if process:
        arguments = [] if inbox_url is None else ["--inbox-url", inbox_url]
        with _process("peers.postmark", {"PEERS_POSTMARK_TOKEN": token}, *arguments) as facts:
            yield PostmarkHandle(facts["url"], token)
        return
    stand_in = postmark.Postmark(token, inbox_url=inbox_url)
    stand_in.start()
    try:
        yield PostmarkHandle(stand_in.url, token)
    finally:
        stand_in.close()


@contextmanager
def running_resend(
    api_key: str = resend.API_KEY, *, process: bool = False, inbox_url: str | None = None
) -> Iterator[ResendHandle]:
    """A Resend on a free port; what it delivers is also shown by the inbox at `inbox_url`."""
    if process:
        arguments = [] if inbox_url is None else ["--inbox-url", inbox_url]
        with _process("peers.resend", {"PEERS_RESEND_API_KEY": api_key}, *arguments) as facts:
            yield ResendHandle(facts["url"], api_key)
        return
    stand_in = resend.Resend(api_key, inbox_url=inbox_url)
    stand_in.start()
    try:
        yield ResendHandle(stand_in.url, api_key)
    finally:
        stand_in.close()


@contextmanager
def running_twilio(
    account_sid: str = twilio.ACCOUNT_SID,
    auth_token: str = twilio.AUTH_TOKEN,
    *,
    process: bool = False,
    inbox_url: str | None = None,
) -> Iterator[TwilioHandle]:
    """A Twilio on a free port; what it delivers is also shown by the inbox at `inbox_url`."""
    if process:
        environment = {
            "PEERS_TWILIO_ACCOUNT_SID": account_sid,
            "PEERS_TWILIO_AUTH_TOKEN": auth_token,
        }
        arguments = [] if inbox_url is None else ["--inbox-url", inbox_url]
        with _process("peers.twilio", environment, *arguments) as facts:
            yield TwilioHandle(facts["url"], account_sid, auth_token)
        return
    stand_in = twilio.Twilio(account_sid, auth_token, inbox_url=inbox_url)
    stand_in.start()
    try:
        yield TwilioHandle(stand_in.url, account_sid, auth_token)
    finally:
        stand_in.close()


@contextmanager
def _process(module: str, environment: dict[str, str], *arguments: str) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", module, "--stop-with-stdin", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | environment, stdin=pipe, stdout=pipe
    ) as child:
        assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018
        try:
            yield json.loads(child.stdout.readline())
        finally:
            child.stdin.close()
            child.wait(PATIENCE_S)
