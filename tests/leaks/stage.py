"""The real application on a copy of the product, with peers that know the canaries."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.rows import DictRow, dict_row

from peers.app_process import ROOT, AppProcess
from peers.events import Event, Posted, Poster, build_event
from peers.run_settings import Secrets, mail_only
from peers.testing import AuthHandle, InboxHandle, running_auth_service, running_inbox
from tests.leaks.canaries import Canaries
from tests.leaks.search import Haystack, files
from tests.ports import port_to_bind

PRODUCT = ("app.py", "notifier", "templates", "migrations", "static")
POLICY = """
retry_backoff_s = [0.1]
provider_pause_s = 0.1
sweep_every_s = 0.5
lease_s = 4.5
[call_timeout_s]
email = 2.0
[final_reply_timeout_s]
email = 1.0
"""
BROKEN = ("broken", "1")
PATIENCE_S = 40.0


@dataclass(slots=True)
class Stage:
    """One application with all that is around it. `app` may be started again after its end."""

    folder: Path
    canaries: Canaries
    inbox: InboxHandle
    auth: AuthHandle
    known: Secrets
    port: int
    environment: dict[str, str]
    database_url: str = ""
    said: list[Haystack] = field(default_factory=list)
    runs: int = 0
    app: AppProcess | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def root(self) -> Path:
        """The copy that the application runs from, and its working folder."""
        return self.folder / "product"

    def start(self, *, core: bool = False) -> AppProcess:
        """Start and wait until it is ready; with `core` the kernel would dump a crash."""
        log = self.folder / "logs" / f"app-{self.runs}.log"
        self.runs += 1
        self.app = AppProcess(self.environment, self.base_url, log, root=self.root)
        with core_limit(-1) if core else ExitStack():
            self.app.start()
        self.app.wait_until_ready(threading.Event())
        return self.app

    def processes(self) -> list[int]:
        """The application's process and all below it."""
        assert self.app is not None
        assert self.app._child is not None
        return [self.app._child.pid, *descendants(self.app._child.pid)]

    def worker(self) -> int:
        """The process that answers and sends."""
        return self.processes()[1]

    def flask(self, *arguments: str, said: str = "") -> Callable[[], int]:
        """Start a command; calling the result waits for its end and keeps what it printed."""
        child = subprocess.Popen(
            [sys.executable, "-m", "flask", "--app", "app", *arguments],
            cwd=self.root, env=os.environ | self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

        def end() -> int:
            printed, _ = child.communicate(said, timeout=PATIENCE_S)
            self.said.append(Haystack(f"flask {' '.join(arguments)}", printed.encode()))
            return child.returncode

        return end

    def post(self, event: Event, **headers: str) -> Posted:
        """Post a signed event; the answer is kept for the search."""
        with Poster(self.base_url, self.known.ingest) as poster:
            return self.keep(poster.post(event, **headers))

    def keep(self, posted: Posted) -> Posted:
        """Keep an answer for the search."""
        content = f"{posted.status} {posted.headers}\n".encode() + posted.body
        self.said.append(Haystack("answer to a signed request", content))
        return posted

    def event(
        self, tag: str, mail: str = "", first: Sequence[Mapping[str, Any]] = (), **fields: Any
    ) -> Event:
        """An event of a canary person; `mail` is the fate of its message.

        The auth service gives the answers `first`, each once where they say no other `times`,
        then the right one.
        """
        event = build_event(tag=tag, **fields)
        address = self.canaries.address(mail)
        event["destinations"] = {"email": address, "sms": self.canaries.number}
        mine = {"reset_request_id": event["reset_request_id"]}
        for answer in first:
            self.auth.script(**{**mine, "times": 1, **answer})
        self.auth.script(**mine, body=self.granted(tag, address))
        return event

    def granted(self, tag: str, address: str) -> dict[str, str]:
        """The right link answer."""
        link, name = self.canaries.link(tag), self.canaries.name
        return {"reset_url": link, "destination": address, "name": name}

    def leftovers(self) -> Iterator[Haystack]:
        """Everything that the application wrote outside its database."""
        yield from self.said
        yield from files(self.folder / "logs")
        yield from files(self.folder / "tmp")
        yield from files(self.folder / "home")
        old = set((self.folder / "as-copied").read_text().splitlines())
        for each in files(self.root):
            if each.name not in old:
                yield each


@contextmanager
def core_limit(limit: int) -> Iterator[None]:
    """What children of this process inherit as the most that a core file may hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard if limit < 0 else limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@contextmanager
def stage(folder: Path, database_url: str | None = None) -> Iterator[Stage]:
    """Peers and settings; nothing is started yet. Without a URL the database is embedded."""
    canaries = Canaries()
    known = Secrets.load(folder / "secrets.json")
    copy_product(folder)
    for name in ("logs", "tmp", "home"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    credentials = (canaries.smtp_user, canaries.smtp_password)
    with (
        running_inbox(credentials=credentials) as inbox,
        running_auth_service(known.link) as auth,
    ):
        port = port_to_bind()
        environment = mail_only(
            known, data_dir=folder / "data", port=port, link_url=auth.link_url,
            smtp_port=inbox.smtp_port,
        )  # fmt: skip
        (folder / "policy.toml").write_text(POLICY)
        login = ":".join(credentials)
        environment |= {
            "NOTIFIER_SMTP_URL": f"smtp://{login}@127.0.0.1:{inbox.smtp_port}",
            "NOTIFIER_POLICY_FILE": str(folder / "policy.toml"),
            "NOTIFIER_WORKERS": "12",
            "TMPDIR": str(folder / "tmp"),
            "HOME": str(folder / "home"),
            "PYTHONFAULTHANDLER": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if database_url is not None:
            environment["NOTIFIER_DATABASE_URL"] = database_url
        canaries.config |= {
            "ingest secret": known.ingest.removeprefix("whsec_"),
            "link secret": known.link.removeprefix("whsec_"),
            "session key": known.session_key,
            "fingerprint key": known.fingerprint_key,
            "checkpoint key": known.checkpoint_key,
            "API token": known.api_token,
        }
        made = Stage(folder, canaries, inbox, auth, known, port, environment, database_url or "")
        try:
            yield made
        finally:
            if made.app is not None:
                made.app.close()


def copy_product(folder: Path) -> None:
    """What is installed, and one template whose every rendering fails on an error with the link."""
    root = folder / "product"
    for name in PRODUCT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name)
        else:
            root.mkdir(exist_ok=True)
            shutil.copy2(source, root / name)
    broken = root / "templates" / "messages" / BROKEN[0] / BROKEN[1]
    shutil.copytree(ROOT / "templates" / "messages" / "password-reset" / "1", broken)
    (broken / "en" / "email.txt").write_text("{% include link ~ name %}")
    names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    (folder / "as-copied").write_text("\n".join(names))


def descendants(pid: int) -> list[int]:
    """The children of a process and theirs, by /proc."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *descendants(child))]


class Watch:
    """Looks, many times a second, at what any user of the machine or the database may see."""

    def __init__(self, stage: Stage, superuser_url: str) -> None:
        self._stage, self._url = stage, superuser_url
        self._stop = threading.Event()
        self.commands: set[bytes] = set()
        self.statements: set[str] = set()
        self._thread = threading.Thread(target=self._look, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        with connect(self._url) as connection:
            while not self._stop.wait(0.03):
                for row in connection.execute("SELECT query FROM pg_stat_activity"):
                    self.statements.add(str(row["query"]))
                self.commands |= set(map(command_line, self._stage.processes()))

    def haystacks(self) -> list[Haystack]:
        return [
            Haystack("command lines", b"\n".join(self.commands)),
            Haystack("pg_stat_activity", "\n".join(self.statements).encode()),
        ]


def command_line(pid: int) -> bytes:
    """What `ps` shows of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def connect(url: str) -> psycopg.Connection[DictRow]:
    """An autocommit connection of the test's own."""
    return psycopg.connect(
        url, autocommit=True, row_factory=dict_row, options="-c search_path=notifier"
    )


def dump(bin_dir: Path, url: str) -> Haystack:
    """The database as pg_dump writes it."""
    done = subprocess.run(
        [bin_dir / "pg_dump", "--dbname", url], check=True, capture_output=True, timeout=PATIENCE_S
    )
    return Haystack("pg_dump", done.stdout)


def kill(pid: int, number: signal.Signals) -> None:
    """One signal to one process of ours."""
    os.kill(pid, number)
