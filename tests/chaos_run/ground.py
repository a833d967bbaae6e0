"""What both contestants stand on: one Postgres to break, and stand-ins that can be cut off.

Each contestant has a database and stand-ins of its own, so that what was sent is counted for
it alone; every way between them leads through a relay.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from peers.app_process import ROOT
from peers.auth_service import LINK_PATH
from peers.run_settings import Secrets
from peers.testing import (
    AuthHandle,
    InboxHandle,
    PostmarkHandle,
    ResendHandle,
    TwilioHandle,
    running_auth_service,
    running_inbox,
    running_postmark,
    running_resend,
    running_twilio,
)
from tests.chaos.conftest import Cluster
from tests.chaos_run.plan import Case
from tests.chaos_run.relay import Relay
from tests.database import create_database, url_of

MailHandle = InboxHandle | PostmarkHandle | ResendHandle


@dataclass(frozen=True, slots=True)
class Arena:
    """What both contestants share."""

    cluster: Cluster
    folder: Path

    @property
    def bytecode(self) -> dict[str, str]:
        """Settings under which a process keeps compiled what it imports.

        As installed software does; without, a start is mostly the compiler's work.
        """
        kept = self.folder / "bytecode"
        return {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": ""}

    def compile(self, *modules: str) -> None:
        """Import these once, so that the first start is like every other."""
        command = [sys.executable, "-c", f"import {', '.join(modules)}"]
        subprocess.run(command, cwd=ROOT, env=os.environ | self.bytecode, check=True, timeout=120)


@dataclass(frozen=True, slots=True)
class Ground:
    """One contestant's surroundings. `front` leads to its processes, the rest to stand-ins."""

    arena: Arena
    database_url: str
    folder: Path
    secrets: Secrets
    auth: AuthHandle
    mail: MailHandle
    twilio: TwilioHandle
    front: Relay
    to_auth: Relay
    to_mail: Relay
    to_twilio: Relay

    @property
    def link_url(self) -> str:
        return self.to_auth.url + LINK_PATH

    def register(self, case: Case) -> None:
        """Tell the auth service to whom a request belongs."""
        person = case.person
        self.auth.person(case.reset_request_id, email=person.email, sms=person.sms)


@contextmanager
def breakable() -> Iterator[Arena]:
    """A Postgres for one run; it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="notifier-chaos-run-"))
    folder.chmod(0o711)
    cluster = Cluster(folder)
    try:
        yield Arena(cluster, folder)
    finally:
        cluster.close()
        shutil.rmtree(folder)


@contextmanager
def surrounded(arena: Arena, name: str, mail: str) -> Iterator[Ground]:
    """A database, stand-ins in processes of their own, and the relays that lead to them."""
    with psycopg.connect(arena.cluster.server.superuser_url, autocommit=True) as connection:
        connection.execute(create_database(name))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"chaos-{name}-")))
        known = Secrets.load(folder / "secrets.json")
        auth = stack.enter_context(running_auth_service(known.link, process=True))
        sending = stack.enter_context(_mail(mail))
        twilio = stack.enter_context(running_twilio(process=True))
        relays = [
            stack.enter_context(Relay([port_in(url)]))
            for url in (auth.url, _way_to(sending), twilio.url)
        ]
        front = stack.enter_context(Relay())
        url = url_of(arena.cluster.server, name)
        yield Ground(arena, url, folder, known, auth, sending, twilio, front, *relays)


def _mail(name: str) -> AbstractContextManager[MailHandle]:
    running: dict[str, Callable[..., AbstractContextManager[MailHandle]]] = {
        "smtp": running_inbox,
        "postmark": running_postmark,
        "resend": running_resend,
    }
    return running[name](process=True)


def _way_to(mail: MailHandle) -> str:
    return mail.smtp_url if isinstance(mail, InboxHandle) else mail.url


def port_in(url: str) -> int:
    """The port in a URL that has one."""
    return int(url.rpartition(":")[2].partition("/")[0])
