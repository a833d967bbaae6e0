"""`make run`: the app with its stand-ins and light traffic, until Ctrl-C.

python -m peers.run [--port N] [--data-dir DIR] [--email postmark|resend|smtp] [--no-traffic]
                    [--seed N] [--for-seconds N]
"""

from __future__ import annotations

import argparse
import shlex
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from peers.alone import Peer
from peers.app_process import ROOT, AppProcess, NotStarted
from peers.auth_service import AuthService
from peers.postmark import Postmark, Webhook
from peers.resend import Resend
from peers.resend import Webhook as ResendWebhook
from peers.run_settings import EMAIL_PROVIDERS, Secrets, Surroundings, settings, write_privately
from peers.smtp_inbox import Inbox
from peers.traffic import Traffic
from peers.try_it import TICKET, one_line, write_script
from peers.twilio import Twilio

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

APP_PORT = 8000
INBOX_PORT = 8025
PORTS_TRIED = 100
ROLES = ("admin", "support")
FLASK = ".venv/bin/flask"
Served = TypeVar("Served", bound=Peer)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line asks for."""

    port: int
    data_dir: Path
    email: str
    traffic: bool
    seed: int
    for_seconds: float | None


@dataclass(frozen=True, slots=True)
class Files:
    """What the runner keeps in the data folder."""

    data_dir: Path

    @property
    def secrets(self) -> Path:
        """All random secrets, for the next start."""
        return self.data_dir / "run-secrets.json"

    @property
    def ingest_key(self) -> Path:
        """The key that openssl signs with."""
        return self.data_dir / "ingest-key.hex"

    @property
    def api_token(self) -> Path:
        """A bearer token for the machine endpoints."""
        return self.data_dir / "api-token"

    @property
    def script(self) -> Path:
        """The ready-made curl."""
        return self.data_dir / "try-it.sh"

    @property
    def environment(self) -> Path:
        """The app's settings as a shell reads them, for commands beside it."""
        return self.data_dir / "env.sh"

    @property
    def log(self) -> Path:
        """What the app prints."""
        return self.data_dir / "app.log"


def main() -> None:
    """Run until told to stop; exit 1 with the app's own words if it does not start or stay."""
    choices = _choices()
    stop = _stop_on_signals()
    try:
        with ExitStack() as running:
            _run(choices, stop, running)
    except NotStarted as trouble:
        if stop.is_set():  # told to stop while it was still starting
            return
        sys.stderr.write(f"\nThe app is not running. It said:\n\n{trouble}\n")
        sys.exit(1)


def _choices() -> Choices:
    parser = argparse.ArgumentParser(prog="python -m peers.run")
    parser.add_argument("--port", type=int, default=APP_PORT, help="the dashboard's port")
    parser.add_argument("--data-dir", type=Path, default=ROOT / "var")
    parser.add_argument(
        "--email", choices=EMAIL_PROVIDERS, default=EMAIL_PROVIDERS[0], help="what sends mails"
    )
    parser.add_argument("--no-traffic", dest="traffic", action="store_false")
    parser.add_argument("--seed", type=int, default=1, help="the order of the traffic's kinds")
    parser.add_argument("--for-seconds", type=float, default=None, help="stop by itself")
    given = parser.parse_args()
    data_dir = given.data_dir.resolve()
    return Choices(
        port=given.port,
        data_dir=data_dir,
        email=given.email,
        traffic=given.traffic,
        seed=given.seed,
        for_seconds=given.for_seconds,
    )


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    return stop


def _run(choices: Choices, stop: threading.Event, running: ExitStack) -> None:
    files = Files(choices.data_dir)
    files.data_dir.mkdir(parents=True, exist_ok=True)
    known = Secrets.load(files.secrets)
    port = _app_port(choices.port)
    base_url = f"http://127.0.0.1:{port}"
    inbox = _started(Inbox(web_port=free_port(INBOX_PORT)), running)
    around = _surroundings(known, base_url, inbox, running)
    environment = settings(known, around, data_dir=files.data_dir, port=port, email=choices.email)
    app = running.enter_context(closing(AppProcess(environment, base_url, files.log)))
    _say("Starting the app; the first start also makes the database ...")
    app.start()
    app.wait_until_ready(stop)
    if stop.is_set():
        return
    _write_files(files, known, base_url)
    write_privately(files.environment, exports(environment))
    with ThreadPoolExecutor() as at_once:
        links = list(at_once.map(app.sign_in_link, ROLES, ROLES))
    if choices.traffic:
        traffic = Traffic(base_url, known.ingest, seed=choices.seed)
        running.enter_context(closing(traffic))
        traffic.start()
    _say(_welcome(base_url, inbox.url, links, files))
    _watch(app, stop, choices.for_seconds)
    _say("Stopping ...")


def _surroundings(known: Secrets, base_url: str, inbox: Inbox, running: ExitStack) -> Surroundings:
    """Start what the app talks to, beside the inbox."""
    auth = _started(AuthService([known.link]), running)
    webhook = Webhook(
        f"{base_url}/callbacks/postmark/", "postmark", known.postmark_callback_password
    )
    postmark = _started(
        Postmark(known.postmark_token, webhook_to=webhook, inbox_url=inbox.url), running
    )
    signed = ResendWebhook(f"{base_url}/callbacks/resend/", known.resend_webhook_secret)
    resend = _started(Resend(known.resend_api_key, webhook_to=signed, inbox_url=inbox.url), running)
    twilio = _started(Twilio(auth_token=known.twilio_auth_token, inbox_url=inbox.url), running)
    return Surroundings(auth.link_url, inbox.smtp_port, postmark.url, resend.url, twilio.url)


def _started(peer: Served, running: ExitStack) -> Served:
    peer.start()
    running.callback(peer.close)
    return peer


def free_port(preferred: int) -> int:
    """The first free loopback port from `preferred` on."""
    for port in range(preferred, min(preferred + PORTS_TRIED, 65_536)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    message = f"no free port from {preferred} on"
    raise NotStarted(message)


def _app_port(preferred: int) -> int:
    port = free_port(preferred)
    if port != preferred:
        _say(f'Port {preferred} is taken; using {port}. Choose one: make run ARGS="--port N"')
    return port


def _write_files(files: Files, known: Secrets, base_url: str) -> None:
    write_privately(files.ingest_key, known.ingest_hex())
    write_privately(files.api_token, known.api_token)
    write_script(files.script, base_url, files.ingest_key)


def exports(environment: Mapping[str, str]) -> str:
    """The settings as lines that a shell takes over."""
    return "".join(f"export {name}={shlex.quote(text)}\n" for name, text in environment.items())


def _welcome(base_url: str, inbox_url: str, links: list[str], files: Files) -> str:
    admin, support = links
    return f"""
Dashboard   {base_url}/
Sign in     {admin}
       or   {support}
            Each link works once.
Inbox       {inbox_url}/  (mails and texts that arrived)
App's log   {files.log}
Commands    . {files.environment} && {FLASK} users add eve --role auditor
            in another shell; then {FLASK} --help lists them all.

Post a reset event of your own, then look for ticket {TICKET} ({base_url}/t/{TICKET}):

{one_line(base_url, files.ingest_key)}

or the same as a script: {files.script}
Stop with Ctrl-C.
"""


def _watch(app: AppProcess, stop: threading.Event, for_seconds: float | None) -> None:
    left = for_seconds
    while not stop.wait(1.0 if left is None else min(left, 1.0)):
        if app.ended():
            raise NotStarted(app.last_words())
        if left is not None:
            left -= 1.0
            if left <= 0:
                return


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
