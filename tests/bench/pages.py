"""Every page at a million notices, each at least 200 times, while events are admitted.

    python -m tests.bench.pages [--notices N] [--times N] [--folder FOLDER]

Its mix is told in `pages_mix`, what stands beside in `pages_seed`. Writing it takes some minutes
and about 14 GB; a FOLDER keeps the database for the next time. Times are the client's, over
loopback on one kept connection, and stand beside those of /healthz in the same turns, because a
busy machine slows both.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo

from notifier.starting import sqlalchemy_url
from notifier.store import schema
from notifier.store.database import Database
from notifier.store.embedded import ensure_running
from peers.app_process import ROOT
from tests.bench import pages_seed
from tests.bench.admission import order
from tests.bench.figures import Figure, keep, quantile, table
from tests.bench.ground import App, Ground, running_app, surrounded
from tests.bench.load import post
from tests.bench.pages_visit import (
    FRAGMENT_BYTES,
    LIST_BYTES,
    LOOK_UP_P95_MS,
    PAGE_P95_MS,
    VISITS,
    Seen,
    Visit,
    measure,
    samples,
    sign_in,
)

NOTICES: Final = 1_000_000
OPEN: Final = 2_000
TIMES: Final = 200
ADMITTED_PER_S: Final = 20.0
TURN_S: Final = 5
SEEDING: Final = {
    "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off",
    "max_wal_size": "8GB", "shared_buffers": "512MB", "maintenance_work_mem": "512MB",
}  # fmt: skip


def main() -> None:
    """Measure; a missed limit is marked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--notices", type=int, default=NOTICES)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with (
        _folder(asked.folder) as folder,
        _filled(folder, asked.notices) as ground,
        running_app(ground, workers=4) as app,
        admissions(ground, app),
    ):
        found = visited(ground.url, app, VISITS, asked.times)
    figures = [each for seen in found for each in figures_of(seen)]
    path = keep(figures, ROOT / "bench-results")
    sys.stdout.write(f"{table(figures)}\n{path.relative_to(ROOT)}\n")


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    folder = given or Path(tempfile.mkdtemp(prefix="notifier-pages-"))
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        if given is None:
            shutil.rmtree(folder)


@contextmanager
def _filled(folder: Path, notices: int) -> Iterator[Ground]:
    """The database of this folder, filled where it is new; durable while it is measured."""
    data = folder / "database"
    if not data.exists():
        with ExitStack() as stack:
            server = ensure_running(data, settings=SEEDING)
            stack.callback(server.stop)
            schema.upgrade(sqlalchemy_url(server.url))
            admin = make_conninfo(server.superuser_url, dbname="notifier")
            pages_seed.seed(admin, notices, min(OPEN, notices // 5))
    with ExitStack() as stack:
        server = ensure_running(data)
        stack.callback(server.stop)
        yield stack.enter_context(surrounded(folder, server.url, server.bin_dir))


@contextmanager
def admissions(ground: Ground, app: App) -> Iterator[None]:
    """Twenty events a second meanwhile."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            asked = order(ground, app, 4, int(TURN_S * ADMITTED_PER_S), TURN_S)
            post(replace(asked, rate=ADMITTED_PER_S))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def visited(url: str, app: App, visits: Sequence[Visit], times: int) -> list[Seen]:
    """Each page by somebody who may see it; /healthz last, of all turns together."""
    database = Database(url, size=1)
    with closing(database):
        readers = {role: sign_in(app.url, database, role) for role in {v.role for v in visits}}
        with database.connection() as connection:
            connection.execute("SET statement_timeout = '10min'")
            ids = samples(connection)

        def forget() -> None:
            with database.connection() as connection:
                connection.execute("DELETE FROM rate_window WHERE name LIKE 'look_up%'")

        plain, found = Seen("/healthz", look_up=False, fragment=False), list[Seen]()
        for visit in visits:
            *seen, beside = measure(visit, readers[visit.role], ids, times, forget)
            plain.took_ms += beside.took_ms
            found += seen
        return [*found, plain]


def figures_of(seen: Seen) -> list[Figure]:
    """Middle, tail and worst, and the largest size."""
    limit = LOOK_UP_P95_MS if seen.look_up else PAGE_P95_MS
    p50, p95 = quantile(seen.took_ms, 0.5), quantile(seen.took_ms, 0.95)
    told = [
        Figure(f"{seen.name}: p50", p50, "ms"),
        Figure(f"{seen.name}: p95", p95, "ms", at_most=limit),
        Figure(f"{seen.name}: max", max(seen.took_ms), "ms"),
    ]
    if seen.sizes:
        size = FRAGMENT_BYTES if seen.fragment else LIST_BYTES
        told.append(Figure(f"{seen.name}: HTML", max(seen.sizes), "B", at_most=size))
    return told


if __name__ == "__main__":
    main()
