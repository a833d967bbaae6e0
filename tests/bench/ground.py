"""What a benchmark stands on: a durable Postgres of its own, the stand-ins, the product."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from notifier.starting import sqlalchemy_url
from notifier.store import schema
from notifier.store.embedded import ensure_running
from peers.app_process import AppProcess
from peers.run_settings import Secrets, mail_only
from peers.testing import AuthHandle, InboxHandle, running_auth_service, running_inbox
from tests.ports import port_to_bind

ANY_PORT = 28_000
"""For settings of which nothing serves."""
SERVING = re.compile(r"pid (\d+) serves")


@dataclass(frozen=True, slots=True)
class Ground:
    """One database with the stand-ins around it."""

    folder: Path
    url: str
    bin_dir: Path
    known: Secrets
    auth: AuthHandle
    inbox: InboxHandle

    def settings(self, port: int = ANY_PORT, **more: str) -> dict[str, str]:
        """The app's environment on this ground."""
        own = mail_only(
            self.known,
            data_dir=self.folder / "app",
            port=port,
            link_url=self.auth.link_url,
            smtp_port=self.inbox.smtp_port,
        )
        return own | {"NOTIFIER_DATABASE_URL": self.url} | more


@dataclass(frozen=True, slots=True)
class App:
    """The product, running."""

    url: str
    pid: int


@contextmanager
def prepared() -> Iterator[Ground]:
    """Everything fresh; the Postgres as durable as the product's own."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="notifier-bench-"))
        stack.callback(shutil.rmtree, folder)
        folder.chmod(0o711)
        server = ensure_running(folder / "database")
        stack.callback(server.stop)
        schema.upgrade(sqlalchemy_url(server.url))
        yield stack.enter_context(surrounded(folder, server.url, server.bin_dir))


@contextmanager
def surrounded(folder: Path, url: str, bin_dir: Path) -> Iterator[Ground]:
    """A migrated database that is at hand, with the stand-ins in processes of their own."""
    known = Secrets.load(folder / "secrets.json")
    with (
        running_auth_service(known.link, process=True) as auth,
        running_inbox(process=True) as inbox,
    ):
        yield Ground(folder, url, bin_dir, known, auth, inbox)


@contextmanager
def running_app(ground: Ground, workers: int) -> Iterator[App]:
    """The product as `python app.py` runs it, ready."""
    port = port_to_bind()
    url, log = f"http://127.0.0.1:{port}", ground.folder / "app.log"
    environment = ground.settings(port, NOTIFIER_WORKERS=str(workers))
    with closing(AppProcess(environment, url, log)) as app:
        app.start()
        app.wait_until_ready(threading.Event())
        said = SERVING.search(log.read_text())
        assert said, log.read_text()
        yield App(url, int(said[1]))
