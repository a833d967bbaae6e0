"""The product under chaos: its processes, how events reach it, and what its rows say."""

from __future__ import annotations

import base64
import http.client
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from notifier.store import schema
from notifier.store.database import Database
from peers.events import Event, Poster
from peers.testing import AuthHandle, InboxHandle, PostmarkHandle, ResendHandle
from tests.chaos_run.fleet import Fleet, fleet_of
from tests.chaos_run.ground import Ground
from tests.chaos_run.plan import POLICY, Plan
from tests.chaos_run.senders import Line, NotYet, Refused
from tests.running import RunningApp, Surroundings, until

CALLBACK_PASSWORD: Final = "password-of-a-chaos-run"
WEBHOOK_SECRET: Final = "whsec_" + base64.b64encode(b"secret of a chaos run").decode()
ANSWER_WITHIN_S: Final = 5.0
DRAIN_LIMIT_S: Final = 240.0

OPEN_ATTEMPTS: Final = """
SELECT reference, split_part(owner, ':', 2)::int AS pid FROM attempt
 WHERE resolved_at IS NULL AND outcome IS NULL
"""
DELIVERIES: Final = """
SELECT a.event_id, a.notice_id::text AS notice_id, n.state AS notice_state, n.mode, d.channel,
       d.state, d.reason, d.stop_at, d.expires_at, d.attempts, d.final_acceptance,
       extract(epoch FROM a.expires_at - a.admitted_at)::float AS life_s
  FROM admission a LEFT JOIN notice n USING (notice_id) LEFT JOIN delivery d USING (notice_id)
"""
ATTEMPTS: Final = """
SELECT n.event_id, t.channel, t.provider, t.number, t.reference, t.owner, t.started_at, t.deadline,
       t.finished_at, t.outcome, t.reason, t.resolved_at, t.replay_started_at
  FROM attempt t JOIN notice n USING (notice_id) ORDER BY t.started_at
"""
NOT_CLOSED: Final = """
SELECT count(*) AS n FROM delivery JOIN notice USING (notice_id)
 WHERE notice.state IN ('email_pending', 'text_pending')
    OR delivery.state IN ('standby', 'queued', 'claimed', 'attempted', 'unknown')
    OR (delivery.state = 'accepted' AND NOT delivery.final_acceptance)
"""
OVERDUE: Final = """
SELECT count(*) AS n FROM delivery
 WHERE (state = 'queued' AND due_at < db_now() - interval '1 second')
    OR (state IN ('claimed', 'attempted') AND lease_until < db_now())
"""
REASONS: Final = """
SELECT notice_id::text AS notice_id, channel, reason, count(*) AS n FROM transition
 GROUP BY 1, 2, 3
"""
STORY: Final = """
SELECT t.recorded_at, extract(epoch FROM t.recorded_at - a.admitted_at)::float AS after_s,
       coalesce(t.channel, '-') AS channel, coalesce(t.from_state, '-') AS from_state,
       coalesce(t.to_state, '-') AS to_state, t.reason, t.actor
  FROM transition t JOIN admission a USING (notice_id) WHERE a.event_id = %s ORDER BY t.seq
"""
MEANWHILE: Final = """
SELECT count(*) AS attempts, count(DISTINCT t.owner) AS owners,
       coalesce(extract(epoch FROM max(t.gap)), 0)::float AS longest_gap_s
  FROM admission a
  JOIN (SELECT started_at, owner,
               started_at - lag(started_at) OVER (ORDER BY started_at) AS gap
          FROM attempt) t ON t.started_at BETWEEN a.admitted_at AND a.expires_at
 WHERE a.event_id = %s
"""

Row = dict[str, Any]


class ProductLine:
    """Posts through the balancer, as the auth service does."""

    def __init__(self, ground: Ground) -> None:
        self._poster = Poster(ground.front.url, ground.secrets.ingest, timeout_s=ANSWER_WITHIN_S)

    def send(self, event: Event) -> str:
        """The notice's id; see `Line`."""
        try:
            answer = self._poster.post(event)
        except (OSError, http.client.HTTPException) as error:
            raise NotYet from error
        if answer.status == 202:
            return str(answer.json()["notification_id"])
        if answer.status >= 500 or answer.status == 429:
            raise NotYet
        raise Refused(f"{answer.status} {answer.body.decode()[:200]}")

    def close(self) -> None:
        """Hang up."""
        self._poster.close()


@dataclass(slots=True)
class Rows:
    """A connection to the product's database that survives the Postgres's deaths."""

    url: str
    _connection: psycopg.Connection[Row] | None = field(default=None)

    def __call__(self, statement: str, *values: object) -> list[Row]:
        """What a query finds; psycopg.Error where it cannot be asked now."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self.url,
                autocommit=True,
                row_factory=dict_row,
                options="-c search_path=notifier,public",
            )
        return self._connection.execute(statement.encode(), values).fetchall()

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()


@dataclass(slots=True)
class Product:
    """The running product."""

    ground: Ground
    fleet: Fleet
    rows: Rows

    def story(self, event_id: str) -> list[str]:
        """The trail of one event, a line each, and what else was sent in its life."""
        lines = [
            "  {recorded_at:%H:%M:%S.%f} +{after_s:.3f} s {channel} {from_state} -> {to_state}: "
            "{reason}, by {actor}".format(**row)
            for row in self.rows(STORY, event_id)
        ]
        meanwhile = (
            "  meanwhile {attempts} attempts by {owners} owners, {longest_gap_s:.1f} s without one"
        )
        return [*lines, *(meanwhile.format(**row) for row in self.rows(MEANWHILE, event_id))]

    def line(self) -> Line:
        """A way for one sender."""
        return ProductLine(self.ground)

    def in_flight(self, pids: tuple[int, ...]) -> set[str]:
        """The open attempts of a process; none where that cannot be read now."""
        with suppress(psycopg.Error):
            return {row["reference"] for row in self.rows(OPEN_ATTEMPTS) if row["pid"] in pids}
        return set()

    def drain(self) -> tuple[float, float]:
        """Wait until all is closed; seconds until nothing was overdue, and until all was closed."""
        begin = time.monotonic()
        until(self.fleet.all_ready, DRAIN_LIMIT_S, "every process to be ready again")
        until(lambda: not self._count(OVERDUE), DRAIN_LIMIT_S, "nothing to be overdue")
        idle = time.monotonic() - begin
        with suppress(AssertionError):  # what is left open is found and reported as lost
            until(lambda: not self._count(NOT_CLOSED), DRAIN_LIMIT_S, "everything to be closed")
        return idle, time.monotonic() - begin

    def _count(self, statement: str) -> int:
        self.fleet.tend()
        (row,) = self.rows(statement)
        return int(row["n"])


@contextmanager
def running_product(ground: Ground, plan: Plan) -> Iterator[Product]:
    """Every process of the product, ready; they end with the block."""
    ground.arena.compile("app")
    schema.upgrade(Database(ground.database_url).sqlalchemy_url)
    around = _surroundings(ground, plan)
    apps = [RunningApp(around, name=f"app-{number}") for number in range(plan.processes)]
    ground.front.lead_to([app.port for app in apps])
    _ask_for_callbacks(ground)
    rows = Rows(ground.database_url)
    with fleet_of(apps, random.Random(f"fleet {plan.seed}"), _stop) as fleet:
        try:
            yield Product(ground, fleet, rows)
        finally:
            fleet.wake_all()
            rows.close()


def _ask_for_callbacks(ground: Ground) -> None:
    match ground.mail:
        case PostmarkHandle():
            url = f"{ground.front.url}/callbacks/postmark/"
            ground.mail.callback_to(url, CALLBACK_PASSWORD)
        case ResendHandle():
            url = f"{ground.front.url}/callbacks/resend/"
            ground.mail.callback_to(url, WEBHOOK_SECRET)


def _mail_settings(ground: Ground) -> dict[str, str]:
    match ground.mail:
        case PostmarkHandle(token=token):
            return {
                "NOTIFIER_POSTMARK_TOKEN": token,
                "NOTIFIER_POSTMARK_CALLBACK_PASSWORD": CALLBACK_PASSWORD,
                "NOTIFIER_POSTMARK_BASE_URL": ground.to_mail.url,
            }
        case ResendHandle(api_key=key):
            return {
                "NOTIFIER_RESEND_API_KEY": key,
                "NOTIFIER_RESEND_WEBHOOK_SECRET": WEBHOOK_SECRET,
                "NOTIFIER_RESEND_BASE_URL": ground.to_mail.url,
            }
    return {}


def _stop(app: RunningApp) -> None:
    app.stop()


def _surroundings(ground: Ground, plan: Plan) -> Surroundings:
    more = {
        **ground.arena.bytecode,
        "NOTIFIER_PUBLIC_URL": ground.front.url,
        "NOTIFIER_WORKERS": str(plan.workers),
        "NOTIFIER_EMAIL_PROVIDERS": plan.mail,
        **_mail_settings(ground),
        "NOTIFIER_SMS_PROVIDERS": "twilio",
        "NOTIFIER_TWILIO_ACCOUNT_SID": ground.twilio.account_sid,
        "NOTIFIER_TWILIO_AUTH_TOKEN": ground.twilio.auth_token,
        "NOTIFIER_TWILIO_FROM": "+15005550006",
        "NOTIFIER_TWILIO_BASE_URL": ground.to_twilio.url,
    }
    inbox = InboxHandle(ground.to_mail.port, ground.mail.url)
    auth = AuthHandle(ground.link_url, ground.auth.url)
    return Surroundings(
        ground.database_url, ground.folder, inbox, auth, ground.secrets, POLICY, more
    )
