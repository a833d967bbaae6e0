"""The plain contestant: its processes, how events reach its queue, and what its rows say."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from procrastinate import App, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException

from peers import postmark
from peers.app_process import LEASH, ROOT
from peers.events import Event
from tests.chaos_run.fleet import Fleet, fleet_of
from tests.chaos_run.ground import Ground
from tests.chaos_run.plain_tasks import build
from tests.chaos_run.plan import Plan
from tests.chaos_run.product import Rows
from tests.chaos_run.senders import Line, NotYet
from tests.running import RunningApp, until

UP = re.compile(r"^up (\d+) worker (\d+)$", re.MULTILINE)
DRAIN_LIMIT_S = 120.0
DOING = "SELECT id::text AS id, worker_id FROM procrastinate_jobs WHERE status = 'doing'"
LEFT = """
SELECT count(*) AS n FROM procrastinate_jobs
 WHERE status IN ('todo', 'doing') AND task_name IN ('mail', 'text')
"""


class PlainWorker(RunningApp):
    """One worker process, started, killed and stopped as the product's are."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._environment, self._log = environment, log
        self._process = None
        self._children: dict[int, int] = {}
        self._known: dict[int, int] = {}

    def start(self) -> None:
        """Start it, again after an end; from the main thread (see `peers.leash`)."""
        leash = [sys.executable, "-I", str(LEASH), str(os.getpid())]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*leash, sys.executable, "-m", "tests.chaos_run.plain_worker"],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def readiness(self) -> tuple[bool, dict[str, tuple[bool, str]]]:
        """Whether it has said that it takes jobs."""
        return self.worker_id(self.pid) is not None, {}

    def worker_id(self, pid: int) -> int | None:
        """The number under which the process with this pid took jobs."""
        if pid not in self._known:
            self._known |= {int(each[1]): int(each[2]) for each in UP.finditer(self.log)}
        return self._known.get(pid)


class PlainLine:
    """Puts work into the queue, as the auth service would within its own transaction."""

    def __init__(self, url: str) -> None:
        self._app: App = build(
            SyncPsycopgConnector(conninfo=url, min_size=1, max_size=1, timeout=5)
        )
        self._app.open()

    def send(self, event: Event) -> str:
        """The event's id once it is queued; a repeat of what waits is no second job."""
        reset = {name: event[name] for name in ("event_id", "reset_request_id")}
        task = self._app.configure_task("mail", queueing_lock=f"mail {event['event_id']}")
        try:
            task.defer(**reset)
        except AlreadyEnqueued:
            pass
        except ConnectorException as error:
            raise NotYet from error
        return str(event["event_id"])

    def close(self) -> None:
        """Hang up."""
        self._app.close()


@dataclass(slots=True)
class Plain:
    """The running plain contestant."""

    ground: Ground
    fleet: Fleet
    rows: Rows

    def line(self) -> Line:
        """A way for one sender."""
        return PlainLine(self.ground.database_url)

    def in_flight(self, pids: tuple[int, ...]) -> set[str]:
        """The jobs that a process has in hand; none where that cannot be read now."""
        owner = next(each.app for each in self.fleet.members if pids[0] in each.pids)
        mine = owner.worker_id(pids[0]) if isinstance(owner, PlainWorker) else None
        with suppress(psycopg.Error):
            return {row["id"] for row in self.rows(DOING) if row["worker_id"] == mine}
        return set()

    def drain(self) -> tuple[float, float]:
        """Wait until no job is left; seconds until then, twice (there is no other end)."""
        begin = time.monotonic()
        with suppress(AssertionError):
            until(lambda: not self.left(), DRAIN_LIMIT_S, "no job to be left")
        took = time.monotonic() - begin
        return took, took

    def left(self) -> int:
        """Jobs that have neither succeeded nor failed."""
        self.fleet.tend()
        (row,) = self.rows(LEFT)
        return int(row["n"])


@contextmanager
def running_plain(ground: Ground, plan: Plan) -> Iterator[Plain]:
    """Every worker process, taking jobs; they end with the block."""
    ground.arena.compile("tests.chaos_run.plain_worker")
    with closing(PlainLine(ground.database_url)) as line:
        line._app.schema_manager.apply_schema()
    environment = _environment(ground, plan)
    workers = [
        PlainWorker(environment, ground.folder / f"plain-{number}.log")
        for number in range(plan.processes)
    ]
    rows = Rows(ground.database_url)
    with fleet_of(workers, random.Random(f"fleet {plan.seed}"), RunningApp.stop) as fleet:
        try:
            yield Plain(ground, fleet, rows)
        finally:
            fleet.wake_all()
            rows.close()


def _environment(ground: Ground, plan: Plan) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NOTIFIER_")}
    return {
        **inherited,
        **ground.arena.bytecode,
        "PLAIN_DATABASE_URL": ground.database_url,
        "PLAIN_CONCURRENCY": str(plan.workers),
        "PLAIN_LINK_URL": ground.link_url,
        "PLAIN_LINK_SECRET": ground.secrets.link,
        "PLAIN_POSTMARK_URL": ground.to_mail.url,
        "PLAIN_POSTMARK_TOKEN": postmark.TOKEN,
        "PLAIN_TWILIO_URL": ground.to_twilio.url,
        "PLAIN_TWILIO_ACCOUNT": ground.twilio.account_sid,
        "PLAIN_TWILIO_TOKEN": ground.twilio.auth_token,
    }
