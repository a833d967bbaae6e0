"""One worker process of the plain contestant: `python -m tests.chaos_run.plain_worker`.

Prints `up PID worker ID` once it takes jobs.
"""

from __future__ import annotations

import asyncio
import os
import sys

from procrastinate import PsycopgConnector
from procrastinate.worker import Worker

from tests.chaos_run.plain_tasks import HEARTBEAT_S, STALLED_S, build


async def main() -> None:
    """Work until told to stop."""
    app = build(PsycopgConnector(conninfo=os.environ["PLAIN_DATABASE_URL"]))
    async with app.open_async():
        worker = Worker(
            app=app,
            concurrency=int(os.environ["PLAIN_CONCURRENCY"]),
            fetch_job_polling_interval=1.0,
            update_heartbeat_interval=HEARTBEAT_S,
            stalled_worker_timeout=STALLED_S,
            shutdown_graceful_timeout=5.0,
        )
        telling = asyncio.create_task(tell(worker))
        await worker.run()  # type: ignore[no-untyped-call]
        telling.cancel()


async def tell(worker: Worker) -> None:
    """Say so once it has registered."""
    while worker.worker_id is None:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.02)
    sys.stdout.write(f"up {os.getpid()} worker {worker.worker_id}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
