"""The product as a real process: `python app.py` over real sockets, asked as others ask it.

`Surroundings` are the peers (an inbox, an auth service) with the settings that lead to them;
`RunningApp` is one process in those surroundings. Several may run on one database. A test
counts what left by the peers' journals, never by what the product says of itself.

    with surroundings(database_url, folder) as around, RunningApp(around) as app:
        posted = app.post(build_event())
        app.settled(posted.json()["event_id"])
"""

from __future__ import annotations

import http
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psycopg
from psycopg.rows import dict_row

from notifier.flow import halts
from notifier.flow.halts import Acknowledgement
from notifier.store.database import Database
from peers.app_process import LEASH, ROOT
from peers.events import Event, Posted, Poster
from peers.run_settings import Secrets, mail_only
from peers.testing import AuthHandle, InboxHandle, running_auth_service, running_inbox
from tests.ports import port_to_bind

READY_WITHIN_S = 60.0
END_WITHIN_S = 40.0
WORKERS = 8
FINAL_STATES = frozenset({"complete", "expired", "failed", "suppressed", "canceled"})

SHORT_TIMES = """
retry_backoff_s = [0.3, 0.6]
retry_jitter = 0.1
poll_every_s = 1.0
lease_s = 4.5
sweep_every_s = 0.2
provider_pause_s = 1.0

[safety_margin_s]
email = 1.0
sms = 1.0

[fallback_reserve]
share = 0.2
floor_s = 8.0
cap_s = 8.0

[call_timeout_s]
email = 1.5
sms = 1.5

[final_reply_timeout_s]
email = 1.5
"""
"""A policy whose every wait is as short as the policy's own checks allow (seconds)."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Surroundings:
    """What a process of the product needs around it, and how to look at what it left there."""

    database_url: str
    folder: Path
    inbox: InboxHandle
    auth: AuthHandle
    secrets: Secrets
    policy: str = SHORT_TIMES
    more: Mapping[str, str] = field(default_factory=dict)

    def environment(self, port: int) -> dict[str, str]:
        """The settings of a process that listens on `port`; nothing else of ours is inherited."""
        policy_file = self.folder / "policy.toml"
        policy_file.write_text(self.policy)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("NOTIFIER_")}
        return {
            **inherited,
            **mail_only(
                self.secrets,
                data_dir=self.folder,
                port=port,
                link_url=self.auth.link_url,
                smtp_port=self.inbox.smtp_port,
            ),
            "NOTIFIER_DATABASE_URL": self.database_url,
            "NOTIFIER_POLICY_FILE": str(policy_file),
            "NOTIFIER_WORKERS": str(WORKERS),
            **self.more,
        }

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Row]]:
        """A connection of the test's own to the product's database, in no transaction."""
        with psycopg.connect(
            self.database_url,
            autocommit=True,
            row_factory=dict_row,
            options="-c search_path=notifier",
        ) as connection:
            yield connection

    def rows(self, statement: str, *values: object) -> list[Row]:
        """What a query finds, on a fresh connection."""
        with self.connection() as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def mails(self, event: Event) -> list[dict[str, Any]]:
        """The messages that the inbox stored for an event's person, oldest first."""
        address = event["destinations"]["email"]
        return self.inbox.journal(phase="stored", recipient=address)

    def stored(self) -> list[str]:
        """The recipient of each message that the inbox ever stored, oldest first."""
        return [str(entry["recipient"]) for entry in self.inbox.journal(phase="stored")]

    @contextmanager
    def locked(self, *events: Event) -> Iterator[None]:
        """Hold the notices' rows of these events, as somebody else's transaction would."""
        with self.connection() as connection, connection.transaction():
            connection.execute(
                "SELECT FROM notice WHERE event_id = ANY (%s) FOR UPDATE",
                [[event["event_id"] for event in events]],
            )
            yield

    def waiting_for_locks(self) -> int:
        """How many statements of the product's sending side wait for a lock now."""
        return len(
            self.rows(
                "SELECT FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = 'notifier-work' AND wait_event_type = 'Lock'"
            )
        )

    @contextmanager
    def halted(self, scope: str) -> Iterator[Acknowledgement]:
        """A halt that stands for the length of the block."""
        with closing(Database(self.database_url, size=1)) as database:
            acknowledged = halts.engage(database, scope=scope, reason="a test", by="test")
            try:
                yield acknowledged
            finally:
                halts.release(database, scope=scope, reason="the test goes on", by="test")


@contextmanager
def surroundings(
    database_url: str,
    folder: Path,
    *,
    policy: str = SHORT_TIMES,
    credentials: tuple[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> Iterator[Surroundings]:
    """Both peers, with secrets of their own; `more` are further settings, which win.

    `credentials` (user, password) are those that the inbox asks for and the product has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = Secrets.load(folder / "secrets.json")
    with running_inbox(credentials=credentials) as inbox, running_auth_service(known.link) as auth:
        wishes = dict(more or {})
        if credentials:
            user, password = credentials
            address = f"smtp://{user}:{password}@127.0.0.1:{inbox.smtp_port}"
            wishes = {"NOTIFIER_SMTP_URL": address, **wishes}
        yield Surroundings(database_url, folder, inbox, auth, known, policy, wishes)


class RunningApp:
    """One `python app.py`, in a session of its own; ready when the block begins.

    Its worker is a child process. At the end it is told to stop and must leave nothing behind;
    what a failed test left standing is killed, by the ids that it started.
    """

    def __init__(
        self, around: Surroundings, *, name: str = "app", more: Mapping[str, str] | None = None
    ) -> None:
        self.around = around
        self.port = port_to_bind()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._log = around.folder / f"{name}-{self.port}.log"
        self._environment = around.environment(self.port) | dict(more or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._children: dict[int, int] = {}

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- life

    def start(self) -> None:
        """Start it, again after an end; from the main thread (see `peers.leash`)."""
        leash = [sys.executable, "-I", str(LEASH), str(os.getpid())]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*leash, sys.executable, "app.py"],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Return when `/readyz` says so."""

        def ready() -> bool:
            assert not self.ended(), f"it ended while starting:\n{self.log}"
            return self.readiness()[0]

        until(ready, READY_WITHIN_S, lambda: f"ready: {self.readiness()[1]}\n{self.log}")
        self.child_pids()

    @property
    def pid(self) -> int:
        """The process that was started: the pid that it prints."""
        assert self._process is not None
        return self._process.pid

    def child_pids(self) -> list[int]:
        """The living processes that it started."""
        found = [pid for pid in children_of(self.pid) if lives(pid)]
        self._children.update({pid: born(pid) for pid in found})
        return found

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the printed pid alone, or to its whole process group."""
        self.child_pids()
        if group:
            os.killpg(self.pid, number)
        else:
            os.kill(self.pid, number)

    def ended(self) -> bool:
        """Whether the printed pid is gone."""
        return self._process is None or self._process.poll() is not None

    @property
    def exit_status(self) -> int | None:
        """What it ended with; None while it runs."""
        return None if self._process is None else self._process.poll()

    def left_behind(self) -> list[int]:
        """Processes of its making that still live."""
        known = sorted(self._children.items())
        return [pid for pid, since in known if lives(pid) and born(pid) == since]

    def wait_until_gone(self, within_s: float = END_WITHIN_S) -> None:
        """Return when neither it nor any of its children lives."""
        assert self._process is not None
        self._process.wait(within_s)
        until(lambda: not self.left_behind(), within_s, lambda: f"gone: {self.left_behind()}")

    def stop(self) -> None:
        """Tell it to stop (SIGTERM), wait; what does not obey is killed and fails the test."""
        if self._process is None:
            return
        self.child_pids()
        for pid in [self.pid, *self.left_behind()]:
            if lives(pid):
                os.kill(pid, signal.SIGCONT)
        if not self.ended():
            os.kill(self.pid, signal.SIGTERM)
        try:
            self.wait_until_gone()
        finally:
            for pid in [self.pid, *self.left_behind()]:
                if lives(pid):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def serves(self) -> bool:
        """Whether anybody listens on its port."""
        try:
            self._get("/healthz")
        except (OSError, http.client.HTTPException):
            return False
        return True

    @property
    def log(self) -> str:
        """Everything that it printed."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    # --- its pages for machines

    def poster(self) -> Poster:
        """A connection on which to post many events, for one thread."""
        return Poster(self.base_url, self.around.secrets.ingest)

    def post(self, event: Event) -> Posted:
        """Post one event."""
        with self.poster() as poster:
            return poster.post(event)

    def admit(self, event: Event) -> str:
        """Post an event that must be admitted; its id."""
        answer = self.post(event)
        assert answer.status == 202, answer.body
        return str(event["event_id"])

    def cancel(self, event_id: str, reason: str) -> Posted:
        """Tell that the reset has ended."""
        with self.poster() as poster:
            return poster.cancel(event_id, reason)

    def status(self, event_id: str) -> dict[str, Any]:
        """The status answer of an event."""
        found: dict[str, Any] = self._get(f"/v1/reset-events/{quote(event_id)}")
        return found

    def trail(self, event_id: str) -> list[dict[str, Any]]:
        """All transitions of an event, oldest first."""
        found: list[dict[str, Any]] = []
        after = 0
        while True:
            page = self._get(f"/v1/reset-events/{quote(event_id)}/transitions?after={after}")
            found += page["transitions"]
            if page["next"] is None:
                return found
            after = page["next"]

    def reasons(self, event_id: str, channel: str = "email") -> list[str]:
        """The reasons on the trail for a channel, oldest first."""
        return [row["reason"] for row in self.trail(event_id) if row["channel"] == channel]

    def readiness(self) -> tuple[bool, dict[str, tuple[bool, str]]]:
        """Whether it is ready, and each part with its verdict and what is said of it."""
        try:
            told = self._get("/readyz")
        except urllib.error.HTTPError as error:
            with error:
                told = json.loads(error.read())
        except (OSError, http.client.HTTPException) as error:
            return False, {"http": (False, type(error).__name__)}
        parts = {each["part"]: (each["ok"], each["detail"]) for each in told.get("parts", [])}
        return bool(told.get("ready")), parts

    def _get(self, path: str) -> Any:
        token = {"Authorization": f"Bearer {self.around.secrets.api_token}"}
        request = urllib.request.Request(self.base_url + path, headers=token)  # noqa: S310
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
            return json.load(answer)

    # --- waiting

    def email(self, event_id: str) -> dict[str, Any]:
        """The email delivery, as the status shows it."""
        deliveries = self.status(event_id)["deliveries"]
        found: dict[str, Any] = next(each for each in deliveries if each["channel"] == "email")
        return found

    def wait_for_email(self, event_id: str, *states: str, within_s: float = 20.0) -> dict[str, Any]:
        """Wait until the email delivery is in one of `states`; how it then stands."""
        until(
            lambda: patiently(lambda: self.email(event_id)["state"]) in states,
            within_s,
            lambda: f"{event_id} in {states}: {self.email(event_id)}\n{self.log[-4000:]}",
        )
        return self.email(event_id)

    def settled(self, event_id: str, within_s: float = 20.0) -> dict[str, Any]:
        """Wait until the notice has ended; its status."""
        until(
            lambda: patiently(lambda: self.status(event_id)["state"]) in FINAL_STATES,
            within_s,
            lambda: f"{event_id} to end: {self.status(event_id)}\n{self.log[-4000:]}",
        )
        return self.status(event_id)

    # --- its commands

    def flask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `flask ARGUMENTS` with the same settings."""
        return subprocess.run(
            [sys.executable, "-m", "flask", "--app", "app", *arguments],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def until(
    condition: Callable[[], object], within_s: float, what: Callable[[], str] | str = ""
) -> None:
    """Wait until `condition` holds; AssertionError with `what` was awaited when it does not."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            told = what() if callable(what) else what
            raise AssertionError(f"waited {within_s:g} s for {told or condition}")
        time.sleep(0.02)


def patiently(ask: Callable[[], str]) -> str | None:
    """What `ask` gives; None where the answer is 503, which asks to come again."""
    try:
        return ask()
    except urllib.error.HTTPError as error:
        with error:
            if error.code != http.HTTPStatus.SERVICE_UNAVAILABLE:
                raise
        return None


def lives(pid: int) -> bool:
    """Whether this process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def born(pid: int) -> int:
    """When this process began, in ticks since the machine did; 0 where there is none.

    With its number it names a process: a number alone is given to others later.
    """
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def children_of(pid: int) -> list[int]:
    """The processes that `pid` started and their own, as the kernel lists them."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found + [each for child in found for each in children_of(child)]
